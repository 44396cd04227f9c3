"""The live status line below the lines on a terminal. It is erased before any line is written."""

from typing import TextIO

from rooda.base import clock
from rooda.base.json import Json
from rooda.base.text import cut, whole
from rooda.views.window import size

_CLEAR = "\r\x1b[K"


class Live:
    """One line: where the run is, for how long, how many tokens, which gate."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._where = self._detail = self._reason = ""
        self._waits = 0.0
        self._since = clock.monotonic()
        self._shown = False

    def note(self, record: Json) -> None:
        """Take from an event what the line shows."""
        event = record["event"]
        if event == "iteration.started":
            limit = record["max_iterations"]
            self._where = f"Iteration {record['iteration'] + 1}" + (f"/{limit}" if limit else "")
            self._detail, self._since = "", clock.monotonic()
        elif event == "prompt.assembled":
            self._detail = f"{'' if record['exact'] else '~'}{record['tokens']:,} tokens"
        elif event == "gate.started":
            self._detail = f"gate {record['gate']}"
        elif event == "resting":
            self._waits = clock.monotonic() + record["seconds"]
            self._reason = f"waiting{f' for {account}' if (account := record.get('account')) else ''}"
        elif event == "rested":
            self._waits = 0.0
        elif event in ("iteration.ended", "run.ended"):
            self._where = ""

    def draw(self) -> None:
        if self._waits:
            parts = [self._where, self._reason, f"{whole(self._waits - clock.monotonic())} left"]
        elif self._where:
            parts = [self._where, whole(clock.monotonic() - self._since), self._detail]
        else:
            self.clear()
            return
        text = " · ".join(part for part in parts if part)
        self._write(f"{_CLEAR}{cut(text, size(self._stream)[0] - 1)}")
        self._shown = True

    def clear(self) -> None:
        if self._shown:
            self._write(_CLEAR)
            self._shown = False

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._where = ""
