"""Checks a goal's options, environment and settings before any question, write or agent call."""

import os
import sys
from functools import partial
from typing import NamedTuple

from rooda.agents import prices
from rooda.agents.records import Agent
from rooda.base import files, workspace_files
from rooda.base.facts import Fact
from rooda.base.json import Json, loads
from rooda.errors import ConfigProblem, UsageProblem
from rooda.loops import configuration, launch, options, trusting
from rooda.loops.goal import plan as goal_plan
from rooda.loops.goal import scoring, task_plan
from rooda.loops.goal.criteria import EXECUTION, Criterion
from rooda.loops.goal.files import Place
from rooda.loops.goal.plan import Plan
from rooda.loops.goal.planning import Request
from rooda.loops.goal.rules import MOST_DOLLARS, MOST_ITERATIONS
from rooda.loops.goal.scoring import COLLEAGUE, TOOL, Scores
from rooda.loops.goal.shape import Shape, read_shape
from rooda.loops.goal.state import is_complete
from rooda.loops.goal.view import GoalScreen
from rooda.loops.options import RunOptions
from rooda.run import task_lists
from rooda.run.setup import Setup
from rooda.run.task_lists import UnknownForm
from rooda.settings import agents
from rooda.settings.lookup import Lookup
from rooda.settings.setup import setup
from rooda.settings.trust_search import Source
from rooda.settings.where import Where
from rooda.views.screen import ScreenOptions

UNITS = {"iterations": "iterations", "budget": "dollars"}
ENVIRONMENT = ("ROODA_GOAL_", "LOOP_")  # variable prefixes; LOOP_ is that of this loop's predecessor
SHAPES = {"tool": TOOL, "colleague": COLLEAGUE, "auto": "", "": ""}


class Prepared(NamedTuple):
    """Checked settings, agent and screen for one session of a goal."""

    setup: Setup
    look: Lookup
    agent: Agent
    screen: GoalScreen
    options: RunOptions
    headless: bool = False  # never ask, even at a terminal

    def number(self, key: str) -> float:
        return float(self.look.value(key))


def prepare(where: Where, typed: Json, resumed: bool = False) -> Prepared:
    """Load the settings, check the agent and create the screen of a session."""
    chosen = options.run_options(typed)
    settings = configuration.load_for_start(where, chosen.warn_unknown)
    settings = trusting.checked(settings, chosen, where.config, resumed)
    made, look = setup(settings, "goal", chosen.flags, price_raw=True)
    if made.agent is None:
        raise ConfigProblem(agents.no_agent_text(settings, "[goal]"))
    screen = GoalScreen(_screen_look(made, look, chosen), bool(typed.get("ascii")))
    program = launch.check_agent(made.agent, where.workspace, "")
    launch.announce_agent(made.agent, program, screen, chosen.remembered)
    return Prepared(made, look, made.agent, screen, chosen, headless(typed))


def _screen_look(made: Setup, look: Lookup, chosen: RunOptions) -> ScreenOptions:
    """Return the screen options. A goal's line format is fixed, so only [goal] can add timestamps, not [loop]."""
    stamps = look.find("log_timestamp_format")
    own = stamps.value if stamps and stamps.path[0] == "goal" else "none"
    return launch.screen_options(made, chosen)._replace(stamps=own)


def request_of(prepared: Prepared, where: Where, typed: Json, spec: str) -> Request:
    look = prepared.look
    if typed["keep_state"] and typed["delete_state"]:
        raise UsageProblem("--keep-state and --delete-state are mutually exclusive.")
    return Request(
        spec=spec,
        plan=_trusted_plan(prepared, where, typed["plan"]),
        scores=scores_option(typed["score"]),
        shape=shape_option(typed["shape"]),
        workflow=(typed["workflow"] or "").upper(),
        evidence=" ".join((typed["evidence"] or "").split()),
        offline=typed["offline"],
        criteria=(*criteria_options(typed["criterion"], False), *criteria_options(typed["holdout"], True)),
        gates_off=typed["no_gates"],
        headless=prepared.headless,
        high_stakes=typed["high_stakes"],
        keep="keep" if typed["keep_state"] else "delete" if typed["delete_state"] else "",
        iterations=iteration_limit(prepared, typed),
        budget=dollar_limit(prepared, typed),
        limits=prepared.setup.budget,
        blind=is_blind(prepared),
        exit_signal_source=str(look.value("exit_signal_source")),
        must_not_judge=bool(look.value("must_not_judge")),
        observation_evidence=str(look.value("observation_evidence")),
    )


def specification(where: Where, typed: Json) -> str:
    """Return the specification verbatim, from the argument or from --file."""
    spec, path = typed.get("spec"), typed.get("file")
    if (spec is None) == (path is None):
        raise UsageProblem("Give either a specification or --file FILE.", 'Such as: rooda goal "Make every test pass"')
    if path is not None:
        spec = files.to_text(sys.stdin.buffer.read()) if path == "-" else _content(where, path)
    if not str(spec).strip():
        source = "" if path is None else " (stdin)" if path == "-" else f" ({path})"
        raise UsageProblem(f"The specification is empty{source}.", "Describe what the goal should achieve.")
    return str(spec)


def _content(where: Where, path: str) -> str:
    place = os.path.join(where.workspace, path) if not os.path.exists(path) else path
    try:
        return files.to_text(workspace_files.read_typed(where.workspace, place))
    except OSError as problem:
        raise UsageProblem(f"{path} can't be read: {problem.strerror or problem}.") from None


def shape_option(typed: str | None) -> str:
    word = (typed or environment_value("SHAPE")).lower()
    if word not in SHAPES:
        raise UsageProblem(
            f"ROODA_GOAL_SHAPE or LOOP_SHAPE in the environment must be auto, tool or colleague, got {word!r}."
        )
    return SHAPES[word]


