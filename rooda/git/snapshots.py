"""Saves the whole work tree as git commits outside all branches; index, branch, stash and HEAD stay untouched.

The commits of a run form a chain: the first parent is the previous snapshot, the second HEAD, so that no commit is
lost when an agent resets. A private index is kept between snapshots, so that git skips unchanged files.
"""

import os
import re
from collections.abc import Callable, Iterable

from rooda.base import files
from rooda.base.dirs import make_home
from rooda.base.text import escape_line
from rooda.git import command, work_tree
from rooda.git.private import PrivateFiles
from rooda.git.repository import GitProblem, Repo, read_head
from rooda.git.retention import ROOT, Snapshot, excess_runs, folder, message, parse, ref
from rooda.git.work_tree import Reading

KEEP = 20  # runs per family that keep their snapshots
NAMED = 200  # snapshots of a run with refs; older ones are their ancestors
SLACK = 50  # further refs that are kept, so that old ones are deleted in batches
_COMMIT = re.compile("[0-9a-f]{40,64}")
LAST = "last"
CHECKPOINTS = f"{ROOT}checkpoint/"  # checkpoints of goals, made even without snapshots
_FORMAT = "%H %T %ct%n%B"
_REF_FORMAT = "%(objectname) %(tree) %(committerdate:unix)%0a%(contents)%00"


def index_of(repo: Repo, family: str) -> str:
    """Return the path of the index for a procedure or kind of loop. Only the holder of the loop's lock may use it."""
    return os.path.join(repo.workspace, ".rooda", "snapshots", f"{family}.index")


def place_of(repo: Repo) -> str:
    """Return an identifier of the work tree and the workspace in it, which stays the same if the repository moves."""
    own = "" if os.path.realpath(repo.folder) == os.path.realpath(repo.common) else os.path.basename(repo.folder)
    return f"{own}:{escape_line(repo.prefix)}"


def prepare_index(repo: Repo, family: str) -> str:
    """Create the folder of the private index, delete the lock of a killed git, and return the index's path."""
    path = index_of(repo, family)
    make_home(os.path.join(repo.workspace, ".rooda"), "snapshots")
    files.remove(f"{path}.lock")  # safe, since this process holds the loop's lock
    return path


def commit_snapshot(repo: Repo, made: Snapshot, before: str = "") -> str:
    """Commit a snapshot and return the commit. `before`: the previous snapshot, which is the first parent.

    The second parent is HEAD. A parent that is missing, because an agent deleted refs and ran `git gc`, is left out.
    """
    repo, text = (
        repo._replace(env={**(repo.env or os.environ), **command.DEFAULT_IDENTITY}),
        files.to_bytes(message(made)),
    )
    parents = [each for each in (before, made.head) if each]
    for some in (parents, parents[1:]):
        words = [word for each in some for word in ("-p", each)]
        done = repo.run("commit-tree", made.tree, *words, "-F", "-", stdin=text)
        if done.code == 0:
            return files.to_text(done.out).strip()
    return repo.text("commit-tree", made.tree, "-F", "-", stdin=text)


def set_refs(repo: Repo, commit: str, *refs: str) -> None:
    """Point all refs to the commit. If git fails, change none and raise GitProblem."""
    repo.run_checked(
        "update-ref", "--stdin", stdin=files.to_bytes("".join(f"update {each} {commit}\n" for each in refs))
    )


def commit_at(repo: Repo, name: str) -> str:
    """Return the commit of a rooda ref, "" if there is none; reads git's file if possible, which saves a process."""
    try:
        commit = files.to_text(files.read_ours(os.path.join(repo.common, name))).strip()
    except OSError:
        commit = ""
    if _COMMIT.fullmatch(commit):
        return commit
    return files.to_text(repo.run("rev-parse", "--verify", "-q", name).out).strip()


