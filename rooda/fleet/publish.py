"""Makes the commits of a task's ref: its ticket, claims, and turns with all that another worker needs to continue.

A turn is an iteration of the task's loop. A leg is one stay of the task on a worker: a claim and the turns after it.

rooda writes the commits into the mirror and reads the work tree through a separate index, so that no ref and no file in
the work tree of the agent's clone changes.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rooda.base import clock, files, secrets
from rooda.base.json import Json, loads
from rooda.errors import RoodaError
from rooda.fleet import chain
from rooda.fleet.chain import HEADS, Entry, Record
from rooda.fleet.mirror import Mirror, clone_environment
from rooda.fleet.scan import Leak, Scan
from rooda.git import command, objects, traces, work_tree
from rooda.git.private import PrivateFiles
from rooda.git.repository import GitProblem, Repo, read_head
from rooda.loops import registry
from rooda.run import folder as run_folder
from rooda.run.events import NAME as EVENTS

IDENTITY = "rooda <rooda@localhost>"
STATE, LINES, OUTPUTS = "state", "events", "outputs"
CARRIED = (HEADS, "refs/stash", "refs/rooda/checkpoint/")  # refs of a clone that are part of a turn
MERGING = "MERGE_HEAD/"  # with the commit that is being merged: an unfinished merge
MOST_REFS = 500
LARGEST_STATE = 268_435_456  # bytes of all state files
LARGEST_LINES = 67_108_864  # bytes of one session's events in a turn; the rest follows with the next turn
LARGEST_OUTPUT, LARGEST_OUTPUTS = 262_144, 2_097_152  # bytes of a transcript, and of all transcripts of a turn
LARGEST_GATE, MOST_GATES = 65_536, 20  # bytes of a failed gate's output, and number of such outputs
LFS = "The task's ref has no content of files in Git LFS; those that the agent changed are only on this machine"
LARGEST_SPARSE = 1_048_576  # bytes of the patterns of a sparse checkout
_NOT_STATE = re.compile(r".*\.(?:lock|tmp)")
_NOT_OUTPUT = (EVENTS, run_folder.ORIGIN_FILE, run_folder.ORDER_FILE)
_ODD = re.compile(r'[\x00-\x1f\x7f\\:*?"<>|\ud800-\udfff\u200b-\u200f\u202a-\u202e\u2060-\u2064\u206a-\u206f\ufeff]')
_GIT = re.compile(r"\.git[ .]*|git~\d+[ .]*", re.IGNORECASE)


class Turn(NamedTuple):
    """The commit of a turn that is not pushed yet."""

    commit: str
    record: Record
    leaks: tuple[Leak, ...] = ()  # files with secrets; if there are any, the turn must not be pushed
    trouble: str = ""  # a sentence about files that could not be included
    left_out: tuple[str, ...] = ()  # private files
    sent: tuple[tuple[str, int], ...] = ()  # for each session, how many bytes of events are published
    outputs: frozenset[tuple[str, int]] = frozenset()


def is_safe(path: str) -> bool:
    """True if a path below a state folder can be written on any machine, and has no special meaning for git."""
    parts = path.split("/")
    fits = len(files.to_bytes(path)) < 1024 and all(0 < len(files.to_bytes(part)) < 256 for part in parts)
    return fits and not _ODD.search(path) and not any(p in (".", "..") or _GIT.fullmatch(p) for p in parts)


def homes() -> tuple[str, ...]:
    """Return the folders with the public state files of all kinds of loops, relative to the workspace."""
    found = (home for row in registry.KINDS.values() for home in row.homes)
    return tuple(home for home in found if not _NOT_STATE.fullmatch(home))


def ticket(mirror: Mirror, record: Record, content: bytes) -> str:
    """Make the first commit of a task's ref: the ticket."""
    mirror.make()
    return _commit(mirror, record, (), {"ticket.json": content})


def claim(mirror: Mirror, tip: str, record: Record) -> str:
    """Make the commit of a claim. It keeps the ticket and the state files of the ref's tip."""
    return _commit(mirror, record, (tip,), _kept(mirror, tip, ("task.json", LINES, OUTPUTS)))


