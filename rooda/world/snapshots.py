"""Snapshots of a whole work tree as git commits outside of all branches. Index, branch, stash and HEAD stay untouched.

The commits of one run are a chain: first parent is the snapshot before, second what HEAD was then, so that no reset by
an agent loses a commit. A private index is kept between snapshots: files that did not change are not read again.
"""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from rooda.errors import RoodaError
from rooda.model import World
from rooda.policy.snapshots import AFTER, BEFORE, ROOT, Snapshot, message, read, ref, too_many
from rooda.world import files, git
from rooda.world.process import Captured
from rooda.world.runfolder import make_home

if TYPE_CHECKING:
    from rooda.world.session import Session

KEEP = 20  # runs of a procedure whose snapshots are kept
NAMED = 200  # of one run have refs of their own; older ones are their ancestors
SLACK = 50
PATIENCE = 1800.0  # seconds for a first snapshot of everything
LAST = "last"
_MOMENTS = {"iteration.started": BEFORE, "iteration.ended": AFTER}
_FORMAT = "%H %T %ct%n%B"
_REF_FORMAT = "%(objectname) %(tree) %(committerdate:unix)%0a%(contents)%00"
_OWN = ("-c", "core.splitIndex=false", "-c", "submodule.recurse=false")


class Unsaved(RoodaError):
    """A snapshot could not be taken; `what` says why."""


class WorkTree(NamedTuple):
    """The work tree that is saved and put back: all of it, also when the workspace is a folder in it."""

    workspace: str
    top: str
    prefix: str  # of the workspace: "" or "some/folder/"
    folder: str  # its own git folder
    common: str  # the one that all work trees of the repository share

    @property
    def place(self) -> str:
        """Tells this work tree and workspace from others of the repository, also after a move."""
        own = "" if os.path.realpath(self.folder) == os.path.realpath(self.common) else os.path.basename(self.folder)
        return f"{own}:{self.prefix}"

    def ask(self, *args: str, stdin: bytes = b"", index: str = "", env: dict[str, str] | None = None) -> Captured:
        return git.run([*_OWN, *args], self.top, stdin=stdin, index=index, env=env, timeout=PATIENCE)

    def must(self, *args: str, stdin: bytes = b"", index: str = "", env: dict[str, str] | None = None) -> str:
        """What git says, without the last line's end; Unsaved if it refuses."""
        done = self.ask(*args, stdin=stdin, index=index, env=env)
        if done.code:
            raise Unsaved(f"git {args[0]} failed in {self.top}: {git.said(done)}")
        return files.to_text(done.out).rstrip("\n")

    def index_of(self, loop: str) -> str:
        """The private index of a procedure; whoever holds the procedure's lock may use it."""
        return os.path.join(self.workspace, ".rooda", "snapshots", f"{loop}.index")


def look(workspace: str) -> WorkTree:
    """The work tree around the workspace; Unsaved with the reason when there is none."""
    questions = ("--show-toplevel", "--show-prefix", "--absolute-git-dir", "--git-common-dir")
    done = git.run(["rev-parse", *questions], workspace)
    if done.code == 127:
        raise Unsaved("git is not on this machine", "Install git.")
    said = files.to_text(done.out).split("\n")
    if done.code or len(said) < len(questions):
        why = git.said(done)
        none = "not a git repository" in why or not done.code
        raise Unsaved(f"{workspace} is in no git work tree" if none else why, "Make it one: git init" if none else "")
    top, prefix, own, common = said[:4]
    return WorkTree(workspace, top, prefix, own, os.path.join(workspace, common))


