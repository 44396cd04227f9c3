"""What a call of a goal came to: its words, its price, its error, and the files it wrote."""

from collections.abc import Mapping

from rooda.agents import prices
from rooda.agents.outcome import FATAL, USAGE_LIMIT, in_words
from rooda.agents.records import Agent, Reply
from rooda.base import files
from rooda.loops.goal import answers, goal_answer, goal_errors
from rooda.loops.goal.world import Told

TAIL = 65_536
WORDS = {
    "timeout": "timeout {limit}s",
    "idle": "timeout {limit}s",
    "not-started": "not started",
    "": "{named}exit {code}",
}


def told(agent: Agent, reply: Reply, prompt_size: int, per_call: float, edits: Mapping[str, int]) -> Told:
    """All of it from the reply and its transcript."""
    said = reply.said.text
    answer = goal_answer.unwrapped(said) if reply.output == "text" else goal_answer.Answer(said)
    cost = _cost(agent, reply, answer, prompt_size, per_call)
    ok = reply.ok and not answer.failed
    return Told(
        text=answer.text,
        ok=ok,
        ended=reply.ended,
        how="" if ok else in_words(reply, WORDS) or f"exit {reply.exit_code}",
        error="" if ok else _error(reply, answer.text),
        cost=cost.dollars,
        estimated=cost.source == "estimated",
        seconds=reply.seconds,
        limited=reply.outcome == USAGE_LIMIT,
        reset_at=reply.reset_at,
        fatal=_fatal(reply),
        edits=edits,
        edits_seen=reply.said.edits is None,
    )


def _cost(agent: Agent, reply: Reply, answer: goal_answer.Answer, size: int, per_call: float) -> prices.Cost:
    if reply.ended == "not-started":
        return prices.Cost(0.0, "reported")
    known = answer.cost if reply.cost is None else reply.cost
    return prices.assumed(known, per_call, (size, len(answer.text)), reply.model or agent.model, agent.prices)


def _error(reply: Reply, text: str) -> str:
    """The CLI's own sentence, else the last error line of stderr, else of what it printed."""
    if reply.note or reply.message:
        return goal_errors.last(reply.note or reply.message)
    errors = _tail(reply.transcript.removesuffix(".out") + ".err")
    return goal_errors.last(errors) or goal_errors.last(answers.without(text))


def _tail(path: str) -> str:
    try:
        return files.tail(path, TAIL).decode("utf-8", "replace")
    except OSError:
        return ""


def _fatal(reply: Reply) -> str:
    if reply.ended == "not-started" and not reply.retryable:
        return f"the AI command can't be run: {reply.note}"
    return f"{reply.outcome}: {' '.join(reply.message.split())}" if reply.outcome in FATAL else ""
