"""Restores guarded files that an agent in the sandbox changed: files that make the user's tools run something.

They stay writable while the agent runs, since git could not merge or check out otherwise.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from rooda.base import files, workspace_files
from rooda.git import traces
from rooda.git.repository import GitProblem, Repo, find
from rooda.run import new_repository
from rooda.run.known_commits import KnownCommits
from rooda.run.project_walls import GIT_WALLS, Project

FILES = ("rooda.toml", ".envrc", ".mcp.json", "opencode.json", ".aider.conf.yml")
FOLDERS = (".vscode", ".claude", ".codex", ".gemini", ".cursor", ".github/workflows", ".qwen", ".opencode")
# Files in the git folder that make git read another configuration; rooda removes them if they appear.
GIT_NAMES = ("commondir", "config.worktree")
MOST = 2000  # files below one name; a folder that held more before a call is not guarded
LARGEST = 16_777_216  # bytes of a guarded file; a larger one is not put back, but set aside if it has changed

State = tuple[str, int, bytes]  # kind, permissions, content or target of a link


class Seen(NamedTuple):
    """A file's state, and the fingerprint (inode, size, mode, times) that it had when its state was read."""

    state: State
    fingerprint: tuple[int, ...]


class Restored(NamedTuple):
    """Changed guarded files, as paths relative to the project, and the reasons why some could not be restored."""

    paths: list[str]
    problems: list[str]


