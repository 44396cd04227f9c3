"""Snapshots: what a run saves of the work tree, and what it leaves alone."""

import os
import random
import subprocess
from pathlib import Path

import pytest

from rooda.git.retention import Snapshot, excess_runs, message, next_undone, parse, turns, undo_position
from tests.kit.snapshots import SAFE, moments, refs, repository, tree_of
from tests.kit.workspace import Workspace, until


def test_before_and_after_each_iteration(ws: Workspace) -> None:
    """Each iteration has a ref before and after it, outside all branches, with untracked but without ignored files."""
    repository(ws, {"kept.txt": "1\n", ".gitignore": "*.log\n"})
    ws.write("loose.txt", "never added\n")
    ws.write("noise.log", "ignored\n")
    ws.side(1, "echo 2 >kept.txt; echo new >new.txt")
    ws.side(2, "rm new.txt loose.txt")
    run = ws.rooda("build", "-n", "2")
    assert (run.code, run.notes) == (0, "")
    assert moments(ws) == ["1-after", "1-before", "2-after", "2-before"]
    one, two = tree_of(ws, "1-before"), tree_of(ws, "1-after")
    assert (one["kept.txt"], one["loose.txt"]) == ("1\n", "never added\n")
    assert "new.txt" not in one and "noise.log" not in one and not any(name.startswith(".rooda/") for name in one)
    assert (two["kept.txt"], two["new.txt"]) == ("2\n", "new\n")
    assert {"new.txt", "loose.txt"}.isdisjoint(tree_of(ws, "2-after"))


def test_index_branch_head_and_stash_stay(ws: Workspace) -> None:
    """The user's index, commits and stash stay the same byte for byte."""
    repository(ws, {"a": "1\n", "b": "1\n"})
    ws.write("a", "stashed\n")
    ws.git("stash")
    ws.write("b", "staged\n")
    ws.git("add", "b")
    names = ("index", "HEAD", "refs/heads/main", "refs/stash")
    kept = [Path(ws.path, ".git", name).read_bytes() for name in names]
    assert ws.rooda("build", "-n", "2").code == 0
    assert moments(ws)
    assert kept == [Path(ws.path, ".git", name).read_bytes() for name in names]
    assert ws.git("branch", "--list").split() == ["*", "main"]


def test_off_by_default_and_by_option(ws: Workspace) -> None:
    """Without the setting there are no refs; an option, a procedure's key and the environment can enable it."""
    repository(ws, {"a": "1\n"}, loop=None)
    assert ws.rooda("build", "-n", "1").code == 0
    assert refs(ws) == []
    assert ws.rooda("build", "-n", "1", "--safety", "snapshot").code == 0
    assert len(moments(ws)) == 2
    assert ws.rooda("build", "-n", "1", env={"ROODA_LOOP_SAFETY": "snapshot"}).code == 0
    assert len({ref.split("/")[2] for ref in refs(ws)}) == 2
    ws.procedure("build", keys='safety = "snapshot"\n', loop={"safety": "off"})
    assert ws.rooda("build", "-n", "1").code == 0
    assert len({ref.split("/")[2] for ref in refs(ws)}) == 3
    wrong = ws.rooda("build", "--safety", "snapshots")
    assert wrong.code == 2 and "snapshot" in wrong.err


def test_without_a_repository_there_is_one_warning(ws: Workspace) -> None:
    """Without a repository there is one warning, and the loop runs to its end."""
    ws.procedure("build", loop=SAFE)
    run = ws.rooda("build", "-n", "3")
    assert run.code == 0 and len(ws.calls) == 3
    (line,) = run.notes.splitlines()
    assert "is not in a git work tree; the loop continues without snapshots" in line


def test_without_a_git_program_there_is_one_warning(ws: Workspace) -> None:
    """Without git on PATH the loop runs to its end too."""
    ws.procedure("build", loop=SAFE)
    os.makedirs(f"{ws.root}/bin")
    for name in ("sh", "cat", "env", "date", "sed", "sleep", "mv", "cp", "printf", "grep", "mkdir", "ls", "head", "tr"):
        if found := subprocess.run(["which", name], capture_output=True, text=True).stdout.strip():
            os.symlink(found, f"{ws.root}/bin/{name}")
    run = ws.rooda("build", "-n", "2", "--ai-cmd", "cat", env={"PATH": f"{ws.root}/bin"})
    assert run.code == 0
    assert run.err.count("git is not installed") == 1


def test_an_empty_repository_has_snapshots_too(ws: Workspace) -> None:
    """Before the first commit there is no HEAD, but the work tree is saved."""
    ws.git("init", "-q")
    ws.procedure("build", loop=SAFE)
    ws.side(1, "echo 1 >new")
    assert ws.rooda("build", "-n", "1").code == 0
    assert tree_of(ws, "1-after")["new"] == "1\n"


