"""Has an agent said its last word, though it has not exited?"""

import json
from collections.abc import Callable

from rooda.world import files

_LAST = {"claude": ("result",), "codex": ("turn.completed",), "gemini": ("result",), "droid": ("completion",)}
_LONGEST = 4_194_304


def ender(output: str, path: str) -> Callable[[], bool] | None:
    """Says whether the last record of the transcript is the CLI's final one; None where there is no such record."""
    kinds = _LAST.get(output)
    if kinds is None:
        return None

    def ended() -> bool:
        try:
            last = files.tail(path, _LONGEST).rstrip().rpartition(b"\n")[2]
            record = json.loads(last)
        except (OSError, ValueError, RecursionError):
            return False
        return isinstance(record, dict) and record.get("type") in kinds and not record.get("is_error")

    return ended
