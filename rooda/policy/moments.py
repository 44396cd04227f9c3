"""Which events are worth a hook."""

from rooda.errors import FAILED, OK, UNFINISHED
from rooda.model import Json

_OF_CODE = {OK: "done", FAILED: "failed", UNFINISHED: "paused"}


def moment(record: Json) -> str:
    """done, failed, paused, stopped, limit; "" for an event that nobody is told of."""
    if record["event"] == "run.ended":
        return _OF_CODE.get(record.get("exit_code", OK), "stopped")
    return "limit" if record["event"] == "resting" and record.get("account") else ""
