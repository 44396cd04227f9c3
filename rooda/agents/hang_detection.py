"""Has an agent said its last word, though it has not exited? Does it go round in circles?"""

import json
from collections.abc import Callable

from rooda.agents.reader import reader
from rooda.base import clock, files
from rooda.processes import ending
from rooda.processes.supervise import Periodic

_LONGEST = 4_194_304
LOOK = 2.0  # seconds between looks
MAX_OVERFLOWS = 3  # without anything done in between
_RECENT = 262_144  # bytes that are looked at


def final_record_check(output: str, path: str) -> Callable[[], bool] | None:
    """Says whether the last record of the transcript is the CLI's final one; None where there is no such record."""
    kinds = reader(output).last
    if not kinds:
        return None

    def ended() -> bool:
        try:
            last = files.tail(path, _LONGEST).rstrip().rpartition(b"\n")[2]
            record = json.loads(last)
        except (OSError, ValueError, RecursionError):
            return False
        return isinstance(record, dict) and record.get("type") in kinds and not record.get("is_error")

    return ended


class OverflowWatch:
    """Sends its stop signal to a CLI that will never end by itself; its transcript says what became of it."""

    def __init__(self) -> None:
        self._watched: list[tuple[int, int, str, str]] = []
        self._looked = clock.monotonic()

    def watch(self, pid: int, stop: int, output: str, transcript: str) -> None:
        """Look at this one from now on, if it is of a kind that does such things."""
        if reader(output).compacts_forever:
            self._watched.append((pid, stop, output, transcript))

    def periodic(self, tick: Periodic | None) -> Periodic:
        """Looks now and then, and does what the given tick does as often as that asks for."""
        return Periodic(min(tick.every, LOOK) if tick else LOOK, lambda: self._work(tick))

    def _work(self, tick: Periodic | None) -> None:
        if tick:
            tick.work()
        if clock.monotonic() - self._looked >= LOOK:
            self._looked = clock.monotonic()
            for pid, stop, output, transcript in self._watched:
                if repeats_overflow(output, transcript):
                    ending.signal_group(pid, stop)


def repeats_overflow(output: str, transcript: str) -> bool:
    """Was the context too full again and again, with nothing done in between?"""
    from rooda.agents import transcript as agents_transcript

    rounds: int = agents_transcript.read(output, transcript, _RECENT).memory.get("overflows", 0)
    return rounds >= MAX_OVERFLOWS
