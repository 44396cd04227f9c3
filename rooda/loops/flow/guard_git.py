"""The branches and tags of a flow's repository: no agent moves or deletes one, wherever it has its commits from."""

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from rooda.base import files
from rooda.git import command
from rooda.git.repository import Head, Repo
from rooda.loops.flow.model import Breach, listed
from rooda.loops.flow.put_back import Entry, entry, put
from rooda.processes.capture import Captured

_HEADS = "refs/heads"
SPACES = (_HEADS, "refs/tags")
LINK = "ref: "  # how the value of one begins that stands for another


class Kept(NamedTuple):
    """What was there before a call."""

    refs: dict[str, str]  # name to object, or to `ref: …`
    logs: dict[str, int]  # the HEAD logs of the repository's other work trees, and how long they were


def point(repo: Repo, to: Head) -> None:
    """The branch is at its commit again, also where there is no branch any more, or what git can't read as one."""
    name = f"{_HEADS}/{to.branch}"
    if not to.branch or repo.ask("update-ref", name, to.commit).code == 0:
        return
    for folder in (repo.common, os.path.join(repo.common, "logs")):
        files.remove_tree(os.path.join(folder, name))
    repo.must("update-ref", name, to.commit)


class Refs:
    """Looks at files; git is asked only when one of them has changed."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo
        self._seen: tuple[object, dict[str, str]] = (None, {})

    def keep(self, branch: str) -> Kept:
        logs = {log: _size(log) for log in _other_logs(self._repo)}
        return Kept(self._all(branch), logs)

    def put_back(self, before: Kept, branch: str) -> list[Breach]:
        """All but the run's own branch, as they were. What a new one holds is nowhere else, so that it stays."""
        now = self._all(branch)
        if now == before.refs:
            return []
        theirs = set(_moved_elsewhere(self._repo, before.logs))
        changed = {name for name in {*now, *before.refs} if now.get(name) != before.refs.get(name)}
        changed -= {name for name in changed if name in theirs or now.get(name) in theirs}
        moved = sorted(name for name in changed if name in before.refs)
        new = sorted(name for name in changed if name not in before.refs)
        breaches = [self._restored({name: before.refs[name] for name in moved}, now)] if moved else []
        if new:
            breaches.append(Breach(f"left new branches or tags, which stay: {listed(map(_short, new))}", False))
        return breaches

    def _restored(self, wanted: dict[str, str], now: dict[str, str]) -> Breach:
        """Put back, and said with what they were moved to: a commit that an agent made there can be found again."""
        for name in wanted.keys() - now.keys():  # what git can't read as a ref keeps it from making one
            if not any(other.startswith(f"{name}/") for other in now):
                files.remove_tree(os.path.join(self._repo.common, name))
        rows = [f"update {name} {value}\n" for name, value in wanted.items() if not value.startswith(LINK)]
        done = self._update(rows)
        if done.code and len(rows) > 1:  # one that can't be put back does not keep the others from it
            done = max([self._update([row]) for row in rows], key=lambda each: each.code)
        for name, value in wanted.items():
            if value.startswith(LINK):
                self._repo.ask("symbolic-ref", name, value.removeprefix(LINK))
        told = [f"{_short(name)} ({'to ' + _brief(now[name]) if name in now else 'deleted'})" for name in wanted]
        end = f"not all can be put back ({command.error_text(done)})" if done.code else "put back"
        return Breach(f"moved or deleted branches or tags; {end}: {listed(told)}")

    def _update(self, rows: list[str]) -> Captured:
        return self._repo.ask("update-ref", "--no-deref", "--stdin", stdin="".join(rows).encode())

    def _all(self, branch: str) -> dict[str, str]:
        """Every branch but the run's own, and every tag."""
        own = f"{_HEADS}/{branch}"
        marks = (own, *_marks(self._repo, own))
        if marks != self._seen[0]:
            said = self._repo.lines("for-each-ref", "--format=%(refname) %(objectname) %(symref)", *SPACES)
            rows = [row.split(" ") for row in said]
            found = {name: LINK + target if target else value for name, value, target in rows if name != own}
            self._seen = (marks, found)
        return self._seen[1]


def _marks(repo: Repo, own: str) -> Iterator[object]:
    """Change whenever a ref has changed, in each way that git has of keeping them."""
    for name in ("packed-refs", "reftable/tables.list"):
        yield files.fingerprint(os.path.join(repo.common, name))
    for space in SPACES:
        for folder, inner, names in os.walk(os.path.join(repo.common, space)):
            inner.sort()
            paths = [os.path.join(folder, name) for name in sorted(names) if not name.endswith(".lock")]
            yield from ((path, files.fingerprint(path)) for path in paths if path != os.path.join(repo.common, own))


