"""`rooda prune` and `--worktree`: prune deletes old snapshots and merged worktrees, but never unique work."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.kit.snapshots import SAFE, moments, refs, repository
from tests.kit.workspace import Workspace, until


def runs(ws: Workspace) -> set[str]:
    return {ref.split("/")[2] for ref in refs(ws)}


def test_prune_keeps_the_last_runs(ws: Workspace) -> None:
    """The newest K runs of each procedure stay; --dry-run lists the others; NAME limits it to one procedure."""
    repository(ws, {"a": "1\n"})
    ws.procedure("other", loop=SAFE)
    for name in ("build", "build", "other", "build"):
        assert ws.rooda(name, "-n", "1").code == 0
    before = runs(ws)
    assert len(before) == 4
    would = ws.rooda("prune", "--keep", "1", "--dry-run")
    assert would.out.count("Would delete 2 snapshots of build") == 2 and runs(ws) == before
    done = ws.rooda("prune", "build", "--keep", "1")
    assert (done.code, done.out.count("Deleted 2 snapshots of build")) == (0, 2)
    assert runs(ws) == {max(run for run in before if "build" in run), *(run for run in before if "other" in run)}
    kept = "those of the last run of each procedure and kind of loop are kept"
    assert f"No snapshots to delete: {kept}.\n" in ws.rooda("prune", "--keep", "1").out
    assert ws.rooda("prune", "--keep", "0").code == 0 and refs(ws) == []
    ws.git("gc", "-q", "--prune=now")
    assert ws.rooda("build", "-n", "1").code == 0 and len(moments(ws)) == 2
    assert ws.git("fsck", "--strict", "--no-dangling") == ""


def test_old_runs_are_pruned_automatically(ws: Workspace) -> None:
    """After many runs only the last twenty have snapshots."""
    repository(ws, {"a": "1\n"})
    for _ in range(22):
        assert ws.rooda("build", "-n", "1").code == 0
    assert len(runs(ws)) == 20


def apart(ws: Workspace, *words: str) -> tuple[str, str]:
    """Run a loop in a worktree; return its folder and the output."""
    run = ws.rooda("build", "--worktree", *words)
    assert run.code == 0, run.both
    found = re.search(r"Worktree: (\S+) on the new branch (\S+)", run.err)
    assert found, run.err
    return found[1], run.err


def test_a_loop_in_its_own_worktree(ws: Workspace) -> None:
    """The agent works in a new worktree on a new branch; the user's files and branch don't change."""
    repository(ws, {"a": "1\n"})
    ws.side(1, "echo 2 >a; git commit -qam 'made apart'")
    ws.write("mine", "not committed\n")
    folder, said = apart(ws, "-n", "1")
    assert folder == ws.file(".rooda/worktrees/build-1")
    assert ws.calls[0].cwd == folder
    assert ws.read("a") == "1\n" and ws.git("status", "--porcelain").split() == ["??", "mine"]
    assert "without your 1 uncommitted change" in said
    assert ws.git("log", "-1", "--format=%s", "rooda/build-1").strip() == "made apart"
    assert "git merge rooda/build-1" in said
    assert not ws.exists(".rooda/state/build.json")
    assert apart(ws, "-n", "1")[0].endswith("build-2")


def test_settings_that_are_not_committed_hold_in_the_worktree(ws: Workspace) -> None:
    """The rooda.toml of the folder where the command was typed applies, also on the suggested resume."""
    ws.git("init", "-q")
    ws.git("commit", "-q", "--allow-empty", "-m", "nothing but a beginning")
    ws.procedure("build", loop=SAFE)
    ws.signal_at(1)
    run = ws.rooda("build", "--worktree", "-n", "2")
    assert run.code == 130
    words = re.search(r" next +rooda (.*)$", run.err, re.MULTILINE)
    assert words, run.err
    assert ws.rooda(*words[1].split()).code == 0
    assert len(ws.calls) == 2
    assert {call.cwd for call in ws.calls} == {ws.file(".rooda/worktrees/build-1")}


def test_worktrees_side_by_side(ws: Workspace) -> None:
    """The same procedure runs here and in a worktree at once: each has its own lock."""
    repository(ws, {"a": "1\n"})
    ws.side(1, "touch $FAKE/one; sleep 30 & wait")
    ws.side(2, "touch $FAKE/two; sleep 30 & wait")
    first = ws.start("build", "-n", "1")
    until(lambda: os.path.exists(f"{ws.fake}/one"))
    second = ws.start("build", "--worktree", "-n", "1")
    until(lambda: os.path.exists(f"{ws.fake}/two"))
    kept = ws.rooda("prune")
    assert "build-1: a loop is running in it" in kept.out
    for run in (first, second):
        run.signal(15)
        assert run.finish() == 143


SAFE_TO_GO = {
    "nothing done": "true",
    "merged": "echo 2 >a; git commit -qam work; git -C $(git rev-parse --git-common-dir)/.. merge -q rooda/build-1",
    "in another branch": "echo 2 >a; git commit -qam work; git branch kept",
}
MUST_STAY = {
    "changed": "echo 2 >a",
    "untracked": "echo 1 >new",
    "staged": "echo 2 >a; git add a",
    "commits": "echo 2 >a; git commit -qam work",
    "commits on another HEAD": "git checkout -q --detach; echo 2 >a; git commit -qam work",
    "commits on its branch, another one checked out": "echo 2 >a; git commit -qam work; git checkout -q -b side HEAD~1",
}


@pytest.mark.parametrize("name", SAFE_TO_GO)
def test_prune_removes_a_worktree_whose_work_is_elsewhere(ws: Workspace, name: str) -> None:
    """Worktree and branch are removed; nothing of the user is."""
    repository(ws, {"a": "1\n"})
    ws.side(1, SAFE_TO_GO[name])
    folder, _ = apart(ws, "-n", "1")
    assert f"Would remove the worktree {folder}" in ws.rooda("prune", "--dry-run").out and os.path.isdir(folder)
    assert f"Removed the worktree {folder}" in ws.rooda("prune").out
    assert not os.path.exists(folder)
    assert "rooda/build-1" not in ws.git("branch", "--all")
    assert refs(ws) == []
    assert ws.git("fsck", "--strict", "--no-dangling") == ""


def test_prune_of_a_worktree_below_a_folder_whose_name_has_a_line_end(tmp_path: Path) -> None:
    """Worktree paths with line ends are parsed correctly."""
    ws = Workspace(str(tmp_path / "two\nlines"))
    repository(ws, {"a": "1\n"})
    assert ws.rooda("build", "--worktree", "-n", "1").code == 0
    assert "Removed the worktree" in ws.rooda("prune").out
    assert not ws.exists(".rooda/worktrees/build-1")
    ws.close()


@pytest.mark.parametrize("name", MUST_STAY)
def test_prune_never_removes_work(ws: Workspace, name: str) -> None:
    """Uncommitted or unmerged work keeps the worktree, and the reason is printed."""
    repository(ws, {"a": "1\n"})
    ws.side(1, MUST_STAY[name])
    folder, _ = apart(ws, "-n", "1")
    said = ws.rooda("prune", "--keep", "0").out
    assert f"Kept the worktree {folder}: it has" in said
    assert os.path.isdir(folder) and "rooda/build-1" in ws.git("branch", "--all")


def test_prune_keeps_a_worktree_with_a_waiting_run(ws: Workspace) -> None:
    """A worktree with a run that can be resumed is kept."""
    repository(ws, {"a": "1\n"})
    ws.signal_at(1)
    assert ws.rooda("build", "--worktree").code == 130
    assert "a run can be resumed in it" in ws.rooda("prune").out
    assert ws.exists(".rooda/worktrees/build-1")


def test_only_worktrees_are_touched(ws: Workspace) -> None:
    """Folders that git does not know as worktrees are ignored, and names in use are skipped."""
    repository(ws, {"a": "1\n"})
    ws.write(".rooda/worktrees/build-1/precious", "mine\n")
    ws.git("branch", "rooda/build-2")
    assert apart(ws, "-n", "1")[0].endswith("build-3")
    assert ws.rooda("prune").code == 0
    assert ws.read(".rooda/worktrees/build-1/precious") == "mine\n"


def test_worktree_needs_a_commit_and_a_repository(ws: Workspace) -> None:
    """Without a repository or a commit, rooda says what to do and starts nothing."""
    none = ws.rooda("build", "--worktree")
    assert none.code == 2 and "git init" in none.err
    ws.git("init", "-q")
    empty = ws.rooda("build", "--worktree")
    assert empty.code == 2 and "no commits yet" in empty.err
    ws.git("commit", "-q", "--allow-empty", "-m", "x")
    both = ws.rooda("build", "--worktree", "--resume")
    assert both.code == 2 and "mutually exclusive" in both.err
    ws.git("branch", "rooda")
    taken = ws.rooda("build", "--worktree")
    assert taken.code == 2 and "Can't create the worktree" in taken.err
    assert ws.calls == []


def test_snapshots_of_a_worktree_are_its_own(ws: Workspace) -> None:
    """A run in a worktree is undone there; the main work tree does not list it."""
    repository(ws, {"a": "1\n"})
    ws.side(1, "echo 2 >a")
    folder, _ = apart(ws, "-n", "1")
    assert "There are no snapshots" in ws.rooda("snapshots").out
    assert ws.rooda("-C", folder, "undo", "--yes").code == 0
    text = subprocess.run(["cat", f"{folder}/a"], capture_output=True, text=True).stdout
    assert text == "1\n" and ws.read("a") == "1\n"


def test_prune_of_an_unknown_name(ws: Workspace) -> None:
    """A misspelled name gets a suggestion, exit 2; a procedure without snapshots is not an error."""
    repository(ws, {"a": "1\n"})
    unknown = ws.rooda("prune", "biuld")
    assert unknown.code == 2 and "Did you mean 'build'?" in unknown.err and unknown.out == ""
    assert ws.rooda("prune", "build").code == 0


def test_E_32_old_runs_are_pruned_on_request(ws: Workspace) -> None:
    """Of each procedure the last `keep_runs` stay, and every session of a run that can be resumed; no git is needed."""
    ws.procedure("other", loop={"keep_runs": 1})
    for name in ("build", "build", "other"):
        assert ws.rooda(name, "-n", "1").code == 0
    ws.signal_at(4)
    ws.signal_at(5)
    assert [ws.rooda(*words).code for words in (("build", "-n", "2"), ("resume",))] == [130, 130]
    before = sorted(os.listdir(ws.file(".rooda/runs")))
    assert ws.rooda("prune", "--dry-run").out.count("Would delete the run ") == 2
    ran = ws.rooda("prune")
    left = sorted(os.listdir(ws.file(".rooda/runs")))
    assert ran.code == 0 and left == before[2:], ran.both
    assert ws.rooda("resume").code == 0
