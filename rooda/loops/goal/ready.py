"""Everything of a goal that can be found wrong before anything is asked, written or paid for."""

import os
from typing import NamedTuple

from rooda.agents import prices
from rooda.agents.records import Agent
from rooda.base.json import Json
from rooda.errors import ConfigProblem, UsageProblem
from rooda.loops import launch, options
from rooda.loops.goal.breakers import MOST_DOLLARS, MOST_ITERATIONS
from rooda.loops.goal.goal_screen import GoalScreen
from rooda.loops.options import Asked
from rooda.run.setup import Setup
from rooda.settings import agents, layers
from rooda.settings.lookup import Lookup
from rooda.settings.setup import setup
from rooda.settings.where import Where, warned
from rooda.views.screen import Look

UNITS = {"iterations": "iterations", "budget": "dollars"}
ENVIRONMENT = ("ROODA_GOAL_", "LOOP_")  # the second are the names of the headless mode this loop descends from


class Ready(NamedTuple):
    """What a goal is run with."""

    setup: Setup
    look: Lookup
    agent: Agent
    screen: GoalScreen
    asked: Asked
    headless: bool = False  # nobody is to be asked, terminal or not

    def number(self, key: str) -> float:
        return float(self.look.value(key))


def ready(where: Where, typed: Json) -> Ready:
    asked = options.asked(typed)
    found = warned(layers.load(where.workspace, where.config))
    made, look = setup(found, "goal", asked.flags)
    if made.agent is None:
        raise ConfigProblem(agents.no_agent_text(found, "[goal]"))
    screen = GoalScreen(_look(made, look, asked), bool(typed.get("ascii")))
    program = launch.checked(made.agent, where.workspace, "")
    launch.announced(made.agent, program, screen, asked.kept)
    return Ready(made, look, made.agent, screen, asked, headless(typed))


def _look(made: Setup, look: Lookup, asked: Asked) -> Look:
    """Its lines are exact, so the stamps of [loop] do not stand before them; those of [goal] do."""
    stamps = look.find("log_timestamp_format")
    own = stamps.value if stamps and stamps.path[0] == "goal" else "none"
    return launch.look(made, asked)._replace(stamps=own)


def iterations(ready: Ready, typed: Json) -> int:
    """Typed, else of the environment, else of the settings; at most 50 unless forced."""
    number = int(typed.get("iterations") or _environment("MAX_ITERATIONS", int) or ready.number("max_iterations"))
    within("iterations", number, MOST_ITERATIONS, typed)
    return number


def budget(ready: Ready, typed: Json) -> float:
    """Typed, else of the environment, else of the settings; at most 100 dollars unless forced."""
    dollars = typed.get("budget") or _environment("BUDGET", float) or ready.number("budget")
    within("budget", dollars, MOST_DOLLARS, typed)
    return float(dollars)


def within(name: str, value: float, most: float, typed: Json) -> None:
    if value > most and not typed.get("force_limits"):
        given = typed.get(name) or 0
        said = f"--{name} {value:g} is" if given == value else f"--{name} {given:g} makes {value:g} in all, which is"
        said = said if given else f"{value:g} {UNITS[name]} in all are"
        raise UsageProblem(f"{said} over the limit of {most:g}.", "If you mean it, add --force-limits.")


def _environment(name: str, kind: type[int] | type[float]) -> int | float | None:
    text = variable(name)
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


def variable(name: str) -> str:
    return next((value for prefix in ENVIRONMENT if (value := os.environ.get(prefix + name, ""))), "")


def headless(typed: Json) -> bool:
    return bool(typed.get("headless")) or variable("HEADLESS").lower() in ("1", "true", "yes", "on")


def blind(ready: Ready) -> bool:
    """A raw command tells no price before its first call."""
    priced = prices.price_of(ready.agent.model, ready.agent.prices)
    return ready.agent.output == "text" and not ready.number("cost_per_call") and not priced
