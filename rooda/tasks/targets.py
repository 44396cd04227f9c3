"""Finds, reads and pushes the branches that tasks land on: local ones, or those of a remote such as `origin/main`."""

from collections.abc import Sequence
from typing import NamedTuple

from rooda.base import files
from rooda.git import command
from rooda.git.checkouts import HEADS
from rooda.git.repository import GIT_TIMEOUT, GitProblem, Repo
from rooda.git.traces import commit_of_ref
from rooda.processes.capture import Captured

REMOTES = "refs/remotes/"


class Target(NamedTuple):
    """A branch that tasks land on."""

    name: str
    ref: str  # full name of the local ref that has its tip
    remote: str = ""
    branch: str = ""  # the branch's name in the remote repository


class Targets:
    """Finds, reads and pushes the targets of one repository."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo

    def find(self, name: str) -> Target:
        """Return the target with this name. A local branch takes precedence over a remote branch with the same name."""
        if self.commit(f"{HEADS}{name}"):
            return Target(name, f"{HEADS}{name}")
        for remote in sorted(self._repo.lines("remote"), key=len, reverse=True):
            if name.startswith(f"{remote}/"):
                return Target(name, f"{REMOTES}{name}", remote, name.removeprefix(f"{remote}/"))
        raise GitProblem(f"there is no branch {name}", f"Create it: git branch {name}")

    def of_ref(self, ref: str, remote: str) -> Target:
        name = ref.removeprefix(REMOTES)
        return Target(name, ref, remote, name.removeprefix(f"{remote}/"))

    def commit(self, ref: str) -> str:
        """Return the commit of a ref; "" if it does not exist."""
        done = self._repo.run("rev-parse", "--verify", "-q", f"{ref}^{{commit}}")
        return files.to_text(done.out).strip() if done.code == 0 else ""

    def tip(self, target: Target) -> str:
        """Return the commit of a target. Raises GitProblem if it has none."""
        if commit := commit_of_ref(self._repo.common, target.ref) or self.commit(target.ref):
            return commit
        raise GitProblem(f"{target.name} has no commit")

    def is_part(self, older: str, newer: str) -> bool:
        return self._repo.run("merge-base", "--is-ancestor", older, newer).code == 0

    def has(self, ref: str, commit: str) -> bool:
        """True if a ref contains a commit."""
        return self.is_part(commit, ref)

    def fetch(self, target: Target) -> None:
        """Fetch a target from its remote; do nothing for a local target. Raises GitProblem if git fails."""
        if not target.remote:
            return
        words = ("fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", target.remote)
        done = self._outside([*words, f"+{HEADS}{target.branch}:{target.ref}"])
        if done.code:
            raise GitProblem(f"git fetch {target.remote} {target.branch} failed: {command.error_text(done)}")

    def push(self, target: Target, old: str, new: str) -> str:
        """Push a commit if the target is still at `old`; return git's error, "" if it succeeded."""
        lease = f"--force-with-lease={HEADS}{target.branch}:{old}"
        words = ["push", "-q", "--no-follow-tags", "--recurse-submodules=no", lease, target.remote]
        done = self._outside([*words, f"{new}:{HEADS}{target.branch}"])
        return command.push_error(done) if done.code else ""

    def _outside(self, words: Sequence[str]) -> Captured:
        """Run git with the protocols, credentials and hooks that the user has configured."""
        return command.run([*words], self._repo.top, hooks=True, timeout=GIT_TIMEOUT)
