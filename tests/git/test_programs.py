"""Programs that a repository's own settings name: rooda's git commands start none of them, and the user's own."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rooda.git import command, work_tree
from rooda.git.repository import Repo, find
from rooda.git.snapshots import prepare_index
from tests.kit.snapshots import repository
from tests.kit.workspace import Workspace


def trap(ws: Workspace, name: str = "trap") -> str:
    """A shell command that leaves a mark, and passes on what it reads."""
    return f"touch {ws.root}/ran-{name}; cat"


def ran(ws: Workspace) -> list[str]:
    """The marks that were left."""
    return sorted(name for name in os.listdir(ws.root) if name.startswith("ran-"))


PROGRAMS = [
    "filter.x.clean", "filter.x.smudge", "filter.x=y.clean", "filter.x=y.smudge", "filter.p.process",
    "filter.q.clean", "alias.add",
    "diff.x.textconv", "diff.x.command", "diff.external", "merge.x.driver", "core.fsmonitor", "core.sshCommand",
    "core.pager", "core.editor", "core.askPass", "core.alternateRefsCommand", "core.gitProxy", "sequence.editor",
    "gpg.program", "gpg.ssh.program", "credential.helper", "pager.diff", "pager.log", "hook.x.command",
    "trailer.x.command", "difftool.x.cmd", "uploadpack.packObjectsHook", "remote.o.uploadpack", "alias.diff",
    "submodule.x.update", "interactive.diffFilter", "gc.recentObjectsHook",
]  # fmt: skip
SETTINGS = {
    "commit.gpgSign": "true", "log.showSignature": "true", "diff.renames": "true", "hook.x.event": "pre-commit",
    "extensions.partialClone": "o", "remote.o.promisor": "true", "remote.o.url": "ext::sh -c touch% RAN",
    "protocol.ext.allow": "always", "protocol.allow": "always", "filter.x.required": "true",
    "submodule.recurse": "true",
}  # fmt: skip
ATTRIBUTES = "*.x filter=x diff=x merge=x\n*.y filter=x=y\n*.p filter=p\n*.q filter=q\n"


@pytest.fixture
def hostile(ws: Workspace) -> Workspace:
    """A repository whose settings name a program wherever git takes one."""
    repository(ws, {".gitattributes": ATTRIBUTES, "a.x": "1\n", "a.y": "1\n", "a.p": "1\n", "a.q": "1\n"})
    for key in PROGRAMS:
        ws.git("config", key, trap(ws, key.replace(" ", "_")))
    for key, value in SETTINGS.items():
        ws.git("config", key, value.replace("RAN", f"{ws.root}/ran-ext"))
    hook = f"#!/bin/sh\ntouch {ws.root}/ran-hook\n"
    for name in ("pre-commit", "post-checkout", "post-index-change", "reference-transaction", "post-commit"):
        ws.write(f".git/hooks/{name}", hook, 0o755)
    return ws


def test_S_12_no_program_of_the_repository_runs(hostile: Workspace) -> None:
    """Snapshots, diff, undo, a worktree, prune start nothing that git would start there, and files are named."""
    hostile.side(1, "echo 2 | tee a.x a.y a.p >a.q; touch -d '2001-01-01' a.x")
    run = hostile.rooda("build", "-n", "1")
    assert run.code == 0 and not ran(hostile), (ran(hostile), run.both)
    assert run.err.count("git filters that the repository itself defines are not run (p, q, x, x=y)") == 1, run.err
    assert "unchanged: a.p, a.q, a.x, a.y. Filters in your own" in run.err
    ended = [
        hostile.rooda(*words.split())
        for words in ("diff", "diff --stat", "snapshots", "undo --yes", "build -n 1 --worktree", "prune", "status")
    ]
    assert [each.code for each in ended] == [0] * len(ended), [each.both for each in ended]
    assert not ran(hostile) and hostile.read("a.x") == hostile.read("a.p") == "1\n"


def test_S_12_a_missing_object_is_fetched_by_no_program(ws: Workspace) -> None:
    """`ext::` of a partial clone runs any command as soon as git lacks an object."""
    repository(ws, {"a": "1\n"})
    ws.side(1, "echo 2 >a")
    assert ws.rooda("build", "-n", "1").code == 0
    name = ws.git("rev-parse", "HEAD:a").strip()
    os.unlink(ws.file(f".git/objects/{name[:2]}/{name[2:]}"))
    for key, value in SETTINGS.items():
        ws.git("config", key, value.replace("RAN", f"{ws.root}/ran-ext"))
    for words in ("diff", "undo --yes"):
        ws.rooda(*words.split())
    assert not ran(ws)


def read(repo: Repo) -> str:
    """The tree of the work tree, as snapshots read it."""
    return work_tree.read(repo, prepare_index(repo, "build")).tree


@pytest.fixture
def plain(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A small repository, and its user's settings for git in this process."""
    repository(ws, {".gitattributes": "*.x filter=x\n", "a.x": "1\n"})
    for name in ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.setenv(name, ws.env[name])
    return ws


