"""Guard nested repositories, such as submodules: the run's commits record their commits, not changes to files."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from rooda.base import files
from rooda.git import work_tree
from rooda.git.repository import Head, Repo, find, read_head
from rooda.loops.flow import restore
from rooda.loops.flow.model import Breach, listed

LINK = b"160000 "


class NestedState(NamedTuple):
    head: Head
    tree: str


class NestedRepos:
    """The nested repositories of a work tree, searched once at the start of a session."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo
        self._all = dict(_search(repo, ""))
        self._now: dict[str, NestedState] = {}

    @property
    def paths(self) -> list[str]:
        return sorted(self._all)

    def before(self) -> dict[str, NestedState]:
        self._now = self._now or {path: _state(repo) for path, repo in self._all.items()}
        return self._now

    def restore(self, before: dict[str, NestedState], may_edit: bool) -> list[Breach]:
        """Undo changes to files in nested repositories; with `may_edit` commits there are allowed."""
        self._now, changed = {}, []
        for path, old in before.items():
            repo, now = self._all[path], _state(self._all[path])
            bad, source = restore.differing(repo, old.tree, now.tree), old.tree
            if now.head == old.head and (rules := restore.git_rules(bad)):
                restore.restore(repo, old.tree, rules)
                bad = sorted({*rules, *restore.differing(repo, old.tree, _state(repo).tree)})
            if now.head != old.head and may_edit:
                source = repo.text("rev-parse", "HEAD^{tree}")
                bad = sorted({*bad} & {*restore.differing(repo, source, now.tree)})
            elif now.head != old.head:
                _restore_head(repo, old.head)
                bad = bad or ["HEAD"]
            restore.restore(repo, source, [each for each in bad if each != "HEAD"])
            if bad:
                repo.ask("reset", "-q")  # unstage it as well
            self._now[path] = _state(repo) if bad else now
            changed += [f"{path}/{each}" for each in bad]
        if not changed:
            return []
        return [Breach(f"changed files of a repository inside; put back: {listed(changed)}")]

    def report_new(self, paths: list[str]) -> list[Breach]:
        """Report new repositories among the changed paths, and guard them from now on."""
        new = [path for path in paths if path not in self._all and _is_repository(self._repo, path)]
        if not new:
            return []
        self._all, self._now = {**self._all, **{path: _repo_at(self._repo, path) for path in new}}, {}
        text = f"made repositories inside: {listed(new)}; the run's commits hold their commits, not their files"
        return [Breach(text, False)]


def _search(repo: Repo, above: str) -> Iterator[tuple[str, Repo]]:
    """All nested repositories that are checked out, at any depth, by path."""
    rows = repo.must("ls-files", "-s", "-z").split(b"\0")
    for path in [files.to_text(row.partition(b"\t")[2]) for row in rows if row.startswith(LINK)]:
        if _is_repository(repo, path):
            found = _repo_at(repo, path)
            yield above + path, found
            yield from _search(found, f"{above}{path}/")


def _is_repository(repo: Repo, path: str) -> bool:
    return os.path.lexists(os.path.join(repo.top, path, ".git"))


def _repo_at(repo: Repo, path: str) -> Repo:
    return find(os.path.join(repo.top, path))._replace(env=repo.env)


def _state(repo: Repo) -> NestedState:
    return NestedState(read_head(repo), work_tree.read(repo, _index(repo), wary=False).tree)


def _index(repo: Repo) -> str:
    path = os.path.join(repo.folder, "rooda", "index")
    files.make_folder(os.path.dirname(path))
    return path


def _restore_head(repo: Repo, old: Head) -> None:
    if old.branch:
        repo.must("symbolic-ref", "HEAD", f"refs/heads/{old.branch}")
    else:
        repo.must("update-ref", "--no-deref", "HEAD", old.commit)
    repo.must("reset", "-q", old.commit)