def _others(repo: Repo) -> Iterator[str]:
    """The git folders of the repository's other work trees."""
    linked = os.path.join(repo.common, "worktrees")
    names = os.listdir(linked) if os.path.isdir(linked) else []
    for folder in (repo.common, *(os.path.join(linked, name) for name in names)):
        if os.path.realpath(folder) != os.path.realpath(repo.folder):
            yield folder


def _other_logs(repo: Repo) -> Iterator[str]:
    return (os.path.join(folder, "logs", "HEAD") for folder in _others(repo))


def _moved_elsewhere(repo: Repo, before: dict[str, int]) -> Iterator[str]:
    """Where the other work trees' HEADs have been since: a branch that is there was moved by whoever works there.

    Of a work tree that keeps no log the branch that it has checked out.
    """
    for folder in _others(repo):
        log = os.path.join(folder, "logs", "HEAD")
        try:
            added = files.read(log)[before.get(log, 0) :]
            yield from (files.to_text(row.split(b" ")[1]) for row in added.splitlines() if b" " in row)
        except OSError:
            if os.path.exists(os.path.join(folder, "index")):
                yield files.text(os.path.join(folder, "HEAD")).strip().removeprefix(LINK)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _brief(value: str) -> str:
    return value if value.startswith(LINK) else value[:12]


def _short(name: str) -> str:
    return name.removeprefix(f"{_HEADS}/").replace("refs/tags/", "the tag ")


# git's own files, which no agent of a flow may change: kept before each call, and put back after it.
Facts = tuple[int, ...]
HEAD = re.compile(rb"ref: refs/\S|[0-9a-f]{40}")  # how one begins that git takes for one


class KeptFiles(NamedTuple):
    """What was there before a call."""

    own: dict[str, Entry]  # settings and hooks
    head: Entry | None
    listed: bytes | None  # the index
    staged: os.stat_result | None


def keep_files(repo: Repo) -> KeptFiles:
    index, own, head = _index(repo), _own(repo), entry(_head(repo))
    try:
        return KeptFiles(own, head, files.read(index), os.stat(index))
    except OSError:
        return KeptFiles(own, head, None, None)


def put_back(repo: Repo, before: KeptFiles) -> str:
    """Settings and hooks as they were, before git is asked for anything; says what was changed."""
    now = _own(repo)
    changed = sorted(path for path in {*now, *before.own} if now.get(path) != before.own.get(path))
    for path in changed:
        put(path, before.own.get(path))
    if not _is_head(entry(_head(repo))):
        put(_head(repo), before.head)
        changed.append(_head(repo))
    listed = ", ".join(os.path.relpath(path, repo.top) for path in changed[:5])
    return f"has changed git's own files; put back: {listed}" if changed else ""


def put_index_back(repo: Repo, before: KeptFiles) -> None:
    """What an agent stages or flags counts for nothing. With its time: git trusts an index by it."""
    if before.listed is None or before.staged is None or _facts(_index(repo)) == _of(before.staged):
        return
    if os.path.isdir(_index(repo)):
        files.remove_tree(_index(repo))
    files.replace(_index(repo), before.listed, before.staged.st_mode & 0o777)
    files.copy_times(_index(repo), before.staged)


def _head(repo: Repo) -> str:
    return os.path.join(repo.folder, "HEAD")


def _index(repo: Repo) -> str:
    return os.path.join(repo.folder, "index")


def _facts(path: str) -> Facts:
    try:
        return _of(os.stat(path))
    except OSError:
        return ()


def _of(facts: os.stat_result) -> Facts:
    return (facts.st_ino, facts.st_size, facts.st_mtime_ns)


def _own(repo: Repo) -> dict[str, Entry]:
    return {path: found for path in _names(repo) if (found := entry(path))}


def _is_head(found: Entry | None) -> bool:
    """Would git take it for one?"""
    return found is not None and (found.target.startswith("refs/") or HEAD.match(found.data) is not None)


def _names(repo: Repo) -> Iterator[str]:
    yield os.path.join(repo.common, "config")
    yield os.path.join(repo.folder, "config.worktree")
    yield os.path.join(repo.folder, "rooda")  # the folder: what a flow itself keeps there
    for folder in (os.path.join(repo.common, "info"), os.path.join(repo.common, "hooks")):
        if os.path.islink(folder):  # sorts before what is in it, so that nothing is put back through a wrong one
            yield folder
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        yield from (os.path.join(folder, name) for name in names if not name.endswith(".sample"))
