"""Hostile files in the place of those that commands read: an error at once, that says what and where, no memory."""

import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.workspace import Ran, Workspace

SECRET = "-----SECRET-----"
MEMORY = 1 << 30  # bytes of address space: a command that reads /dev/zero to its end fails


def limited(ws: Workspace, *words: str) -> Ran:
    def less() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    done = subprocess.run(
        ws.command(*words), cwd=ws.path, env=ws.env, capture_output=True, text=True, timeout=20, check=False,
        stdin=subprocess.DEVNULL, preexec_fn=less,
    )  # fmt: skip
    assert SECRET not in done.stdout + done.stderr and "Traceback" not in done.stderr
    return Ran(done.returncode, done.stdout, done.stderr)


def sparse(path: str) -> None:
    Path(path).touch()
    os.truncate(path, 10 << 30)


def secret(path: str) -> None:
    hidden = Path(os.environ["TMPDIR"], "rooda-test-secret")
    hidden.write_text(SECRET)
    os.symlink(hidden, path)


BAD: dict[str, Callable[[str], object]] = {
    "pipe": os.mkfifo,
    "zero": lambda path: os.symlink("/dev/zero", path),
    "secret": secret,
    "sparse": sparse,
}
READS = {  # a file that a clone can hold, and a command that reads it
    "rooda.toml": ["list"],
    "package.json": ["init", "--print"],
    "pyproject.toml": ["init", "--print"],
    "Makefile": ["init", "--print"],
    "AGENTS.md": ["build", "--ai-cmd", "cat", "-n", "1"],
    "prompts/act_build.md": ["build", "--dry-run"],
    "rules.toml": ["reflex", "new", "x", "--rules", "rules.toml"],
    "spec.md": ["goal", "run", "--file", "spec.md", "--ai-cmd", "cat", "--headless", "--yes"],
    "plan.json": ["goal", "run", "x", "--plan", "plan.json", "--ai-cmd", "cat", "--headless", "--yes"],
    ".ai-loop/flow.yaml": ["flow", "check"],
}


def put(ws: Workspace, name: str, make: Callable[[str], object]) -> None:
    path = Path(ws.file(name))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    make(str(path))


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", READS)
def test_S_07_a_hostile_file_is_an_error(ws: Workspace, name: str, bad: str) -> None:
    """Exit 2, and a sentence that names the file."""
    if bad == "sparse" and name in ("prompts/act_build.md", "spec.md", "plan.json"):
        bad = "zero"
    put(ws, name, BAD[bad])
    ran = limited(ws, *READS[name])
    assert ran.code == 2 and os.path.basename(name) in ran.err


def test_S_07_a_context_file_of_ten_gigabytes(ws: Workspace) -> None:
    """The limit of a prompt's file is larger, not the memory."""
    put(ws, "big.md", sparse)
    ran = limited(ws, "build", "--dry-run", "--context", "big.md")
    assert ran.code == 2 and "big.md can't be read: it is larger than 64 MB" in ran.err


@pytest.mark.parametrize("bad", BAD)
def test_S_07_tab_shows_what_it_can(ws: Workspace, bad: str) -> None:
    """The commands at least; no wait, no noise."""
    put(ws, "rooda.toml", BAD[bad])
    ws.env |= {"_ROODA_COMPLETE": "bash_complete", "COMP_WORDS": "rooda st", "COMP_CWORD": "1"}
    ran = limited(ws)
    assert "status" in ran.out and not ran.err


STATES = ("events.jsonl", "start", "order")


def test_S_07_one_damaged_workspace_disturbs_no_other(ws: Workspace, tmp_path: Path) -> None:
    """`status --all` and `resume --all` show and skip; the loops of the others are there."""
    other = Workspace(str(tmp_path / "other"))
    other.env = ws.env = ws.env | {"FAKE_EXIT": "1"}
    for each in (ws, other):
        each.procedure("build")
        assert each.rooda("build", cwd=each.path).code == 1
    ws.damages_events = True
    logs = [str(log.parent) for log in Path(ws.path, ".rooda", "runs").glob("*/events.jsonl")]
    for bad, make in BAD.items():
        put(ws, "rooda.toml", make)
        for name in STATES:
            put(ws, os.path.join(logs[0], name), make)
        put(ws, ".rooda/state/build.json", make)
        shown = limited(ws, "status", "--all")
        assert shown.code == 0 and other.path in shown.out and "failed" in shown.out
        assert limited(ws, "resume", "--all").code in (0, 1)
        for words in (["logs"], ["why"], ["usage"], ["events"], ["status"]) if bad in ("pipe", "sparse") else ():
            assert limited(ws, *words).code in (0, 1, 2)