class Taker:
    """Takes the snapshots of one run."""

    def __init__(self, tree: WorkTree, run: str, loop: str, last: Snapshot | None = None) -> None:
        self.tree, self.last, self.trouble = tree, last, ""
        self._run, self._loop = run, loop
        self._index = tree.index_of(loop)
        self._names: list[str] = []
        make_home(os.path.join(tree.workspace, ".rooda"))
        files.folder(os.path.dirname(self._index))
        files.remove(f"{self._index}.lock")  # of a git that was killed: the procedure's lock is ours

    def present(self) -> str:
        """The work tree as it is now, as a tree of git's; the private index stands for it afterwards."""
        found, self.trouble = as_tree(self.tree, self._index, self.last.tree if self.last else "")
        return found

    def take(self, iteration: int, moment: str) -> Snapshot:
        return self.keep(self.present(), iteration, moment)

    def keep(self, tree: str, iteration: int, moment: str) -> Snapshot:
        """This tree as the next snapshot of the run."""
        last = self.last
        if last and (last.tree, last.iteration, last.moment) == (tree, iteration, moment):
            return last
        head, branch = position(self.tree)
        number = last.number + 1 if last else 1
        made = Snapshot(self._run, self._loop, iteration, moment, number, self.tree.place, head, branch, tree=tree)
        parents = [word for each in (last.commit if last else "", head) if each for word in ("-p", each)]
        text = files.to_bytes(message(made))
        commit = self.tree.must("commit-tree", tree, *parents, "-F", "-", stdin=text, env={**os.environ, **git.NOBODY})
        orders = f"update {made.ref} {commit}\nupdate {ref(self._run, LAST)} {commit}\n"
        self.tree.must("update-ref", "--stdin", stdin=files.to_bytes(orders))
        self.last = made._replace(commit=commit)
        self._names.append(made.ref)
        self._thin_out()
        return self.last

    def _thin_out(self) -> None:
        """Of a long run only the newest have names: thousands of refs would make every git command of people slow."""
        if len(self._names) > NAMED + SLACK:
            old, self._names = self._names[:SLACK], self._names[SLACK:]
            forget(self.tree, old)


def as_tree(tree: WorkTree, index: str, known: str = "") -> tuple[str, str]:
    """The work tree as a tree of git's, and what could not be read. What the index knows already is not read again."""
    found, trouble = _added(tree, index)
    if found != known and _drop_ignored(tree, index):
        found = tree.must("write-tree", index=index)
    return found, trouble


def _drop_ignored(tree: WorkTree, index: str) -> bool:
    """What the private index has from before it was ignored goes. What the person's own index has is tracked."""
    question = ("ls-files", "-z", "-i", "-c", "--exclude-standard")
    if not (ignored := tree.must(*question, index=index)):
        return False
    extra = set(ignored.split("\0")) - set(tree.must(*question).split("\0"))
    tree.must("update-index", "-z", "--force-remove", "--stdin", index=index, stdin=listing(extra))
    return bool(extra)


def listing(texts: Iterable[str]) -> bytes:
    """For commands that read names with `-z --stdin`."""
    return b"".join(files.to_bytes(text) + b"\0" for text in texts)


def _added(tree: WorkTree, index: str) -> tuple[str, str]:
    if not os.path.exists(index):
        _copy(os.path.join(tree.folder, "index"), index)  # then nothing that is committed must be read
    for _ in range(2):
        added = tree.ask("add", "-A", "--ignore-errors", index=index)
        made = tree.ask("write-tree", index=index)
        if made.code == 0:
            return made.out.decode().strip(), git.said(added) if added.code else ""
        files.remove(index)  # damaged, or it knows of what is gone: once more, from the beginning
    raise Unsaved(f"the work tree can't be read: {git.said(made)}")


