"""From a process that has ended and its transcript to what became of the call."""

from collections.abc import Iterable

from rooda.model import Call, Reply
from rooda.policy import promise
from rooda.world import clock, files
from rooda.world.process import Done

# What an exit code stands for where a CLI puts an HTTP status into one byte.
STATUS_OF_EXIT = {"gemini": {41: 401, 144: 400, 145: 401, 147: 403, 148: 404, 173: 429, 244: 500, 247: 503}}


def understood(call: Call, done: Done, transcript: str) -> Reply:
    """The reply: for a raw command its exit code, for a CLI that is read all that its transcript tells."""
    limits = {"timeout": call.iteration_timeout, "idle": call.idle_timeout}
    reply = Reply(
        exit_code=done.code,
        seconds=done.seconds,
        ended=done.ended,
        transcript=transcript,
        size=done.size,
        truncated=done.size > call.max_output_buffer,
        note=done.note,
        swept=done.swept,
        limit=limits.get(done.ended, 0.0),
    )
    if call.agent.output == "text" or done.ended == "not-started":
        return reply._replace(promise=_promise_of_text(call, transcript))
    return _read(call, reply)


def _read(call: Call, reply: Reply) -> Reply:
    from rooda.policy import prices
    from rooda.policy.outcome import USAGE_LIMIT, judge
    from rooda.world.agents import reading

    facts = reading.facts_of(call.agent.output, reply.transcript)
    found = judge(facts, reply.ended, reply.exit_code, STATUS_OF_EXIT.get(call.agent.output, {}).get(reply.exit_code))
    reset_at = facts.reset_at or (clock.reset_in(found.message) if found.kind == USAGE_LIMIT else None)
    cost = facts.cost
    if cost is None:
        cost = prices.cost(facts.usage, facts.model or call.agent.model, call.agent.prices)
    return reply._replace(
        outcome=found.kind,
        message=found.message,
        retryable=found.retryable,
        reset_at=reset_at,
        usage=facts.usage,
        cost=cost,
        cost_source="unknown" if cost is None else "computed" if facts.cost is None else "reported",
        model=facts.model,
        turns=facts.turns,
        tools=facts.tools,
        edited=len(facts.edited),
        denied=len(facts.denied),
        promise=_promise(call, facts.final.encode("utf-8", "replace").split(b"\n")),
    )


def _promise_of_text(call: Call, transcript: str) -> str:
    """The final message of a raw command is all that it printed, read line by line."""
    if not call.promise_signals:
        return ""
    try:
        return _promise(call, files.lines(transcript, call.max_output_buffer))
    except OSError:
        return ""


def _promise(call: Call, lines: Iterable[bytes]) -> str:
    if not call.promise_signals:
        return ""
    said = promise.claims(lines)
    try:
        return promise.verdict(said, files.read(call.prompt.path)) if said else ""
    except OSError:
        return ""
