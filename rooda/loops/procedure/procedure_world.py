"""The World of a procedure: what its loop may cause, bound to one session."""

from functools import partial

from rooda.agents.records import Prompt
from rooda.base import clock
from rooda.errors import PromptProblem
from rooda.loops.procedure import effects
from rooda.loops.procedure.model import Procedure
from rooda.loops.procedure.world import World
from rooda.run.prompts import Measure
from rooda.run.session import Session


class Composer:
    """The prompt of each iteration. Its files are looked at every time, and read again if one may have changed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._marks: tuple[tuple[int, ...], ...] = ()

    def __call__(self, procedure: Procedure, iteration: int) -> Prompt:
        marks = () if procedure.preamble else effects.marks(procedure)  # a preamble tells the iteration
        same, self._marks = bool(marks) and marks == self._marks, marks
        measure = Measure(procedure.setup.token_encoding, procedure.setup.token_budget)
        text = partial(effects.text, procedure, iteration + 1)
        try:
            return self._session.prompt(text, f"{iteration + 1:04d}", measure, same)
        except OSError as problem:
            where = problem.filename or self._session.folder.ready()
            raise PromptProblem(f"The prompt can't be written: {where}: {problem.strerror}", "Make room.") from None


def world_of(session: Session, procedure: Procedure) -> World:
    return World(
        now=lambda: clock.rfc3339(clock.now()),
        elapsed=session.elapsed,
        signalled=session.signalled,
        enough=session.enough,
        emit=session.emit,
        compose=Composer(session),
        ask=session.ask,
        check=session.check,
        rest=session.rest,
    )
