"""Unusual work trees, and agents that damage the repository."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.kit.snapshots import add_submodule, moments, refs, repository, tree_of
from tests.kit.workspace import Workspace


def git(ws: Workspace, folder: str, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, env=ws.env, check=True, capture_output=True)


def test_a_submodule_is_named_and_not_touched(ws: Workspace) -> None:
    """Commits inside a submodule are its own history: the undo reports that and restores everything else."""
    repository(ws, {"a": "1\n"})
    add_submodule(ws, "sub")
    ws.git("commit", "-q", "-m", "sub")
    ws.side(1, "echo 2 >a; cd sub; echo 1 >f; git add f; git commit -q -m more")
    assert ws.rooda("build", "-n", "1").code == 0
    done = ws.rooda("undo", "--yes")
    assert done.code == 1 and "left alone  sub (a repository of its own)" in done.out
    assert (ws.read("a"), ws.read("sub/f")) == ("1\n", "1\n")


def sparse(ws: Workspace, *how: str) -> None:
    repository(ws, {"in/i": "1\n", "out/o": "1\n"})
    ws.git("sparse-checkout", "set", *how, "in", "prompts")
    assert not ws.exists("out")


@pytest.mark.parametrize("how", [(), ("--sparse-index",)], ids=" ".join)
def test_a_sparse_checkout_stays_sparse(ws: Workspace, how: tuple[str, ...]) -> None:
    """Files outside a sparse checkout are in the snapshots, and an undo does not check them out."""
    sparse(ws, *how)
    ws.side(1, "echo 2 >in/i")
    assert ws.rooda("build", "-n", "1").code == 0
    assert tree_of(ws, "1-after")["out/o"] == "1\n"
    assert ws.rooda("undo", "--yes").code == 0
    assert ws.read("in/i") == "1\n" and not ws.exists("out")
    assert ws.git("status", "--porcelain") == ""


def test_a_sparse_checkout_that_an_agent_ends(ws: Workspace) -> None:
    """Files that the agent checks out and changes are saved and restored."""
    sparse(ws)
    ws.side(1, "git sparse-checkout disable; echo 2 >out/o")
    assert ws.rooda("build", "-n", "1").code == 0
    assert tree_of(ws, "1-after")["out/o"] == "2\n"
    assert ws.rooda("undo", "--yes").code == 0
    assert ws.git("status", "--porcelain") == ""


def test_a_worktree_of_a_bare_repository(ws: Workspace) -> None:
    """Only the worktree that was added has snapshots of its own."""
    repository(ws, {"a": "1\n"})
    git(ws, ws.root, "clone", "-q", "--bare", ws.path, "bare.git")
    git(ws, f"{ws.root}/bare.git", "worktree", "add", "-q", "-b", "more", f"{ws.root}/tree")
    ws.side(1, "echo 2 >a")
    assert ws.rooda("-C", f"{ws.root}/tree", "build", "-n", "1", env={"ROODA_TRUST": "all"}).code == 0
    assert ws.rooda("-C", f"{ws.root}/tree", "undo", "--yes").code == 0
    assert Path(ws.root, "tree", "a").read_text() == "1\n"


@pytest.mark.parametrize(
    "deed",
    [
        "git add -A; git commit -qm x; git reset -q --hard HEAD~1",
        "git stash -q -u",
        "git clean -fdxq -e runs",
        "git checkout -q --detach; rm loose",
        "git checkout -qb other; git add -A; git commit -qm x; git checkout -q main; git branch -qD other; git gc -q",
    ],
)
def test_whatever_an_agent_does_to_loose_files(ws: Workspace, deed: str) -> None:
    """A file that was never added is restored, and later iterations are saved too."""
    repository(ws, {"a": "1\n"})
    ws.write("loose", "precious\n")
    ws.side(1, deed)
    ws.side(2, "echo 2 >a")
    run = ws.rooda("build", "-n", "2")
    assert run.code == 0 and "snapshot" not in run.err.lower(), run.err
    assert not ws.exists("loose")
    assert "+2\n" in ws.rooda("diff", "2").out
    assert ws.rooda("undo", "1", "--yes").code == 0
    assert (ws.read("loose"), ws.read("a")) == ("precious\n", "1\n")


def test_an_agent_that_deletes_the_refs(ws: Workspace) -> None:
    """The newest snapshot's refs are put back after each iteration; older ones are reached through it."""
    repository(ws, {"a": "1\n"})
    for number in (1, 2, 3):
        ws.side(number, f"echo {number + 1} >a; rm -rf .git/refs/rooda")
    assert ws.rooda("build", "-n", "3").code == 0
    assert moments(ws) == ["3-after", "3-before"]
    assert ws.rooda("undo", "2", "--yes").code == 0 and ws.read("a") == "2\n"


