"""Compares the work tree before and after each call, and undoes changes that the call was not allowed to make."""

import errno
import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rooda.base import files
from rooda.git import command, own_files, work_tree
from rooda.git.own_files import FileState, GitFiles, file_state, restore_path
from rooda.git.repository import Head, Repo, read_head
from rooda.loops.flow import guard_git, repository, restore
from rooda.loops.flow.guard_git import NestedRepos, Refs
from rooda.loops.flow.model import FLOW_FILE, Breach, Node, NodeFailed, agent_files, listed, run_folder
from rooda.loops.flow.restore import differing

SCRATCH = "rooda/index"  # path inside the git folder
BARE = re.compile(rb"'(.+)/' does not have a commit checked out")


class GuardState(NamedTuple):
    """The guarded state before a call: HEAD, work tree, protected files, refs and nested repositories."""

    head: Head
    tree: str
    kept: dict[str, FileState]
    git: GitFiles
    refs: guard_git.RefState
    nested: dict[str, guard_git.NestedState]


class Guard:
    """Finds and undoes forbidden changes: compares trees of the work tree, and bytes of the run's and flow's files."""

    def __init__(self, repo: Repo, root: Node, run: str) -> None:
        self._repo, self._run = repo, run_folder(run)
        self._protected = {FLOW_FILE, *agent_files(root)}
        self._index = os.path.join(repo.folder, SCRATCH)
        self._tree = ""  # the current work tree; "" if unknown
        self._head = read_head(repo)
        self._marks = repository.head_fingerprint(repo, self._head.branch)
        self._refs = Refs(repo)
        self.nested = NestedRepos(repo)
        self._without_commit: set[str] = set()  # nested repositories without a commit, which no tree can hold
        self._base = ""  # the tree of the last boundary
        self._last: tuple[tuple[int, ...], str] = ((), "")  # fingerprint and tree of the scratch index
        self._hooks = repository.has_hooks(repo)
        files.make_folder(os.path.dirname(self._index))
        files.remove(self._index)
        files.remove(f"{self._index}.lock")

    def changed(self) -> list[str] | None:
        """Return the paths changed between the last commit and the last comparison; None if unknown."""
        if not self._tree or not self._base or self._hooks:
            return None
        return self._differing(self._base, self._tree)

    def tree(self) -> str:
        """Return the git tree of the current work tree, without the run's folder and ignored files."""
        if not self._tree:
            self._tree = self._snapshot()
        return self._tree

    def committed(self) -> None:
        """Update the guard after rooda made a commit, because hooks may have changed files."""
        self._head = read_head(self._repo)
        self._marks = repository.head_fingerprint(self._repo, self._head.branch)
        self._tree = self._base = "" if self._hooks else self._tree

    def before(self) -> GuardState:
        tree = self.tree()
        refs = self._refs.before(self._head.branch)
        return GuardState(
            self._head, tree, self._file_states(), own_files.files_before(self._repo), refs, self.nested.before()
        )

    def after(self, before: GuardState, own: Iterable[str], may_edit: bool, may_commit: bool = False) -> list[Breach]:
        """Undo the call's forbidden changes; return its breaches. `own`: the files that the call was asked to write."""
        git_files = own_files.restore_files(self._repo, before.git)
        repository.unlock(self._repo)
        links = self._remove_folder_links()
        moved, left = self._restore_head(before.head)
        more = self._refs.restore(before.refs, before.head.branch)
        own_files.restore_index(self._repo, before.git)
        more += self.nested.restore(before.nested, may_edit)
        bare, now = self._without_commit, self._snapshot()
        base = self._base_of(before, left) if moved else before.tree
        touched, bad, side_effects = self._changes(before.tree, base, now, may_edit)
        if rules := restore.git_rules([*bad, *side_effects]):
            links += [path for path in rules if path in bad]
            restore.restore(self._repo, before.tree, rules)
            work_tree.drop_ignored(self._repo, self._index)
            now = self._snapshot()
            touched, bad, side_effects = self._changes(before.tree, base, now, may_edit)
        made = sorted(self._without_commit - bare)
        touched, bad = [*touched, *made], [*bad, *(path for path in made if not (may_edit and self._may_change(path)))]
        restore.restore(self._repo, before.tree, [*bad, *side_effects])
        changed = self._restore_files(before, {os.path.join(self._repo.workspace, path) for path in own})
        more += self.nested.report_new(touched) if may_edit else []
        self._tree = now if not bad and not side_effects else self._snapshot()
        breaches = [Breach(git_files)] if git_files else []
        breaches += [Breach(moved, not may_commit)] if moved else []
        if bad or changed or links:
            more.append(Breach(f"made forbidden changes; put back: {listed([*links, *bad, *changed])}"))
        return breaches + more

    def _changes(self, before: str, base: str, now: str, may_edit: bool) -> tuple[list[str], list[str], list[str]]:
        """Return the changed paths, the forbidden ones among them, and paths that differ only because of a checkout."""
        touched = self._differing(base, now)
        bad = [path for path in touched if not (may_edit and self._may_change(path))]
        return touched, bad, sorted({*self._differing(before, now)} - {*touched}) if base != before else []

    def _remove_folder_links(self) -> list[str]:
        """Delete symbolic links that replaced a folder of the run; return their paths."""
        found = []
        for path in (".ai-loop", ".ai-loop/runs", self._run):
            place = os.path.join(self._repo.workspace, path)
            if os.path.islink(place):
                files.remove(place)
                found.append(path)
        return found

    def _snapshot(self) -> str:
        """Return the git tree of the work tree, without the run's folder and ignored files."""
        repo = self._repo
        if not os.path.exists(self._index):
            work_tree.copy_index(os.path.join(repo.folder, "index"), self._index)
        before = self._index_facts()
        where = (":/", f":(top,exclude,literal){repo.inside(self._run)}")
        words = [*work_tree.add_command(repo), "--ignore-errors", "--", *where]
        added = command.run(words, repo.top, env=repo.env, index=self._index, literal=False)
        self._without_commit = {files.to_text(path) for path in BARE.findall(added.err)}
        if added.code not in (0, 1):  # 1: git could not read some file
            raise NodeFailed("the work tree can't be compared", command.error_text(added))
        if self._last[1] and before == self._index_facts() == self._last[0]:
            return self._last[1]
        done = repo.run("write-tree", index=self._index)
        if done.code:
            raise NodeFailed("the work tree can't be compared", command.error_text(done))
        self._last = (self._index_facts(), done.out.decode().strip())
        return self._last[1]

    def _differing(self, before: str, now: str) -> list[str]:
        """Return the paths that differ, except in the run's folder, which is compared byte by byte."""
        own = self._repo.inside(self._run) + "/"
        return [path for path in differing(self._repo, before, now) if not path.startswith(own)]

    def _index_facts(self) -> tuple[int, ...]:
        """Return a fingerprint of the scratch index, which git writes only if a file has changed."""
        try:
            facts = os.stat(self._index)
        except OSError:
            return ()
        return (facts.st_ino, facts.st_size, facts.st_mtime_ns)

    def _may_change(self, path: str) -> bool:
        """True if an actuator may change this path."""
        inner = path.removeprefix(self._repo.prefix)
        return not (path.startswith(self._repo.inside(".ai-loop/")) or inner in self._protected)

    def _restore_head(self, old: Head) -> tuple[str, Head]:
        """Restore branch and HEAD; new commits become uncommitted changes.

        Return a message about what was restored, and the HEAD that the call left.
        """
        repo = self._repo
        if self._marks and self._marks == repository.head_fingerprint(repo, old.branch):
            return repository.end_unfinished(repo), old
        now = read_head(repo)
        if now == old:
            self._marks = repository.head_fingerprint(repo, old.branch)
            return repository.end_unfinished(repo), old
        if now.branch != old.branch:
            if old.branch:
                repo.run_checked("symbolic-ref", "-m", "rooda: back to the run", "HEAD", f"refs/heads/{old.branch}")
            else:
                repo.run_checked("update-ref", "--no-deref", "HEAD", old.commit)
        repository.end_unfinished(repo)
        guard_git.reset_branch(repo, old)
        repo.run_checked("reset", "-q", old.commit)
        self._marks = repository.head_fingerprint(repo, old.branch)
        if now.branch != old.branch:
            there = now.branch or now.commit or "nothing"
            return f"switched to {there}; the branch {old.branch} is checked out again", now
        if repo.run("merge-base", "--is-ancestor", old.commit, now.commit).code:
            return "moved the branch's tip off the run's commits; it is put back", now
        return "moved the branch's tip (committed?); the commit was undone, its changes stay", now

    def _base_of(self, before: GuardState, left: Head) -> str:
        """Return the tree to compare with: a checked-out foreign commit's tree, else the tree before the call."""
        new, old = left.commit, before.head.commit
        if new in ("", old) or self._repo.run("merge-base", "--is-ancestor", old, new).code == 0:
            return before.tree
        return self._repo.text("rev-parse", f"{new}^{{tree}}")

    def _file_states(self) -> dict[str, FileState]:
        """Return the states of the run's and the flow's files and folders, keyed by path, outer folders first."""
        project, named = self._repo.workspace, (*self._protected, self._run)
        paths = {os.path.join(project, each) for path in named for each in _with_parents(path)}
        for folder, inner, names in os.walk(os.path.join(project, self._run), onerror=_raise_if_unreadable):
            paths |= {os.path.join(folder, name) for name in (*inner, *names)}
        return {path: found for path in sorted(paths) if (found := file_state(path))}

    def _restore_files(self, before: GuardState, own: set[str]) -> list[str]:
        """Restore the run's and the flow's files; return the paths of files that had changed."""
        now, kept = self._file_states(), before.kept
        outputs = {path for path in own if path not in now or not now[path].folder}
        changed = sorted(path for path in {*now, *kept} - outputs if now.get(path) != kept.get(path))
        for path in changed:
            restore_path(path, kept.get(path))
        reported = [path for path in changed if _has_file([each[path] for each in (now, kept) if path in each])]
        return [os.path.relpath(path, self._repo.workspace) for path in reported]


def _has_file(states: list[FileState]) -> bool:
    return not all(each.folder for each in states)


def _with_parents(path: str) -> Iterator[str]:
    while path:
        yield path
        path = os.path.dirname(path)


def _raise_if_unreadable(problem: OSError) -> None:
    """Raise `problem` if it is a disk error: an unreadable folder must not count as empty, nor its files as changed."""
    if problem.errno == errno.EIO:
        raise problem
