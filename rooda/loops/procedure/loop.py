"""The OODA loop: repeat one procedure, each iteration with a fresh agent."""

from rooda.agents.backoff import backoff
from rooda.agents.last_words import last_words
from rooda.agents.outcome import FATAL, USAGE_LIMIT
from rooda.agents.records import Call, Prompt, Reply
from rooda.base.text import format_tenths, parse_seconds
from rooda.errors import FAILED, OK, UNFINISHED, Cause, LimitReached, PromptProblem, code_of_signal
from rooda.loops.kernel import Turns
from rooda.loops.procedure.events import IterationEnded, IterationStarted, RunEnded
from rooda.loops.procedure.model import Procedure
from rooda.loops.procedure.state import ABORTED, COMPLETED, INTERRUPTED, RUNNING, OodaState, timing, total_seconds
from rooda.loops.procedure.world import World
from rooda.run.records import Ending, Gates
from rooda.run.spending import cause_facts, in_words

STATUS_OF = {
    "max-iterations": COMPLETED,
    "success-signal": COMPLETED,
    "failures": ABORTED,
    "prompt": ABORTED,
    "agent": ABORTED,
    "limit": INTERRUPTED,
    "signal": INTERRUPTED,
}


def ooda(turns: Turns, start: OodaState, procedure: Procedure, world: World) -> Ending:
    """Run iterations until a rule ends the loop. The first state is saved before the first agent call."""
    state = turns.carry(start)
    while (ending := why_stop(state, world.signalled()) or at_limit(world.reached_limit())) is None:
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
        before, state = state, turns.carry(next_state(state, reply, gates, world.now()))
        world.emit(iteration_ended(before, state, reply, gates))
        if reply.outcome in FATAL:
            ending = Ending("agent", FAILED, note=f"{reply.outcome}: {reply.message}")
            break
        if reply.retryable and why_stop(state, world.signalled()) is None:
            world.wait(backoff(procedure.setup.retry_wait, state.consecutive_failures, reply.retry_after))
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
    """Return the ending if the loop must stop. Failures win over the iteration limit, and both over a late signal."""
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
    """Return the ending if a limit of cost, tokens or time is reached: the run can be resumed with a higher limit."""
    return Ending("limit", UNFINISHED, note=in_words(reached), cause=reached) if reached else None


def next_state(state: OodaState, reply: Reply, gates: Gates, now: str) -> OodaState:
    """Return the state after an iteration. Every call that was started counts, however it ended."""
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
    """True unless the agent exited with 0 and did not signal failure, and every gate passed."""
    return not reply.ok or reply.promise == "FAILURE" or bool(gates.failed)


def iteration_ended(before: OodaState, state: OodaState, reply: Reply, gates: Gates) -> IterationEnded:
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
        said=last_words(reply) if cut or failed(reply, gates) else "",
        gates_failed=gates.summary,
        consecutive_failures=state.consecutive_failures,
        failure_threshold=state.failure_threshold,
    )


def run_ended(state: OodaState, ending: Ending, start: OodaState, session: float) -> RunEnded:
    """Return the event that ends the run. `session`: this session's wall time; earlier ones count as agent run time."""
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