class Publisher:
    """Makes the turns of one leg. It is created after the clone was set up, and before the loop starts."""

    def __init__(
        self,
        mirror: Mirror,
        folder: str,
        prefix: str = "",
        *,
        environ: Mapping[str, str] | None = None,
        keys: Mapping[str, str] | None = None,
        logs: bool = False,
        entries: Sequence[Entry] = (),
    ) -> None:
        """`folder`: the clone; `prefix`: path of the workspace in it; `keys`: further secrets by name.

        `logs`: include transcripts in the turns; `entries`: the task's chain so far.
        """
        self._mirror, self._logs = mirror, logs
        known = os.environ if environ is None else environ
        top, inner = os.path.realpath(folder), prefix.strip("/")
        self._workspace, own = os.path.normpath(os.path.join(top, inner)), os.path.join(top, ".git")
        self._repo = Repo(self._workspace, top, f"{inner}/" if inner else "", own, own, clone_environment(known))
        self._index = os.path.join(self._repo.folder, "rooda", "fleet.index")
        files.make_folder(os.path.dirname(self._index))
        work_tree.copy_index(os.path.join(own, "index"), self._index)  # before the agent can stage anything
        self._index_was = files.fingerprint(self._index)
        self._private = PrivateFiles(self._repo, kept=False)
        self._private.find(self._index)  # remembers the private files that exist before the loop starts
        self._rules: tuple[int, ...] | None = None
        self._sent = {run: _size(self._events(run)) for run in self._sessions()}
        self._outputs: frozenset[tuple[str, int]] = frozenset(self._found_outputs()) if logs else frozenset()
        self._gates: dict[str, bytes] = {}
        self._kept: dict[str, bytes | objects.Entry] = {}  # file that every turn of the task has: the ticket
        last = chain.last_turn(entries)
        there = (last.record.work, *(last.record.refs or {}).values()) if last else ()
        self._scan = Scan(mirror, top, {**known, **(keys or {})}, (_head(self._repo)[0], *there))

    @property
    def objects(self) -> tuple[str, ...]:
        """Return the folder from which a push borrows objects."""
        return (os.path.join(self._repo.folder, "objects"),)

    def turn(self, tip: str, record: Record) -> Turn:
        """Make the commit of a turn, and complete its record with facts about the clone.

        Raises RoodaError if the clone can't be read, for example because the agent damaged it.
        """
        self._require_own_objects()
        files.remove(f"{self._index}.lock")
        if files.fingerprint(self._index) != self._index_was or not self._index_was:  # the agent replaced it
            self._scan.doubt()
        head, branch = _head(self._repo)
        rules = files.fingerprint(os.path.join(self._repo.folder, "info", "exclude"))
        seen = work_tree.read(self._repo, self._index, rules != self._rules, self._private)
        self._rules, self._index_was = rules, files.fingerprint(self._index)
        refs, trouble = self._refs(branch)
        lines, sent = self._new_lines(record.seq)
        tree_files, more = self._state(lines)
        outputs, taken = self._new_outputs() if self._logs else ({}, frozenset())
        record = record._replace(branch=branch, head=head, refs=refs or None, sparse=_sparse(self._repo))
        lfs = LFS if files.list_folder(os.path.join(self._repo.folder, "lfs", "objects")) else ""
        said = "; ".join(each for each in (" ".join(seen.trouble.split()), trouble, more, lfs) if each)
        if said:
            record = record._replace(more={**(record.more or {}), "trouble": said})
        parents = [head, *(commit for commit in dict.fromkeys(refs.values()) if commit != head)]
        parents = [commit for commit in parents if commit]
        work = objects.Objects(self._mirror.objects, seen.tree).commit(
            seen.tree, parents, IDENTITY, int(clock.now()), f"work after turn {record.seq}"
        )
        record = record._replace(work=work)
        self._kept = self._kept or _kept(self._mirror, tip, ("task.json", STATE, LINES, OUTPUTS))
        content = {**self._kept, **tree_files, **lines, **outputs}
        commit = _commit(self._mirror, record, (tip, work), content)
        leaks = self._scan.leaks(commit, tip, parents, seen.changed, content | {"task.json": chain.encode(record)})
        return Turn(commit, record, leaks, said, seen.left_out, tuple(sent.items()), taken)

    def done(self, turn: Turn) -> None:
        """Record that the remote has the turn, so that the next turn has only the events after it."""
        self._sent.update(dict(turn.sent))
        self._outputs |= turn.outputs
        parents = (turn.record.head, *(turn.record.refs or {}).values())
        self._scan.done(filter(None, parents), turn.record.work)

    def _require_own_objects(self) -> None:
        """Ensure that a push reads objects only from this clone and the mirror: restore the file `alternates`.

        Raises GitProblem if a folder of the objects was replaced.
        """
        own = self._repo.folder
        for path in (own, os.path.join(own, "objects"), os.path.join(own, "objects", "info")):
            if not files.is_folder(path):
                raise GitProblem(f"{path} is no longer a folder, so the clone can't be read.")
        path, lent = os.path.join(own, "objects", "info", "alternates"), files.to_bytes(f"{self._mirror.objects}\n")
        try:
            is_ours = files.read_ours(path) == lent
        except OSError:
            is_ours = False
        if not is_ours:
            files.replace_unsynced(path, lent)

    def _refs(self, branch: str) -> tuple[dict[str, str], str]:
        """Return the clone's refs that are part of a turn, and a message if some were left out."""
        own = self._repo.folder
        if os.path.lexists(os.path.join(own, "reftable")):  # only git can read it
            rows = self._repo.lines("for-each-ref", "--format=%(objectname) %(refname)", *CARRIED)
            found = {name: commit for commit, name in (row.split(" ", 1) for row in rows)}
        else:
            found = traces.refs(own, CARRIED)
        found.pop(f"{HEADS}{branch}", None)
        found |= {f"{MERGING}{commit}": commit for commit in traces.merging(self._repo.top)}
        if len(found) <= MOST_REFS:
            return found, ""
        kept = dict([*found.items()][-MOST_REFS:])
        return kept, f"{len(found) - MOST_REFS} branches and checkpoints of the clone are not in the task's ref"

    def _state(self, lines: Mapping[str, bytes]) -> tuple[dict[str, bytes], str]:
        """Return the state files, and a message about those that could not be included."""
        registry.refuse_links(self._workspace)
        found, size, left = dict[str, bytes](), 0, list[str]()
        for path in self._state_paths():
            try:
                data = files.read_ours(os.path.join(self._workspace, path))
            except OSError as problem:
                left.append(f"{path}: {problem.strerror or problem}")
                continue
            size += len(data)
            if size > LARGEST_STATE:
                raise RoodaError(f"The state files of the loop have more than {LARGEST_STATE:,} bytes: {path}")
            found[f"{STATE}/{path}"] = data
        self._keep_gates(lines)
        found |= {f"{STATE}/{run_folder.RUNS}/{name}": data for name, data in self._gates.items()}
        return found, "; ".join(left[: command.SHOWN])

    def _state_paths(self) -> Iterator[str]:
        for home in homes():
            for folder, inner, names in os.walk(os.path.join(self._workspace, home)):
                inner.sort()
                for name in sorted(names):
                    path = os.path.relpath(os.path.join(folder, name), self._workspace)
                    is_file = os.path.isfile(os.path.join(folder, name))
                    if is_file and is_safe(path) and not _NOT_STATE.fullmatch(name):
                        yield path

    def _keep_gates(self, lines: Mapping[str, bytes]) -> None:
        """Keep the ends of the outputs of failed gates, because the next prompt quotes them."""
        for path, data in lines.items():
            run = path.split("/")[1]
            for line in data.splitlines():
                record = _parsed(line) if b'"gate.ended"' in line else {}
                name = os.path.basename(str(record.get("output") or ""))
                if record.get("event") == "gate.ended" and name and is_safe(name):
                    self._gates.pop(f"{run}/{name}", None)
                    try:
                        place = os.path.join(self._workspace, run_folder.RUNS, run, name)
                        self._gates[f"{run}/{name}"] = self._masked(files.tail(place, LARGEST_GATE))
                    except OSError:
                        continue
        for old in [*self._gates][:-MOST_GATES]:
            del self._gates[old]

    def _masked(self, data: bytes) -> bytes:
        """Return the data with secrets replaced by stars."""
        hidden = [form for forms in self._scan.patterns.values() for form in forms]
        return files.to_bytes(secrets.hide(files.to_text(data), sorted(hidden, key=len, reverse=True)))

    def _sessions(self) -> list[str]:
        names = files.list_folder(os.path.join(self._workspace, run_folder.RUNS))
        return sorted(name for name in names if run_folder.is_id(name) and is_safe(name))

    def _events(self, run: str) -> str:
        return os.path.join(self._workspace, run_folder.RUNS, run, EVENTS)

    def _new_lines(self, seq: int) -> tuple[dict[str, bytes], dict[str, int]]:
        """Return each session's events since the last turn, and the position in each session's log after them."""
        found, sent = dict[str, bytes](), dict[str, int]()
        for run in self._sessions():
            path, begin = self._events(run), self._sent.get(run, 0)
            if _size(path) == begin:
                continue
            begin = begin if _size(path) > begin else 0  # the agent deleted the log, and the loop began a new one
            try:
                with files.reading(path) as log:
                    log.seek(begin)
                    data = log.read(LARGEST_LINES)
            except OSError:
                continue
            if whole := data[: data.rfind(b"\n") + 1]:
                found[run], sent[run] = whole, begin + len(whole)
        return {f"{LINES}/{run}/{seq}.jsonl": data for run, data in found.items()}, sent

    def _found_outputs(self) -> Iterator[tuple[str, int]]:
        for run in self._sessions():
            folder = os.path.join(self._workspace, run_folder.RUNS, run)
            for name in sorted(files.list_folder(folder)):
                path = os.path.join(folder, name)
                if name not in _NOT_OUTPUT and not name.startswith(".") and os.path.isfile(path) and is_safe(name):
                    yield f"{run}/{name}", _size(path)

    def _new_outputs(self) -> tuple[dict[str, bytes], frozenset[tuple[str, int]]]:
        """Return the ends of new transcripts and gate outputs, with secrets masked, and the name and size of each."""
        found, taken, room = dict[str, bytes](), list[tuple[str, int]](), LARGEST_OUTPUTS
        for each in self._found_outputs():
            if each in self._outputs or not each[1] or room <= 0:
                continue
            data = files.tail(os.path.join(self._workspace, run_folder.RUNS, each[0]), min(LARGEST_OUTPUT, room))
            room -= len(data)
            found[f"{OUTPUTS}/{each[0]}"] = self._masked(data)
            taken.append(each)
        return found, frozenset(taken)


