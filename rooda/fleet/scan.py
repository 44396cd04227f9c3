"""Searches each turn for this worker's secrets before the push: its new files, names, commits, state and events.

A turn is an iteration of a task's loop; a leg is one stay of the task on this worker. If the agent made no commit,
rooda runs no git command: it searches the state, the events, and the files that changed since the last turn.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rooda.base import files, secrets
from rooda.fleet.mirror import Mirror
from rooda.git import command
from rooda.git.repository import GitProblem

SCANNED = 67_108_864  # bytes of objects that rooda reads at a time
_CHANGE = re.compile(r"(?:add|remove) '(.+)'")


class Leak(NamedTuple):
    """A file of a turn that holds a secret of this worker, and the name of the secret's variable."""

    path: str
    name: str


class Scan:
    """The search for secrets in the turns of one leg."""

    def __init__(self, mirror: Mirror, top: str, environ: Mapping[str, str], known: Iterable[str]) -> None:
        """`environ`: variables that may hold secrets; `known`: commits of the clone that the remote already has."""
        self._mirror, self._top, self._borrowed = mirror, top, (os.path.join(top, ".git", "objects"),)
        self.patterns = _patterns(environ, (top,))
        self._known = {each for each in known if each}
        self._changed = dict[str, None]()  # files that changed since the last turn was pushed
        self._is_certain = True  # False: git's list of them can't be read

    def leaks(
        self, commit: str, tip: str, parents: Iterable[str], changed: bytes, content: Mapping[str, object]
    ) -> tuple[Leak, ...]:
        """Return the files of a turn that hold a secret.

        `parents`: the parents of the work commit; `changed`: git's list of the files in the work tree that changed
        since the previous turn; `content`: the files of the chain commit.
        """
        if not self.patterns:
            return ()
        self._note(changed)
        if self._is_certain and self._known.issuperset(parents):
            rows = [(path, path, data) for path, data in content.items() if isinstance(data, bytes)]
            found = [*self._in_rows(rows), *self._in_rows(self._work_tree())]
        else:
            found = [*self._in_objects(commit, tip)]
        return tuple(dict.fromkeys(found))

    def doubt(self) -> None:
        """Record that git's list of changed files may be incomplete, so that all new objects are searched."""
        self._is_certain = False

    def done(self, parents: Iterable[str], work: str) -> None:
        """Record that the remote has a turn: its work commit `work`, and that commit's `parents`."""
        self._known |= {*parents, work}
        self._changed.clear()
        self._is_certain = True

    def _note(self, changed: bytes) -> None:
        for row in filter(None, files.to_text(changed).split("\n")):
            if found := _CHANGE.fullmatch(row):
                self._changed[found[1]] = None
            else:  # a name with a line break
                self._is_certain = False

    def _work_tree(self) -> Iterator[tuple[str, str, bytes]]:
        for path in self._changed:
            place = os.path.join(self._top, path)
            try:
                if os.path.islink(place):
                    yield path, path, files.to_bytes(os.readlink(place))
                elif os.path.isfile(place):
                    with files.reading(place) as file:
                        yield path, path, file.read()
            except OSError:  # git could not read it either, or it was deleted again
                continue

    def _in_rows(self, rows: Iterable[tuple[str, str, bytes]]) -> Iterator[Leak]:
        """Search files and their names. A row has the path, the name to report, and the content."""
        for path, place, data in rows:
            for name, forms in self.patterns.items():
                if any(form in path for form in forms):
                    yield Leak(f"a name in /{secrets.hide_values(os.path.dirname(path), forms)}", name)
                if any(files.to_bytes(form) in data for form in forms):
                    yield Leak(secrets.hide_values(place, forms), name)

    def _in_objects(self, commit: str, tip: str) -> Iterator[Leak]:
        """Search all new objects, including those of the agent's own commits."""
        words = ("rev-list", "--objects", commit, "--not", tip, *sorted(self._known))
        done = self._mirror.run(*words, borrowed=self._borrowed)
        if done.code:
            raise GitProblem(f"The turn can't be searched for secrets: {command.error_text(done)}")
        rows = [row.partition(" ") for row in files.to_text(done.out).split("\n") if row]
        for group in self._in_groups([(name, path) for name, _, path in rows]):
            read = self._mirror.read([name for name, _ in group], self._borrowed)
            for (name, path), each in zip(group, read, strict=True):
                if each is not None and each.type != "tree":
                    yield from self._in_rows([(path, path or f"commit {name[:12]}", each.data)])

    def _in_groups(self, rows: Sequence[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
        """Yield the objects in groups that fit into memory. Object sizes are estimated from the work tree's files."""
        group, size = list[tuple[str, str]](), 0
        for row in rows:
            more = _size(os.path.join(self._top, row[1])) if row[1] else 0
            if group and size + more > SCANNED:
                yield group
                group, size = [], 0
            group.append(row)
            size += more
        if group:
            yield group


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except (OSError, ValueError):
        return 0


def _patterns(environ: Mapping[str, str], ordinary: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return every form of each secret, keyed by the name of its variable."""
    found = dict[str, tuple[str, ...]]()
    for value, name in secrets.find_secrets(environ, ordinary).items():
        found[name] = found.get(name, ()) + secrets.forms({name: value}, ordinary)
    return {name: forms for name, forms in found.items() if forms}
