"""Defines records shared by all kinds of loops: commands, quality gates, the loop and how it ended."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from rooda.errors import Cause
from rooda.run.setup import Setup


class Gate(NamedTuple):
    """A quality gate: a shell command that must exit 0."""

    name: str
    command: str
    timeout: float = 0.0  # seconds, 0 = none
    origin: str = ""  # FILE:LINE, or the environment variable that sets the gate


class Programs(NamedTuple):
    """Two functions that test a name in a command: is it a program, is it a file?"""

    is_program: Callable[[str], bool]  # on PATH, or an executable file of the workspace
    exists: Callable[[str], bool]  # as a file of the workspace


class Left(NamedTuple):
    """A line of a gates section that is not used as a gate, and the reason."""

    origin: str
    text: str
    why: str


class Command(NamedTuple):
    """One shell command to run in the workspace."""

    command: str
    label: str  # part of the name of its output file
    timeout: float = 0.0  # seconds, 0 = none
    number: int = 1  # 1-indexed iteration
    env: Mapping[str, str] = {}
    outside: bool = False  # not in the sandbox: another rooda, which makes its own


class CommandResult(NamedTuple):
    """The result of a shell command."""

    code: int  # exit code as a shell reports it
    seconds: float
    ended: str  # exit | timeout | resources | interrupted | not-started
    output: str  # path
    size: int = 0  # bytes it wrote, including those that were not kept
    note: str = ""  # the limit of resources that it exceeded


class GateResult(NamedTuple):
    """The result of one gate. `verdict` is "" if it passed, else e.g. "exit 1", "timeout 300s"."""

    name: str
    seconds: float
    verdict: str
    output: str = ""  # path; "" if it passed and printed nothing


class Gates(NamedTuple):
    """The results of all gates of one iteration."""

    results: tuple[GateResult, ...] = ()
    interrupted: bool = False

    @property
    def failed(self) -> tuple[GateResult, ...]:
        return tuple(result for result in self.results if result.verdict)

    @property
    def summary(self) -> str:
        return ", ".join(f"{' '.join(result.name.split())} ({result.verdict})" for result in self.failed)


class Ending(NamedTuple):
    """How and why a loop ended.

    `kind` is max-iterations, success-signal, failures, prompt, agent, limit or signal.
    """

    kind: str
    code: int
    signal: int = 0
    note: str = ""  # for display only
    cause: Cause | None = None


# The loop that a session belongs to, and its turns, such as iterations.
TurnOf: TypeAlias = Callable[[str, Mapping[str, Any]], tuple[bool, int | None]]
OPENING = ("run.started", "run.resumed")
TURN_EVENTS = (*OPENING, "iteration.started", "iteration.ended", "run.ended")


def turn_of(event: str, facts: Mapping[str, Any]) -> tuple[bool, int | None]:
    """Return whether the event ends a turn, and the number of the turn that it begins or continues, else None."""
    if event == "iteration.started":
        return False, facts["iteration"] + 1
    if event in OPENING:
        return False, facts.get("number")
    return event in ("iteration.ended", "run.ended"), None


class LoopKind(NamedTuple):
    """The properties of one kind of loop. Each kind defines its own in its `events.py`."""

    name: str
    name_field: str = "name"  # the field of every event that holds the loop's name
    name_variable: str = ""  # environment variable that holds the loop's name as well
    is_family: bool = True  # True: snapshots of all its loops are pruned together; False: per loop
    moments: Mapping[str, str] = {}  # maps a `reason` of `run.ended` to the hook that it triggers
    turn_events: tuple[str, ...] = ()  # events that begin or end a turn, in addition to those of every kind
    turn_of: TurnOf = turn_of
    turn_ends: tuple[str, ...] = ("iteration.ended",)  # events that end an iteration; only the top level counts
    turn_part: str = ""  # event that begins a part of an iteration, if a resume continues a cut-off iteration
    part_ends: tuple[str, ...] = ()  # events within an iteration: a resume does not repeat the calls before them

    def family(self, loop: str) -> str:
        """Return the name under which a loop's snapshots are pruned together."""
        return self.name if self.is_family else loop


class Owner(NamedTuple):
    """The loop that a session belongs to."""

    kind: LoopKind
    name: str  # procedure, alias, run id
    setup: Setup
    resumed: bool = False  # True: the usage of earlier sessions counts towards its limits
    remembered: tuple[str, ...] = ()  # options of earlier starts that still apply
    task: str = ""  # the full text of the task; the loop's public files have stars in place of its secrets
