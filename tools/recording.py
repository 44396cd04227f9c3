"""Makes docs/demo.svg: the demo on a terminal, recorded from a real run, as an animated picture.

    python tools/recording.py            docs/demo.svg
    python tools/recording.py FILE       another file

It records the rooda of the Python that runs it. A program that draws no animations shows the last screen.
"""

import fcntl
import os
import pty
import re
import struct
import sys
import tempfile
import termios
import time
from typing import NamedTuple
from xml.sax.saxutils import escape

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMMANDS = ("rooda init --demo demo", "cd demo", "rooda build", "git diff --stat")
SCRIPT = 'for line; do printf "\\033[1m$ %s\\033[0m\\n" "$line"; sleep 0.4; eval "$line"; sleep 0.4; done'
COLUMNS = 84
LONGEST = 1.0  # seconds that the picture waits for at most; what takes longer is shortened
CELL, LINE, SIZE, EDGE, BAR = 8.4, 19, 14, 16, 32
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "36": "#79c0ff", "90": "#8b949e"}
SEQUENCE = re.compile(r"\x1b\[([\d;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")


class Run(NamedTuple):
    """Characters of one style."""

    text: str
    style: str


class Shown(NamedTuple):
    """A row of the screen from a moment to another; `end` is None if it stays."""

    row: int
    runs: tuple[Run, ...]
    start: float
    end: float | None


class Screen:
    """A terminal that never scrolls, and knows what rooda and git print: colours, CR, LF, and "erase line"."""

    def __init__(self) -> None:
        self.rows: list[list[tuple[str, str]]] = [[]]
        self.column, self.style = 0, ""

    def feed(self, text: str) -> None:
        at = 0
        while at < len(text):
            found = SEQUENCE.match(text, at)
            if not found:
                raise SystemExit(f"unknown control sequence: {text[at : at + 12]!r}")
            at = found.end()
            values, letter, control, plain = found.groups()
            if letter:
                self._sequence(values, letter)
            elif control:
                self.column = 0
                self.rows += [[]] if control == "\n" else []
            else:
                self._print(plain)

    def _sequence(self, values: str, letter: str) -> None:
        if letter == "K":
            del self.rows[-1][self.column :]
        elif letter == "m":
            for value in values.split(";"):
                self.style = "" if value in ("", "0", "39") else f"{self.style} {value}".strip()
        else:
            raise SystemExit(f"unknown control sequence: ESC[{values}{letter}")

    def _print(self, text: str) -> None:
        for character in text:
            if self.column == COLUMNS:
                self.rows.append([])
                self.column = 0
            row = self.rows[-1]
            row[self.column : self.column + 1] = [(character, self.style)]
            self.column += 1

    def shown(self) -> list[tuple[Run, ...]]:
        return [_runs(row) for row in self.rows]


def _runs(row: list[tuple[str, str]]) -> tuple[Run, ...]:
    found: list[Run] = []
    for character, style in row:
        if found and found[-1].style == style:
            found[-1] = Run(found[-1].text + character, style)
        else:
            found.append(Run(character, style))
    return tuple(found)


def recorded(folder: str) -> list[tuple[float, str]]:
    """What the commands print on a terminal, and when."""
    os.makedirs(f"{folder}/home")
    plain = ("HOME", "PATH", "TERM", "COLUMNS", "LANG", "GIT_PAGER", "GIT_CONFIG_NOSYSTEM")
    path = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    values = (f"{folder}/home", path, "xterm-256color", str(COLUMNS), "C.UTF-8", "cat", "1")
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
        os.chdir(folder)
        os.execvpe("bash", ["bash", "-c", SCRIPT, "bash", *COMMANDS], dict(zip(plain, values, strict=True)))
    found, began = [], time.monotonic()
    while data := _read(terminal):
        found.append((time.monotonic() - began, data))
    if os.waitpid(pid, 0)[1]:
        raise SystemExit("".join(text for _, text in found))
    return found


def _read(terminal: int) -> str:
    """The next characters; "" at the end."""
    data = b""
    while True:
        try:
            more = os.read(terminal, 65536)
        except OSError:  # Linux, when the last process has closed it
            more = b""
        data += more
        try:
            return data.decode()
        except UnicodeDecodeError:
            if not more:
                raise


def versions(recording: list[tuple[float, str]]) -> list[Shown]:
    """Every row that was on the screen, with its time; the last versions of all rows stay."""
    screen, found, now, before = Screen(), list[Shown](), 0.0, 0.0
    last: dict[int, Shown] = {}
    for moment, text in recording:
        now += min(LONGEST, moment - before)
        before = moment
        screen.feed(text)
        for row, runs in enumerate(screen.shown()):
            old = last.get(row)
            if old and old.runs == runs:
                continue
            if old and old.runs and old.start < now:
                found.append(old._replace(end=now))
            last[row] = Shown(row, runs, now, None)
    return found + [each for each in last.values() if each.runs]


def svg(rows: list[Shown]) -> str:
    high = BAR + EDGE + LINE * (max(each.row for each in rows) + 1)
    wide = round(2 * EDGE + CELL * COLUMNS)
    dots = "".join(
        f'<circle cx="{EDGE + 4 + 20 * n}" cy="16" r="6" fill="{colour}"/>'
        for n, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    return "\n".join((
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}">',
        f"<style>text{{font:{SIZE}px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#c9d1d9;"
        "white-space:pre}.b{font-weight:700}.s{visibility:hidden}"
        "@keyframes hide{from,to{visibility:hidden}}@keyframes show{from,to{visibility:visible}}"
        "@media(prefers-reduced-motion){text{animation:none!important}}</style>",
        f'<rect width="{wide}" height="{high}" rx="8" fill="#0d1117"/>{dots}',
        *(_text(each) for each in rows),
        "</svg>\n",
    ))  # fmt: skip


def _text(shown: Shown) -> str:
    """Hidden until its time; a row that is replaced later is visible for its time only."""
    y = BAR + LINE * (shown.row + 1) - 4
    length = CELL * sum(len(run.text) for run in shown.runs)
    if shown.end is None:
        moves = f'style="animation:hide {shown.start:.2f}s step-end"'
    else:
        moves = f'class="s" style="animation:show {shown.end - shown.start:.2f}s step-end {shown.start:.2f}s"'
    inner = "".join(_span(run) for run in shown.runs)
    return f'<text x="{EDGE}" y="{y}" textLength="{length:.1f}" {moves} xml:space="preserve">{inner}</text>'


def _span(run: Run) -> str:
    codes = run.style.split()
    colour = next((f' fill="{COLOURS[code]}"' for code in codes if code in COLOURS), "")
    bold = ' class="b"' if "1" in codes else ""
    return f"<tspan{colour}{bold}>{escape(run.text)}</tspan>" if colour or bold else escape(run.text)


def main() -> int:
    target = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "docs", "demo.svg")
    with tempfile.TemporaryDirectory() as folder:
        picture = svg(versions(recorded(folder)))
    with open(target, "w", encoding="utf-8") as file:
        file.write(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
