"""Mutated rooda.toml and AGENTS.md: understood, or refused in sentences that begin with the file."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rooda.errors import USAGE, RoodaError
from rooda.loops.configuration import load
from rooda.loops.procedure import settings as procedure_settings
from rooda.loops.procedure.model import PHASES
from rooda.run import gates_md
from rooda.run.records import Gate
from rooda.settings import procedures
from rooda.settings.lookup import decided, origins
from tests.kit.workspace import Workspace

QUICK = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
GOOD = """\
# settings
[loop]
ai_cmd = "cat -u"
default_iterations = 3
kill_grace = 1.5
quality_gates = ["true", {name = "t", command = "pytest -q", timeout = 3}]
[procedures.build]
summary = "s"
observe = ["text", {content = "x", parameters = {a = 1}}]
context = "more"
promise_signals = true
[agents.mine]
command = "mine {prompt}"
env = {A = "b"}
[models]
small = "s-1"
[[procedures.other.quality_gates]]
command = "x"
"""
PIECES = st.sampled_from(
    ["=", "[", "]", "{", "}", '"', "'", "\n", "#", ".", ",", "[[loop]]", "[loop.loop]", "0", "-1", "1e999", "nan",
     "true", "2026-02-06", '""', '"""', "[procedures.resume]", "\x00", "\ufeff", "\u202e", "observe", "9" * 5000,
     "{a={b={}}}", "ai_cmd = 3\n", "[procedures]\nbuild = 1\n", "[agents]\nmine = []\n",
     '"builtin:../x"', '"\\ud800"', '"\\U00110000"']
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Good settings with a few pieces cut out, doubled, or replaced."""
    text = GOOD
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 25)))
        text = text[:start] + draw(PIECES | st.text(max_size=6) | st.just(text[start:end] * 2)) + text[end:]
    return text.encode("utf-8", "surrogatepass")


@pytest.fixture(scope="module")
def folder() -> Iterator[str]:
    """One workspace, with a .git so that nothing above it is read."""
    with tempfile.TemporaryDirectory() as name:
        os.mkdir(os.path.join(name, ".git"))
        yield name


@QUICK
@given(data=mutated() | st.binary(max_size=80))
@example(data=b"a = " + b"[" * 5000)
@example(data=b"a." * 3000 + b"b = 1")
@example(data=b"x = " + b"9" * 5000)
@example(data=b"[loop]\nkill_grace = " + b"9" * 400)
@example(data=b"[loop]\nkill_grace = inf")
@example(data=b"[loop]\niteration_timeout = nan")
@example(data=b'[procedures.build]\nobserve = "a\\u0000b.md"')
def test_settings_are_understood_or_refused(folder: str, data: bytes) -> None:
    """Loading, resolving, and showing every procedure ends well, or in the user's mistake with exit code 2."""
    file = Path(folder, "rooda.toml")
    file.write_bytes(data)
    try:
        found = load(folder, None, {"HOME": folder})
        for name in (*procedures.names(found)[:3], "build"):
            procedure = procedure_settings.procedure(found, name, {})
            assert [phase.name for phase in procedure.phases] == list(PHASES)
            decided(found, name, {})
        origins(found)
    except RoodaError as problem:
        assert problem.code == USAGE
        assert str(file) in str(problem), str(problem)


BROKEN = {
    "cut": b"[loop\nai_cmd",
    "latin": b'[loop]\nai_cmd = "caf\xe9"\n',
    "nested": b"x = " + b"[" * 5000,
    "types": b"loop = 3\nprocedures = []\n",
    "procedure": b"[procedures]\nbuild = 4\n",
    "value": b"[loop]\nfailure_threshold = 0\nkill_grace = -1\n",
    "twice": b"[loop]\nagent = 'a'\nagent = 'b'\n",
    "huge": b"[loop]\ndefault_iterations = 1" + b"0" * 5000 + b"\n",
    "zero-byte": b"[loop]\nai_cmd = 'a\0b'\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_settings_through_the_real_command(ws: Workspace, name: str) -> None:
    """Every command that needs settings: exit 2, sentences that begin with the file, no traceback, nothing written."""
    ws.write("rooda.toml", BROKEN[name])
    for words in (["build"], ["build", "--dry-run"], ["config", "show"], ["list"]):
        ran = ws.rooda(*words)
        assert (ran.code, ran.out) == (2, "")
        assert "rooda.toml" in ran.err and "Traceback" not in ran.err
    assert not ws.exists(".rooda")


@QUICK
@given(text=st.text() | st.lists(st.sampled_from(
    ["## Quality Gates", "# Title", "## Other", "- a: `b`", "* `c`", "-", "- x: ``", "- y: `` `z` ``", "`" * 50, "- `",
     "\u2028", "\x0c", "\r", "\n", "### Quality gates ##", "## QUALITY GATES", "  + **n**: `m`", " ", "- : `q`", "\x00"]
), max_size=30).map("\n".join))  # fmt: skip
@example(text="## Quality Gates\n" + "- " + "a" * 20_000 + "`" * 20_000)
@example(text="## Quality Gates\n" + "- " + " :" * 20_000)
@example(text="## Quality Gates\n" + "- " + " " * 20_000 + "x")
@example(text="## Quality Gates\n" + "- a" + " " * 20_000 + "`x`")
@example(text="## Quality Gates\n" + "- " + "` " * 10_000)
@example(text="# " + "# " * 20_000 + "x")
@example(text="## " + " " * 20_000 + "x")
@example(text="#" * 50_000)
def test_any_agents_md_gives_gates_with_a_name_and_a_command(text: str) -> None:
    """Nothing in AGENTS.md is too odd to be read; each gate found has words to show and a command that is there."""
    for gate in gates_md.gates(text):
        assert isinstance(gate, Gate)
        assert gate.name.strip() and gate.command.strip() == gate.command != ""
        assert gate.command in text and "\n" not in gate.command
