"""Undoes an agent's changes to branches, tags, git's own files and nested repositories."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from rooda.base import files
from rooda.git import command, work_tree
from rooda.git.repository import Head, Repo, find, read_head
from rooda.loops.flow import restore
from rooda.loops.flow.model import Breach, listed
from rooda.processes.capture import Captured

_HEADS = "refs/heads"
SPACES = (_HEADS, "refs/tags")
LINK = "ref: "  # prefix of a symbolic ref


class RefState(NamedTuple):
    """The refs before a call, and the sizes of other work trees' HEAD logs."""

    refs: dict[str, str]  # name to object, or to `ref: …`
    logs: dict[str, int]  # path to size of each other work tree's HEAD log


def reset_branch(repo: Repo, to: Head) -> None:
    """Reset the branch `to` to its old commit, even if it was deleted or replaced by something that git can't read."""
    name = f"{_HEADS}/{to.branch}"
    if not to.branch or repo.run("update-ref", name, to.commit).code == 0:
        return
    for folder in (repo.common, os.path.join(repo.common, "logs")):
        files.remove_tree(os.path.join(folder, name))
    repo.run_checked("update-ref", name, to.commit)


class Refs:
    """Guards branches and tags; compares ref files, and runs git only if one has changed."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo
        self._last: tuple[object, dict[str, str]] = (None, {})

    def before(self, branch: str) -> RefState:
        logs = {log: _size(log) for log in _other_logs(self._repo)}
        return RefState(self._all(branch), logs)

    def restore(self, before: RefState, branch: str) -> list[Breach]:
        """Restore all refs except the run's own branch; keep new refs, or their commits might be lost."""
        now = self._all(branch)
        if now == before.refs:
            return []
        elsewhere = set(_moved_elsewhere(self._repo, before.logs))
        changed = {name for name in {*now, *before.refs} if now.get(name) != before.refs.get(name)}
        changed -= {name for name in changed if name in elsewhere or now.get(name) in elsewhere}
        moved = sorted(name for name in changed if name in before.refs)
        new = sorted(name for name in changed if name not in before.refs)
        breaches = [self._restored({name: before.refs[name] for name in moved}, now)] if moved else []
        if new:
            breaches.append(Breach(f"left new branches or tags, which stay: {listed(map(_short_name, new))}", False))
        return breaches

    def _restored(self, wanted: dict[str, str], now: dict[str, str]) -> Breach:
        """Restore refs and report where they pointed, so that an agent's commits there can be found."""
        for name in wanted.keys() - now.keys():  # a damaged ref file would stop git from creating the ref
            if not any(other.startswith(f"{name}/") for other in now):
                files.remove_tree(os.path.join(self._repo.common, name))
        rows = [f"update {name} {value}\n" for name, value in wanted.items() if not value.startswith(LINK)]
        done = self._update(rows)
        if done.code and len(rows) > 1:  # then one by one, because git updates all refs or none
            done = max([self._update([row]) for row in rows], key=lambda each: each.code)
        for name, value in wanted.items():
            if value.startswith(LINK):
                self._repo.run("symbolic-ref", name, value.removeprefix(LINK))
        rows = [
            f"{_short_name(name)} ({'to ' + _short_value(now[name]) if name in now else 'deleted'})" for name in wanted
        ]
        end = f"not all can be put back ({command.error_text(done)})" if done.code else "put back"
        return Breach(f"moved or deleted branches or tags; {end}: {listed(rows)}")

    def _update(self, rows: list[str]) -> Captured:
        return self._repo.run("update-ref", "--no-deref", "--stdin", stdin="".join(rows).encode())

    def _all(self, branch: str) -> dict[str, str]:
        """Return all branches and tags except the run's own branch, keyed by name."""
        own = f"{_HEADS}/{branch}"
        marks = (own, *_marks(self._repo, own))
        if marks != self._last[0]:
            said = self._repo.lines("for-each-ref", "--format=%(refname) %(objectname) %(symref)", *SPACES)
            rows = [row.split(" ") for row in said]
            found = {name: LINK + target if target else value for name, value, target in rows if name != own}
            self._last = (marks, found)
        return self._last[1]


GITLINK = b"160000 "


class NestedState(NamedTuple):
    head: Head
    tree: str


