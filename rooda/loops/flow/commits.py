"""The commits of a flow: one for each boundary, made, read again, and taken back."""

from collections.abc import Sequence
from typing import NamedTuple

from rooda.base import files
from rooda.git import command
from rooda.git.repository import GIT_TIMEOUT, Repo
from rooda.git.work_tree import add_command
from rooda.loops.flow import boundaries
from rooda.loops.flow.boundaries import Boundary
from rooda.loops.flow.model import RUNS, NodeFailed, run_folder
from rooda.loops.flow.repository import marks, unstage
from rooda.processes.capture import Captured

PAGE = 500  # commits asked for at once
FEW = 300  # paths that fit into one command line


def runs_at(repo: Repo, commit: str) -> list[str]:
    """Names of the run folders that a commit has."""
    done = repo.ask("ls-tree", "-z", "--name-only", f"{commit}:{repo.inside(RUNS)}")
    return [name.decode("utf-8", "replace") for name in done.out.split(b"\0") if name] if done.code == 0 else []


def committed(repo: Repo, commit: str, path: str) -> bytes | None:
    """A file of the project as a commit has it."""
    done = repo.ask("cat-file", "blob", f"{commit}:{repo.inside(path)}")
    return done.out if done.code == 0 else None


class Logged(NamedTuple):
    commit: str
    boundary: Boundary | None  # None: somebody else's commit


def history(repo: Repo, root: str, run: str, tip: str = "HEAD") -> list[Logged]:
    """The commits of a run, oldest first, from its first boundary on; [] before that. Looks no further back."""
    found: list[Logged] = []
    while page := _page(repo, tip, len(found)):
        for each in page:
            found.append(each)
            if each.boundary and (each.boundary.path, each.boundary.label) == (root, "0"):
                mine = committed(repo, each.commit, f"{run_folder(run)}/run-state.md") is not None
                return found[::-1] if mine else []
    return []


def _page(repo: Repo, tip: str, skipped: int) -> list[Logged]:
    data = repo.must("log", "--first-parent", "-z", "--format=%H%n%B", f"-n{PAGE}", f"--skip={skipped}", tip, "--")
    rows = [each.decode("utf-8", "replace").partition("\n") for each in data.split(b"\0") if each]
    return [Logged(commit, boundaries.read(text)) for commit, _, text in rows]


class Boundaries(NamedTuple):
    """How a run's commits are made."""

    repo: Repo
    branch: str
    always: str  # a folder of the project that is committed even where it is ignored
    verify: bool = True  # the person's hooks run

    def commit(self, message: str, changed: Sequence[str] | None) -> None:
        """Everything that changed: these paths, or where nobody knows them whatever differs. NodeFailed if refused."""
        whole = changed is None or not self._add([*changed, self.repo.inside(self.always)])
        if whole:
            _must_add(self.repo.ask(*add_command(self.repo)))
            _must_add(self._forced([self.repo.inside(self.always)]))
        self._commit(message, self.verify)

    def commit_own(self, message: str) -> None:
        """Only the folder, past the hooks: what they refused stays uncommitted."""
        unstage(self.repo)
        _must_add(self._forced([self.repo.inside(self.always)]))
        self._commit(message, verify=False)

    def _add(self, paths: Sequence[str]) -> bool:
        """Not through stdin: a git that is left alone with an empty list would add all there is, ignored or not."""
        return len(paths) <= FEW and self._forced(paths).code == 0

    def _forced(self, paths: Sequence[str]) -> Captured:
        """Ignored or not."""
        return self.repo.ask(*add_command(self.repo), "-f", "--", *paths)

    def _commit(self, message: str, verify: bool) -> None:
        words = ["commit", "-q", "--allow-empty", "--cleanup=verbatim", "--no-status", "-F", "-"]
        words += [] if verify else ["--no-verify"]
        repo, data, before = self.repo, files.to_bytes(message), marks(self.repo, self.branch)
        done = command.run(words, repo.top, stdin=data, env=repo.env, hooks=verify, timeout=GIT_TIMEOUT)
        if done.code and marks(repo, self.branch) == before:  # a commit that was made counts, whatever a hook says
            rows = b"\n".join((done.err, done.out)).decode("utf-8", "replace").strip()
            raise NodeFailed("the commit was refused", rows[-600:] or f"git exit {done.code}")


def _must_add(done: Captured) -> None:
    if done.code:
        raise NodeFailed("git can't add what changed", command.error_text(done))


def take_back(repo: Repo, commit: str) -> None:
    """The branch ends before this commit again; what it and those behind it held stays in the work tree."""
    repo.must("reset", "-q", "--soft", f"{commit}^")
