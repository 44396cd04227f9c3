"""What a person has ordered of a run from another terminal, in the run's folder: that it stop, and why; that it pause.

A run that a signal ended without one was cut off, by a shutdown or by a terminal that was closed. `rooda resume --all`
goes on with it, as with one that crashed.
"""

import json
import os
import re

from rooda.base import clock, files, secrets
from rooda.base.json import Json

NAME = "order"
_UNREADABLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
STOP, PAUSE = "stop", "pause"


def leave(folder: str, word: str, reason: str = "") -> bool:
    """Before the signal that carries it out. False where it can't be written: then it is not known why."""
    said = secrets.hidden(" ".join(readable(reason).split()), secrets.values(os.environ, (folder,)))
    order = {"order": word, "reason": said, "at": clock.rfc3339(clock.now())}
    try:
        files.folder(folder)  # an agent may have cleaned it away
        files.replace(os.path.join(folder, NAME), json.dumps(order, ensure_ascii=False).encode() + b"\n")
    except OSError:
        return False
    return True


def readable(reason: str) -> str:
    """Bytes that are no text, and controls of a terminal, become `?`."""
    return _UNREADABLE.sub("?", reason)


def take_back(folder: str) -> None:
    try:
        files.remove(os.path.join(folder, NAME))
    except OSError:
        pass


def of(folder: str) -> Json:
    """The order that stands; {} without one. `order`, `reason` and `at` are texts."""
    try:
        found = json.loads(files.read_ours(os.path.join(folder, NAME)))
    except (OSError, ValueError, RecursionError):
        return {}
    whole = isinstance(found, dict) and all(isinstance(found.get(key), str) for key in ("order", "reason", "at"))
    return found if whole else {}
