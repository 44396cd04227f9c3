"""The branches and tags of a flow's repository: no agent moves or deletes one, wherever it has its commits from."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from rooda.base import files
from rooda.git import command
from rooda.git.repository import Position, Repo
from rooda.loops.flow.model import Breach, listed
from rooda.processes.capture import Captured

_HEADS = "refs/heads"
SPACES = (_HEADS, "refs/tags")
LINK = "ref: "  # how the value of one begins that stands for another


class Kept(NamedTuple):
    """What was there before a call."""

    refs: dict[str, str]  # name to object, or to `ref: …`
    logs: dict[str, int]  # the HEAD logs of the repository's other work trees, and how long they were


def point(repo: Repo, to: Position) -> None:
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
        end = f"not all can be put back ({command.said(done)})" if done.code else "put back"
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
        yield files.mark(os.path.join(repo.common, name))
    for space in SPACES:
        for folder, inner, names in os.walk(os.path.join(repo.common, space)):
            inner.sort()
            paths = [os.path.join(folder, name) for name in sorted(names) if not name.endswith(".lock")]
            yield from ((path, files.mark(path)) for path in paths if path != os.path.join(repo.common, own))


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
