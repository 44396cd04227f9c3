"""Prints changing output repeatedly, for --watch."""

import sys
from collections.abc import Iterator

from rooda.errors import INTERRUPTED, OK, code_of_signal
from rooda.views.live import Repaint, is_terminal
from rooda.views.say import say

REFRESH = 1.0  # seconds between refreshes


def watching(pictures: Iterator[list[str]], as_json: bool) -> int:
    """Print each picture until a signal arrives: repaint a terminal, append to other output. Return the exit code."""
    from rooda.processes.signals import Signals

    with Signals() as signals:
        if as_json or not is_terminal(sys.stdout):
            while not signals.first:
                signals.suspend_if_asked()
                say("\n".join(next(pictures)) + ("" if as_json else "\n"))
                signals.pause(REFRESH)
        else:
            with Repaint(sys.stdout) as page:
                while not signals.first:
                    if signals.suspended:
                        page.leave()
                        signals.stop_self()
                        page.enter()
                    page.paint(next(pictures))
                    signals.pause(REFRESH)
        code = code_of_signal(signals.first)
    return OK if code == INTERRUPTED else code
