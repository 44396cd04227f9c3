"""The effects a procedure's loop may cause."""

from collections.abc import Callable
from typing import NamedTuple

from rooda.agents.records import Call, Prompt, Reply
from rooda.errors import Cause
from rooda.loops.procedure.model import Procedure
from rooda.run.event_records import Emit
from rooda.run.records import Gate, Gates


class World(NamedTuple):
    """The effects a loop may cause. Loops get it as an argument and never import a door."""

    now: Callable[[], str]  # UTC, the form of the state files
    elapsed: Callable[[], float]  # seconds since this session began
    signalled: Callable[[], int]  # the first signal received, 0 for none
    enough: Callable[[], Cause | None]  # the limit of cost, tokens or time that is reached
    emit: Emit
    compose: Callable[[Procedure, int], Prompt]
    ask: Callable[[Call], Reply]
    check: Callable[[tuple[Gate, ...], int], Gates]
    rest: Callable[[float], None]  # sleeps so many seconds; a signal ends it early