def look_now(tree: WorkTree, loop: str) -> str:
    """The work tree as it is now, without a word to the index that a running loop may use."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="rooda-") as folder:
        index = os.path.join(folder, "index")
        _copy(tree.index_of(loop), index)
        return as_tree(tree, index)[0]


def _copy(old: str, new: str) -> None:
    """With its time: git looks again at files that are not older than the index, as their times may tell too little."""
    try:
        facts = os.stat(old)
        files.write(new, files.read(old))
        os.utime(new, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    except OSError:
        files.remove(new)  # git makes an empty one


def position(tree: WorkTree) -> tuple[str, str]:
    """Commit and branch of HEAD; an unborn branch has no commit, a detached HEAD no branch."""
    done = tree.ask("rev-parse", "HEAD", "--symbolic-full-name", "HEAD")
    if done.code:
        return "", ""
    commit, full = files.to_text(done.out).split("\n")[:2]
    return commit, full.removeprefix("refs/heads/") if full.startswith("refs/heads/") else ""


def tips(tree: WorkTree, everywhere: bool = False) -> list[Snapshot]:
    """The newest snapshot of each run of this workspace, newest run first."""
    text = tree.must("for-each-ref", f"--format={_REF_FORMAT}", f"{ROOT}*/{LAST}")
    found = [snapshot for each in text.split("\0") if (snapshot := read(each))]
    here = [tip for tip in found if everywhere or tip.place == tree.place]
    return sorted(here, key=lambda tip: (tip.seconds, tip.run), reverse=True)


def history(tree: WorkTree, tip: Snapshot, limit: int = 0) -> list[Snapshot]:
    """A run's snapshots, newest first; the newest `limit` if that is given."""
    count = min(limit or tip.number, tip.number)
    text = tree.must("log", "-z", "--first-parent", f"--format={_FORMAT}", f"-n{count}", tip.commit)
    return [snapshot for each in text.split("\0") if (snapshot := read(each)) and snapshot.run == tip.run]


def names(tree: WorkTree, runs: Iterable[str]) -> list[str]:
    """All refs of these runs."""
    wanted = set(runs)
    rows = tree.must("for-each-ref", "--format=%(refname)", ROOT).splitlines()
    return [row for row in rows if row.removeprefix(ROOT).partition("/")[0] in wanted]


def forget(tree: WorkTree, refs: Iterable[str]) -> bool:
    """Delete these refs; git's own clean-up takes what was reachable only through them."""
    orders = "".join(f"delete {each}\n" for each in refs)
    return not orders or tree.ask("update-ref", "--stdin", stdin=files.to_bytes(orders)).code == 0


def prune(tree: WorkTree, keep: int, loop: str | None = None) -> list[Snapshot]:
    """Forget the snapshots of all but the last `keep` runs of each procedure here; gives the runs that went."""
    old = too_many((tip for tip in tips(tree) if loop in (None, tip.loop)), keep)
    if not forget(tree, names(tree, (tip.run for tip in old)) if old else ()):
        return []
    for name in {tip.loop for tip in old} if not keep else ():
        files.remove(tree.index_of(name))  # what it knows of may be gone soon
    return old


class Keeper:
    """The snapshots of a session: whatever goes wrong is said, each trouble once, and the loop goes on."""

    def __init__(self, session: "Session", loop: str) -> None:
        self._session, self._loop = session, loop
        self._taker: Taker | None = None
        self._useless = False
        self._said: set[str] = set()

    def take(self, iteration: int, moment: str) -> None:
        if self._useless:
            return
        try:
            taker = self._taker = self._taker or self._begin()
            taker.take(iteration, moment)
            if taker.trouble:
                self._say(f"The snapshot {moment} iteration {iteration} is not complete: {taker.trouble}")
        except Unsaved as problem:
            self._useless = self._taker is None
            rest = "; the loop goes on without snapshots" if self._useless else ""
            self._say(f"No snapshot: {problem.what}{rest}")
        except OSError as problem:
            self._say(f"No snapshot: {problem.filename or 'the work tree'}: {problem.strerror or problem}")

    def _begin(self) -> Taker:
        tree = look(self._session.ground.workspace)
        prune(tree, KEEP - 1, self._loop)
        return Taker(tree, self._session.folder.run, self._loop)

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._session.tell("problem", text=text)


def guarded(world: World, session: "Session", loop: str) -> World:
    """A world whose iterations stand between two snapshots."""
    keeper = Keeper(session, loop)

    def tell(event: str, **facts: Any) -> None:
        world.tell(event, **facts)
        if event in _MOMENTS:
            keeper.take(facts["iteration"] + 1, _MOMENTS[event])

    return world._replace(tell=tell)