class GuardedFiles:
    """The guarded files of a project, compared before and after each round of processes."""

    def __init__(self, project: Project, allow: Sequence[str]) -> None:
        self._project, self._allow = project, [os.path.normpath(name) for name in allow]
        self._seen: dict[str, Seen] = {}
        self._folders: dict[str, int] = {}  # permissions of the folders of guarded files
        self._unguarded: list[str] = []  # names with too many files
        self._head, self._known = "", KnownCommits(project.common)

    def begin(self) -> list[str]:
        """Read the state of the guarded files and the repository's commits before processes start.

        Return the names that could be guarded in the last round, but no longer can.
        """
        before, too_large = self._unguarded, []
        self._folders = {}
        found: dict[str, Seen] = {}
        for name in self._names():
            below = self._below(name, self._folders)
            if below is None:
                too_large.append(name)
            else:
                found.update(self._look(below, self._seen))
        self._seen, self._unguarded = found, too_large
        self._head = traces.head_commit(self._project.workspace)
        self._known.begin()
        return [name for name in too_large if name not in before]

    def put_back(self, aside: str) -> Restored:
        """Restore the files that the processes changed, and move what they wrote to the folder `aside`."""
        now: dict[str, Seen] = {}
        for name in self._names():
            if name in self._unguarded:
                continue
            self._open_folders(name)
            below = self._below(name, {})
            now.update(self._look([name] if below is None else below, self._seen))
        changed = [path for path in sorted({*self._seen, *now}) if _state(self._seen, path) != _state(now, path)]
        changed = [path for path in changed if not self._is_allowed(path)]
        brought = self._brought([path for path in changed if _is_plain(now, path)], now) if changed else set()
        changed = [path for path in changed if path not in brought]
        repository = os.path.join(self._project.top, ".git")
        if not self._project.common and os.path.lexists(repository) and not new_repository.is_harmless(repository):
            changed.append(".git")
        problems = [f"{path}: {problem}" for path in changed if (problem := self._restored(path, aside))]
        for folder, mode in self._folders.items():
            _set_mode(os.path.join(self._project.top, folder), mode)
        self._known.end()
        return Restored(changed, problems)

    def close(self) -> None:
        self._known.close()

    def _names(self) -> Iterator[str]:
        """Yield each guarded name, relative to the project's top; names in a git folder outside of it are absolute."""
        top, common = self._project.top, self._project.common
        for folder in workspace_files.upward(self._project.workspace):
            for name in (*FILES, *FOLDERS):
                yield os.path.relpath(os.path.join(folder, name), top)
        walls = [name.rstrip("/") for name in GIT_WALLS if os.path.islink(os.path.join(common, name.rstrip("/")))]
        for place in dict.fromkeys((common, self._project.git) if common else ()):
            own = GIT_NAMES if place == common else GIT_NAMES[1:]
            for name in (*own, *(walls if place == common else ())):
                path = os.path.join(place, name)
                yield os.path.relpath(path, top) if path.startswith(f"{top}/") else path

    def _below(self, name: str, folders: dict[str, int]) -> list[str] | None:
        """Return the path `name` or, if it is a folder, all files and links below it; [] if it does not exist.

        Links are not followed. Return None if there are more than MOST.
        Adds the permissions of all folders to `folders`.
        """
        found, waiting = [], [name]
        while waiting:
            path = waiting.pop()
            place = os.path.join(self._project.top, path)
            if not files.is_folder(place):
                found += [path] if os.path.lexists(place) else []
                continue
            folders[path] = stat.S_IMODE(os.lstat(place).st_mode)
            inner = [os.path.join(path, each) for each in files.list_if_readable(place)]
            waiting += inner
            found += [path] if not inner and os.path.basename(path) in FILES else []
            if len(found) + len(waiting) > MOST:
                return None
        return found

    def _open_folders(self, name: str) -> None:
        """Restore access to folders that the processes made unreadable, so that no file in them is missed."""
        waiting = [name]
        while waiting:
            path = waiting.pop()
            place = os.path.join(self._project.top, path)
            if files.is_folder(place) and len(waiting) <= MOST:
                mode = stat.S_IMODE(os.lstat(place).st_mode)
                if mode != self._folders.get(path) and not os.access(place, os.R_OK | os.X_OK):
                    _set_mode(place, mode | 0o700)
                waiting += [os.path.join(path, each) for each in files.list_if_readable(place)]

    def _look(self, paths: Iterable[str], before: Mapping[str, Seen]) -> dict[str, Seen]:
        found: dict[str, Seen] = {}
        for path in paths:
            with suppress(OSError):
                found[path] = _seen(os.path.join(self._project.top, path), before.get(path))
        return found

    def _is_allowed(self, path: str) -> bool:
        inside = os.path.relpath(os.path.join(self._project.top, path), self._project.workspace)
        return any(each == name or each.startswith(name + os.sep) for name in self._allow for each in (path, inside))

    def _brought(self, paths: Sequence[str], now: Mapping[str, Seen]) -> set[str]:
        """Return the paths whose content came from a commit that was not made inside a sandbox."""
        head = traces.head_commit(self._project.workspace)
        merging = traces.merging(self._project.workspace)
        if not paths or (head in ("", self._head) and not merging):
            return set()
        try:
            repo = find(self._project.workspace)
            commits = self._arrived(repo, head) if head != self._head else set()
            commits |= {each for each in merging if self._existed(repo, each)}
            return {path for path in paths if _is_in(repo, sorted(commits), path, now.get(path))}
        except GitProblem:
            return set()

    def _arrived(self, repo: Repo, head: str) -> set[str]:
        """Return the known commits that HEAD has reached, and HEAD itself if it was reachable at `begin`."""
        known = self._known.commits
        without = [f"^{self._head}"] if self._head else []
        found = known.intersection(repo.lines("rev-list", head, *without, "--"))
        tags = repo.lines("for-each-ref", "--format=%(objectname)", f"--merged={head}", "refs/tags")
        found |= known.intersection(tags)
        return {*found, *([head] if self._existed(repo, head) else [])} - {self._head}

    def _existed(self, repo: Repo, commit: str) -> bool:
        """True if this commit was reachable from HEAD or a known tip before the processes started."""
        if self._head and repo.run("merge-base", "--is-ancestor", commit, self._head).code == 0:
            return True
        rows = repo.lines("for-each-ref", "--format=%(objectname)", f"--contains={commit}")
        return not self._known.commits.isdisjoint(rows)

    def _restored(self, path: str, aside: str) -> str:
        """Restore one path; return the problem, "" if there is none."""
        try:
            return self._restore(path, os.path.join(aside, path.lstrip("/")))
        except OSError as problem:
            return str(problem.strerror)

    def _restore(self, path: str, kept: str) -> str:
        top = self._project.top
        target, folder = os.path.join(top, path), "/" if os.path.isabs(path) else top
        if os.path.lexists(target) and _is_real(os.path.dirname(target)):
            _move(target, _free(kept))
        if not (seen := self._seen.get(path)):
            return ""
        for name in path.strip("/").split(os.sep)[:-1]:
            folder = os.path.join(folder, name)
            if os.path.lexists(folder) and not files.is_folder(folder):
                _move(folder, _free(f"{kept}.folder"))
            files.make_folder(folder)
        kind, mode, content = seen.state
        if kind == "link":
            files.link(target, os.fsdecode(content))
        elif kind == "folder":
            files.make_folder(target)
        elif kind == "file":
            files.create_whole(target, content, mode)
        else:
            return f"rooda can only restore files that it can read, of at most {LARGEST:,} bytes"
        if kind != "link":
            _set_mode(target, mode)
        return ""


