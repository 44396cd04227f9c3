"""The recorded transcripts are complete, small, and hold nothing of the machine they were made on."""

import json
import os
import re
from pathlib import Path
from typing import Any

import clis
import install
import pytest
from recorded_cases import cases

GOLDEN = Path(__file__).parent / "golden"
RECORDED = sorted(folder.name for folder in GOLDEN.iterdir() if folder.is_dir())
FACTS = sorted(GOLDEN.glob("*/*.json"))
NEEDED = ("codex", "gemini", "claude", "opencode", "copilot", "qwen", "droid", "pi")
LARGEST = 60_000
KEYS = {"cli", "version", "case", "command", "returncode", "signalled", "limited", "killed", "left", "requests",
        "answered", "files", "recorded_at", "reset_at", "whole"}  # fmt: skip
# A path under /home/user, /opt or a system folder is anybody's; these are somebody's.
OURS = re.compile(rb"/root\b(?<!/home/user/root)|(?<!/home/user/root)/tmp/|/Users/|/home/(?!user\b)|/work/|golden-\w{8}")
SECRETS = re.compile(rb"sk-[A-Za-z0-9-]{8,}|ghp_\w{8,}|AIza\w{8,}|-----BEGIN")


def label(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def facts_of(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_every_cli_is_recorded() -> None:
    """There is a folder for each CLI whose transcripts rooda reads, and for nothing else."""
    assert set(RECORDED) >= set(NEEDED) and set(RECORDED) <= set(clis.NAMES)


@pytest.mark.parametrize("cli", RECORDED)
def test_the_set_is_complete(cli: str) -> None:
    """Each case has its transcript and its facts, made with the pinned version."""
    names = set(cases(cli, "/", 0))
    assert {path.stem for path in GOLDEN.glob(f"{cli}/*.json")} == names
    assert {path.stem for path in GOLDEN.glob(f"{cli}/*.out")} == names
    assert {facts_of(path)["version"] for path in GOLDEN.glob(f"{cli}/*.json")} == {install.version(cli)}


@pytest.mark.parametrize("path", FACTS, ids=label)
def test_the_facts_fit_the_file(path: Path) -> None:
    """All keys are there, name and place agree, and a long transcript is marked as cut."""
    facts, size = facts_of(path), path.with_suffix(".out").stat().st_size
    assert set(facts) == KEYS and (facts["cli"], facts["case"]) == (path.parent.name, path.stem)
    assert size <= LARGEST and facts["whole"] in (True, False)
    assert path.with_suffix(".out").read_bytes()[-1:] in (b"\n", b"") or facts["whole"]


@pytest.mark.parametrize("path", FACTS, ids=label)
def test_nothing_of_this_machine(path: Path) -> None:
    """No path, home or key of the machine that recorded it."""
    for raw in (path.read_bytes(), path.with_suffix(".out").read_bytes()):
        assert not OURS.search(raw) and not SECRETS.search(raw)
        assert os.path.expanduser("~").encode() + b"/" not in raw.replace(b"/home/user/", b"")


@pytest.mark.parametrize("cli", RECORDED)
def test_success_is_a_success(cli: str) -> None:
    """In the recorded success the file was written, the command ran, and the last words are there."""
    facts = facts_of(GOLDEN / cli / "success.json")
    assert (facts["returncode"], facts["files"], facts["left"]) == (0, ["made.txt", "shell.txt"], 0)
    assert b"All done." in (GOLDEN / cli / "success.out").read_bytes()


@pytest.mark.parametrize("cli", RECORDED)
def test_refused_tools_did_nothing(cli: str) -> None:
    """Where a tool was interrupted it had begun, and nothing that was to follow was done."""
    for name in ("tool_int", "tool_term"):
        facts = facts_of(GOLDEN / cli / f"{name}.json")
        assert facts["files"] == ["started"] and facts["signalled"] == name[5:].upper()