def to_worktree_settings(ws: Workspace) -> None:
    ws.git("config", "extensions.worktreeConfig", "true")
    ws.git("config", "--worktree", "filter.x.clean", trap(ws))


def to_an_included_file(ws: Workspace) -> None:
    ws.git("config", "include.path", "../more")
    ws.write("more", f'[filter "x"]\n\tclean = "{trap(ws)}"\n')


def to_a_file_of_a_branch(ws: Workspace) -> None:
    ws.git("config", "includeIf.onbranch:other.path", "../more")
    ws.write("more", f'[filter "x"]\n\tclean = "{trap(ws)}"\n')
    read(find(ws.path))
    ws.git("symbolic-ref", "HEAD", "refs/heads/other")


def to_a_broken_folder_in_between(ws: Workspace) -> None:
    """git skips a `.git` that is none, and takes the repository around it."""
    ws.git("config", "filter.x.clean", trap(ws))
    os.makedirs(ws.file("inner/.git"))
    ws.write("inner/b.x", "1\n")


@pytest.mark.parametrize(
    "add", [to_worktree_settings, to_an_included_file, to_a_file_of_a_branch, to_a_broken_folder_in_between]
)
def test_S_12_wherever_the_filter_is_defined(plain: Workspace, add: Callable[[Workspace], None]) -> None:
    """Settings that an agent adds while rooda works count from the next git command on."""
    read(find(plain.path))
    add(plain)
    Path(plain.file("a.x")).write_text("2\n")
    for folder in (plain.path, plain.file("inner")):
        if os.path.isdir(folder):
            repo = find(folder)
            command.run(["add", "-A"], folder, index=prepare_index(repo, "build"))
            assert read(repo) and not ran(plain)
            os.utime(plain.file("a.x"), (1, 1))


def test_S_12_repositories_inside_the_work_tree(plain: Workspace) -> None:
    """`git add` and `git status` look into them, and git would take their settings."""
    inner = Workspace.__new__(Workspace)
    inner.__dict__.update(plain.__dict__, path=plain.file("inner"))
    deep = Workspace.__new__(Workspace)
    deep.__dict__.update(plain.__dict__, path=plain.file("inner/deep"))
    for ws in (deep, inner):
        os.makedirs(ws.path, exist_ok=True)
        ws.git("init", "-q")
        ws.write(".gitattributes", "*.x filter=own\n")
        ws.write("b.x", "1\n")
        ws.git("add", "-A")
        ws.git("commit", "-qm", "inner")
    plain.git("add", "inner")
    repo = find(plain.path)
    read(repo)
    for ws in (deep, inner):
        ws.git("config", "filter.own.clean", trap(plain))
        os.utime(ws.file("b.x"), (1, 1))
    assert read(repo)
    repo.lines("status", "--porcelain", "--untracked-files=all")
    assert not ran(plain)


def test_S_12_a_filter_of_the_users_own_settings_runs(plain: Workspace) -> None:
    """Git LFS is defined there. A repository's own version of the same filter does not replace it."""
    subprocess.run(["git", "config", "--global", "filter.x.clean", "tr 1 9"], env=plain.env, check=True)
    plain.git("config", "filter.x.clean", trap(plain))
    plain.write("a.x", "11\n")
    tree = read(find(plain.path))
    assert plain.git("cat-file", "-p", f"{tree}:a.x") == "99\n" and not ran(plain)
    assert "(x)" in command.warning(plain.path)
    plain.git("config", "filter.x.clean", "tr 1 9")  # as `git lfs install --local` writes it
    assert command.warning(plain.path) == ""


def test_S_12_files_are_named(plain: Workspace) -> None:
    """At most five; a filter without files is nothing to warn of."""
    plain.git("config", "filter.unused.clean", "cat")
    assert command.warning(plain.path) == ""
    plain.git("config", "filter.x.clean", "cat")
    for number in range(6):
        plain.write(f"b{number}.x", "")
    assert "unchanged: a.x, b0.x, b1.x, b2.x, b3.x and 2 more." in command.warning(plain.path)
