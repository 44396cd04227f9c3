"""Looks up branches, paths and commits in git's files, which is faster than starting git."""

import os
import re
from collections.abc import Iterable

from rooda.base import files
from rooda.base.workspace_files import upward


def has_left(workspace: str, branches: str, paths: Iterable[str]) -> bool:
    """True if the repository around the workspace may have a branch below `branches`, or one of the paths.

    The paths are relative to the work tree's git folder.
    """
    folder = _git_folder(os.path.realpath(workspace))
    if not folder:
        return False
    common = os.path.join(folder, _text(os.path.join(folder, "commondir")).strip())
    packed = _text(os.path.join(common, "packed-refs"))
    return (
        any(os.path.lexists(os.path.join(folder, path)) for path in paths)
        or os.path.lexists(os.path.join(common, "refs", "heads", branches))
        or f" refs/heads/{branches}" in packed
        or not packed.startswith("# pack-refs " if packed else "")  # damaged: let git report it
        or os.path.lexists(os.path.join(common, "reftable"))  # only git can read it
    )


def head_commit(workspace: str) -> str:
    """Return the commit of HEAD in the repository around the workspace; "" if git's plain files don't have it."""
    folder = _git_folder(os.path.realpath(workspace))
    if not folder:
        return ""
    head = _text(os.path.join(folder, "HEAD")).strip()
    ref = head.removeprefix("ref: ")
    if ref != head:
        common = os.path.join(folder, _text(os.path.join(folder, "commondir")).strip())
        return commit_of_ref(common, ref)
    return head if re.fullmatch("[0-9a-f]{40,64}", head) else ""


def merging(workspace: str) -> list[str]:
    """Return the commits that an unfinished merge in the work tree around the workspace merges."""
    folder = _git_folder(os.path.realpath(workspace))
    text = _text(os.path.join(folder, "MERGE_HEAD")) if folder else ""
    return re.findall(r"(?m)^[0-9a-f]{40,64}$", text)


def commit_of_ref(common: str, ref: str) -> str:
    """Return the commit of a ref, given the shared git folder; "" if git's plain files don't have it."""
    found = _text(os.path.join(common, ref)).strip() or _packed(common, ref)
    return found if re.fullmatch("[0-9a-f]{40,64}", found) else ""


def refs(common: str, starts: Iterable[str]) -> dict[str, str]:
    """Map each ref that begins with one of `starts` to its object, using only the files of a repository's git folder.

    `starts`: full names of refs, or of folders, which end with a slash. Don't use it for repositories with a reftable.
    """
    wanted, found = (*starts,), dict[str, str]()
    for row in _text(os.path.join(common, "packed-refs")).split("\n"):
        commit, _, name = row.partition(" ")
        if name.startswith(wanted):
            found[name] = commit
    for start in wanted:
        names = [start] if not start.endswith("/") else _names_below(common, start)
        for name in names:
            if re.fullmatch("[0-9a-f]{40,64}", commit := _text(os.path.join(common, name)).strip()):
                found[name] = commit
    return found


def _names_below(common: str, start: str) -> list[str]:
    below = os.walk(os.path.join(common, start))
    paths = (os.path.relpath(os.path.join(folder, name), common) for folder, _, names in below for name in names)
    return sorted(path for path in paths if not path.endswith(".lock"))


def head_branch(workspace: str) -> str:
    """Return the branch of HEAD in the repository around the workspace; "" if there is none."""
    folder = _git_folder(os.path.realpath(workspace))
    head = _text(os.path.join(folder, "HEAD")).strip() if folder else ""
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else ""


def _packed(common: str, ref: str) -> str:
    rows = _text(os.path.join(common, "packed-refs")).split("\n")
    return next((row[: -len(ref) - 1] for row in rows if row.endswith(f" {ref}")), "")


def may_track(workspace: str, name: str) -> bool:
    """True if git's index may have this name in the workspace, as a folder, link or submodule; only git can be sure."""
    folder = _git_folder(os.path.realpath(workspace))
    index = _text(os.path.join(folder, "index")) if folder else ""
    path = name[1:]  # without the dot, since version 4 compresses paths; "link" marks a split index
    return f"{path}/" in index or f"{path}\0" in index or "link" in index


def in_main_tree(workspace: str) -> str:
    """Return a workspace's path in the main work tree of its repository; outside of worktrees, its own real path."""
    real = os.path.realpath(workspace)
    folder = _git_folder(real)
    common = os.path.normpath(os.path.join(folder, _text(os.path.join(folder, "commondir")).strip()))
    if not folder or os.path.basename(common) != ".git":
        return real
    return os.path.normpath(os.path.join(os.path.dirname(common), os.path.relpath(real, upward(real)[-1])))


def folders(workspace: str) -> tuple[str, str, str]:
    """Return the top of the work tree around a folder, its git folder, and the git folder that all work trees share.

    Without a repository, the top is the folder itself, and both git folders are "".
    """
    real = os.path.realpath(workspace)
    folder = _git_folder(real)
    if not folder:
        return upward(real)[-1], "", ""
    common = os.path.join(folder, _text(os.path.join(folder, "commondir")).strip())
    return upward(real)[-1], os.path.realpath(folder), os.path.realpath(common)


CLONE_MARK = "rooda-clone.json"  # in the git folder of a clone that rooda made


def clone_around(workspace: str) -> str:
    """Return the top of the clone of a task around this folder; "" if there is none. The signature isn't checked."""
    top = upward(os.path.realpath(workspace))[-1]
    return top if os.path.lexists(os.path.join(top, ".git", CLONE_MARK)) else ""


MOST_REFS = 5000


def tips(common: str) -> frozenset[str]:
    """Return the commits of branches, remote branches and tags, from the files of a repository's git folder."""
    packed = _text(os.path.join(common, "packed-refs")) if common else ""
    found = set(re.findall(r"(?m)^\^?([0-9a-f]{40,64})\b", packed))
    for kind in ("heads", "remotes", "tags") if common else ():
        for folder, _, names in os.walk(os.path.join(common, "refs", kind)):
            if len(found) < MOST_REFS:
                found.update(_text(os.path.join(folder, name)).strip() for name in names)
    return frozenset(each for each in found if re.fullmatch("[0-9a-f]{40,64}", each))


def work_trees(top: str) -> list[str]:
    """Return the other work trees of the repository at `top`: its main one and its worktrees."""
    folder = _git_folder(top)
    common = os.path.normpath(os.path.join(folder, _text(os.path.join(folder, "commondir")).strip())) if folder else ""
    found = [os.path.dirname(common)] if os.path.basename(common) == ".git" else []
    for name in files.list_folder(os.path.join(common, "worktrees")) if common else ():
        inner = os.path.join(common, "worktrees", name)
        if pointer := _text(os.path.join(inner, "gitdir")).strip():
            found.append(os.path.dirname(os.path.join(inner, pointer)))
    return [each for each in dict.fromkeys(map(os.path.realpath, found)) if each != top]


def _git_folder(folder: str) -> str:
    """Return the git folder of the work tree around a folder; "" if there is none."""
    folder = upward(folder)[-1]
    path = os.path.join(folder, ".git")
    if not os.path.lexists(path):
        return ""
    if os.path.isdir(path):
        return path
    return os.path.join(folder, _text(path).removeprefix("gitdir: ").rstrip("\n"))


def _text(path: str) -> str:
    try:
        return files.text(path, files.LARGEST_OF_GIT)
    except (OSError, ValueError):
        return ""
