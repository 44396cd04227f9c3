"""What the reflex loop is given: its effects as functions, and the records that go in and out of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rooda.loops.reflex.contract import STRICT
from rooda.loops.reflex.state import State
from rooda.run.event_records import Emit


class Query(NamedTuple):
    """One phase to ask an agent for."""

    phase: str
    iteration: int
    level: str
    prompt: str
    attempt: int


class Answer(NamedTuple):
    """What the agent said last, or what kept it from saying anything."""

    text: str = ""
    problem: str = ""
    unasked: bool = False  # a usage limit stood in the way: it has to be asked again


class Ran(NamedTuple):
    """What became of a check's command."""

    holds: bool
    details: str


class Beside(NamedTuple):
    """Commands to run while agents are asked, and who takes what became of them."""

    commands: Sequence[str]
    take: Callable[[list[Ran]], None]


class World(NamedTuple):
    """The effects this loop may cause."""

    emit: Emit
    signalled: Callable[[], int]
    compose: Callable[[str, Mapping[str, str]], str]  # a phase's prompt of its template and these values
    ask: Callable[[Sequence[Query], Beside | None], list[Answer]]  # all at once
    tries: Callable[[State, str], int]  # breaches of this phase in this iteration and level so far
    breach: Callable[[State, str, int, str, str], None]  # puts a phase_error into the history
    keep: Callable[[State], State]  # saves in the middle of a step; gives back what is on disk
    recent: Callable[[State], list[str]]  # the history's last lines
    artifact: Callable[[], str | None]
    stage: Callable[[str], None]  # the text replaces the artifact when the state is saved next
    digest: Callable[[str], str]
    runnable: Callable[[Sequence[str]], bool]  # may these commands be run?
    execute: Callable[[State, Sequence[str]], list[Ran]]  # without an agent beside them
    search: Callable[[str, str], str]  # pattern, text: found | missing | timed out
    changed: Callable[[State], list[str] | None]  # sections since the iteration before; None: there is none
    show: Callable[[], None]  # the whole artifact, before the person's eyes
    told: Callable[[str], str]  # with stars for keys; what is run, judged or delivered never goes through it


class How(NamedTuple):
    """What a person decided about the way."""

    artifact: str  # its path, as checks name it
    sequential: bool = False
    extraction: str = STRICT
    roots: Sequence[str] = ()  # the folder that commands run in, by each of its names


class Job(NamedTuple):
    """A phase to get done: what is asked, what a valid answer means, what it makes of the state."""

    phase: str
    prompt: str
    read: Callable[[str], Any]  # Breach: no valid answer
    take: Callable[[State, Any], State]
