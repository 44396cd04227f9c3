"""A phase is asked, its answer held against the contract, and asked once more where it broke it."""

from collections.abc import Callable, Sequence
from typing import Any

from rooda.base.json import Json
from rooda.loops.reflex import contract
from rooda.loops.reflex.contract import Breach
from rooda.loops.reflex.events import ReflexBreach
from rooda.loops.reflex.state import RUNNING, WRITERS, State, ended
from rooda.loops.reflex.world import Answer, Beside, How, Job, Query, World

TRIES = 2  # a phase is asked once more with the same input, no oftener


def asked(state: State, world: World, jobs: Sequence[Job], beside: Beside | None = None) -> State:
    """Every job answered, or the loop ended with phase_error. Only who broke the contract is asked again."""
    over = [job.phase for job in jobs if world.tries(state, job.phase) >= TRIES]
    if over:  # it was killed between its last try and its end
        return ended(state, "phase_error", f"{', '.join(over)}: the contract was broken {TRIES} times")
    pending = list(jobs)
    while pending:
        broken: list[tuple[Job, Breach, str]] = []
        waiting: list[Job] = []
        queries = [
            Query(job.phase, state.iteration, state.phase, job.prompt, world.tries(state, job.phase) + 1)
            for job in pending
        ]
        answers, beside = world.ask(queries, beside), None
        for job, answer in zip(pending, answers, strict=True):
            if answer.unasked:
                waiting.append(job)
                continue
            try:
                state = job.take(state, _read(job, answer))
            except Breach as problem:
                broken.append((job, problem, answer.text))
        if broken or 0 < len(waiting) < len(pending):
            state = _broken(world.keep(state), world, broken)
        pending = [*waiting, *(job for job, _, _ in broken)] if state.status == RUNNING else []
    return state


def _read(job: Job, answer: Answer) -> Any:
    if answer.problem:
        raise Breach(answer.problem)
    return job.read(answer.text)


def _broken(state: State, world: World, broken: Sequence[tuple[Job, Breach, str]]) -> State:
    """What the others answered is kept. The second breach of a phase is the last."""
    over = []
    for job, problem, text in broken if state.status == RUNNING else ():
        attempt, error = world.tries(state, job.phase) + 1, world.told(str(problem))
        secret = job.phase in WRITERS  # the artifact's text stays in the artifact
        world.breach(state, job.phase, attempt, error, "" if secret else world.told(text)[:200])
        world.emit(ReflexBreach(step=job.phase, attempt=attempt, error=error, last=attempt >= TRIES))
        if attempt >= TRIES:
            over.append(f"{job.phase}: {error}")
    return ended(state, "phase_error", "; ".join(over)) if over else state


def json_of(judge: Callable[[Json], Any], how: How) -> Callable[[str], Any]:
    return lambda text: judge(contract.one_object(text, how.extraction))
