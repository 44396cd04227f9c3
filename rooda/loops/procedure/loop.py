"""The OODA loop: repeat one procedure, each iteration with a fresh agent."""

from typing import Any, NamedTuple

from rooda.agents.backoff import backoff
from rooda.agents.last_words import last_words
from rooda.agents.outcome import FATAL, USAGE_LIMIT
from rooda.agents.records import Call, Prompt, Reply
from rooda.base.text import format_tenths, parse_seconds, plain
from rooda.errors import FAILED, OK, UNFINISHED, Cause, LimitReached, PromptProblem, code_of_signal
from rooda.loops.kernel import Turns
from rooda.loops.procedure import progress
from rooda.loops.procedure.events import (
    BaselineEnded,
    BaselineStarted,
    IterationEnded,
    IterationStarted,
    LastIteration,
    RecheckStarted,
    RunEnded,
)
from rooda.loops.procedure.model import Procedure
from rooda.loops.procedure.progress import NOTHING, Progress, Seen
from rooda.loops.procedure.state import ABORTED, COMPLETED, INTERRUPTED, RUNNING, OodaState, timing, total_seconds
from rooda.loops.procedure.world import Committed, World
from rooda.run.records import Ending, Gates
from rooda.run.spending import cause_facts, in_words

STATUS_OF = {
    "max-iterations": COMPLETED,
    "success-signal": COMPLETED,
    "failures": ABORTED,
    "blocked": ABORTED,
    "stuck": ABORTED,
    "prompt": ABORTED,
    "agent": ABORTED,
    "limit": INTERRUPTED,
    "question": INTERRUPTED,
    "signal": INTERRUPTED,
}


def ooda(turns: Turns, start: OodaState, procedure: Procedure, world: World, earlier: Progress = NOTHING) -> Ending:
    """Run iterations until a rule ends the loop. The first state is saved before the first agent call.

    `earlier`: what the run remembers from its earlier sessions.
    """
    state = turns.carry(start)
    past = begun(procedure, state, world, earlier)
    while (ending := why_stop(state, world.signalled(), past, procedure) or at_limit(world.reached_limit())) is None:
        world.emit(iteration_started(state, past))
        try:
            prompt = world.compose(procedure, state.iteration)
            if world.signalled():
                continue
            before = world.tree(fresh=False) if progress.needs_tree_before(procedure, past) else ""
            reply = world.ask(call_of(procedure, state, prompt))
        except PromptProblem as problem:
            ending = Ending("prompt", FAILED, note=str(problem))
            break
        except LimitReached as limit:
            ending = Ending("limit", UNFINISHED, note=limit.what, cause=limit.cause)
            break
        if reply.outcome == USAGE_LIMIT:  # counts neither as an iteration nor as a failure
            state = turns.carry(state)
            continue
        turn = judged(procedure, state, past, before, reply, world)
        was, state = state, turns.carry(next_state(state, turn, world.now()))
        event = iteration_ended(was, state, turn)
        world.emit(event)
        past = turn.past if turn.seen.interrupted else turn.past._replace(last=event.facts)
        if reply.outcome in FATAL:
            ending = Ending("agent", FAILED, note=f"{reply.outcome}: {reply.message}")
            break
        if asks(turn):
            ending = Ending("question", UNFINISHED, note=reply.question)
            break
        if reply.retryable and why_stop(state, world.signalled(), past, procedure) is None:
            world.wait(backoff(procedure.setup.retry_wait, state.consecutive_failures, reply.retry_after))
    state = turns.carry(state._replace(status=STATUS_OF[ending.kind]))
    world.emit(run_ended(state, ending, start, world.elapsed(), past))
    return ending


def has_reached_limit(state: OodaState) -> bool:
    return 0 < state.max_iterations <= state.iteration


class Turn(NamedTuple):
    """The result of one iteration."""

    seen: Seen
    failed: bool
    past: Progress = NOTHING  # what the next iteration remembers
    commit: str = ""
    commit_refused: str = ""
    undone: str = ""


