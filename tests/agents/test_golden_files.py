"""The recorded transcripts are complete, small, and free of traces of the machine that recorded them."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.kit.clis import homes as clis
from tests.kit.clis import install
from tests.kit.clis.cases import NEWER, cases

GOLDEN = Path(__file__).parent / "golden"
RECORDED = sorted(folder.name for folder in GOLDEN.iterdir() if folder.is_dir())
NEEDED = {"codex", "gemini", "claude", "opencode", "copilot", "qwen", "droid", "pi"}
LARGEST = 60_000
KEYS = {"cli", "version", "case", "command", "returncode", "signalled", "limited", "killed", "left", "requests",
        "answered", "files", "recorded_at", "reset_at", "whole"}  # fmt: skip
ANYBODYS = re.compile(rb"/home/user\b[\w/.-]*|/\$bunfs/root\b")
OURS = re.compile(rb"/root\b|/tmp/|/Users/|/home/|/work/|golden-\w{8}")
SECRETS = re.compile(rb"\bsk-[A-Za-z0-9-]{8,}|ghp_\w{8,}|AIza\w{8,}|-----BEGIN")


def recorded(cli: str) -> dict[str, tuple[dict[str, Any], bytes]]:
    """Facts and transcript by case."""
    paths = GOLDEN.glob(f"{cli}/*.json")  # a CLI's own reports have another suffix
    return {path.stem: (json.loads(path.read_bytes()), path.with_suffix(".out").read_bytes()) for path in paths}


def test_every_cli_is_recorded() -> None:
    """Each CLI whose transcripts rooda reads has a folder, and there is no other folder."""
    assert NEEDED <= set(RECORDED) <= set(clis.NAMES)


@pytest.mark.parametrize("cli", RECORDED)
def test_the_set_is_complete(cli: str) -> None:
    """Each case has its transcript and its facts, and no other file."""
    wanted = {f"{name}{suffix}" for name in cases(cli, "/", 0) for suffix in (".out", ".json")}
    assert {path.name for path in (GOLDEN / cli).iterdir() if path.suffix != ".report"} == wanted


@pytest.mark.parametrize("cli", RECORDED)
def test_the_facts_match_the_transcript(cli: str) -> None:
    """All keys exist, names and folders agree, the version is the pinned one, and no transcript is large."""
    for name, (facts, raw) in recorded(cli).items():
        assert set(facts) == KEYS, name
        assert (facts["cli"], facts["case"], facts["version"]) == (cli, name, install.version(cli))
        assert len(raw) <= LARGEST and (facts["whole"] or raw.endswith(b"\n")), name


@pytest.mark.parametrize("cli", RECORDED)
def test_no_path_of_the_recording_machine(cli: str) -> None:
    """No path and no key of the recording machine."""
    own = re.escape(os.path.expanduser("~").encode())
    for name, (facts, raw) in recorded(cli).items():
        for text in (json.dumps(facts).encode(), raw):
            rest = ANYBODYS.sub(b"", text)
            assert (OURS.search(rest), re.search(own + rb"/", rest), SECRETS.search(rest)) == (None, None, None), name


@pytest.mark.parametrize("cli", RECORDED)
def test_success_is_a_success(cli: str) -> None:
    """In the recorded success the file was written, the command ran, and the final message is there."""
    facts, raw = recorded(cli)["success"]
    wanted = {"made.txt"} if cli == "aider" else {"made.txt", "shell.txt"}
    left = cli == "cline"  # its hub, which rooda ends
    assert (facts["returncode"], facts["left"]) == (0, left) and wanted <= set(facts["files"])
    assert b"All done." in raw


@pytest.mark.parametrize("cli", [cli for cli in RECORDED if cli != "aider" and cli not in NEWER])
def test_an_interrupted_tool_had_begun(cli: str) -> None:
    """The tool was running when the case's signal arrived."""
    for name in ("tool_int", "tool_term"):
        facts = recorded(cli)[name][0]
        assert "started" in facts["files"] and facts["signalled"] == name[5:].upper(), name
