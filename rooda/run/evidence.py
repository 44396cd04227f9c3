"""What the log keeps of a call: its facts, and of a failed one enough that its transcript can wait."""

from rooda.agents import command
from rooda.agents.records import Call, Reply
from rooda.base import files, secrets
from rooda.run.event_records import AgentEnded

KEPT = 500  # characters, at the beginning and at the end
_READ_ONLY = (
    *("message", "retryable", "reset_at", "usage", "cost", "cost_source"),
    *("model", "turns", "tools", "edited", "denied"),
)


def of(call: Call, reply: Reply, ran: float, hidden: tuple[str, ...] = ()) -> AgentEnded:
    """The reply as the log has it. What only a transcript that is read can tell is left out of a raw command's."""
    facts = reply._asdict()
    kind, _ = facts.pop("outcome"), facts.pop("said")
    if kind:
        facts.update(agent_outcome=kind, usage=reply.usage and reply.usage._asdict())
    else:
        for key in _READ_ONLY:
            del facts[key]
    outcome = "success" if reply.ok else "interrupted" if reply.ended == "interrupted" else "failure"
    facts |= {"elapsed": round(reply.seconds, 3), "seconds": round(reply.seconds, 6), "outcome": outcome}
    facts |= _of_failure(call, reply, hidden)
    return AgentEnded(phase="execute", ran=ran, **facts)


def _of_failure(call: Call, reply: Reply, hidden: tuple[str, ...]) -> dict[str, str]:
    """The command, and how its output begins and ends; {} for a call that succeeded. No keys."""
    if reply.ok:
        return {}
    try:
        text = files.tail(reply.transcript, 8 * KEPT).decode("utf-8", "replace")
        head = files.head(reply.transcript, 4 * KEPT).decode("utf-8", "replace") if reply.size > 8 * KEPT else text
    except OSError:
        text = head = ""
    whole = head is text
    head, text = secrets.hide(head, hidden), secrets.hide(text, hidden)
    rest = text[KEPT:] if whole else text
    return {"command": command.describe(call.agent), "head": head[:KEPT], "tail": rest[-KEPT:]}
