"""The recorder of transcripts, with a scripted program in place of a CLI."""

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from tests.kit.clis import cases as recorded_cases
from tests.kit.clis import install, record

PROGRAM = """\
import os, sys, time, urllib.request
url = os.environ["ANTHROPIC_BASE_URL"]
print("asked in", os.getcwd(), "home", os.environ["HOME"], "at", url, sys.stdin.read(), sys.argv[1:], flush=True)
body = b'{"tools": [{"name": "Bash", "input_schema": {}}]}'
try:
    urllib.request.urlopen(urllib.request.Request(url + "/v1/messages", body)).read()
except urllib.error.HTTPError as problem:
    sys.exit(problem.code & 255)
print("answered", file=sys.stderr)
"""


@pytest.fixture
def into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Put a program named claude where install.py installs it; return the folder to record into."""
    monkeypatch.setenv("ROODA_TEST_CLIS", str(tmp_path / "clis"))
    folder = Path(install.folder("claude"), "node_modules", ".bin")
    folder.mkdir(parents=True)
    Path(install.folder("claude"), install.COMPLETE).touch()
    program = folder / "claude.py"
    program.write_text(PROGRAM)
    command = folder / "claude"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(program))} "$@"\n')
    command.chmod(0o755)
    return str(tmp_path / "golden")


def test_both_outputs_and_the_facts_are_kept(into: str) -> None:
    """stdout and stderr are in one file, without this machine's folders, next to exit code and requests."""
    facts = record.record("claude", "promise", into)
    text = Path(into, "claude", "promise.out").read_text()
    assert "asked in /home/user/project home /home/user at http://127.0.0.1:8080 Please do it." in text
    assert "--dangerously-skip-permissions" in text and text.endswith("answered\n")
    assert json.loads(Path(into, "claude", "promise.json").read_text()) == facts
    assert (facts["returncode"], facts["requests"], facts["answered"], facts["left"]) == (0, 1, 1, 0)


def test_an_error_and_a_case_without_permissions(into: str) -> None:
    """The exit code is the program's own; a case can remove or add a flag."""
    assert record.record("claude", "auth", into)["returncode"] == 401 & 255
    assert "--dangerously-skip-permissions" not in record.record("claude", "denied", into)["command"]
    assert record.record("claude", "bad_flag", into)["command"][-1] == "--no-such-flag"


@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_a_hanging_program_is_signalled_after_its_request(into: str, name: str) -> None:
    """The signal is sent after the model's request, and how the program ended is recorded."""
    facts = record.record("claude", f"hang_{name.lower()}", into)
    assert (facts["signalled"], facts["limited"], facts["killed"]) == (name, False, False)
    assert facts["returncode"] in (-2, -15, 1)
    assert "asked in" in Path(into, "claude", f"hang_{name.lower()}.out").read_text()


def test_long_transcripts_end_with_a_whole_line() -> None:
    """Of a long transcript the first whole lines are kept."""
    raw = b"".join(b"%06d\n" % n for n in range(10_000))
    kept = record.cut(raw)
    assert raw.startswith(kept) and kept.endswith(b"\n") and record.MOST - 7 <= len(kept) <= record.MOST
    assert record.cut(raw[:100]) == raw[:100]


@pytest.mark.parametrize("cli", sorted(recorded_cases.FAMILY))
def test_rooda_s_own_command_line_is_recorded(cli: str) -> None:
    """The command line is that of config/rooda.toml, with each flag that a case can remove."""
    case = recorded_cases.cases(cli, "/repo", 0)["success"]
    words = record.argv(cli, case, record.Place("/place"))
    assert words[0] == cli and os.path.basename(cli) == cli
    assert recorded_cases.SKIP_FLAG.get(cli, cli) in words