def _kept(mirror: Mirror, tip: str, gone: Sequence[str]) -> dict[str, bytes | objects.Entry]:
    """Return the tree entries that the next chain commit keeps: those of the commit `tip` that are not in `gone`."""
    (found,) = mirror.read([f"{tip}^{{tree}}"])
    if found is None:
        raise GitProblem(f"The commit {tip} of the task's ref is missing in {mirror.folder}.")
    return {name: entry for name, entry in objects.entries(found.data, tip) if name not in gone}


def _commit(
    mirror: Mirror, record: Record, parents: Sequence[str], content: Mapping[str, bytes | objects.Entry]
) -> str:
    """Write a commit of the chain into the mirror; return its id."""
    made = objects.Objects(mirror.objects, parents[0] if parents else "")
    tree = made.tree({**content, "task.json": chain.encode(record)})
    return made.commit(tree, parents, IDENTITY, int(clock.now()), chain.subject(record, mirror.ref(record.task)))


def _head(repo: Repo) -> tuple[str, str]:
    """Return HEAD's commit ("" before the first commit) and HEAD's branch ("" if HEAD is detached)."""
    found = read_head(repo)
    if found.commit:
        return found
    symbolic = repo.run("symbolic-ref", "-q", "HEAD")
    return "", files.to_text(symbolic.out).strip().removeprefix(HEADS) if symbolic.code == 0 else ""


def _sparse(repo: Repo) -> str:
    """Return the patterns of a sparse checkout, after a line with their type; "" if the checkout is not sparse."""
    path = os.path.join(repo.folder, "info", "sparse-checkout")
    if not os.path.isfile(path) or _setting(repo, "core.sparseCheckout") != "true":
        return ""
    cone = "cone" if _setting(repo, "core.sparseCheckoutCone") == "true" else "patterns"
    return f"{cone}\n{files.to_text(files.head(path, LARGEST_SPARSE))}"


def _setting(repo: Repo, key: str) -> str:
    return files.to_text(repo.run("config", "--type=bool", "--get", key).out).strip()


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except (OSError, ValueError):
        return 0


def _parsed(line: bytes) -> Json:
    try:
        found = loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