def _state(seen: Mapping[str, Seen], path: str) -> State | None:
    found = seen.get(path)
    return found and found.state


def _is_plain(seen: Mapping[str, Seen], path: str) -> bool:
    return path not in seen or seen[path].state[0] == "file"


def _seen(path: str, before: Seen | None) -> Seen:
    """Return a file's state; reads the file only if its fingerprint differs from that in `before`."""
    facts = os.lstat(path)
    mark = (facts.st_ino, facts.st_size, facts.st_mode, facts.st_mtime_ns, facts.st_ctime_ns)
    if before and before.fingerprint == mark:
        return before
    mode = stat.S_IMODE(facts.st_mode)
    if stat.S_ISLNK(facts.st_mode):
        return Seen(("link", 0, os.fsencode(os.readlink(path))), mark)
    if stat.S_ISDIR(facts.st_mode):
        return Seen(("folder", mode, b""), mark)
    if not stat.S_ISREG(facts.st_mode):
        return Seen(("other", facts.st_mode, b""), mark)
    if facts.st_size > LARGEST:
        return Seen(("large", mode, repr(mark).encode()), mark)
    try:
        return Seen(("file", mode, workspace_files.read(os.path.dirname(path), path, LARGEST)), mark)
    except PermissionError:
        return Seen(("closed", mode, b""), mark)


def _set_mode(path: str, mode: int) -> None:
    with suppress(OSError):
        files.set_mode(path, mode)


def _is_real(folder: str) -> bool:
    """True if no part of a folder's path is a link."""
    return os.path.realpath(folder) == os.path.normpath(folder)


def _move(path: str, kept: str) -> None:
    """Move a file or folder; delete it if it can't be kept."""
    try:
        files.make_folder(os.path.dirname(kept))
        if files.is_folder(path):
            _set_mode(path, 0o700)
        files.rename(path, kept, synced=False)
    except OSError:
        files.remove_tree(path)


def _free(path: str) -> str:
    """Return the path or, if it exists, the path with a number appended."""
    number, free = 1, path
    while os.path.lexists(free):
        number, free = number + 1, f"{path}.{number + 1}"
    return free


def _is_in(repo: Repo, commits: Sequence[str], path: str, seen: Seen | None) -> bool:
    """True if one of the commits has this content at the path or, if `seen` is None, has no such path."""
    wanted = {""}
    if seen:
        contents = {seen.state[2], seen.state[2].replace(b"\r\n", b"\n")}  # git may have converted the line ends
        wanted = {repo.text("hash-object", "--no-filters", "--stdin", stdin=each) for each in contents}
    rows = [repo.text("ls-tree", "-z", commit, "--", path).split("\0")[0] for commit in commits]
    return any((row.partition("\t")[0].split(" ")[-1] if row else "") in wanted for row in rows)