def begun(procedure: Procedure, state: OodaState, world: World, earlier: Progress) -> Progress:
    """Return the progress to begin with, after finishing an interrupted undo and running the gates if needed."""
    past = progress.forgiven(procedure, earlier)
    if procedure.on_red == "undo" and all(past.undoing):
        world.finish_undo(*past.undoing)
    elif procedure.on_red == "undo" and past.repeated:
        world.begin_repeated(past.repeated)
    if progress.commits(procedure) and not past.base:
        past = past._replace(base=world.tree())
    if has_reached_limit(state):
        return rechecked(procedure, state, world, past)
    return with_baseline(procedure, state, world, past)


def with_baseline(procedure: Procedure, state: OodaState, world: World, past: Progress) -> Progress:
    """Run the gates before the first iteration if a setting asks for it."""
    gates = procedure.gates or ()
    if not procedure.baseline or not gates or past.baseline or state.iteration or world.signalled():
        return past
    world.emit(BaselineStarted(iteration=-1))
    found = world.check(gates, -1)
    if found.interrupted:
        return past
    results = world.results(found, progress.compares_outputs(procedure))
    failed = list(progress.red(results))
    passed = [name for name in results if name not in failed]
    world.emit(BaselineEnded(gates=results, failed=failed, passed=passed))
    return past._replace(baseline=results, gates=results)


def rechecked(procedure: Procedure, state: OodaState, world: World, past: Progress) -> Progress:
    """Run the gates once more if the run is at its limit and its last iteration was cut off before it was checked."""
    if not progress.must_recheck(procedure, past, state.iteration, state.consecutive_failures):
        return past
    world.emit(RecheckStarted(iteration=state.iteration - 1))
    found = world.check(procedure.gates or (), state.iteration - 1)
    if found.interrupted:
        return past._replace(unjudged=True)
    return past._replace(last={**past.last, "gates_failed": found.summary})


def asks(turn: Turn) -> bool:
    """True if the agent succeeded and asks the user a question."""
    return bool(turn.seen.reply.question) and turn.seen.reply.ok and not turn.seen.interrupted


def judged(procedure: Procedure, state: OodaState, past: Progress, before: str, reply: Reply, world: World) -> Turn:
    """Run the gates if the agent succeeded, and judge the iteration. Commit or undo its changes if configured."""
    after = world.tree() if progress.needs_tree_after(procedure, past, reply) else ""
    gates = world.check(procedure.gates or (), state.iteration) if reply.ok else Gates()
    results = world.results(gates, progress.compares_outputs(procedure)) if progress.is_watched(procedure) else {}
    seen = Seen(reply, gates, results, before, after, last_words(reply))
    made, undone = Committed(), ""
    if progress.must_commit(procedure, seen):
        made = world.commit(past.base, message_of(reply), state.iteration)
        past = past._replace(base=made.tree or past.base)
    if progress.must_undo(procedure, past, seen):
        undone = world.undo(state.iteration)
    failed = progress.failed(procedure, past, seen) or bool(made.refused)
    return Turn(seen, failed, progress.after(procedure, past, seen, bool(undone)), made.commit, made.refused, undone)


def message_of(reply: Reply) -> str:
    """Return the agent's final message; for a raw command, whose output marks no message, the last paragraph."""
    if reply.output != "text":
        return reply.answer.text
    lines = [line.strip() for line in plain(reply.answer.text).splitlines() if "<promise>" not in line]
    return "\n".join(lines).strip().rpartition("\n\n")[2]


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
        may_ask=procedure.may_ask,
    )


def why_stop(
    state: OodaState, signal: int, past: Progress = NOTHING, procedure: Procedure | None = None
) -> Ending | None:
    """Return the ending if the loop must stop.

    Failures win over the iteration limit, and both win over a signal that arrived after the iteration.
    """
    if state.status == INTERRUPTED:
        return Ending("signal", code_of_signal(signal), signal)
    if state.status == COMPLETED:
        return Ending("success-signal", OK)
    if past.over == "blocked":
        return Ending("blocked", FAILED, note=past.reason)
    if state.consecutive_failures >= state.failure_threshold:
        return Ending("failures", FAILED)
    if past.over == "stuck":
        return Ending("stuck", FAILED)
    if has_reached_limit(state) and not past.unjudged:
        is_gated = procedure is None or bool(procedure.gates)
        is_red = progress.ends_red(past, state.consecutive_failures, is_gated)
        return Ending("max-iterations", FAILED if is_red else OK)
    if signal:
        return Ending("signal", code_of_signal(signal), signal)
    return None


