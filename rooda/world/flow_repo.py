"""The git repository that a flow works on: what it asks of it, and the commits it makes."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rooda.errors import RoodaError, Undecided, UsageProblem
from rooda.policy import flow_messages
from rooda.policy.flow_labels import PREFIX, RUNS, run_folder
from rooda.policy.flow_messages import Boundary
from rooda.policy.flow_records import NodeFailed
from rooda.world import clock, files, git
from rooda.world.process import Captured

UNFINISHED = {
    "MERGE_HEAD": "a merge",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisection",
}
PAGE = 500  # commits asked for at once
FEW = 300  # paths that fit into one command line
HOOK_TIME = 1800.0  # seconds a commit may take, with the person's hooks


class Position(NamedTuple):
    """What HEAD says."""

    commit: str
    branch: str  # "" when detached


class Repo(NamedTuple):
    """One work tree and the project in it."""

    project: str  # absolute folder that holds .ai-loop/
    top: str
    prefix: str  # of the project inside the work tree: "" or "some/folder/"
    folder: str  # the work tree's own git folder
    common: str  # the one that all work trees share
    env: Mapping[str, str] | None = None

    def ask(self, *args: str, stdin: bytes = b"", index: str = "") -> Captured:
        return git.run([*args], self.top, stdin=stdin, index=index, env=self.env)

    def must(self, *args: str, stdin: bytes = b"", index: str = "") -> bytes:
        """What git says; RoodaError if it refuses."""
        done = self.ask(*args, stdin=stdin, index=index)
        if done.code:
            raise RoodaError(f"git {args[0]} failed in {self.top}: {git.said(done)}")
        return done.out

    def text(self, *args: str) -> str:
        return self.must(*args).decode("utf-8", "surrogateescape").rstrip("\n")

    def inside(self, path: str) -> str:
        """A path of the project as the repository names it."""
        return self.prefix + path


def found(workspace: str) -> Repo:
    """The repository around the project; UsageProblem when a flow can't work there."""
    asked = ["rev-parse", "--show-toplevel", "--show-prefix", "--absolute-git-dir", "--git-common-dir"]
    done = git.run(asked, workspace)
    if done.code == 127:
        raise UsageProblem("A flow needs git, and git is not on this machine.", "Install git.")
    if done.code:
        raise UsageProblem(
            f"{workspace} is in no git work tree, and a flow keeps its history in git.", "Make it one: git init"
        )
    top, prefix, own, common = done.out.decode("utf-8", "surrogateescape").split("\n")[:4]
    return Repo(workspace, top, prefix, own, os.path.join(workspace, common))


def require_ready(repo: Repo) -> None:
    """Whatever would make a run fail in its middle is found before its beginning."""
    if repo.ask("rev-parse", "--verify", "-q", "HEAD^{commit}").code:
        raise UsageProblem(
            "This repository has no commit yet, and a flow begins from one.", "Commit what is there first."
        )
    for name, what in UNFINISHED.items():
        if os.path.lexists(os.path.join(repo.folder, name)):
            raise UsageProblem(f"In this work tree {what} is not finished.", "Finish or abort it, then start the flow.")
    if repo.ask("var", "GIT_COMMITTER_IDENT").code or repo.ask("var", "GIT_AUTHOR_IDENT").code:
        hint = 'Set it: git config user.name "…" and git config user.email "…"'
        raise UsageProblem("git knows no name and address to commit under.", hint)
    if repo.ask("rev-parse", "--verify", "-q", f"refs/heads/{PREFIX[:-1]}").code == 0:
        hint = f"Rename it: git branch -m {PREFIX[:-1]} another-name"
        raise UsageProblem(f"A branch is called `{PREFIX[:-1]}`, so git can't make `{PREFIX}…`.", hint)


def tip(repo: Repo, branch: str) -> Position:
    """The same for a branch that is surely checked out: its file tells, which costs no process."""
    try:
        commit = files.read(os.path.join(repo.common, "refs", "heads", branch)).decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return position(repo)
    return Position(commit, branch) if re.fullmatch("[0-9a-f]{40,64}", commit) else position(repo)


def end_unfinished(repo: Repo) -> str:
    """Nothing that an agent began and left half done becomes part of our commits. Says what it was."""
    begun = [name for name in UNFINISHED if os.path.lexists(os.path.join(repo.folder, name))]
    for name in begun:
        what = name.partition("-")[0] if "-" in name else ""
        repo.ask(
            *(("rebase", "--quit") if what else ("bisect", "reset", "HEAD") if "BISECT" in name else ("reset", "-q"))
        )
    return f"left {UNFINISHED[begun[0]]} half done; it is ended, its changes stay" if begun else ""


def position(repo: Repo) -> Position:
    """An unborn branch has no commit."""
    done = repo.ask("rev-parse", "HEAD", "--symbolic-full-name", "HEAD")
    said = done.out.decode("utf-8", "surrogateescape").split("\n")
    if done.code:
        return Position("", "")
    return Position(said[0], said[1].removeprefix("refs/heads/") if said[1].startswith("refs/heads/") else "")


