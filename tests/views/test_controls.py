"""No control sequence of an agent, a file, a name or a commit reaches a terminal; rooda's own colours do."""

import io
import json
import re

import pytest

from rooda.base.terminal import EscapingStream, write_exact
from rooda.base.text import escape_all_but_colours
from tests.kit.snapshots import repository
from tests.kit.workspace import Workspace

# Sets the clipboard and the title, erases; the same with C1 signs; line separators; signs that turn the direction.
EVIL = "\x1b]52;c;QUJD\x07\x1b]0;pwned\x1b\\\x1b[2J\x9b2J\x90x\x85\u2028\u2029\u202e\u2066\u061c\u200f\x7f\x08\rOVER"
SIGNS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
OWN = r"\x1b\[[0-9;]*m|\r\x1b\[K|\r\x1b\[J|\r+(?=\n)|\x1b\[[0-9]*[AHJK]|\x1b\[\?(?:25|1049)[hl]"


def escaped(text: str) -> str:
    """What a stream of rooda makes of a text."""
    data = io.BytesIO()
    stream = EscapingStream(data, encoding="utf-8", newline="\n")
    assert stream.write(text) == len(text)
    stream.flush()
    return data.getvalue().decode()


def acting(raw: bytes) -> list[str]:
    """What would act on a terminal, without rooda's own sequences."""
    return re.findall(f"[{SIGNS}].{{0,20}}", re.sub(OWN, "", raw.decode()))


def test_S_11_a_stream_escapes_all_that_acts() -> None:
    """C0, DEL, C1, line separators and signs that turn the direction are shown; text, tabs and emoji stay."""
    assert escaped(EVIL + "\udc9b") == (
        "\\x1b]52;c;QUJD\\x07\\x1b]0;pwned\\x1b\\\\x1b[2J\\u009b2J\\u0090x\\u0085\\u2028\\u2029\\u202e\\u2066\\u061c"
        "\\u200f\\u007f\\x08\\rOVER\\udc9b"
    )
    every = "".join(map(chr, range(0x11_0000)))
    assert set(re.findall(f"[{SIGNS}]", every)) == {sign for sign in every if escaped(sign) != sign}
    assert escaped(text := "före\t\u05d0 \N{WOMAN}\u200d\N{ROCKET} 中\xa0.\n") == text


def test_S_11_json_with_controls_stays_json() -> None:
    """A program that reads JSON gets the same values."""
    said = escaped(json.dumps({"evil": EVIL}, ensure_ascii=False))
    assert json.loads(said) == {"evil": EVIL} and said.isascii()


def test_S_11_only_what_rooda_means_passes() -> None:
    """The escapes are bypassed by name only, not by a library that writes bytes to the buffer below."""
    data = io.BytesIO()
    stream = EscapingStream(data, encoding="ascii", errors="replace", newline="\n")
    write_exact(stream, "\x1b[33mown\x1b[0m")
    stream.write_bytes(b"\x1b[31m")
    assert data.getvalue() == b"\x1b[33mown\x1b[0m\x1b[31m"
    assert not hasattr(stream, "buffer")
    assert escape_all_but_colours("\x1b[1;31mred\x1b[m\x1b[2J\r") == "\x1b[1;31mred\x1b[m\\x1b[2J\\r"


@pytest.fixture
def hostile(ws: Workspace) -> Workspace:
    """A workspace whose settings, prompts, agent, gates, files and commits hold such sequences."""
    text = json.dumps(EVIL)
    keys = f"summary = {text}\ndescription = {text}\ncontext = {text}\n"
    repository(ws, {"old.txt": "before\n"})
    ws.procedure("build", keys, gates={f"g{EVIL}": "sleep 0.1"})
    ws.config(ws.read("rooda.toml") + f"[models]\n{text} = {text}\n[agents.{text}]\ncommand = 'false'\n[{text}]\n")
    ws.git("commit", "-qam", f"a {EVIL}")
    ws.write("../evil", EVIL + "\n")
    ws.side(1, "cp ../evil old.txt; cat ../evil; cat ../evil >&2; sleep 0.1")
    return ws


COMMANDS = [
    "list", "info build", "build --help", "build --dry-run -v", "config show --origin", "config show --json", "agents",
    "status --json", "logs --agent build", "logs -f --agent", "why", "events", "diff", "build --NAME", "tokens NAME",
]  # fmt: skip


def test_S_11_no_command_lets_a_sequence_through(hostile: Workspace) -> None:
    """A run with --verbose and its live line, and commands after it, each on a terminal."""
    run = hostile.terminal("build", "-n", "1", "--verbose", "--safety", "snapshot")
    run.finish()
    assert "\\x1b]52;c;QUJD\\x07" in run.out and not acting(run.raw)
    words = [[word.replace("NAME", EVIL) for word in line.split(" ")] for line in COMMANDS]
    for line, terminal in zip(COMMANDS, [hostile.terminal(*each) for each in words], strict=True):
        terminal.finish(60)
        assert not acting(terminal.raw), line
        assert "x1b" in terminal.out or "u001b" in terminal.out or line in ("status --json",), line


def test_S_11_a_diff_shows_colours_of_git_alone(ws: Workspace) -> None:
    """Colours in a file could hide lines of a review; on a pipe a diff is exact, so that git can apply it."""
    repository(ws, {"a": "1\n"})
    ws.side(1, "echo 2 >a")
    ws.side(2, "printf '\\033[8mhidden\\033[0m\\r\\n' >a")
    assert ws.rooda("build", "-n", "2").code == 0
    one, two = ws.terminal("diff", "1"), ws.terminal("diff", "2")
    assert (one.finish(), two.finish()) == (0, 0)
    assert b"\x1b[32m+\x1b[m\x1b[32m2\x1b[m" in one.raw
    assert b"+\\x1b[8mhidden\\x1b[0m\\r\r\n" in two.raw and b"\x1b" not in two.raw
    assert "+\x1b[8mhidden\x1b[0m\r\n" in ws.rooda("diff", "2").out