def at_limit(reached: Cause | None) -> Ending | None:
    """Return the ending if a limit of cost, tokens or time is reached. A resume with a higher limit can continue."""
    return Ending("limit", UNFINISHED, note=in_words(reached), cause=reached) if reached else None


def next_state(state: OodaState, turn: Turn, now: str) -> OodaState:
    """Return the state after an iteration. Every call that was started counts as an iteration."""
    closed = state._replace(
        iteration=state.iteration + 1,
        last_iteration_at=now,
        elapsed_per_iteration=(*state.elapsed_per_iteration, format_tenths(turn.seen.reply.seconds)),
    )
    if turn.seen.interrupted:
        return closed._replace(status=INTERRUPTED)
    if asks(turn):  # the answer gets an iteration, even after the last one
        last = has_reached_limit(closed)
        return closed._replace(max_iterations=closed.max_iterations + last, consecutive_failures=0)
    if turn.failed:
        return closed._replace(consecutive_failures=state.consecutive_failures + 1)
    status = COMPLETED if turn.seen.reply.promise == "SUCCESS" else RUNNING
    return closed._replace(consecutive_failures=0, status=status)


def iteration_started(state: OodaState, past: Progress) -> IterationStarted:
    base = {"base": past.base} if past.base else {}
    return IterationStarted(iteration=state.iteration, max_iterations=state.max_iterations, **base)


def iteration_ended(before: OodaState, state: OodaState, turn: Turn) -> IterationEnded:
    reply, gates = turn.seen.reply, turn.seen.gates
    return IterationEnded(
        iteration=before.iteration,
        max_iterations=state.max_iterations,
        phase="persist",
        elapsed=round(reply.seconds, 3),
        outcome="interrupted" if turn.seen.interrupted else "failure" if turn.failed else "success",
        exit_code=reply.exit_code,
        ended=reply.ended,
        limit=reply.limit,
        note=reply.note,
        agent_outcome=reply.outcome,
        message=reply.message,
        promise=reply.promise,
        said=turn.seen.said if turn.seen.interrupted or turn.failed else "",
        gates_failed=gates.summary,
        consecutive_failures=state.consecutive_failures,
        failure_threshold=state.failure_threshold,
        **_further(turn),
    )


def _further(turn: Turn) -> dict[str, Any]:
    """Return the fields of `iteration.ended` that only some settings add."""
    found = {"commit": turn.commit, "commit_refused": turn.commit_refused, "undone": turn.undone}
    kept = progress.remembered(turn.past)
    return {key: value for key, value in found.items() if value} | ({"remembered": kept} if kept else {})


def run_ended(state: OodaState, ending: Ending, start: OodaState, session: float, past: Progress = NOTHING) -> RunEnded:
    """Return the event that ends the run.

    `session`: this session's wall time in seconds. For earlier sessions, only the agents' run time is counted.
    """
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
        **_why_failed(ending, past),
    )


def _why_failed(ending: Ending, past: Progress) -> dict[str, Any]:
    """Return the extra fields of `run.ended` that explain exit code 1 or contain the agent's question."""
    if ending.kind == "blocked":
        return {"blocked": past.blocked}
    if ending.kind == "question":
        return {"question": ending.note}
    if ending.kind == "stuck":
        return {"stuck": past.stuck, "red": list(progress.red(past.gates))}
    if ending.kind == "max-iterations" and ending.code:
        last = past.last or {"gates_failed": ", ".join(progress.red(past.gates))}
        return {"last": {key: last[key] for key in LastIteration.__annotations__ if key in last}}
    return {}
