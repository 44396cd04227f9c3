"""Puts back guarded files that an agent in the sandbox has changed: files that make the user's tools run something.

They stay writable while the agent runs, since git could not merge or check out otherwise.
"""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rooda.base import files, workspace_files
from rooda.git import traces
from rooda.git.repository import GitProblem, Repo, find
from rooda.run.project_walls import Project

NAMES = """
    rooda.toml .envrc .vscode .claude .codex .gemini .cursor .mcp.json .github/workflows .qwen opencode.json .opencode
    .aider.conf.yml
"""
# Files in the git folder that make git read another configuration; rooda removes them if they appear.
GIT_NAMES = ("commondir", "config.worktree")
MOST = 2000  # files; those beyond are not guarded
LARGEST = 1_048_576  # bytes of a guarded file

State = tuple[str, int, bytes]  # kind, permissions, content or target of a link


class Seen(NamedTuple):
    """A file's state, and the fingerprint (inode, size, mode, times) that it had when its state was read."""

    state: State
    fingerprint: tuple[int, ...]


class GuardedFiles:
    """The guarded files of a project, compared before and after each round of processes."""

    def __init__(self, project: Project, allow: Sequence[str]) -> None:
        self._project, self._allow = project, [os.path.normpath(name) for name in allow]
        self._seen: dict[str, Seen] = {}
        self._head, self._tips = "", frozenset[str]()

    def begin(self) -> None:
        """Read the state of the guarded files and the repository's commits before processes start."""
        self._seen = self._look(self._seen)
        self._head, self._tips = traces.head_commit(self._project.workspace), traces.tips(self._project.common)

    def put_back(self, aside: str) -> list[str]:
        """Restore changed files, and move what the processes wrote to `aside`. Return paths relative to the project."""
        now = self._look(self._seen)
        paths = {*self._seen, *now}
        changed = [path for path in sorted(paths) if _state(self._seen, path) != _state(now, path)]
        changed = [path for path in changed if not self._is_allowed(path)]
        brought = self._brought([path for path in changed if _is_plain(now, path)], now) if changed else set()
        changed = [path for path in changed if path not in brought]
        for path in changed:
            self._restore(path, aside)
        return changed

    def _look(self, before: Mapping[str, Seen]) -> dict[str, Seen]:
        found: dict[str, Seen] = {}
        for path in self._paths():
            if len(found) >= MOST:
                break
            try:
                found[path] = _seen(os.path.join(self._project.top, path), before.get(path))
            except OSError:
                continue
        return found

    def _paths(self) -> Iterator[str]:
        """Yield each guarded path that exists, relative to the project's top."""
        top, git = self._project.top, self._project.common
        for folder in dict.fromkeys((top, self._project.workspace)):
            for name in NAMES.split():
                yield from _below(top, os.path.join(folder, name))
        for name in GIT_NAMES if git and git == self._project.git else ():
            if os.path.lexists(os.path.join(git, name)):
                yield os.path.relpath(os.path.join(git, name), top)

    def _is_allowed(self, path: str) -> bool:
        inside = os.path.relpath(os.path.join(self._project.top, path), self._project.workspace)
        return any(each == name or each.startswith(name + os.sep) for name in self._allow for each in (path, inside))

    def _brought(self, paths: Sequence[str], now: Mapping[str, Seen]) -> set[str]:
        """Return the paths whose content git brought: that of a commit that existed before and is in HEAD since."""
        head = traces.head_commit(self._project.workspace)
        tips = [tip for tip in self._tips if tip != self._head]
        if not paths or not tips or head in ("", self._head):
            return set()
        try:
            repo = find(self._project.workspace)
            merged = [tip for tip in tips if self._is_new(repo, tip, head)]
            return {path for path in paths if _is_in(repo, merged, path, now.get(path))}
        except GitProblem:
            return set()

    def _is_new(self, repo: Repo, tip: str, head: str) -> bool:
        """True if a commit is HEAD, or has become an ancestor of HEAD since `begin`."""
        if tip == head:
            return True
        return _is_ancestor(repo, tip, head) and not (self._head and _is_ancestor(repo, tip, self._head))

    def _restore(self, path: str, aside: str) -> None:
        top = self._project.top
        target, kept, folder = os.path.join(top, path), os.path.join(aside, path), top
        files.make_folder(os.path.dirname(kept))
        if os.path.lexists(target) and _is_real(top, os.path.dirname(path)):
            files.rename(target, _free(kept), synced=False)
        if not (seen := self._seen.get(path)):
            return
        for name in path.split(os.sep)[:-1]:
            folder = os.path.join(folder, name)
            if os.path.lexists(folder) and not files.is_folder(folder):
                files.rename(folder, _free(f"{kept}.folder"), synced=False)
            files.make_folder(folder)
        kind, mode, content = seen.state
        if kind == "link":
            files.link(target, os.fsdecode(content))
        else:
            files.create_whole(target, content, mode)


def _state(seen: Mapping[str, Seen], path: str) -> State | None:
    found = seen.get(path)
    return found and found.state


def _is_plain(seen: Mapping[str, Seen], path: str) -> bool:
    return path not in seen or seen[path].state[0] == "file"


def _below(top: str, path: str) -> Iterator[str]:
    """Yield the path itself or, for a folder, all files and links below it, relative to `top`; follow no links."""
    if files.is_folder(path) and not os.path.islink(path):
        for folder, folders, names in os.walk(path):
            links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
            for name in (*names, *links):
                yield os.path.relpath(os.path.join(folder, name), top)
    elif os.path.lexists(path):
        yield os.path.relpath(path, top)


def _seen(path: str, before: Seen | None) -> Seen:
    """Return a file's state; reads the file only if its fingerprint differs from that in `before`."""
    facts = os.lstat(path)
    mark = (facts.st_ino, facts.st_size, facts.st_mode, facts.st_mtime_ns, facts.st_ctime_ns)
    if before and before.fingerprint == mark:
        return before
    if stat.S_ISLNK(facts.st_mode):
        return Seen(("link", 0, os.fsencode(os.readlink(path))), mark)
    if not stat.S_ISREG(facts.st_mode):
        return Seen(("other", facts.st_mode, b""), mark)
    content = workspace_files.read(os.path.dirname(path), path, LARGEST) if facts.st_size <= LARGEST else b""
    return Seen(("file", stat.S_IMODE(facts.st_mode), content), mark)


def _is_real(top: str, folder: str) -> bool:
    """True if no part of a folder's path is a link."""
    path = os.path.join(top, folder)
    return os.path.realpath(path) == os.path.normpath(path)


def _free(path: str) -> str:
    """Return the path or, if it exists, the path with a number appended."""
    number, free = 1, path
    while os.path.lexists(free):
        number, free = number + 1, f"{path}.{number + 1}"
    return free


def _is_ancestor(repo: Repo, commit: str, of: str) -> bool:
    return repo.run("merge-base", "--is-ancestor", commit, of).code == 0


def _is_in(repo: Repo, commits: Sequence[str], path: str, seen: Seen | None) -> bool:
    """True if one of the commits has this content at the path or, if `seen` is None, has no such path."""
    wanted = ""
    if seen:
        wanted = repo.text("hash-object", "--no-filters", "--stdin", stdin=seen.state[2])
    rows = [repo.text("ls-tree", "-z", commit, "--", path).split("\0")[0] for commit in commits]
    blobs = [row.partition("\t")[0].split(" ")[-1] if row else "" for row in rows]
    return wanted in blobs