def test_commits_of_an_agent_that_are_reset_away_stay_reachable(ws: Workspace) -> None:
    """HEAD is a parent of the snapshot, so no reset or git gc loses a commit."""
    repository(ws, {"a": "1\n"})
    ws.side(1, "git commit -q --allow-empty -m precious; git rev-parse HEAD >$FAKE/precious")
    ws.side(2, "git reset -q --hard HEAD~1; git reflog expire --expire=now --all; git gc -q --prune=now")
    assert ws.rooda("build", "-n", "2").code == 0
    commit = Path(ws.fake, "precious").read_text().strip()
    assert ws.git("log", "-1", "--format=%s", commit).strip() == "precious"


def test_a_workspace_below_the_repositorys_root(ws: Workspace) -> None:
    """The whole work tree is saved, whichever folder the loop works in."""
    repository(ws, {"top.txt": "1\n", "sub/inner.txt": "1\n"})
    ws.side(1, f"echo 2 >{ws.path}/top.txt; echo 2 >inner.txt")
    assert ws.rooda("-C", "sub", "build", "-n", "1").code == 0
    assert (tree_of(ws, "1-after")["top.txt"], tree_of(ws, "1-after")["sub/inner.txt"]) == ("2\n", "2\n")
    assert "There are no snapshots" in ws.rooda("snapshots").out, "they belong to the folder that the loop ran in"
    assert "2 files changed" in ws.rooda("-C", "sub", "snapshots").out


def test_unchanged_files_are_not_read_again(ws: Workspace) -> None:
    """Between two snapshots git reads only changed files; the private index knows the others."""
    repository(ws, {f"many/{number}": f"{number}\n" for number in range(50)})
    ws.write("big.bin", os.urandom(1 << 20))
    assert ws.rooda("build", "-n", "1").code == 0
    blobs = ws.git("count-objects").split()[0]
    assert ws.rooda("build", "-n", "2").code == 0
    assert int(ws.git("count-objects").split()[0]) - int(blobs) <= 6, "commits and nothing else: no blob, no tree"
    index = ws.file(".rooda/snapshots/build.index")
    listing = subprocess.run(
        ["git", "ls-files", "--debug", "big.bin"], cwd=ws.path, env=ws.env | {"GIT_INDEX_FILE": index},
        capture_output=True, text=True,
    )  # fmt: skip
    facts = os.stat(ws.file("big.bin"))
    assert f"mtime: {facts.st_mtime_ns // 10**9}:{facts.st_mtime_ns % 10**9}" in listing.stdout


def test_a_lock_of_a_killed_git_is_removed(ws: Workspace) -> None:
    """The next run removes the private index's lock file of a killed git."""
    repository(ws, {"a": "1\n"})
    ws.write(".rooda/snapshots/build.index.lock", "")
    run = ws.rooda("build", "-n", "1")
    assert (run.code, run.notes) == (0, "") and len(moments(ws)) == 2


def test_a_damaged_private_index_is_made_again(ws: Workspace) -> None:
    """A damaged private index costs only time."""
    repository(ws, {"a": "1\n"})
    ws.write(".rooda/snapshots/build.index", "rubbish")
    run = ws.rooda("build", "-n", "1")
    assert (run.code, run.notes) == (0, "") and tree_of(ws, "1-before")["a"] == "1\n"


def test_a_change_of_the_same_size_within_the_same_second_is_seen(ws: Workspace) -> None:
    """Changes are found by content where git's timestamps can't show them."""
    repository(ws, {f"f{number}": "0\n" for number in range(20)})
    for number in range(1, 6):
        ws.side(number, f"for f in f*; do echo {number} >$f; done")
    assert ws.rooda("build", "-n", "5").code == 0
    for number in range(1, 6):
        for moment, text in (("before", f"{number - 1}\n"), ("after", f"{number}\n")):
            found = tree_of(ws, f"{number}-{moment}")
            assert {found[f"f{each}"] for each in range(20)} == {text}


def test_a_file_ignored_later_is_left_out(ws: Workspace) -> None:
    """An untracked file is left out once git ignores it; a tracked one stays."""
    repository(ws, {"a": "1\n", "tracked.log": "1\n"})
    ws.side(1, "mkdir big; echo x >big/file")
    ws.side(2, "printf 'big/\\n*.log\\n' >.gitignore")
    assert ws.rooda("build", "-n", "2").code == 0
    assert "big/file" in tree_of(ws, "2-before") and "big/file" not in tree_of(ws, "2-after")
    assert "tracked.log" in tree_of(ws, "2-after")


def test_what_git_cannot_add_is_reported(ws: Workspace) -> None:
    """A repository without a commit can't be added; everything else is."""
    repository(ws, {"a": "1\n"})
    os.makedirs(ws.file("inner"))
    subprocess.run(["git", "init", "-q"], cwd=ws.file("inner"), env=ws.env, check=True)
    ws.write("inner/file", "x\n")
    ws.write("b", "1\n")
    run = ws.rooda("build", "-n", "2")
    assert run.code == 0
    assert "are incomplete" in run.err and "inner" in run.err
    assert tree_of(ws, "2-after")["b"] == "1\n"