class SnapshotTaker:
    """Takes the snapshots of one run."""

    def __init__(
        self,
        repo: Repo,
        owner: tuple[str, str, str, str],
        private: PrivateFiles | None,
        last: Snapshot | None = None,
    ) -> None:
        """Take snapshots for `owner` (run, kind, loop, family), without the files that `private` finds, if given."""
        self.repo, self.last, self.resumed = repo, last, ""
        self._private = private
        self.index = ""
        self._owner, self._place = owner, place_of(repo)
        self._names: list[str] = []
        self._rules: tuple[int, ...] | None = None

    def read(self) -> Reading:
        """Read the work tree as a git tree, which updates the private index."""
        self.index = prepare_index(self.repo, self._owner[-1])  # an agent may have deleted it
        rules = files.fingerprint(os.path.join(self.repo.common, "info", "exclude"))
        wary, self._rules = rules != self._rules, rules
        return work_tree.read(self.repo, self.index, wary, self._private)

    def put_back(self) -> str:
        """Restore the refs of the last snapshot if they were moved or deleted; return a message about it, or ""."""
        last = self.last
        names = [last.ref, ref(last.run, LAST)] if last else []
        found = {name: commit_at(self.repo, name) for name in names}
        if last is None or all(commit == last.commit for commit in found.values()):
            return ""
        try:
            set_refs(self.repo, last.commit, *names)
        except GitProblem:  # git refuses to replace a damaged file
            for name in names:
                files.remove(os.path.join(self.repo.common, name))
            set_refs(self.repo, last.commit, *names)
        name, commit = next((name, commit) for name, commit in found.items() if commit != last.commit)
        return f"{name} was {f'moved to {commit[:12]}' if commit else 'deleted'}; put back to {last.commit[:12]}"

    def save(self, seen: Reading, iteration: int, moment: str) -> tuple[Snapshot, bool]:
        """Save this tree as the run's next snapshot; return the snapshot and True.

        If the last snapshot has the same tree, iteration and moment, return the last snapshot and False instead.
        """
        last = self.last
        if last and (last.tree, last.iteration, last.moment) == (seen.tree, iteration, moment):
            return last, False
        head, branch = read_head(self.repo)
        number = last.number + 1 if last else 1
        trouble = " ".join(seen.trouble.split())
        made = Snapshot(*self._owner, iteration, moment, number, self._place, head, branch, trouble, self.resumed)
        made = made._replace(tree=seen.tree, private=seen.left_out)
        self.last = made = made._replace(commit=commit_snapshot(self.repo, made, last.commit if last else ""))
        set_refs(self.repo, made.commit, made.ref, ref(made.run, LAST))
        self._names.append(made.ref)
        self._thin_out()
        return made, True

    def _thin_out(self) -> None:
        """Delete old refs of a long run: thousands of refs would slow down every git command of the user."""
        if len(self._names) > NAMED + SLACK:
            old, self._names = self._names[:SLACK], self._names[SLACK:]
            forget(self.repo, old)


def tips(repo: Repo, everywhere: bool = False, pattern: str = f"{ROOT}*/{LAST}") -> list[Snapshot]:
    """Return the newest snapshot of each run of this workspace, or of all workspaces if `everywhere`; newest first."""
    text = repo.text("for-each-ref", f"--format={_REF_FORMAT}", pattern)
    found = [snapshot for each in text.split("\0") if (snapshot := parse(each))]
    here = [tip for tip in found if everywhere or tip.place == place_of(repo)]
    return sorted(here, key=lambda tip: (tip.seconds, tip.run), reverse=True)


def history(repo: Repo, tip: Snapshot, limit: int = 0) -> list[Snapshot]:
    """Return a run's snapshots, newest first; at most `limit` if given."""
    count = min(limit or tip.number, tip.number)
    text = repo.text("log", "-z", "--first-parent", f"--format={_FORMAT}", f"-n{count}", tip.commit)
    return [snapshot for each in text.split("\0") if (snapshot := parse(each)) and snapshot.run == tip.run]


def snapshot_at(repo: Repo, commit: str) -> Snapshot | None:
    """Return the snapshot stored in a commit; None if the commit is not a snapshot."""
    return parse(repo.text("log", "-1", f"--format={_FORMAT}", commit, "--"))


def refs_of_runs(repo: Repo, runs: Iterable[str], root: str = ROOT) -> list[str]:
    """Return all refs of these runs."""
    wanted = {folder(run) for run in runs}
    rows = repo.lines("for-each-ref", "--format=%(refname)", root) if wanted else []
    return [row for row in rows if row.removeprefix(root).partition("/")[0] in wanted]


def forget(repo: Repo, refs: Iterable[str]) -> bool:
    """Delete these refs and return True, or False if git fails. `git gc` later removes objects that only they reach."""
    orders = "".join(f"delete {each}\n" for each in refs)
    return not orders or repo.run("update-ref", "--stdin", stdin=files.to_bytes(orders)).code == 0


def prune(repo: Repo, keep: int, selected: Callable[[Snapshot], bool], dry: bool = False) -> list[Snapshot]:
    """Delete snapshots and checkpoints of all but the last `keep` runs per family; return the affected runs.

    `dry`: delete nothing.
    """
    points = {each.run: each for each in tips(repo, pattern=CHECKPOINTS)}
    old, past = (excess_runs(filter(selected, each), keep) for each in (tips(repo), points.values()))
    if dry:
        return [*old, *past]
    refs = [*refs_of_runs(repo, (tip.run for tip in old)), *refs_of_runs(repo, (tip.run for tip in past), CHECKPOINTS)]
    if not forget(repo, refs):
        return []
    for family in {tip.family for tip in old} if not keep else ():
        files.remove(index_of(repo, family))  # it refers to objects that git may now delete
    return [*old, *past]