def marks(repo: Repo, branch: str) -> tuple[tuple[int, ...], ...]:
    """Change whenever HEAD or its branch is moved: asking git costs a process. Nothing where refs are no files."""
    paths = (os.path.join(repo.folder, "HEAD"), os.path.join(repo.common, "refs", "heads", branch))
    try:
        found = [os.lstat(path) for path in paths]
    except OSError:
        return ()
    return tuple((each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns) for each in found)


def dirty(repo: Repo) -> list[tuple[str, str]]:
    """Status word and path of everything that is not committed, paths as the repository names them."""
    entries = repo.must("status", "--porcelain", "-z", "--untracked-files=all", "--no-renames").split(b"\0")
    return [(entry[:2].decode(), entry[3:].decode("utf-8", "surrogateescape")) for entry in entries if entry]


def branches(repo: Repo) -> list[str]:
    """The local branches of flows, by the time of their last commit, newest first."""
    said = repo.text(
        "for-each-ref", "--sort=-committerdate", "--format=%(refname:lstrip=2)", f"refs/heads/{PREFIX[:-1]}/"
    )
    return said.splitlines()


def new_branch(repo: Repo, names: Sequence[str], known: Sequence[str]) -> str:
    """Made and checked out: the first of the names that is free. A branch below a name takes it as well."""
    taken = {*known, *("/".join(name.split("/")[:2]) for name in known)}
    free = next((name for name in names if name not in taken), "")
    if not free:
        hint = "Delete some, or word the task otherwise."
        raise Undecided(f"All branches from {names[0]} to {names[-1]} are taken.", hint)
    repo.must("checkout", "-q", "--no-track", "-b", free)
    return free


def check_out(repo: Repo, branch: str) -> None:
    done = repo.ask("checkout", "-q", branch)
    if done.code:
        hint = f"Commit, stash or remove what is in the way, or type: git checkout {branch}"
        raise Undecided(f"The run's branch {branch} can't be checked out: {git.said(done)}", hint)


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
    return [Logged(commit, flow_messages.read(text)) for commit, _, text in rows]


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
            _must_add(self.repo.ask("add", "-A"))
            _must_add(self.repo.ask("add", "-A", "-f", "--", self.repo.inside(self.always)))
        self._commit(message, self.verify)

    def commit_own(self, message: str) -> None:
        """Only the folder, past the hooks: what they refused stays uncommitted."""
        unstage(self.repo)
        _must_add(self.repo.ask("add", "-A", "-f", "--", self.repo.inside(self.always)))
        self._commit(message, verify=False)

    def _add(self, paths: Sequence[str]) -> bool:
        """Not through stdin: a git that is left alone with an empty list would add all there is, ignored or not."""
        return len(paths) <= FEW and self.repo.ask("add", "-A", "-f", "--", *paths).code == 0

    def _commit(self, message: str, verify: bool) -> None:
        words = ["commit", "-q", "--allow-empty", "--cleanup=verbatim", "--no-status", "-F", "-"]
        words += [] if verify else ["--no-verify"]
        repo, data, before = self.repo, files.to_bytes(message), marks(self.repo, self.branch)
        done = git.run(words, repo.top, stdin=data, env=repo.env, hooks=verify, timeout=HOOK_TIME)
        if done.code and marks(repo, self.branch) == before:  # a commit that was made counts, whatever a hook says
            rows = b"\n".join((done.err, done.out)).decode("utf-8", "replace").strip()
            raise NodeFailed("the commit was refused", rows[-600:] or f"git exit {done.code}")


def _must_add(done: Captured) -> None:
    if done.code:
        raise NodeFailed("git can't add what changed", git.said(done))


def take_back(repo: Repo, commit: str) -> None:
    """The branch ends before this commit again; what it and those behind it held stays in the work tree."""
    repo.must("reset", "-q", "--soft", f"{commit}^")


def unstage(repo: Repo) -> None:
    """Nothing is staged but what a boundary stages itself; the files stay as they are."""
    repo.ask("reset", "-q")


def has_hooks(repo: Repo) -> bool:
    """Could a commit change files?"""
    said = git.run(["rev-parse", "--git-path", "hooks"], repo.top, env=repo.env, hooks=True).out
    folder = os.path.join(repo.top, said.decode("utf-8", "surrogateescape").rstrip("\n"))
    try:
        names = [name for name in os.listdir(folder) if not name.endswith(".sample")]
    except OSError:
        return False
    return any(os.access(os.path.join(folder, name), os.X_OK) for name in names)


def unlock(repo: Repo, patience: float = 1.0) -> list[str]:
    """Lock files of git that a killed run left behind. A living git's own are gone within `patience`."""
    names = [os.path.join(repo.folder, name) for name in ("index.lock", "HEAD.lock", "ORIG_HEAD.lock")]
    names.append(os.path.join(repo.common, "packed-refs.lock"))
    for folder, _, inside in os.walk(os.path.join(repo.common, "refs", "heads", PREFIX)):
        names += [os.path.join(folder, name) for name in inside if name.endswith(".lock")]
    deadline = clock.monotonic() + patience
    left = names
    while (left := [name for name in left if os.path.lexists(name)]) and clock.monotonic() < deadline:
        clock.sleep(0.02)
    for name in left:
        files.remove(name)
    return left
