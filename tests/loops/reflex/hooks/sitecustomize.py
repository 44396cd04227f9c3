"""Kills the process before its n-th change of the public folder: KILL_AT. Counts in COUNT_IN what it let pass."""

import os
import signal
import sys

WRITING = os.O_WRONLY | os.O_RDWR
seen: list[str] = []


def hook(event: str, arguments: tuple) -> None:
    if event == "open":
        path, flags = arguments[0], arguments[2]
        if not isinstance(path, str) or not flags & WRITING:
            return
    elif event in ("os.rename", "os.remove"):
        path = arguments[0]
    else:
        return
    if f"{os.sep}evolution{os.sep}" not in str(path):
        return
    seen.append(str(path))
    if len(seen) == int(os.environ.get("KILL_AT", "0")):
        os.kill(os.getpid(), signal.SIGKILL)
    if "COUNT_IN" in os.environ:
        with open(os.environ["COUNT_IN"], "w") as file:
            file.write(str(len(seen)))


if "KILL_AT" in os.environ or "COUNT_IN" in os.environ:
    sys.addaudithook(hook)
