"""Everything that can be found wrong before anything is asked, written or paid for."""

from typing import Any, NamedTuple

from rooda.agents.records import Agent
from rooda.base.json import Json
from rooda.errors import ConfigProblem, UsageProblem
from rooda.loops import configuration, launch
from rooda.loops.options import RunOptions
from rooda.loops.reflex.view import ReflexScreen
from rooda.run.setup import Setup
from rooda.settings import agents, layers
from rooda.settings.layers import BUILT_IN
from rooda.settings.lookup import Lookup
from rooda.settings.setup import setup
from rooda.settings.where import Where, warned

PHASES = ("plan", "produce", "prepare", "evaluate", "critique", "refine")


class Ready(NamedTuple):
    """What a loop is run with."""

    setup: Setup
    look: Lookup
    agent: Agent
    models: dict[str, str]  # of single phases
    screen: ReflexScreen

    def agent_of(self, phase: str) -> Agent:
        model = self.models.get(phase.lower())
        return self.agent._replace(model=model) if model else self.agent


def ready(where: Where, asked: RunOptions, own: Json) -> Ready:
    """`own`: what was typed of this kind's own settings."""
    found = warned(configuration.load(where.workspace, where.config))
    flags = {**asked.flags, **own}
    made, look = setup(found, "reflex", flags)
    if made.agent and _only_reads(found, look, made.agent):
        made, look = setup(found, "reflex", {**flags, "read_only": True})
    if made.agent is None:
        raise ConfigProblem(agents.no_agent_text(found, "[reflex]"))
    screen = ReflexScreen(launch.look(made, asked))
    program = launch.checked(made.agent, where.workspace, "")
    launch.announced(made.agent, program, screen, asked.kept)
    return Ready(made, look, made.agent, _models(found, look), screen)


def _only_reads(found: "layers.Settings", look: Lookup, agent: Agent) -> bool:
    """Phases answer in words. An agent that can be kept from writing is, unless a person says otherwise."""
    said = look.find("read_only")
    able = bool(agent.name) and "read_only" in found.table("agents").get(agent.name, {})
    return able and (said is None or said.layer.tier == BUILT_IN)


def _models(found: "layers.Settings", look: Lookup) -> dict[str, str]:
    named: dict[str, Any] = look.merged("phase_models")
    for phase in named:
        if phase not in PHASES:
            raise UsageProblem(f"phase_models: {phase!r} is no phase; known are {', '.join(PHASES)}")
    return {phase: agents.model_word(found, word) for phase, word in named.items()}
