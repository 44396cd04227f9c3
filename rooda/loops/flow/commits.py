"""Creates, reads and removes the commits of a flow's runs."""

from collections.abc import Sequence
from typing import NamedTuple

from rooda.base import files
from rooda.errors import RoodaError
from rooda.git import command
from rooda.git.repository import GIT_TIMEOUT, Repo
from rooda.git.work_tree import add_command
from rooda.loops.flow import boundaries
from rooda.loops.flow.boundaries import Boundary
from rooda.loops.flow.model import RUNS, NodeFailed, run_folder
from rooda.loops.flow.repository import head_fingerprint, unstage
from rooda.processes.capture import Captured

PAGE = 500  # commits per `git log`
FEW = 300  # most paths passed on one command line


def runs_at(repo: Repo, commit: str) -> list[str]:
    """Return the names of the run folders in a commit."""
    done = repo.run("ls-tree", "-z", "--name-only", f"{commit}:{repo.inside(RUNS)}")
    return [name.decode("utf-8", "replace") for name in done.out.split(b"\0") if name] if done.code == 0 else []


def committed(repo: Repo, commit: str, path: str) -> bytes | None:
    """Return the content of a project file in a commit; None if the commit doesn't have it."""
    done = repo.run("cat-file", "blob", f"{commit}:{repo.inside(path)}")
    return done.out if done.code == 0 else None


class LoggedCommit(NamedTuple):
    commit: str
    boundary: Boundary | None  # None: not made by rooda


def history(repo: Repo, root: str, run: str, tip: str = "HEAD") -> list[LoggedCommit]:
    """Return the commits of a run, oldest first, beginning with its first measurement; [] if there is none."""
    found: list[LoggedCommit] = []
    while page := _page(repo, tip, len(found)):
        for each in page:
            found.append(each)
            if each.boundary and (each.boundary.path, each.boundary.label) == (root, "0"):
                is_ours = committed(repo, each.commit, f"{run_folder(run)}/run-state.md") is not None
                return found[::-1] if is_ours else []
    return []


def _page(repo: Repo, tip: str, skipped: int) -> list[LoggedCommit]:
    data = repo.run_checked(
        "log", "--first-parent", "-z", "--format=%H%n%B", f"-n{PAGE}", f"--skip={skipped}", tip, "--"
    )
    rows = [each.decode("utf-8", "replace").partition("\n") for each in data.split(b"\0") if each]
    return [LoggedCommit(commit, boundaries.read(text)) for commit, _, text in rows]


class Committer(NamedTuple):
    """Creates the commits of a run."""

    repo: Repo
    branch: str
    always: str  # path of a project folder that is committed even if git ignores it
    verify: bool = True  # run the user's hooks

    def commit(self, message: str, changed: Sequence[str] | None) -> None:
        """Commit the changed paths, or all changes if `changed` is None; raise NodeFailed if git or a hook refuses."""
        add_all = changed is None or not self._add([*changed, self.repo.inside(self.always)])
        if add_all:
            _must_add(self.repo.run(*add_command(self.repo)))
            _must_add(self._forced([self.repo.inside(self.always)]))
        self._commit(message, self.verify)

    def commit_own(self, message: str) -> None:
        """Commit only the run's folder, without hooks; other changes remain uncommitted."""
        unstage(self.repo)
        _must_add(self._forced([self.repo.inside(self.always)]))
        self._commit(message, verify=False)

    def _add(self, paths: Sequence[str]) -> bool:
        """Add the paths; return False if there are too many or git fails.

        The paths are passed as arguments: if git read them from a stdin that is cut off, it would add everything.
        """
        return len(paths) <= FEW and self._forced(paths).code == 0

    def _forced(self, paths: Sequence[str]) -> Captured:
        """Add the paths even if git ignores them."""
        return self.repo.run(*add_command(self.repo), "-f", "--", *paths)

    def _commit(self, message: str, verify: bool) -> None:
        words = ["commit", "-q", "--allow-empty", "--cleanup=verbatim", "--no-status", "-F", "-"]
        words += [] if verify else ["--no-verify"]
        repo, data, before = self.repo, files.to_bytes(message), head_fingerprint(self.repo, self.branch)
        done = command.run(words, repo.top, stdin=data, env=repo.env, hooks=verify, timeout=GIT_TIMEOUT)
        if (
            done.code and head_fingerprint(repo, self.branch) == before
        ):  # a failing post-commit hook does not undo the commit
            rows = b"\n".join((done.err, done.out)).decode("utf-8", "replace").strip()
            raise NodeFailed("git refused the commit", rows[-600:] or f"git exit {done.code}")


def _must_add(done: Captured) -> None:
    if done.code:
        raise NodeFailed("git can't add the changes", command.error_text(done))


def commit_paths(repo: Repo, paths: Sequence[str], subject: str, verify: bool) -> None:
    """Commit these paths, relative to the repository's top, and nothing else; raise RoodaError if git refuses."""
    repo.run("add", "--", *paths)
    words = [
        "--literal-pathspecs",
        "commit",
        "-q",
        "-m",
        subject,
        *([] if verify else ["--no-verify"]),
        "--only",
        "--",
        *paths,
    ]
    done = command.run(words, repo.top, env=repo.env, hooks=verify, timeout=GIT_TIMEOUT)
    if done.code:
        raise RoodaError(
            f"git refused the commit: {command.error_text(done)}", "Fix the cause, or commit the flow's files yourself."
        )


def commit_staged(repo: Repo, message: str) -> None:
    """Commit what is staged, with the user's hooks; raise RoodaError if git or a hook refuses."""
    words = ["commit", "-q", "--cleanup=verbatim", "-F", "-"]
    done = command.run(words, repo.top, stdin=files.to_bytes(message), env=repo.env, hooks=True, timeout=GIT_TIMEOUT)
    if done.code:
        raise RoodaError(
            f"git refused the commit: {command.error_text(done)}",
            "Fix the cause, then repeat the command. Nothing was merged.",
        )


def has_work(repo: Repo, commit: str, folder: str) -> bool:
    """True if a commit changes files outside `folder`, a folder of the project."""
    where = (":/", f":(top,exclude,literal){repo.inside(folder)}")
    words = ["diff-tree", "-r", "--quiet", f"{commit}^", commit, "--", *where]
    return bool(command.run(words, repo.top, env=repo.env, literal=False).code)


def uncommit(repo: Repo, commit: str) -> None:
    """Remove this commit and all later ones from the branch; keep their changes in the work tree."""
    repo.run_checked("reset", "-q", "--soft", f"{commit}^")