def test_an_interrupted_iteration_has_its_snapshot(ws: Workspace) -> None:
    """Ctrl+C ends the iteration, and its changes so far are saved."""
    repository(ws, {"a": "1\n"})
    ws.side(1, "echo half >half.txt")
    ws.signal_at(1)
    assert ws.rooda("build").code == 130
    assert tree_of(ws, "1-after")["half.txt"] == "half\n"


def test_a_killed_run_keeps_its_before(ws: Workspace) -> None:
    """After a crash the snapshot before the iteration exists, and `rooda diff` compares it with the work tree."""
    repository(ws, {"a": "1\n"})
    ws.side(1, "echo 2 >a; touch $FAKE/done; sleep 30 & wait")
    run = ws.start("build")
    until(lambda: os.path.exists(f"{ws.fake}/done"))
    run.signal(9)
    run.finish()
    assert moments(ws) == ["1-before"]
    shown = ws.rooda("diff")
    assert shown.code == 0 and "-1\n+2\n" in shown.out and "current work tree" in shown.err
    assert "was cut off" in ws.rooda("snapshots").out


def test_old_refs_are_removed_and_old_iterations_can_be_undone(ws: Workspace) -> None:
    """Only the newest snapshots of a long run have refs; older ones can be undone as well."""
    repository(ws, {"a": "1\n"})
    run = ws.rooda("build", "-n", "130", "--ai-cmd", "sh -c 'echo $ROODA_ITERATION >n'", timeout=120)
    assert (run.code, run.notes) == (0, "")
    assert 200 <= len(moments(ws)) <= 250
    assert "1-before" not in moments(ws)
    assert ws.rooda("undo", "7", "--yes").code == 0
    assert ws.read("n") == "6\n"


SNAPSHOT = Snapshot(
    *("20260206T100000Z-build-1", "ooda", "build", "build", 3, "before", 5, ":", "abc", "main", "", "", (".env",)),
    *("c", "t", 1000),
)


def test_a_snapshot_message_can_be_parsed() -> None:
    """A snapshot's message can be parsed back; other commits are not snapshots."""
    text = f"c t 1000\n{message(SNAPSHOT)}"
    assert parse(text) == SNAPSHOT
    assert parse(f"\n{text}\n\n") == SNAPSHOT
    assert parse("c t 1000\nA commit message\n\nRooda-Run: x\n") is None
    assert parse("") is None


@pytest.mark.parametrize(
    ("trees", "present", "at", "expected"),
    [
        ("ABC", "D", 4, 3),
        ("ABC", "C", 3, 2),
        ("ABC", "D", 3, 2),
        ("AAA", "A", 4, 0),
        ("ABB", "B", 4, 1),
        ("ABC", "A", 1, 0),
    ],
)
def test_which_iteration_is_undone_next(trees: str, present: str, at: int, expected: int) -> None:
    """Each undo goes one step further back, past iterations without changes; 0: nothing is left."""
    run = [
        SNAPSHOT._replace(iteration=number, number=2 * number + later, moment=moment, tree=tree)
        for number, tree in enumerate(trees, 1)
        for later, moment in enumerate(("before", "after"))
    ]
    assert undo_position(run) == len(trees) + 1
    found = next_undone(turns(run), present, at)
    assert (found.before.iteration if found else 0) == expected


def test_the_first_before_of_an_iteration_counts() -> None:
    """A turn that waited for a usage limit keeps its first snapshot; a repeated turn gets new ones."""
    early, late = SNAPSHOT._replace(number=1, tree="1"), SNAPSHOT._replace(number=2, tree="2")
    after = SNAPSHOT._replace(number=3, moment="after", tree="3")
    assert [turn.before.tree for turn in turns([late, early, after])] == ["1"]


def test_the_last_runs_are_kept_by_procedure_and_place() -> None:
    """Keeping 2 means the 2 newest runs of each procedure in each place."""
    tips = [
        SNAPSHOT._replace(run=f"{second}-{loop}-{place}", loop=loop, family=loop, place=place, seconds=second)
        for loop in ("build", "audit")
        for place in (":", "x:")
        for second in (1, 2, 3)
    ]
    assert sorted(tip.run for tip in excess_runs(tips, 2)) == sorted(tip.run for tip in tips if tip.seconds == 1)
    assert excess_runs(tips, 3) == []


def test_killed_at_any_moment(ws: Workspace) -> None:
    """After kills during a save, the next run saves, and git fsck finds no errors."""
    repository(ws, {f"f{number}": "0\n" for number in range(30)})
    random.seed(os.environ.get("SEED", "1"))
    for _ in range(8):
        run = ws.start("build", "--fresh", "-n", "0", "--ai-cmd", "sh -c 'date +%N | tee f1 >f2'")
        seen = random.randrange(1, 12)
        until(lambda run=run, seen=seen: run.out.count("completed") >= seen)
        run.signal(9)
        run.finish()
    last = ws.rooda("build", "--fresh", "-n", "1")
    assert last.code == 0 and "snapshot" not in last.err.lower()
    assert ws.git("fsck", "--strict", "--no-dangling") == ""
    assert ws.rooda("undo", "1", "--yes").code == 0
    assert ws.git("status", "--porcelain") in ("", " M f1\n M f2\n")