def scores_option(typed: str | None) -> Scores | None:
    found = scoring.read_option(typed) if typed is not None else None
    if isinstance(found, str):
        raise UsageProblem(f"{found}.")
    return found


def _trusted_plan(prepared: Prepared, where: Where, path: str | None) -> Plan | None:
    """Read --plan; ask the user to trust its commands and those of SHAPE.md if somebody else may have written them."""
    plan = plan_option(where, path)
    sources = [shape_source(where)] if os.path.lexists(Place(where.workspace).shape) else []
    if path is not None and plan is not None:
        real = path if os.path.exists(path) else os.path.join(where.workspace, path)
        sources.append(Source(os.path.abspath(real), partial(_plan_facts, path)))
    if sources:
        trusting.require_files(prepared.look.settings, sources)
    return plan


def shape_source(where: Where) -> Source:
    """Return SHAPE.md as a source of commands to trust, because somebody else may have committed the file."""
    path = os.path.abspath(Place(where.workspace).shape)
    return Source(path, lambda data: _facts(path, read_shape(files.to_text(data))))


def _plan_facts(path: str, data: bytes) -> list[Fact]:
    text = files.to_text(data)
    try:
        plan = _written_plan(text, path)
    except UnknownForm:
        return []
    return _facts(path, plan)


def _facts(path: str, found: Plan | Shape) -> list[Fact]:
    commands = [(each.name, each.command) for each in found.criteria if each.command]
    commands += [("mustNot", each.violated_if) for each in found.must_not if each.violated_if]
    return [Fact(path, name, command.strip(), "check", restrains=True) for name, command in commands]


def plan_option(where: Where, path: str | None) -> Plan | None:
    """Read --plan: JSON, prd.json, or a list of tasks. Unclear parts are reported later, during planning."""
    if path is None:
        return None
    try:
        return _written_plan(_content(where, path), path)
    except UnknownForm as problem:
        hint = f"A plan file is a plan as JSON, {task_lists.FORMS}."
        raise UsageProblem(f"rooda can't read {path} as a plan: {problem}.", hint) from None


def _written_plan(text: str, name: str = "") -> Plan:
    """Read a user's plan: JSON with criteria, steps or scores, or a task list; raise UnknownForm if it is neither."""
    found = None
    if text.lstrip().startswith("{"):
        try:
            found = loads(text)
        except ValueError as problem:
            raise UnknownForm(task_lists.invalid(problem)) from None
    if isinstance(found, dict) and "userStories" not in found and is_complete(found):
        return goal_plan.read_state(found)
    if isinstance(found, dict) and "userStories" not in found and {"criteria", "steps", "scores"} & set(found):
        return goal_plan.read_plan(found)
    listed = task_lists.read(text, name)
    return task_plan.read_tasks(listed, "" if listed.form == task_lists.STORIES else text)


def criteria_options(pairs: tuple[str, ...], holdout: bool) -> list[Criterion]:
    found = []
    for pair in pairs:
        name, equals, command = pair.partition("=")
        name = " ".join(name.split())
        if not equals or not name or not command.strip():
            option = "--holdout" if holdout else "--criterion"
            raise UsageProblem(f"{option} {pair!r} is not of the form NAME=COMMAND.")
        found.append(Criterion(name, EXECUTION, command.strip(), holdout=holdout))
    return found


def iteration_limit(prepared: Prepared, typed: Json) -> int:
    """Return the iteration limit from option, environment or settings; at most 50 without --force-limits."""
    number = int(
        typed.get("iterations") or _number_from_environment("MAX_ITERATIONS", int) or prepared.number("max_iterations")
    )
    check_limit("iterations", number, MOST_ITERATIONS, typed)
    return number


def dollar_limit(prepared: Prepared, typed: Json) -> float:
    """Return the budget in dollars from option, environment or settings; at most 100 without --force-limits.

    A higher --max-cost raises the budget, so that the goal pauses at the amount that the user typed.
    """
    dollars = _number_from_environment("BUDGET", float) or prepared.number("budget")
    dollars = typed.get("budget") or max(dollars, typed.get("max_cost") or 0)
    check_limit("budget", dollars, MOST_DOLLARS, typed)
    return float(dollars)


def check_limit(name: str, value: float, most: float, typed: Json) -> None:
    if value > most and not typed.get("force_limits"):
        given = typed.get(name) or 0
        said = f"--{name} {value:g} is" if given == value else f"--{name} {given:g} makes {value:g} in all, which is"
        said = said if given else f"{value:g} {UNITS[name]} in all are"
        raise UsageProblem(f"{said} over the limit of {most:g}.", "To allow it, add --force-limits.")


def _number_from_environment(name: str, kind: type[int] | type[float]) -> int | float | None:
    text = environment_value(name)
    if not text:
        return None
    try:
        number = kind(text)
    except ValueError:
        number = kind(0)
    if not 0 < number < float("inf"):
        names = " or ".join(prefix + name for prefix in ENVIRONMENT)
        raise UsageProblem(f"{names} in the environment must be a number above 0, got {text!r}")
    return number


def environment_value(name: str) -> str:
    return next((value for prefix in ENVIRONMENT if (value := os.environ.get(prefix + name, ""))), "")


def headless(typed: Json) -> bool:
    return bool(typed.get("headless")) or environment_value("HEADLESS").lower() in ("1", "true", "yes", "on")


def is_blind(prepared: Prepared) -> bool:
    """True if the cost of calls can't be known: plain-text output, and no price or `cost_per_call` is set."""
    priced = prices.price_of(prepared.agent.model, prepared.agent.prices)
    return prepared.agent.output == "text" and not prepared.number("cost_per_call") and not priced
