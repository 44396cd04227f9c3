"""Checkpoints: the whole work tree as git refs, made with an index of their own. Branch and index stay as they are."""

import os

from rooda.errors import RoodaError, UsageProblem
from rooda.world import files, git

CHECKPOINTS = "refs/rooda/checkpoint"
LONGEST_DIFF = 100_000
NO_REPOSITORY = "no git repository here"


def within(workspace: str) -> bool:
    """Is there a git work tree?"""
    done = git.run(["rev-parse", "--is-inside-work-tree"], workspace)
    return done.code == 0 and done.out.strip() == b"true"


def tree(workspace: str) -> str:
    """The work tree as it is now as a git tree; "" where there is no git. Without a repository in one of our own."""
    index, place = _index(workspace), _place(workspace)
    try:
        _begin(workspace, index)
        if git.run([*place, "add", "-A", "--", "."], workspace, index=index).code:
            git.run([*place, "add", "-A", "--ignore-errors", "--", "."], workspace, index=index)
        done = git.run([*place, "write-tree"], workspace, index=index)
        return done.out.decode().strip() if done.code == 0 else ""
    finally:
        _forget(index)


def _place(workspace: str) -> list[str]:
    """The repository: the person's, else one among our private notes, so that a judge has a change to look at."""
    if within(workspace):
        return []
    place = [f"--git-dir={os.path.join(workspace, '.rooda', 'goal.git')}", f"--work-tree={workspace}"]
    if git.run([*place, "rev-parse", "--git-dir"], workspace).code:
        git.run([place[0], "init", "-q"], workspace)
    return place


def _index(workspace: str) -> str:
    return os.path.join(workspace, ".rooda", f"goal-index-{os.getpid()}")


def _begin(workspace: str, index: str) -> None:
    """A copy of the person's index knows what is unchanged, which spares reading every file."""
    done = git.run(["rev-parse", "--git-path", "index"], workspace)
    mine = os.path.join(workspace, done.out.decode("utf-8", "surrogateescape").strip())
    try:
        files.folder(os.path.dirname(index))
        facts = os.stat(mine)
        files.write(index, files.read(mine))
        os.utime(index, ns=(facts.st_atime_ns, facts.st_mtime_ns))  # by this git knows what it can't tell by time alone
    except OSError:
        files.remove(index)


def _forget(index: str) -> None:
    for path in (index, f"{index}.lock"):
        files.remove(path)


def checkpoint(workspace: str, run: str, number: int | str) -> str:
    """Keep the work tree under the run's ref of this number. "" or why it could not be."""
    found = tree(workspace) if within(workspace) else ""
    if not found:
        return NO_REPOSITORY
    env = git.with_identity(workspace, os.environ)
    done = git.run(["commit-tree", found, "-m", f"rooda goal: before iteration {number}"], workspace, env=env)
    if done.code == 0:
        commit = done.out.decode().strip()
        done = git.run(["update-ref", f"{CHECKPOINTS}/{run}/{number}", commit], workspace)
    return "" if done.code == 0 else git.said(done)


def checkpoints(workspace: str, run: str) -> dict[str, str]:
    """The run's checkpoints: name and commit, in order of making."""
    wanted = f"{CHECKPOINTS}/{run}/"
    done = git.run(["for-each-ref", "--format=%(refname) %(objectname)", wanted], workspace)
    pairs = [line.split(" ") for line in done.out.decode().splitlines() if " " in line]
    found = {name.removeprefix(wanted): commit for name, commit in pairs}
    return dict(sorted(found.items(), key=lambda pair: (not pair[0].isdecimal(), len(pair[0]), pair[0])))


def restore(workspace: str, commit: str) -> list[str]:
    """Make the work tree as it was; gives the paths that changed. What is ignored by git stays."""
    present, index = tree(workspace), _index(workspace)
    listed = git.run(["diff-tree", "-r", "-z", "--no-renames", "--name-status", present, commit, "--"], workspace)
    if not present or listed.code:
        raise RoodaError(f"The work tree can't be compared with the checkpoint: {git.said(listed)}")
    top = git.run(["rev-parse", "--show-toplevel"], workspace).out.decode("utf-8", "surrogateescape").rstrip("\n")
    words = listed.out.decode("utf-8", "surrogateescape").split("\0")
    changes = list(zip(words[0::2], words[1::2], strict=False))
    back = [path for kind, path in changes if kind != "D"]
    try:
        done = git.run(["read-tree", commit], workspace, index=index)
        given = "".join(f"{path}\0" for path in back).encode("utf-8", "surrogateescape")
        if done.code == 0:
            done = git.run(["checkout-index", "-f", "-z", "--stdin"], top, stdin=given, index=index)
    finally:
        _forget(index)
    if done.code:
        raise RoodaError(f"The checkpoint can't be restored: {git.said(done)}")
    for kind, path in changes:
        if kind == "D":
            files.remove(os.path.join(top, path))
    return [path for _, path in changes]


def rolled_back(workspace: str, run: str, name: str) -> list[str]:
    """Restore a checkpoint by its name; the present is kept as one more."""
    known = checkpoints(workspace, run)
    if name not in known:
        there = ", ".join(known) or "none"
        raise UsageProblem(f"There is no checkpoint {name!r} of this goal (there are: {there}).")
    problem = checkpoint(workspace, run, f"before-rollback-to-{name}")
    if problem:
        raise RoodaError(f"The present work tree can't be kept first: {problem}. Nothing was changed.")
    return restore(workspace, known[name])


def diff(workspace: str, base: str) -> str:
    """What has changed since that tree; "" without git."""
    present = tree(workspace) if base else ""
    if not present:
        return ""
    done = git.run([*_place(workspace), "diff", "--no-color", "--no-ext-diff", base, present], workspace)
    return done.out.decode("utf-8", "replace")[:LONGEST_DIFF] if done.code == 0 else ""


def ignored(workspace: str, paths: list[str]) -> set[str]:
    """Those that git ignores."""
    given = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    words = ["--no-literal-pathspecs", "check-ignore", "-z", "--stdin"]
    done = git.run(words, workspace, stdin=given) if paths else None
    return {path for path in done.out.decode("utf-8", "surrogateescape").split("\0") if path} if done else set()
