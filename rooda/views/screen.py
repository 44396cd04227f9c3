"""Prints events: as plain lines to a pipe, as lines above a live status on a terminal, as JSON with --json."""

import json
import os
import sys
from collections.abc import Mapping
from typing import NamedTuple, TextIO

from rooda.base import clock, secrets
from rooda.base.json import Json
from rooda.base.terminal import silence, write_exact
from rooda.base.text import escape_text
from rooda.processes.supervise import Periodic
from rooda.views.agent_output import Tail
from rooda.views.lines import LEVELS, Line, LineMakers, lines
from rooda.views.live import Live, is_terminal

_COLOURS = {"warn": "\x1b[33m", "error": "\x1b[31m", "debug": "\x1b[2m"}
_NO_LINES: LineMakers = {}


class ScreenOptions(NamedTuple):
    """Options for the output of a run: level, agent output, JSON and timestamps."""

    level: str = "info"
    stream: bool = False  # also print the agent's output
    json: bool = False
    stamps: str = "time"


class Screen:
    """Prints the events of a run. Output that can't be written is dropped: a closed pipe never ends a loop.

    `own` formats the events that only this kind of loop emits; `live` is the class that draws the status on a terminal.
    """

    def __init__(self, look: ScreenOptions, own: LineMakers = _NO_LINES, live: type[Live] = Live) -> None:
        self._look, self._own = look, own
        self._stamp = Stamp(look.stamps)
        self._saved = True
        self.place = ""  # options to add to proposed commands, such as `-C DIR`
        terminal = is_terminal(sys.stdout) and not look.json
        self._colour = terminal and not os.environ.get("NO_COLOR")
        self._live = live(sys.stdout) if terminal and look.level in ("debug", "info") else None
        self._tail = Tail(self._write) if look.stream and not look.json else None
        self._hidden: tuple[str, ...] = ()
        self.hide(os.environ)

    def show(self, record: Json) -> None:
        """Print an event: its lines with a timestamp, or its record with --json."""
        if record["event"] in ("state.saved", "state.unsaved"):
            self._saved = record["event"] == "state.saved"
        if self._look.json:
            self._out(sys.stdout, json.dumps(record, ensure_ascii=False).encode("utf-8", "replace").decode() + "\n")
            return
        if self._live:
            self._live.update(record)
        if self._tail:
            self._tail.update(record)
        for line in lines(self._at_the_end(record) if record["event"] == "run.ended" else record, self._own):
            self.line(line)
        self._draw()

    def _at_the_end(self, record: Json) -> Json:
        return {**record, "saved": self._saved, "place": self.place}

    def hide(self, environ: Mapping[str, str]) -> None:
        """From now on, mask the values of secret variables in `environ`, both in lines and in agent output."""
        found = {*self._hidden, *secrets.forms(environ, (os.getcwd(),))}
        self._hidden = tuple(sorted(found, key=len, reverse=True))
        if self._tail:
            self._tail.hidden = self._hidden

    @property
    def watched(self) -> bool:
        """True if hints are printed: on a terminal or with --verbose, but not with --quiet or --json."""
        wanted = self._look.level in ("debug", "info") and not self._look.json
        return wanted and (self._look.level == "debug" or is_terminal(sys.stderr))

    def hint(self, text: str) -> None:
        """Print advice to stderr; print nothing if hints are off (see `watched`)."""
        if self.watched:
            self.line(Line("info", text, to_stderr=True))

    def line(self, line: Line) -> None:
        if LEVELS[line.level] < LEVELS[self._look.level]:
            return
        text = self._stamp() + escape_text(secrets.hide(line.text, self._hidden))
        colour = _COLOURS.get(line.level, "") if self._colour else ""
        text = f"{colour}{text}\x1b[0m" if colour else text
        if self._live:
            self._live.clear()
        self._out(sys.stderr if line.to_stderr else sys.stdout, text + "\n", exact=True)

    def tick(self) -> Periodic | None:
        """Return the periodic refresh of the screen while an agent runs; None if nothing is shown live."""
        if self._tail:
            return Periodic(0.2, self._both)
        return Periodic(1.0, self._draw) if self._live else None

    def close(self) -> None:
        if self._live:
            self._live.clear()

    def _both(self) -> None:
        assert self._tail is not None
        self._tail.read()
        self._draw()

    def _draw(self) -> None:
        """Redraw the status, unless the agent is in the middle of a line."""
        if self._live and not (self._tail and self._tail.mid_line):
            self._live.draw()

    def _write(self, text: str) -> None:
        if self._live:
            self._live.clear()
        self._out(sys.stdout, text)

    def _out(self, stream: TextIO, text: str, exact: bool = False) -> None:
        """Write and flush a string. `exact`: the string is already escaped, except for rooda's own colors."""
        try:
            write_exact(stream, text) if exact else stream.write(text)
            stream.flush()
        except (OSError, ValueError):
            silence(stream)


class Stamp:
    """Formats timestamps. `form` is `log_timestamp_format`: time, time-ms, relative, iso or none."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._began = clock.monotonic()

    def __call__(self) -> str:
        """Return the current timestamp and a space; "" for the form `none`."""
        now = clock.now()
        if self._form == "none":
            return ""
        if self._form == "relative":
            return f"[+{clock.monotonic() - self._began:.3f}s] "
        if self._form == "iso":
            return f"[{clock.rfc3339_milli(now)}] "
        local = clock.local_time(now)
        time = f"{local.tm_hour:02d}:{local.tm_min:02d}:{local.tm_sec:02d}"
        return f"[{time}.{int(now % 1 * 1000):03d}] " if self._form == "time-ms" else f"[{time}] "