class NestedRepos:
    """Guards the nested repositories of a work tree, which are listed once at the start of a session."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo
        self._all = dict(_nested_repos(repo, ""))
        self._now: dict[str, NestedState] = {}

    @property
    def paths(self) -> list[str]:
        return sorted(self._all)

    def before(self) -> dict[str, NestedState]:
        self._now = self._now or {path: _nested_state(repo) for path, repo in self._all.items()}
        return self._now

    def restore(self, before: dict[str, NestedState], may_edit: bool) -> list[Breach]:
        """Undo changes to files in nested repositories; with `may_edit`, keep commits made there."""
        self._now, changed = {}, []
        for path, old in before.items():
            repo, now = self._all[path], _nested_state(self._all[path])
            bad, source = restore.differing(repo, old.tree, now.tree), old.tree
            if now.head == old.head and (rules := restore.git_rules(bad)):
                restore.restore(repo, old.tree, rules)
                bad = sorted({*rules, *restore.differing(repo, old.tree, _nested_state(repo).tree)})
            if now.head != old.head and may_edit:
                source = repo.text("rev-parse", "HEAD^{tree}")
                bad = sorted({*bad} & {*restore.differing(repo, source, now.tree)})
            elif now.head != old.head:
                _restore_head(repo, old.head)
                bad = bad or ["HEAD"]
            restore.restore(repo, source, [each for each in bad if each != "HEAD"])
            if bad:
                repo.run("reset", "-q")  # unstage the changes as well
            self._now[path] = _nested_state(repo) if bad else now
            changed += [f"{path}/{each}" for each in bad]
        if not changed:
            return []
        return [Breach(f"changed files of a nested repository; put back: {listed(changed)}")]

    def report_new(self, paths: list[str]) -> list[Breach]:
        """Report new repositories among the changed paths, and guard them from now on."""
        new = [path for path in paths if path not in self._all and _is_repository(self._repo, path)]
        if not new:
            return []
        self._all, self._now = {**self._all, **{path: _repo_at(self._repo, path) for path in new}}, {}
        text = f"created nested repositories: {listed(new)}; the run's commits record their commits, not their files"
        return [Breach(text, False)]


def _marks(repo: Repo, own: str) -> Iterator[object]:
    """Yield file fingerprints that change whenever a ref changes, whether it is loose, packed or in a reftable."""
    for name in ("packed-refs", "reftable/tables.list"):
        yield files.fingerprint(os.path.join(repo.common, name))
    for space in SPACES:
        for folder, inner, names in os.walk(os.path.join(repo.common, space)):
            inner.sort()
            paths = [os.path.join(folder, name) for name in sorted(names) if not name.endswith(".lock")]
            yield from ((path, files.fingerprint(path)) for path in paths if path != os.path.join(repo.common, own))


def _others(repo: Repo) -> Iterator[str]:
    """Yield the git folders of the repository's other work trees."""
    linked = os.path.join(repo.common, "worktrees")
    names = os.listdir(linked) if os.path.isdir(linked) else []
    for folder in (repo.common, *(os.path.join(linked, name) for name in names)):
        if os.path.realpath(folder) != os.path.realpath(repo.folder):
            yield folder


def _other_logs(repo: Repo) -> Iterator[str]:
    return (os.path.join(folder, "logs", "HEAD") for folder in _others(repo))


def _moved_elsewhere(repo: Repo, before: dict[str, int]) -> Iterator[str]:
    """Yield the commits and branches that other work trees have checked out since `before`.

    The users of those work trees moved these refs. For a work tree without a log, yield the branch that is checked out
    there.
    """
    for folder in _others(repo):
        log = os.path.join(folder, "logs", "HEAD")
        try:
            added = files.read(log, files.LARGEST_OF_GIT)[before.get(log, 0) :]
            yield from (files.to_text(row.split(b" ")[1]) for row in added.splitlines() if b" " in row)
        except OSError:
            if os.path.exists(os.path.join(folder, "index")):
                yield files.text(os.path.join(folder, "HEAD")).strip().removeprefix(LINK)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _short_value(value: str) -> str:
    return value if value.startswith(LINK) else value[:12]


def _short_name(name: str) -> str:
    return name.removeprefix(f"{_HEADS}/").replace("refs/tags/", "the tag ")


def _nested_repos(repo: Repo, above: str) -> Iterator[tuple[str, Repo]]:
    """Yield the path and repository of each nested repository that is checked out, at any depth."""
    rows = repo.run_checked("ls-files", "-s", "-z").split(b"\0")
    for path in [files.to_text(row.partition(b"\t")[2]) for row in rows if row.startswith(GITLINK)]:
        if _is_repository(repo, path):
            found = _repo_at(repo, path)
            yield above + path, found
            yield from _nested_repos(found, f"{above}{path}/")


def _is_repository(repo: Repo, path: str) -> bool:
    return os.path.lexists(os.path.join(repo.top, path, ".git"))


def _repo_at(repo: Repo, path: str) -> Repo:
    return find(os.path.join(repo.top, path))._replace(env=repo.env)


def _nested_state(repo: Repo) -> NestedState:
    return NestedState(read_head(repo), work_tree.read(repo, _scratch_index(repo), wary=False).tree)


def _scratch_index(repo: Repo) -> str:
    path = os.path.join(repo.folder, "rooda", "index")
    files.make_folder(os.path.dirname(path))
    return path


def _restore_head(repo: Repo, old: Head) -> None:
    if old.branch:
        repo.run_checked("symbolic-ref", "HEAD", f"refs/heads/{old.branch}")
    else:
        repo.run_checked("update-ref", "--no-deref", "HEAD", old.commit)
    repo.run_checked("reset", "-q", old.commit)
