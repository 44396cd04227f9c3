"""Detects CLIs that hang: silent ones, those that do not exit, and those that compact their context forever."""

import json
import os
from collections.abc import Callable

from rooda.agents.reader import reader
from rooda.base import clock, files
from rooda.processes import ending, table
from rooda.processes.supervise import Periodic

_LONGEST = 4_194_304  # bytes of the last record that are read
LOOK = 2.0  # seconds between checks
MAX_OVERFLOWS = 3  # context overflows in a row, without progress in between, before the CLI is stopped
_RECENT = 262_144  # bytes of the transcript's end that are read


def final_record_check(output: str, source: str | int) -> Callable[[], bool] | None:
    """Return a function that is true once the transcript ends with the final record; None if the CLI prints none."""
    kinds = reader(output).last
    if not kinds:
        return None

    def ended() -> bool:
        try:
            last = files.tail(source, _LONGEST).rstrip().rpartition(b"\n")[2]
            record = json.loads(last)
        except (OSError, ValueError, RecursionError):
            return False
        return isinstance(record, dict) and record.get("type") in kinds and not record.get("is_error")

    return ended


class OverflowWatch:
    """Sends the stop signal to CLIs that compact their context again and again without progress."""

    def __init__(self) -> None:
        self._watched: list[tuple[int, int, str, str | int, bool]] = []
        self._looked = clock.monotonic()

    def watch(self, pid: int, stop: int, output: str, source: str | int, walled: bool) -> None:
        """Watch a process if its CLI can compact its context forever.

        `stop`: the signal that ends the process; `walled`: the process may be in a sandbox.
        """
        if reader(output).compacts_forever:
            self._watched.append((pid, stop, output, source, walled))

    def periodic(self, tick: Periodic | None) -> Periodic:
        """Return the periodic work of a wait: `tick`, if there is one, and this watch's check."""
        return Periodic(min(tick.every, LOOK) if tick else LOOK, lambda: self._work(tick))

    def _work(self, tick: Periodic | None) -> None:
        if tick:
            tick.work()
        if clock.monotonic() - self._looked >= LOOK:
            self._looked = clock.monotonic()
            for pid, stop, output, source, walled in self._watched:
                if repeats_overflow(output, source):
                    ending.signal_group(table.first_inside(pid) if walled else pid, stop)


SILENT = 600.0  # seconds without output after which rooda reports it
SILENCE_LOOK = 60.0  # seconds between looks at most


class _Watched:
    """The output of one call, and the time since which the output has not grown."""

    def __init__(self, source: str | int, log: str) -> None:
        self.source, self.log, self.size, self.reported = source, log, 0, False
        self.grown = clock.monotonic()

    def silent_for(self) -> float:
        """Return the seconds since the output was last seen to grow."""
        try:
            size = os.stat(self.source).st_size
        except OSError:
            size = self.size
        if size != self.size:
            self.size, self.grown, self.reported = size, clock.monotonic(), False
        return clock.monotonic() - self.grown


class SilenceWatch:
    """Reports each call that prints nothing for a while, once per silence."""

    def __init__(self, report: Callable[[float, str], None], after: float = SILENT) -> None:
        self._report, self._after, self._looked = report, after, clock.monotonic()
        self._watched: list[_Watched] = []

    def watch(self, source: str | int, log: str) -> None:
        self._watched.append(_Watched(source, log))

    def periodic(self, tick: Periodic | None) -> Periodic:
        """Return the periodic work of a wait: `tick`, if there is one, and this watch's check."""
        every = min(SILENCE_LOOK, self._after / 4)
        return Periodic(min(tick.every, every) if tick else every, lambda: self._work(tick, every))

    def _work(self, tick: Periodic | None, every: float) -> None:
        if tick:
            tick.work()
        if clock.monotonic() - self._looked < every:
            return
        self._looked = clock.monotonic()
        for each in self._watched:
            if (silent := each.silent_for()) >= self._after and not each.reported:
                each.reported = True
                self._report(clock.now() - silent, each.log)


def repeats_overflow(output: str, source: str | int) -> bool:
    """True if the context has overflowed MAX_OVERFLOWS times without progress in between."""
    from rooda.agents import transcript as agents_transcript

    rounds: int = agents_transcript.read(output, source, _RECENT).memory.get("overflows", 0)
    return rounds >= MAX_OVERFLOWS