def test_an_agent_that_deletes_them_for_good(ws: Workspace) -> None:
    """After git gc too, the next iterations are saved, and the loss is reported."""
    repository(ws, {"a": "1\n"})
    ws.side(1, "echo 2 >a; rm -rf .git/refs/rooda; git reflog expire --expire=now --all; git gc -q --prune=now")
    ws.side(2, "echo 3 >a")
    run = ws.rooda("build", "-n", "2")
    assert run.code == 0 and run.err.count("The newest snapshot is lost") == 1 == len(run.notes.splitlines()), run.err
    assert ws.git("fsck", "--strict", "--no-dangling") == ""
    (after,) = [ref for ref in refs(ws) if ref.endswith("/1-after")]
    assert ws.git("log", "-1", "--format=%P", after) == ws.git("rev-parse", "HEAD"), "HEAD is held"
    assert "+3\n" in ws.rooda("diff", "2").out
    lost = ws.rooda("undo", "1", "--yes")
    assert lost.code == 2 and "There is no snapshot of iteration 1" in lost.err
    assert ws.rooda("undo", "2", "--yes").code == 0 and ws.read("a") == "2\n"


def test_where_nothing_can_be_kept_nothing_false_is(ws: Workspace) -> None:
    """Without a private index there is no snapshot: rooda reports that, and never saves an empty work tree."""
    repository(ws, {"a": "1\n"})
    ws.write(".rooda/.gitignore", "*\n")
    ws.write(".rooda/snapshots", "in the way\n")
    run = ws.rooda("build", "-n", "2")
    assert run.code == 0 and run.err.count("No snapshot: ") == 1
    assert refs(ws) == []


def test_a_filter_that_fails(ws: Workspace) -> None:
    """If git fails halfway, there is no snapshot of half the work tree."""
    repository(ws, {"a": "1\n"})
    ws.write(".gitattributes", "b filter=gone\n")
    ws.git("config", "--global", "filter.gone.required", "true")
    ws.git("config", "--global", "filter.gone.clean", "false")
    ws.write("b", "1\n")
    run = ws.rooda("build", "-n", "1")
    assert run.code == 0 and "No snapshot: " in run.err
    assert refs(ws) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_named(ws: Workspace) -> None:
    """Everything but the unreadable file is saved; the undo warns that it is missing."""
    repository(ws, {"a": "1\n"})
    os.chmod(ws.write("secret", "x\n"), 0)
    ws.side(1, "echo 2 >a")
    run = ws.rooda("build", "-n", "1")
    assert run.code == 0 and run.err.count("are not complete") == 1 and "secret" in run.err
    done = ws.rooda("undo", "--yes")
    assert done.code == 0 and "WARNING" in done.err and ws.read("a") == "1\n"


def test_two_dots_in_a_name(ws: Workspace) -> None:
    """Two dots are invalid in a ref but allowed in a procedure's name."""
    ws.procedure("build", loop={"safety": "snapshot"})
    ws.config(ws.read("rooda.toml").replace("procedures.build", 'procedures."a..b"'))
    ws.git("init", "-q")
    ws.side(1, "echo 1 >made")
    run = ws.rooda("a..b", "-n", "1")
    assert (run.code, run.notes) == (0, "")
    assert ws.rooda("undo", "a..b", "--yes").code == 0 and not ws.exists("made")
    assert ws.rooda("prune", "--keep", "0").code == 0 and refs(ws) == []
