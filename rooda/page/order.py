"""Runs `rooda` commands for the page, each in its own session, so that they outlive the page's server."""

import asyncio
import os
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

from rooda.base import clock, files
from rooda.base.text import plain
from rooda.processes import capture, children
from rooda.processes.guardian import MANAGER_VARIABLES

PATIENCE = 20.0  # seconds that an answer to the browser waits for a command, which continues afterwards
LOOK = 0.05  # seconds between two checks whether a command has ended
SELDOM = 2.0  # the same, for commands that take long
MOST = 2_000_000  # bytes of output that are shown
SLOW = 30.0  # seconds for a command that only shows something


class Done(NamedTuple):
    """The output of a command, and its exit code, which is None if the command has not ended yet."""

    code: int | None
    said: str


async def carry_out(argv: Sequence[str], workspace: str) -> Done:
    """Start a command, and wait a short time for its end."""
    try:
        descriptor, path = tempfile.mkstemp(prefix="rooda-page-")
    except OSError as problem:  # the disk is full
        return Done(1, f"The command can't be started: {problem.strerror}")
    os.close(descriptor)
    env = {key: value for key, value in os.environ.items() if key not in MANAGER_VARIABLES}
    until = clock.monotonic() + PATIENCE
    try:
        pid = children.start_alone(argv, workspace, env, path)
        while (code := children.ended_code(pid)) is None and clock.monotonic() < until:
            await asyncio.sleep(LOOK)
        if code is None:
            waiting = asyncio.ensure_future(_reap(pid))
            _waiting.add(waiting)  # the event loop itself keeps no reference
            waiting.add_done_callback(_waiting.discard)
        return Done(code, plain(files.to_text(files.tail(path, MOST))).strip())
    except OSError as problem:
        return Done(1, f"The command can't be started: {problem.strerror}")
    finally:
        files.remove(path)


_waiting: set["asyncio.Future[None]"] = set()


async def _reap(pid: int) -> None:
    """Wait for the end of a long command, so that its process does not remain a zombie."""
    while children.ended_code(pid) is None:
        await asyncio.sleep(SELDOM)


def shown(argv: Sequence[str], workspace: str) -> Done:
    """Run a command that only shows something, and return its output, cut off if it is too long."""
    found = capture.capture(argv, timeout=SLOW, env=os.environ, cwd=workspace, most=MOST)
    text = files.to_text(found.out)
    if found.code == capture.TOO_MUCH:
        text = f"{text}\n… this is longer than {MOST:,} bytes; see all of it in a terminal"
    elif found.code:
        text = files.to_text(found.err)
    return Done(found.code, text)
