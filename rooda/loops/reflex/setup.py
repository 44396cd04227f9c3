"""Prepares the settings, agent and screen of a reflex loop before anything is asked, written or paid for."""

from typing import Any, NamedTuple

from rooda.agents.records import Agent
from rooda.base.json import Json
from rooda.errors import ConfigProblem, UsageProblem
from rooda.loops import configuration, launch, trusting
from rooda.loops.options import RunOptions
from rooda.loops.reflex.view import ReflexScreen
from rooda.run.setup import Setup
from rooda.settings import agents, layers
from rooda.settings.layers import BUILT_IN
from rooda.settings.lookup import Lookup
from rooda.settings.setup import setup
from rooda.settings.where import Where

PHASES = ("plan", "produce", "prepare", "evaluate", "critique", "refine")


class Prepared(NamedTuple):
    """Settings, agent and screen of a reflex loop."""

    setup: Setup
    look: Lookup
    agent: Agent
    models: dict[str, str]  # phase: model, for phases with a model of their own
    screen: ReflexScreen

    def agent_of(self, phase: str) -> Agent:
        model = self.models.get(phase.lower())
        return self.agent._replace(model=model) if model else self.agent


def prepared(where: Where, asked: RunOptions, own: Json, resumed: bool = False) -> Prepared:
    """Resolve the settings and check the agent. `own`: settings of [reflex] that were given on the command line."""
    found = configuration.load_for_start(where, asked.warn_unknown)
    found = trusting.checked(found, asked, where.config, resumed)
    flags = {**asked.flags, **own}
    made, look = setup(found, "reflex", flags)
    if made.agent and _read_only_by_default(found, look, made.agent):
        made, look = setup(found, "reflex", {**flags, "read_only": True})
    if made.agent is None:
        raise ConfigProblem(agents.no_agent_text(found, "[reflex]"))
    screen = ReflexScreen(launch.screen_options(made, asked))
    program = launch.check_agent(made.agent, where.workspace, "")
    launch.announce_agent(made.agent, program, screen, asked.remembered)
    return Prepared(made, look, made.agent, _models(found, look), screen)


def _read_only_by_default(found: "layers.Settings", look: Lookup, agent: Agent) -> bool:
    """True if rooda turns read_only on: the agent supports it, the user hasn't set it, and phases need only answers."""
    setting = look.find("read_only")
    able = (bool(agent.name) and "read_only" in found.agents().get(agent.name, {})) or agents.asks_permission(agent)
    return able and (setting is None or setting.layer.tier == BUILT_IN)


def _models(found: "layers.Settings", look: Lookup) -> dict[str, str]:
    named: dict[str, Any] = look.merged("phase_models")
    for phase in named:
        if phase not in PHASES:
            raise UsageProblem(f"phase_models: {phase!r} is not a phase. Available: {', '.join(PHASES)}")
    return {phase: agents.translate_model(found, word) for phase, word in named.items()}
