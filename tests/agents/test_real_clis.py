"""The installed agent CLIs with the model server: they still behave as recorded."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.clis import record
from tests.kit.clis.cases import NEWER

PATIENCE = 90.0  # seconds, for a busy machine
OPTIONAL = ("claude", "opencode", "copilot", "qwen", "droid", "pi")
EDITING = [pytest.param(name, marks=pytest.mark.real) for name in (*OPTIONAL, *NEWER) if name != "nanocoder"]


@pytest.mark.parametrize("name", ["codex", "gemini", *EDITING])
def test_a_cli_edits_and_runs(cli: Callable[[str], str], tmp_path: Path, name: str) -> None:
    """With rooda's command line it writes a file, runs a command, prints its final message and leaves no process."""
    cli(name)
    facts = record.record(name, "success", str(tmp_path), PATIENCE)
    assert (facts["returncode"], facts["files"]) == (0, ["made.txt", "shell.txt"])
    assert facts["left"] == (name == "cline")  # its hub, which rooda ends
    assert "All done." in (tmp_path / name / "success.out").read_text()
    assert facts["answered"] >= 3 and facts["command"][0] == name


@pytest.mark.parametrize("name", ["codex", "gemini", *(pytest.param(n, marks=pytest.mark.real) for n in OPTIONAL)])
def test_a_cli_refuses_a_bad_key(cli: Callable[[str], str], tmp_path: Path, name: str) -> None:
    """With a rejected key it exits by itself, as recorded."""
    cli(name)
    facts = record.record(name, "auth", str(tmp_path), PATIENCE)
    golden = json.loads(Path(record.GOLDEN, name, "auth.json").read_text())
    assert (facts["returncode"], facts["limited"]) == (golden["returncode"], golden["limited"])
