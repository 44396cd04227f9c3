"""[worktree]: what a new worktree of --worktree gets before its loop starts."""

import os

import pytest

from tests.kit.workspace import FAKE_AI, Workspace


@pytest.fixture
def repo(ws: Workspace) -> Workspace:
    ws.write(".gitignore", "/.env\n/cache\n/.venv\n/.rooda\n")
    ws.git("init", "-q")
    ws.git("add", "-A")
    ws.git("commit", "-q", "-m", "one")
    return ws


def wanted(ws: Workspace, table: str) -> None:
    ws.sections["worktree"] = f"\n[worktree]\n{table}\n"
    ws.procedure()


def test_E_28_setup_copy_and_link(repo: Workspace) -> None:
    """The loop finds copies, links, what the setup made and an untracked agent; a missing source is named."""
    repo.write("bin/agent", f"#!/bin/sh\nexec {FAKE_AI}\n", 0o755)
    repo.write(".env", "KEY=1\n", 0o600)
    repo.write("cache/deep/file", "x")
    wanted(repo, 'setup = "pwd >made; test -e .env"\ncopy = [".env", "gone"]\nlink = ["cache"]')
    repo.side(1, "cat .env cache/deep/file made")
    ran = repo.rooda("build", "-n", "1", "--worktree", "--ai-cmd", "bin/agent")
    there = repo.file(".rooda/worktrees/build-1")
    assert ran.code == 0, ran.both
    assert os.path.islink(f"{there}/cache") and not os.path.islink(f"{there}/.env")
    assert os.stat(f"{there}/.env").st_mode & 0o777 == 0o600
    with open(f"{there}/made") as file:
        assert file.read() == f"{there}\n"
    assert "[worktree] gone does not exist; skipped" in ran.err and "git does not ignore" not in ran.err


def test_E_28_a_failing_setup_starts_no_loop(repo: Workspace) -> None:
    """It is exit 2 with the last line of its output."""
    wanted(repo, 'setup = "echo no network; exit 3"')
    ran = repo.rooda("build", "-n", "1", "--worktree")
    assert ran.code == 2 and "[worktree] setup failed (exit 3): no network; no loop was started." in ran.err
    assert repo.calls == []


def test_E_28_what_is_refused(repo: Workspace) -> None:
    """Sources outside of the workspace, unless the user's own settings name them, and an editable install of it."""
    outside = repo.write("../secret", "x")
    for table in ('copy = ["../secret"]', f'copy = ["{outside}"]', 'link = ["/etc"]'):
        wanted(repo, table)
        ran = repo.rooda("build", "-n", "1", "--worktree")
        assert ran.code == 2 and "is outside of the workspace; nothing was started" in ran.err, table
    wanted(repo, "")
    user = repo.write("../home/.config/rooda/rooda.toml", f'[worktree]\ncopy = ["{outside}"]\n')
    ran = repo.rooda("build", "-n", "1", "--worktree")
    assert ran.code == 0 and os.path.exists(repo.file(".rooda/worktrees/build-1/secret"))
    assert "git does not ignore secret" in ran.err
    os.unlink(user)
    repo.write(".venv/pyvenv.cfg", "")
    repo.write(".venv/lib/python3.12/site-packages/_mine.pth", f"{repo.path}/src\n")
    wanted(repo, 'link = [".venv"]')
    ran = repo.rooda("build", "-n", "1", "--worktree")
    assert ran.code == 2 and "tests in the worktree would run the code in" in ran.err
    assert not repo.exists(".rooda/worktrees/build-2")


def test_E_28_empty_submodules_are_named(repo: Workspace) -> None:
    """A submodule is an empty folder in a new worktree."""
    os.makedirs(repo.file("../inner"))
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "x")):
        repo.git("-C", repo.file("../inner"), *words)
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", repo.file("../inner"), "lib")
    repo.git("commit", "-q", "-m", "two")
    ran = repo.rooda("build", "-n", "1", "--worktree")
    assert ran.code == 0 and "Empty submodules: lib." in ran.err


def test_S_03_a_worktree_setup_needs_trust(repo: Workspace) -> None:
    """What [worktree] runs and copies is a fact that rooda asks about, and that --untrusted leaves out."""
    wanted(repo, 'setup = "touch ran"\ncopy = [".env"]')
    shown = repo.rooda("trust", "--show").out
    assert "worktree setup" in shown and "touch ran" in shown and ".env" in shown
    assert repo.rooda("build", "-n", "1", "--worktree", "--untrusted", "--ai-cmd", "true").code == 0
    assert not os.path.exists(repo.file(".rooda/worktrees/build-1/ran"))


def test_E_28_E_16_a_gate_whose_program_is_not_in_the_worktree(repo: Workspace) -> None:
    """It is refused before anything is paid for, in the worktree, where the setup can provide it."""
    repo.sections["worktree"] = '\n[worktree]\nsetup = "mkdir bin; ln -s /bin/true bin/check"\n'
    repo.procedure("build", gates={"tests": "bin/check --all"})
    assert repo.rooda("build", "-n", "1", "--worktree").code == 0
    del repo.sections["worktree"]
    repo.procedure("build", gates={"tests": "bin/check --all"})
    repo.write("bin/check", "#!/bin/sh\n", 0o755)
    ran = repo.rooda("build", "-n", "1", "--worktree")
    assert ran.code == 2 and "build-2/bin/check" in ran.err, ran.both
    assert "Provide it with setup, copy or link in [worktree]" in ran.err
    assert len(repo.calls) == 1
