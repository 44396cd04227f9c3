"""What the log keeps of a call that failed, so that nobody has to look for its transcript first."""

from rooda.model import Call, Reply
from rooda.world import files
from rooda.world.agents import command

KEPT = 500  # characters, at the beginning and at the end


def of(call: Call, reply: Reply) -> dict[str, str]:
    """The command, and how its output begins and ends; {} for a call that succeeded."""
    if reply.ok:
        return {}
    try:
        text = files.tail(reply.transcript, 8 * KEPT).decode("utf-8", "replace")
        head = files.beginning(reply.transcript, 4 * KEPT).decode("utf-8", "replace") if reply.size > 8 * KEPT else text
    except OSError:
        text = head = ""
    rest = text if head is not text else text[KEPT:]
    return {"command": command.describe(call.agent), "head": head[:KEPT], "tail": rest[-KEPT:]}
