"""Repositories inside a flow's own, such as submodules: the run's commits hold their commits, never their changes."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from rooda.base import files
from rooda.git import work_tree
from rooda.git.repository import Head, Repo, find, read_head
from rooda.loops.flow import put_back
from rooda.loops.flow.model import Breach, listed

LINK = b"160000 "


class State(NamedTuple):
    head: Head
    tree: str


class Inner:
    """Looked for once, when a run begins or goes on; costs nothing where there is none."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo
        self._all = dict(_inside(repo, ""))
        self._now: dict[str, State] = {}

    @property
    def paths(self) -> list[str]:
        return sorted(self._all)

    def keep(self) -> dict[str, State]:
        self._now = self._now or {path: _state(repo) for path, repo in self._all.items()}
        return self._now

    def put_back(self, before: dict[str, State], may_edit: bool) -> list[Breach]:
        """Nobody changes files in one; whoever may edit may commit there."""
        self._now, changed = {}, []
        for path, old in before.items():
            repo, now = self._all[path], _state(self._all[path])
            bad, source = put_back.differing(repo, old.tree, now.tree), old.tree
            if now.head == old.head and (rules := put_back.rules(bad)):
                put_back.put_back(repo, old.tree, rules)
                bad = sorted({*rules, *put_back.differing(repo, old.tree, _state(repo).tree)})
            if now.head != old.head and may_edit:
                source = repo.text("rev-parse", "HEAD^{tree}")
                bad = sorted({*bad} & {*put_back.differing(repo, source, now.tree)})
            elif now.head != old.head:
                _put_head_back(repo, old.head)
                bad = bad or ["HEAD"]
            put_back.put_back(repo, source, [each for each in bad if each != "HEAD"])
            if bad:
                repo.ask("reset", "-q")  # nor does anything of it stay staged
            self._now[path] = _state(repo) if bad else now
            changed += [f"{path}/{each}" for each in bad]
        if not changed:
            return []
        return [Breach(f"changed files of a repository inside; put back: {listed(changed)}")]

    def made(self, paths: list[str]) -> list[Breach]:
        """Among the paths that a call has changed: repositories that were not there before."""
        new = [path for path in paths if path not in self._all and _is_repository(self._repo, path)]
        if not new:
            return []
        self._all, self._now = {**self._all, **{path: _around(self._repo, path) for path in new}}, {}
        text = f"made repositories inside: {listed(new)}; the run's commits hold their commits, not their files"
        return [Breach(text, False)]


def _inside(repo: Repo, above: str) -> Iterator[tuple[str, Repo]]:
    """Those that are checked out, and those inside them."""
    rows = repo.must("ls-files", "-s", "-z").split(b"\0")
    for path in [files.to_text(row.partition(b"\t")[2]) for row in rows if row.startswith(LINK)]:
        if _is_repository(repo, path):
            found = _around(repo, path)
            yield above + path, found
            yield from _inside(found, f"{above}{path}/")


def _is_repository(repo: Repo, path: str) -> bool:
    return os.path.lexists(os.path.join(repo.top, path, ".git"))


def _around(repo: Repo, path: str) -> Repo:
    return find(os.path.join(repo.top, path))._replace(env=repo.env)


def _state(repo: Repo) -> State:
    return State(read_head(repo), work_tree.read(repo, _index(repo), wary=False).tree)


def _index(repo: Repo) -> str:
    path = os.path.join(repo.folder, "rooda", "index")
    files.make_folder(os.path.dirname(path))
    return path


def _put_head_back(repo: Repo, old: Head) -> None:
    if old.branch:
        repo.must("symbolic-ref", "HEAD", f"refs/heads/{old.branch}")
    else:
        repo.must("update-ref", "--no-deref", "HEAD", old.commit)
    repo.must("reset", "-q", old.commit)
