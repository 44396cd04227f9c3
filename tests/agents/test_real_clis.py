"""The installed agent CLIs, pointed at the model server: what their transcripts were recorded with still holds."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.clis import record

PATIENCE = 90.0  # seconds, for a busy machine
OPTIONAL = ("claude", "opencode", "copilot", "qwen", "droid", "pi")


@pytest.mark.parametrize("name", ["codex", "gemini", *(pytest.param(n, marks=pytest.mark.real) for n in OPTIONAL)])
def test_a_cli_edits_and_runs(cli: Callable[[str], str], tmp_path: Path, name: str) -> None:
    """With rooda's own command line it writes a file, runs a command, says its last words and leaves nobody behind."""
    cli(name)
    facts = record.record(name, "success", str(tmp_path), PATIENCE)
    assert (facts["returncode"], facts["files"], facts["left"]) == (0, ["made.txt", "shell.txt"], 0)
    assert "All done." in (tmp_path / name / "success.out").read_text()
    assert facts["answered"] >= 3 and facts["command"][0] == name


@pytest.mark.parametrize("name", ["codex", "gemini", *(pytest.param(n, marks=pytest.mark.real) for n in OPTIONAL)])
def test_a_cli_refuses_a_bad_key(cli: Callable[[str], str], tmp_path: Path, name: str) -> None:
    """A rejected key ends it by itself, the way that is recorded."""
    cli(name)
    facts = record.record(name, "auth", str(tmp_path), PATIENCE)
    golden = json.loads(Path(record.GOLDEN, name, "auth.json").read_text())
    assert (facts["returncode"], facts["limited"]) == (golden["returncode"], golden["limited"])
