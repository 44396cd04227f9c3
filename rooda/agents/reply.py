"""Turns an ended process and its transcript into a reply."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rooda.agents import outcome
from rooda.agents.command import base_environment, session_id
from rooda.agents.reader import reader
from rooda.agents.records import Agent, Answer, Call, Facts, Prompt, Reply, Usage
from rooda.base import files
from rooda.base.json import Json
from rooda.processes.supervise import ProcessResult

if TYPE_CHECKING:
    from rooda.agents import cli_log, prices
    from rooda.agents.gathered import Gathered

LONGEST = 16_777_216  # bytes kept of a raw command's answer, from its end
LONGEST_END = 8192  # bytes kept of a raw command's output if the call did not ask for the answer
KILLED = ProcessResult(137, 0.0, "interrupted")


def reply_of(
    call: Call,
    done: ProcessResult,
    transcript: str,
    env: Mapping[str, str],
    opened: int = -1,
    log: "cli_log.Mark | None" = None,
) -> Reply:
    """Return the reply to an ended call; for a raw command it has little more than the exit code.

    `opened`: the transcript's descriptor, if it is still open. `log`: the end of the CLI's own log when the call began.
    """
    source = transcript if opened < 0 else opened
    limits = {"timeout": call.bounds.iteration_timeout, "idle": call.idle_timeout}
    reply = Reply(
        exit_code=done.code,
        seconds=done.seconds,
        ended=done.ended,
        transcript=transcript,
        output=call.agent.output,
        size=done.size,
        truncated=_has_output_limit(call) and done.size > call.bounds.max_output_buffer,
        note=done.note,
        swept=done.swept,
        limit=limits.get(done.ended, 0.0),
    )
    if done.ended == "not-started":
        from rooda.agents.outcome import TEMPORARY

        return reply._replace(retryable=done.errno in TEMPORARY)
    if call.agent.output == "text":
        promise, question = _promise_of_text(call, source), _question_of_text(call, source)
        answer = read_output(source) if call.wants_answer else _end(source) if reply.size else Answer()
        return reply._replace(promise=promise, question=question, answer=answer)
    return _read(call, reply, env, source, log)


def _has_output_limit(call: Call) -> bool:
    """True if rooda reads only the end of the transcript, as it does for raw commands in a procedure."""
    return call.kind == "iteration" and call.agent.output == "text"


def read_output(source: str | int) -> Answer:
    """Return the output of a raw command; empty if the file can't be read."""
    try:
        data = files.tail(source, LONGEST + 1)
    except OSError:
        return Answer()
    cut, data = len(data) > LONGEST, data[-LONGEST:]
    try:
        text = exact = data.decode()
    except UnicodeDecodeError:
        text, exact = data.decode("utf-8", "replace"), files.to_text(data)
    return Answer(text, cut, exact)


def _end(source: str | int) -> Answer:
    """Return the end of a raw command's output; empty if the file can't be read."""
    try:
        return Answer(files.tail(source, LONGEST_END).decode("utf-8", "replace"), cut=True)
    except OSError:
        return Answer()


def interrupted_reply(started: Json, agent: Agent, answer: bool = False) -> Reply:
    """Rebuild the reply to a call whose end was not recorded, using its transcript and this agent's prices.

    `answer`: also keep the output of a raw command.
    """
    output, model = str(started.get("output", agent.output)), str(started.get("model", agent.model))
    agent = agent._replace(output=output, model=model)
    call = Call(str(started.get("call", "")), 0, agent, Prompt("", "", 0, 0, True, 0), wants_answer=answer)
    return reply_of(call, KILLED, str(started.get("transcript", "")), base_environment())


def _reset_in(text: str) -> float | None:
    from rooda.agents import limits

    return limits.reset_time(text)


def _read(call: Call, reply: Reply, env: Mapping[str, str], source: str | int, log: "cli_log.Mark | None") -> Reply:
    from rooda.agents import transcript
    from rooda.agents.outcome import USAGE_LIMIT, judge

    gathered = transcript.read(call.agent.output, source)
    transcript.take_report(call.agent.output, reply.transcript, gathered)
    if log and log.path and reply.ended in ("timeout", "idle"):
        from rooda.agents import cli_log

        if logged := cli_log.last_error(call.agent.output, log):
            gathered.retry(None, logged)
    facts = gathered.facts()
    found = judge(facts, reply.ended, reply.exit_code, reader(call.agent.output).status_of_exit.get(reply.exit_code))
    reset_at = facts.reset_at or (_reset_in(found.message) if found.kind == USAGE_LIMIT else None)
    usage, model, cost = _usage(call, facts, gathered, env, reply.transcript)
    return reply._replace(
        outcome=found.kind,
        message=found.message,
        retryable=found.retryable,
        once=found.once,
        retry_after=(outcome.delay_of(found.message) or 0.0) if found.kind == outcome.RATE_LIMIT else 0.0,
        reset_at=reset_at,
        usage=usage,
        cost=cost.dollars,
        cost_source=cost.source,
        model=model,
        turns=facts.turns,
        tools=facts.tools,
        edited=len(facts.edited),
        denied=len(facts.denied),
        unknown_records=facts.unknown_records,
        answer=Answer(facts.final, gathered.cut, facts.final, _edits(call, gathered)),
        promise=_promise(call, facts.final.encode("utf-8", "replace").split(b"\n")),
        question=_question(call, facts.final.encode("utf-8", "replace").split(b"\n")),
    )


def _edits(call: Call, gathered: "Gathered") -> dict[str, int] | None:
    return gathered.edited or None if reader(call.agent.output).tells_edits else None


def _usage(
    call: Call, facts: Facts, gathered: "Gathered", env: Mapping[str, str], transcript: str
) -> tuple[Usage | None, str, "prices.Cost"]:
    """Return a call's usage, model and cost; usage that the transcript lacks comes from the CLI's session file."""
    from rooda.agents import prices, sessions

    shares, model = gathered.shares, facts.model
    if facts.usage is None or not (model or shares or call.agent.model):
        shares = sessions.usage_of(call.agent.output, facts.session or session_id(transcript), env)
        model = model or next(iter(shares), "")
    usage = facts.usage or sessions.total(shares)
    only = next(iter(shares), "") or model or call.agent.model
    parts = shares if len(shares) > 1 else {only: usage or Usage()}
    return usage, model, prices.cost_of_call(facts.cost, usage, parts, call.agent.prices)


def _promise_of_text(call: Call, source: str | int) -> str:
    """Return the agent's verdict, a promise tag, from a raw command's output; "" if there is none."""
    if not call.promise_signals:
        return ""
    try:
        return _promise(call, files.lines(source, call.bounds.max_output_buffer))
    except OSError:
        return ""


def _question_of_text(call: Call, source: str | int) -> str:
    """Return the question to the user from a raw command's output; "" if there is none."""
    if not call.may_ask:
        return ""
    try:
        return _question(call, files.lines(source, call.bounds.max_output_buffer))
    except OSError:
        return ""


def _question(call: Call, lines: Iterable[bytes]) -> str:
    if not call.may_ask:
        return ""
    found = outcome.questions(lines)
    try:
        return outcome.question(found, files.read_ours(call.prompt.path)) if found else ""
    except OSError:
        return ""


def _promise(call: Call, lines: Iterable[bytes]) -> str:
    if not call.promise_signals:
        return ""
    found = outcome.claims(lines)
    try:
        return outcome.verdict(found, files.read_ours(call.prompt.path)) if found else ""
    except OSError:
        return ""
