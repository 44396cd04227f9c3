"""Repositories in which git hides, converts or refuses files: what an undo restores, and what is said first."""

import os
from pathlib import Path

import pytest

from tests.kit.snapshots import repository
from tests.kit.workspace import Workspace

DUBIOUS = {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1", "ROODA_TRUST": "all"}
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"


def contents(ws: Workspace) -> dict[str, bytes]:
    """Every file of the work tree that is not git's or rooda's own."""
    found = (path for path in Path(ws.path).rglob("*") if path.is_file())
    names = {path.relative_to(ws.path).as_posix(): path for path in found}
    return {name: path.read_bytes() for name, path in names.items() if not name.startswith((".git/", ".rooda/"))}


@pytest.mark.parametrize("how", [(), ("--sparse-index",)], ids=" ".join)
@pytest.mark.parametrize("script", ["echo 2 >out/o", "rm -r out", "mkdir -p new/deep; echo n >new/deep/n"])
def test_I_50_files_outside_a_sparse_checkout(ws: Workspace, how: tuple[str, ...], script: str) -> None:
    """Files that lie outside of the patterns are restored, and those that the iteration left alone stay."""
    repository(ws, {"in/a": "1\n", "out/o": "1\n", "more/p": "1\n", "gone/g": "1\n"})
    ws.git("sparse-checkout", "set", *how, "in", "prompts")
    ws.write("out/o", "mine\n")
    ws.write("more/p", "mine\n")
    before = contents(ws)
    ws.side(1, f"echo 2 >in/a; {script}")
    assert ws.rooda("build", "-n", "1").code == 0 and contents(ws) != before
    undone = ws.rooda("undo", "--yes")
    assert undone.code == 0 and contents(ws) == before, undone.both
    assert ws.rooda("undo", "--redo", "--yes").code == 0 and ws.read("in/a") == "2\n"


def test_I_50_hidden_changes_are_restored_and_said(ws: Workspace) -> None:
    """Files with skip-worktree or assume-unchanged have the user's content again, and git still hides it."""
    repository(ws, {"a": "1\n", "b": "1\n", "c": "1\n"})
    ws.git("update-index", "--skip-worktree", "a")
    ws.git("update-index", "--assume-unchanged", "b")
    ws.write("a", "mine\n")
    ws.write("b", "mine\n")
    ws.side(1, "echo 2 >a; rm b; echo 2 >c")
    assert ws.rooda("build", "-n", "1").code == 0
    undone = ws.rooda("undo", "--yes")
    assert (ws.read("a"), ws.read("b"), ws.read("c")) == ("mine\n", "mine\n", "1\n"), undone.both
    assert "git hides changes of these files (skip-worktree); they are restored, too: a, b\n" in undone.err
    assert ws.git("ls-files", "-v", "a", "b", "c").split() == ["S", "a", "h", "b", "H", "c"]


@pytest.mark.parametrize(("setting", "ends"), [("true", "CRLF"), ("input", "LF"), ("false", "")])
def test_I_50_line_ends_that_git_converts(ws: Workspace, setting: str, ends: str) -> None:
    """What can't come back byte for byte is said; without a conversion each byte is as it was."""
    repository(ws, {"a": "1\n", "b": "1\n"})
    ws.git("config", "core.autocrlf", setting)
    ws.write("a", "1\r\n2\n")
    before = contents(ws)
    ws.side(1, "echo 2 >a")
    assert ws.rooda("build", "-n", "1").code == 0
    undone = ws.rooda("undo", "--yes")
    note = f"line ends here (core.autocrlf = {setting}): restored with {ends}, whatever they were before: a"
    assert (note in undone.err) == bool(ends) and (contents(ws) == before) == (not ends), undone.both


def test_I_50_dubious_ownership(ws: Workspace) -> None:
    """Commands that need the repository, a start and doctor all show git's own advice."""
    repository(ws, {"a": "1\n"})
    advice = f"git config --global --add safe.directory {ws.path}"
    for words in (["undo"], ["build", "--worktree"], ["build", "-n", "1"], ["doctor"]):
        ran = ws.rooda(*words, env=DUBIOUS)
        assert "dubious ownership" in ran.both and advice in ran.both, (words, ran.both)


def test_I_50_lfs_without_its_filter(ws: Workspace) -> None:
    """A worktree that git could not check out is refused before it is made; one with pointers only is said."""
    folders = ws.env["PATH"].split(os.pathsep)
    ws.env["PATH"] = os.pathsep.join(each for each in folders if not os.path.exists(f"{each}/git-lfs"))
    repository(ws, {"a.bin": POINTER, ".gitattributes": "*.bin filter=lfs -text\n"})
    ran = ws.rooda("build", "-n", "1", "--worktree")
    assert ran.code == 0 and "git LFS is not installed, and it stores a.bin; the worktree only has pointers" in ran.err
    for key, value in (("process", "git-lfs filter-process"), ("required", "true")):
        ws.git("config", "--global", f"filter.lfs.{key}", value)
    ran = ws.rooda("build", "-n", "1", "--worktree")
    assert ran.code == 2 and "it stores a.bin; git can't check out a worktree. Nothing was started." in ran.err
    assert not ws.exists(".rooda/worktrees/build-2")
