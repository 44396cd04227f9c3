"""Finds the git work tree around a folder, and runs git commands in it."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rooda.base import files
from rooda.errors import RoodaError
from rooda.git import command
from rooda.processes.capture import Captured

GIT_TIMEOUT = 1800.0  # seconds; reading a large repository and the user's hooks take long
PLAIN = ("core.splitIndex=false", "core.untrackedCache=false")
_HEADS = "refs/heads/"
_PLAIN = [word for setting in PLAIN for word in ("-c", setting)]


class GitProblem(RoodaError):
    """Raised if git is missing, there is no repository, or git failed; `what` says which."""


class Head(NamedTuple):
    """The commit and branch of HEAD."""

    commit: str  # "" before the first commit
    branch: str  # "" when detached


class Repo(NamedTuple):
    """A git work tree, and the folder in it in which a loop works."""

    workspace: str  # absolute
    top: str
    prefix: str  # path of the workspace inside the work tree: "" or "some/folder/"
    folder: str  # the work tree's own git folder
    common: str  # the git folder that all work trees of the repository share
    env: Mapping[str, str] | None = None
    separate: bool = False  # the git folder lies elsewhere, so git needs both paths
    objects: str = ""  # folder of objects that git uses instead of the repository's own

    def run(self, *args: str, stdin: bytes = b"", index: str = "") -> Captured:
        """Run a git command at the top. With `index`, git uses that index file, independently of the user's index."""
        where = [f"--git-dir={self.folder}", f"--work-tree={self.top}"] if self.separate else []
        words = [*(_PLAIN if index else ()), *where, *args]
        return command.run(
            words, self.top, stdin=stdin, index=index, env=self.env, timeout=GIT_TIMEOUT, objects=self.objects
        )

    def run_checked(self, *args: str, stdin: bytes = b"", index: str = "") -> bytes:
        """Like `run`, but return git's output. Raises GitProblem if git fails."""
        done = self.run(*args, stdin=stdin, index=index)
        if done.code:
            raise GitProblem(f"git {args[0]} failed in {self.top}: {command.error_text(done)}")
        return done.out

    def text(self, *args: str, stdin: bytes = b"", index: str = "") -> str:
        """Like `run_checked`, but return text without the final newline."""
        return files.to_text(self.run_checked(*args, stdin=stdin, index=index)).rstrip("\n")

    def lines(self, *args: str) -> list[str]:
        """Like `text`, but return lines, split only at line feeds, since file names may contain other line breaks."""
        return [row for row in self.text(*args).split("\n") if row]

    def inside(self, path: str) -> str:
        """Convert a path relative to the workspace into one relative to the top of the repository."""
        return self.prefix + path


def find(workspace: str) -> Repo:
    """Return the work tree that contains the folder. Raises GitProblem with the reason if there is none."""
    wanted = ("--show-toplevel", "--show-prefix", "--absolute-git-dir", "--git-common-dir")
    done = command.run(["rev-parse", *wanted], workspace)
    if done.code == 127:
        raise GitProblem("git is not installed", "Install git.")
    found = files.to_text(done.out).removesuffix("\n").split("\n")
    if done.code or len(found) < len(wanted):
        why = command.error_text(done)
        if done.code and "not a git repository" not in why and "must be run in a work tree" not in why:
            raise GitProblem(why, _advice(done))
        raise GitProblem(f"{workspace} is not in a git work tree", "Create a repository: git init")
    if len(found) > len(wanted):  # a folder name contains a line end
        found = [_rev_parse(each, workspace) for each in wanted]
    top, prefix, own, common = found
    return Repo(workspace, top, prefix, own, os.path.join(workspace, common))


def find_at(top: str) -> Repo:
    """Return the work tree whose top is this folder, not one around it. Raises GitProblem if there is none."""
    repo = find(top)
    if os.path.realpath(repo.top) != os.path.realpath(top):
        raise GitProblem(f"{top} is no longer a repository")
    return repo


def _advice(done: Captured) -> str:
    """Return git's own advice about a repository that belongs to another user; "" if it gives none."""
    rows = (row.strip() for row in files.to_text(done.err).splitlines())
    line = next((row for row in rows if row.startswith("git config --global --add safe.directory ")), "")
    return f"If you trust it: {line}" if line else ""


def _rev_parse(question: str, workspace: str) -> str:
    return files.to_text(command.run(["rev-parse", question], workspace).out).removesuffix("\n")


def has_commit(workspace: str, commit: str) -> bool:
    """True if the repository around the workspace has this commit, or if git is missing."""
    return command.run(["cat-file", "-e", f"{commit}^{{commit}}"], workspace).code in (0, 127)


def tracks(workspace: str, folder: str) -> bool:
    """True if git tracks files below this folder of the workspace. Call the cheaper `traces.may_track` first."""
    return bool(command.run(["ls-files", "-z", "--", folder], workspace).out)


def read_head(repo: Repo) -> Head:
    """Return the commit and the branch of HEAD, read from git's files where possible, which saves a process."""
    try:
        branch = files.text(os.path.join(repo.folder, "HEAD")).strip().removeprefix(f"ref: {_HEADS}")
        commit = files.text(os.path.join(repo.common, _HEADS, branch)).strip()
    except (OSError, ValueError):
        commit = branch = ""
    return Head(commit, branch) if re.fullmatch("[0-9a-f]{40,64}", commit) else _head_by_git(repo)


def _head_by_git(repo: Repo) -> Head:
    done = repo.run("rev-parse", "HEAD", "--symbolic-full-name", "HEAD")
    if done.code:
        return Head("", "")
    commit, ref, *_ = files.to_text(done.out).split("\n")
    return Head(commit, ref.removeprefix(_HEADS) if ref.startswith(_HEADS) else "")


def nul_terminated(texts: Iterable[str]) -> bytes:
    """Return names encoded for git commands that read them with `-z --stdin`."""
    return b"".join(files.to_bytes(text) + b"\0" for text in texts)
