"""One session of a goal: opened, run to its end, and what an end or a pause leaves behind."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rooda.agents import prices
from rooda.agents.reader import reader
from rooda.agents.records import Agent
from rooda.base import files
from rooda.base.json import Json
from rooda.errors import FAILED, ConfigProblem, Interrupted, LimitReached, UsageProblem, code_of_signal
from rooda.loops import configuration, launch, options
from rooda.loops.goal import files as goal_files
from rooda.loops.goal.breakers import MOST_DOLLARS, MOST_ITERATIONS
from rooda.loops.goal.edit_counts import Watch, ticking
from rooda.loops.goal.effects import Context, Effects
from rooda.loops.goal.events import KIND, RunEnded
from rooda.loops.goal.files import NAME, Place
from rooda.loops.goal.loop import goal
from rooda.loops.goal.prompts import closing
from rooda.loops.goal.questions import Asker
from rooda.loops.goal.state import COMPLETED, GoalState
from rooda.loops.goal.store import GoalStore, ended, tidied
from rooda.loops.goal.table import summary
from rooda.loops.goal.view import GoalScreen, box
from rooda.loops.goal.world import World
from rooda.loops.kernel import Turns
from rooda.loops.options import RunOptions
from rooda.processes import lock
from rooda.processes.signals import Signals
from rooda.run.owner import Owner
from rooda.run.records import Ending
from rooda.run.session import Session
from rooda.run.setup import Setup
from rooda.settings import agents
from rooda.settings.lookup import Lookup
from rooda.settings.setup import setup
from rooda.settings.where import Where
from rooda.views.say import warned
from rooda.views.screen import Look

# Everything of a goal that can be found wrong before anything is asked, written or paid for.
UNITS = {"iterations": "iterations", "budget": "dollars"}
ENVIRONMENT = ("ROODA_GOAL_", "LOOP_")  # the second are the names of the headless mode this loop descends from


class Ready(NamedTuple):
    """What a goal is run with."""

    setup: Setup
    look: Lookup
    agent: Agent
    screen: GoalScreen
    asked: RunOptions
    headless: bool = False  # nobody is to be asked, terminal or not

    def number(self, key: str) -> float:
        return float(self.look.value(key))


def ready(where: Where, typed: Json) -> Ready:
    asked = options.run_options(typed)
    found = warned(configuration.load(where.workspace, where.config))
    made, look = setup(found, "goal", asked.flags, price_raw=True)
    if made.agent is None:
        raise ConfigProblem(agents.no_agent_text(found, "[goal]"))
    screen = GoalScreen(_look(made, look, asked), bool(typed.get("ascii")))
    program = launch.checked(made.agent, where.workspace, "")
    launch.announced(made.agent, program, screen, asked.kept)
    return Ready(made, look, made.agent, screen, asked, headless(typed))


def _look(made: Setup, look: Lookup, asked: RunOptions) -> Look:
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


LOOKS = "polling (at least)"


class Opened(NamedTuple):
    """What is open while a goal runs."""

    session: Session
    world: World
    store: GoalStore
    edits: str  # how edits of files are counted


@contextmanager
def opened(
    ready: Ready, where: Where, held: lock.Lock | None, yes: str, resumed: bool = False, spec: str = ""
) -> Iterator[Opened]:
    """Signals, session and the watch over the files; closed in any case."""
    place, screen, setup = Place(where.workspace), ready.screen, ready.setup
    if held or not lock.is_held(place.lock):  # else it is for a goal that runs while this only asks
        files.remove(place.request)
    seen = Watch(where.workspace)
    with Signals() as signals:
        owner = Owner(KIND, NAME, setup, resumed, ready.asked.kept, spec)
        tick = ticking(seen, screen.tick())
        session = Session(where.workspace, owner, signals, screen.show, tick, held)
        session.hide(ready.agent.env)
        context = Context(
            workspace=where.workspace,
            folder=place.folder,
            shape=place.shape,
            request=place.request,
            agent=ready.agent,
            setup=setup,
            verify_timeout=ready.number("verify_timeout"),
            cost_per_call=ready.number("cost_per_call"),
            yes=yes,
        )
        world = Effects(session, context, Asker(signals, ready.headless), seen)
        stream = "the agent's event stream, else " if reader(ready.agent.output).tells_edits else ""
        try:
            yield Opened(session, world, GoalStore(place, session.emit, session.clean), f"{stream}{LOOKS}")
        finally:
            screen.close()
            session.close()


def carried_out(
    ready: Ready,
    where: Where,
    held: lock.Lock | None,
    yes: str,
    begin: Callable[[Opened, Turns], GoalState],
    spec: str,
    resumed: bool = False,
) -> int:
    """The loop from `begin` to its end; gives the exit code."""
    place = Place(where.workspace)
    with opened(ready, where, held, yes, resumed, spec) as open_:
        try:
            turns = Turns(open_.store)
            ending = goal(turns, begin(open_, turns), open_.world)
        except Interrupted as cut:
            return code_of_signal(cut.number)
        except OSError as problem:
            note = f"{problem.filename or place.folder}: {problem.strerror or problem}"
            open_.session.emit(RunEnded(reason="files", note=note, status="in_progress", exit_code=FAILED))
            raise
        except LimitReached as limit:  # met while it was planned; the loop itself pauses
            hint = "Nothing was started. Run it again with a higher limit, or later."
            raise LimitReached(limit.what, hint, limit.cause) from None
    if state := open_.store.last:
        summarized(place, state)
        _forgotten(place, state)
    return ending.code


def finished(place: Place) -> GoalState | None:
    """The goal whose end was cut off before all of it was written; it is written now."""
    state = None if lock.is_held(place.lock) else ended(place)
    if state is None or (tidied(place, state) and os.path.exists(place.summary)):
        return None
    summarized(place, state)
    _forgotten(place, state)
    return state


def _forgotten(place: Place, state: GoalState) -> None:
    if state.status == COMPLETED and state.keep == "delete":
        goal_files.forget(place)


def summarized(place: Place, state: GoalState) -> None:
    """`summary.md`, at every end and pause."""
    ended_by = closing(state, Ending(state.pause, 0, note=state.reason, cause=state.cause))
    try:
        goal_files.ready(place)
        files.replace_unsynced(place.summary, summary(state, box(ended_by.facts)).encode("utf-8", "replace"))
    except OSError:
        pass
