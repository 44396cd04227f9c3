"""The OODA loop: one procedure, iteration after iteration, each with a fresh agent."""

from typing import NamedTuple

from rooda.agents.backoff import backoff
from rooda.agents.outcome import FATAL, USAGE_LIMIT
from rooda.agents.records import Call, Prompt, Reply
from rooda.base.text import format_tenths, parse_seconds
from rooda.errors import FAILED, OK, UNFINISHED, Cause, LimitReached, PromptProblem, code_of_signal
from rooda.loops.kernel import Turns
from rooda.loops.procedure.events import IterationEnded, IterationStarted, RunEnded
from rooda.loops.procedure.model import Procedure
from rooda.loops.procedure.statistics import timing
from rooda.loops.procedure.world import World
from rooda.run.records import Ending, Gates
from rooda.run.spending import cause_facts, in_words

RUNNING, COMPLETED, ABORTED, INTERRUPTED = "running", "completed", "aborted", "interrupted"
STATUSES = (RUNNING, COMPLETED, ABORTED, INTERRUPTED, "paused")  # the last one is read and never written
STATUS_OF = {
    "max-iterations": COMPLETED,
    "success-signal": COMPLETED,
    "failures": ABORTED,
    "prompt": ABORTED,
    "agent": ABORTED,
    "limit": INTERRUPTED,
    "signal": INTERRUPTED,
}


class OodaState(NamedTuple):
    """The nine keys of the state file."""

    iteration: int
    max_iterations: int
    consecutive_failures: int
    failure_threshold: int
    started_at: str
    last_iteration_at: str | None
    status: str
    procedure_name: str
    elapsed_per_iteration: tuple[str, ...]


def fresh(procedure: Procedure, started_at: str) -> OodaState:
    limits = (procedure.max_iterations, 0, procedure.failure_threshold)
    return OodaState(0, *limits, started_at, None, RUNNING, procedure.name, ())


def reopened(state: OodaState, max_iterations: int | None, failure_threshold: int | None) -> OodaState:
    """A resumed state: new limits if the person gave some. Asking to resume after an abort forgives the failures."""
    threshold = state.failure_threshold if failure_threshold is None else failure_threshold
    aborted = state.status == ABORTED or state.consecutive_failures >= threshold
    return state._replace(
        status=RUNNING,
        max_iterations=state.max_iterations if max_iterations is None else max_iterations,
        failure_threshold=threshold,
        consecutive_failures=0 if aborted else state.consecutive_failures,
    )


def ooda(turns: Turns, start: OodaState, procedure: Procedure, world: World) -> Ending:
    """The loop. `start` is a fresh or a reopened state; it is on disk before the first call."""
    state = turns.carry(start)
    while (ending := why_stop(state, world.signalled()) or at_limit(world.enough())) is None:
        world.emit(IterationStarted(iteration=state.iteration, max_iterations=state.max_iterations))
        try:
            prompt = world.compose(procedure, state.iteration)
            if world.signalled():
                continue
            reply = world.ask(call_of(procedure, state, prompt))
        except PromptProblem as problem:
            ending = Ending("prompt", FAILED, note=str(problem))
            break
        except LimitReached as limit:
            ending = Ending("limit", UNFINISHED, note=limit.what, cause=limit.cause)
            break
        if reply.outcome == USAGE_LIMIT:  # neither an iteration nor a failure
            state = turns.carry(state)
            continue
        gates = world.check(procedure.gates or (), state.iteration) if reply.ok else Gates()
        before, state = state, turns.carry(settle(state, reply, gates, world.now()))
        world.emit(iteration_ended(before, state, reply, gates))
        if reply.outcome in FATAL:
            ending = Ending("agent", FAILED, note=f"{reply.outcome}: {reply.message}")
            break
        if reply.retryable and why_stop(state, world.signalled()) is None:
            world.rest(backoff(procedure.setup.retry_wait, state.consecutive_failures))
    state = turns.carry(state._replace(status=STATUS_OF[ending.kind]))
    world.emit(run_ended(state, ending, start, world.elapsed()))
    return ending


def call_of(procedure: Procedure, state: OodaState, prompt: Prompt) -> Call:
    agent = procedure.setup.agent
    assert agent is not None, "a run starts only with an agent"
    return Call(
        kind="iteration",
        number=state.iteration + 1,
        agent=agent,
        prompt=prompt,
        bounds=procedure.setup.bounds,
        promise_signals=procedure.promise_signals,
    )


def why_stop(state: OodaState, signal: int) -> Ending | None:
    """The rule that ends the loop now, or None. Failures come before the limit, the limit before a late signal."""
    if state.status == INTERRUPTED:
        return Ending("signal", code_of_signal(signal), signal)
    if state.status == COMPLETED:
        return Ending("success-signal", OK)
    if state.consecutive_failures >= state.failure_threshold:
        return Ending("failures", FAILED)
    if 0 < state.max_iterations <= state.iteration:
        return Ending("max-iterations", OK)
    if signal:
        return Ending("signal", code_of_signal(signal), signal)
    return None


def at_limit(reached: Cause | None) -> Ending | None:
    """No further call may be made: the state waits for a resume with a higher limit."""
    return Ending("limit", UNFINISHED, note=in_words(reached), cause=reached) if reached else None


def settle(state: OodaState, reply: Reply, gates: Gates, now: str) -> OodaState:
    """The state after an iteration. A call that was started is closed and counted, whatever became of it."""
    closed = state._replace(
        iteration=state.iteration + 1,
        last_iteration_at=now,
        elapsed_per_iteration=(*state.elapsed_per_iteration, format_tenths(reply.seconds)),
    )
    if interrupted(reply, gates):
        return closed._replace(status=INTERRUPTED)
    if failed(reply, gates):
        return closed._replace(consecutive_failures=state.consecutive_failures + 1)
    status = COMPLETED if reply.promise == "SUCCESS" else RUNNING
    return closed._replace(consecutive_failures=0, status=status)


def interrupted(reply: Reply, gates: Gates) -> bool:
    return reply.ended == "interrupted" or gates.interrupted


def failed(reply: Reply, gates: Gates) -> bool:
    """An iteration succeeds only if the agent exits 0, does not signal failure, and every gate passes."""
    return not reply.ok or reply.promise == "FAILURE" or bool(gates.failed)


def total_seconds(state: OodaState) -> float:
    return sum(map(parse_seconds, state.elapsed_per_iteration))


def iteration_ended(before: OodaState, state: OodaState, reply: Reply, gates: Gates) -> IterationEnded:
    """What one iteration came to, for the log and the screen."""
    cut = interrupted(reply, gates)
    return IterationEnded(
        iteration=before.iteration,
        max_iterations=state.max_iterations,
        phase="persist",
        elapsed=round(reply.seconds, 3),
        outcome="interrupted" if cut else "failure" if failed(reply, gates) else "success",
        exit_code=reply.exit_code,
        ended=reply.ended,
        limit=reply.limit,
        note=reply.note,
        agent_outcome=reply.outcome,
        message=reply.message,
        promise=reply.promise,
        gates_failed=gates.summary,
        consecutive_failures=state.consecutive_failures,
        failure_threshold=state.failure_threshold,
    )


def run_ended(state: OodaState, ending: Ending, start: OodaState, session: float) -> RunEnded:
    """What the run came to. Total: earlier sessions' run time and this session's wall time."""
    return RunEnded(
        reason=ending.kind,
        status=state.status,
        exit_code=ending.code,
        signal=ending.signal,
        note=ending.note,
        **cause_facts(ending.cause),
        iterations=state.iteration,
        max_iterations=state.max_iterations,
        consecutive_failures=state.consecutive_failures,
        elapsed=round(total_seconds(start) + session, 3),
        timing=timing(map(parse_seconds, state.elapsed_per_iteration)),
    )
