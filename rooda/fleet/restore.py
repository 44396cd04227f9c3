"""Makes a clone on this worker from the tip of a task's ref: work tree, branches, state files and events.

Another machine wrote the ref. So rooda writes nothing outside of the clone or through a link, and refuses a ref that
contains a name or an object that rooda does not write. The ref does not contain the file `start`; rooda writes it here.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rooda.base import dirs, files, signing
from rooda.base.json import Json
from rooda.errors import RoodaError, UsageProblem
from rooda.fleet import chain, publish
from rooda.fleet.chain import HEADS, Entry, Record
from rooda.fleet.mirror import Mirror
from rooda.git import clones, command, objects
from rooda.git.repository import Repo
from rooda.loops import registry
from rooda.run import folder as run_folder
from rooda.run import history
from rooda.run.events import NAME as EVENTS

NEW = ".new"
LARGEST_EVENTS = 1_073_741_824  # bytes of all events of a task
MOST_FILES = 20_000  # state files, or pieces of events
GROUP = 67_108_864  # bytes that are read from git at a time
_COMMIT = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
_PIECE = re.compile(r"[0-9]{1,9}\.jsonl")
_FILE, _FOLDER = objects.FILE, objects.FOLDER
Start = Callable[[str, str, str], Json]  # from session, kind and name of a loop to its words, kept, task and limits


class Restored(NamedTuple):
    """A clone, its workspace, and the turn from which it was restored; None if the task had no turn yet."""

    root: str
    workspace: str
    turn: Entry | None
    sessions: tuple[str, ...] = ()


class _Row(NamedTuple):
    mode: str
    object: str
    size: int
    path: str


def restore(
    mirror: Mirror,
    entries: Sequence[Entry],
    folder: str,
    *,
    base: str = "",
    branch: str = "",
    prefix: str = "",
    start: Start | None = None,
    sign: bool = True,
) -> Restored:
    """Make the clone `folder`, which must not exist, from the last turn; without a turn, create `branch` at `base`.

    `prefix`: path of the workspace in the repository. If `sign` is false, a resume asks the user first.
    Raises RoodaError for a ref that rooda did not write, or if git fails.
    """
    last = chain.last_turn(entries)
    unfinished = f"{folder}{NEW}"
    files.remove_tree(unfinished)
    try:
        clones.create(mirror.repo, unfinished, branch or "main")
        sessions = _fill(mirror, entries, unfinished, base, branch, os.path.normpath(os.path.join(unfinished, prefix)))
    except OSError as problem:
        files.remove_tree(unfinished)
        raise _refuse(f"{problem.filename or unfinished}: {problem.strerror or problem}") from None
    except RoodaError:
        files.remove_tree(unfinished)
        raise
    files.rename(unfinished, folder)
    workspace = os.path.normpath(os.path.join(folder, prefix))
    write_starts(workspace, sessions, start, sign)
    if sign and last:
        sign_all(workspace, sessions)
    return Restored(folder, workspace, last, sessions)


def _fill(
    mirror: Mirror, entries: Sequence[Entry], root: str, base: str, branch: str, workspace: str
) -> tuple[str, ...]:
    """Fill an empty clone from the last turn, or without a turn, from `base`; return the task's sessions."""
    own = os.path.join(root, ".git")
    repo = Repo(root, root, "", own, own, mirror.repo.env)
    if last := chain.last_turn(entries):
        _restore_refs(repo, last.record)
        _restore_work_tree(repo, last.record)
    else:
        repo.run_checked("update-ref", f"{HEADS}{branch}", base)
        repo.run_checked("reset", "-q", "--hard")
    _make_home(root, workspace)
    if last is None:
        return ()
    _restore_state(mirror, last.commit, workspace)
    return _restore_events(mirror, entries, workspace)


def unpack_events(mirror: Mirror, entries: Sequence[Entry], workspace: str) -> None:
    """Write what commands that read runs need: a task's events, and its transcripts if the ref has them."""
    unfinished = f"{workspace}{NEW}"
    files.remove_tree(unfinished)
    dirs.make_home(os.path.join(unfinished, ".rooda"))
    for run in _restore_events(mirror, entries, unfinished):
        path = os.path.join(unfinished, run_folder.RUNS, run, EVENTS)
        if history.has_end(path):
            history.sign(path)
    for entry in entries:
        if entry.record.kind == chain.TURN:
            _restore_outputs(mirror, entry.commit, unfinished)
    files.rename(unfinished, workspace)


def _restore_outputs(mirror: Mirror, commit: str, workspace: str) -> None:
    """Write the transcripts of a turn into the folders of their sessions."""
    start = f"{publish.OUTPUTS}/"
    rows = [row._replace(path=row.path.removeprefix(start)) for row in _rows_below(mirror, commit, start)]
    wanted = [row for row in rows if row.mode == _FILE and _is_state(os.path.join(run_folder.RUNS, row.path))]
    for row, data in _contents(mirror, wanted):
        _write(workspace, os.path.join(run_folder.RUNS, row.path), data)


def write_starts(workspace: str, sessions: Sequence[str], start: Start | None, sign: bool) -> None:
    """Write each session's file `start` from the ticket and this machine's settings; if `sign`, sign it."""
    for run in sessions:
        session = history.SessionLog(os.path.join(workspace, run_folder.RUNS, run, EVENTS)).refresh()
        kind = str(session.opening.get("loop", ""))
        if kind not in registry.KINDS:
            continue
        said = start(run, kind, run_folder.loop_of(run)) if start else {}
        facts: Json = {"words": [], "kept": [], "folder": workspace, "inside": "", "task": "", **said, "loop": kind}
        facts.setdefault("limits", session.opening.get("limits"))
        data = json.dumps({**facts, **run_folder.place_of(workspace)}).encode()
        data = signing.signed(f"{run_folder.ORIGIN_FILE} {run}", data) if sign else data
        files.replace(os.path.join(session.folder, run_folder.ORIGIN_FILE), data + b"\n", 0o600)


def sign_all(workspace: str, sessions: Sequence[str]) -> None:
    """Sign the logs of ended sessions, and the saved commands and prompts that a resume would use."""
    for run in sessions:
        log = os.path.join(workspace, run_folder.RUNS, run, EVENTS)
        if history.has_end(log):
            history.sign(log)
    for loop in registry.resumable(workspace):
        if doubt := registry.kind(loop.kind).doubt(workspace, loop.name):
            doubt.sign()


def _refuse(why: str) -> RoodaError:
    return UsageProblem(f"The task's ref can't be restored: {why}", "rooda did not write the ref; see: git show")


# The work tree


def _restore_refs(repo: Repo, record: Record) -> None:
    """Set HEAD, branches, checkpoints and the stash as they are in the record."""
    rows = []
    for name, commit in (record.refs or {}).items():
        if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
            raise _refuse(f"{name} is not a commit")
        if name.startswith((HEADS, "refs/rooda/checkpoint/")) or name == "refs/stash":
            rows.append(f"update {name} {commit}\n")
        elif not name.startswith(publish.MERGING):
            raise _refuse(f"it has the reference {name!r}")
    for commit in filter(None, (record.head, record.work)):
        if not _COMMIT.fullmatch(commit):
            raise _refuse(f"{commit!r} is not a commit")
    if record.branch:
        _checked(repo, "symbolic-ref", "HEAD", f"{HEADS}{record.branch}")
        rows += [f"update {HEADS}{record.branch} {record.head}\n"] if record.head else []
    elif record.head:
        _checked(repo, "update-ref", "--no-deref", "HEAD", record.head)
    if any("\n" in row[:-1] or "\0" in row for row in rows):
        raise _refuse("the name of a branch has a line break")
    _checked(repo, "update-ref", "--create-reflog", "--stdin", stdin=files.to_bytes("".join(rows)))


def _restore_work_tree(repo: Repo, record: Record) -> None:
    """Check out HEAD, then change the files to those of the work commit. The index keeps the content of HEAD."""
    if not record.work:
        raise _refuse("the turn has no work tree")
    _restore_sparse(repo, record.sparse)
    index = os.path.join(repo.folder, "rooda", "restore.index")
    files.make_folder(os.path.dirname(index))
    if record.head:
        _checked(repo, "reset", "-q", "--hard", record.head)
        files.copy(os.path.join(repo.folder, "index"), index)
        trees = [record.head, record.work]
    else:
        trees = [record.work]
    merge = ("-c", "core.sparseCheckout=false", "read-tree", "-m", "-u", *trees)
    done = repo.run(*merge, index=index)
    if done.code:
        raise _refuse(command.error_text(done))
    files.remove(index)
    if merging := [commit for name, commit in (record.refs or {}).items() if name.startswith(publish.MERGING)]:
        files.write(os.path.join(repo.folder, "MERGE_HEAD"), files.to_bytes("".join(f"{c}\n" for c in merging)))


def _restore_sparse(repo: Repo, said: str) -> None:
    way, _, patterns = said.partition("\n")
    if not said:
        return
    if way not in ("cone", "patterns") or "\0" in patterns:
        raise _refuse("its sparse checkout has an unknown form")
    files.make_folder(os.path.join(repo.folder, "info"))
    files.write(os.path.join(repo.folder, "info", "sparse-checkout"), files.to_bytes(patterns))
    _checked(repo, "config", "core.sparseCheckout", "true")
    _checked(repo, "config", "core.sparseCheckoutCone", "true" if way == "cone" else "false")


def _checked(repo: Repo, *args: str, stdin: bytes = b"") -> None:
    done = repo.run(*args, stdin=stdin)
    if done.code:
        raise _refuse(command.error_text(done))


def _make_home(root: str, workspace: str) -> None:
    """Create `.rooda`, and make git ignore it even if the agent changes .gitignore files."""
    if workspace != root:
        files.make_real_folder(root, os.path.relpath(workspace, root))
    if os.path.lexists(os.path.join(workspace, ".rooda")):
        raise _refuse("its work tree has files in .rooda")
    dirs.make_home(os.path.join(workspace, ".rooda"))
    exclude = os.path.join(root, ".git", "info", "exclude")
    files.make_folder(os.path.dirname(exclude))
    files.write(exclude, b".rooda/\n")


# State files and events


def _restore_state(mirror: Mirror, commit: str, workspace: str) -> None:
    start = f"{publish.STATE}/"
    rows = [row._replace(path=row.path.removeprefix(start)) for row in _rows_below(mirror, commit, start)]
    if len(rows) > MOST_FILES or sum(row.size for row in rows) > publish.LARGEST_STATE:
        raise _refuse(f"it has {len(rows):,} state files with {sum(row.size for row in rows):,} bytes")
    for row in rows:
        if row.mode != _FILE or not _is_state(row.path):
            raise _refuse(f"it has the state file {row.path!r} (mode {row.mode})")
    for row, data in _contents(mirror, rows):
        _write(workspace, row.path, data)


def _rows_below(mirror: Mirror, commit: str, folder: str) -> list[_Row]:
    done = mirror.run("ls-tree", "-r", "-t", "-l", "-z", "--full-tree", commit, folder)
    if done.code:
        raise _refuse(command.error_text(done))
    rows = []
    for line in files.to_text(done.out).split("\0")[:-1]:
        facts, _, path = line.partition("\t")
        mode, kind, name, size = facts.split()
        if kind != "tree":
            rows.append(_Row(mode, name, int(size) if size.isdecimal() else 0, path))
    return rows


def _is_state(path: str) -> bool:
    """True for a public state file of a loop, and for a transcript or a gate's output in a session's folder."""
    if not publish.is_safe(path):
        return False
    folder, name = os.path.split(path)
    runs, run = os.path.split(folder)
    if runs == run_folder.RUNS:
        return run_folder.is_id(run) and name not in (
            EVENTS,
            run_folder.ORIGIN_FILE,
            run_folder.ORDER_FILE,
        )
    return any(path.startswith(f"{home}/") for home in publish.homes())


def _write(workspace: str, path: str, data: bytes) -> None:
    """Write a file; raise UsageProblem if a folder in its path is a link."""
    folder = os.path.dirname(path)
    files.make_real_folder(workspace, folder, private=folder.split(os.sep)[0] == ".rooda")
    place = os.path.join(workspace, path)
    if os.path.isdir(place) and not os.path.islink(place):
        raise _refuse(f"{path} is a folder in its work tree")
    files.replace_unsynced(place, data, 0o600 if folder.startswith(".rooda") else 0o666)


def _restore_events(mirror: Mirror, entries: Sequence[Entry], workspace: str) -> tuple[str, ...]:
    """Join the pieces of each session's events; return the sessions, oldest first."""
    turns = [entry.commit for entry in entries if entry.record.kind == chain.TURN]
    found = dict[str, list[_Row]]()
    folders = [row for rows in _trees(mirror, [f"{commit}:{publish.LINES}" for commit in turns]) for row in rows]
    for row in folders:
        if row.mode != _FOLDER or not run_folder.is_id(row.path) or not publish.is_safe(row.path):
            raise _refuse(f"it has events of the session {row.path!r}")
    for row, parts in zip(folders, _trees(mirror, [row.object for row in folders]), strict=True):
        for part in parts:
            if part.mode != _FILE or not _PIECE.fullmatch(part.path):
                raise _refuse(f"it has the piece of events {part.path!r}")
        found.setdefault(row.path, []).extend(parts)
    if sum(map(len, found.values())) > MOST_FILES:
        raise _refuse("it has too many pieces of events")
    left = LARGEST_EVENTS
    for run, parts in sorted(found.items()):
        left = _restore_log(mirror, workspace, run, parts, left)
    return tuple(sorted(found))


def _restore_log(mirror: Mirror, workspace: str, run: str, parts: Sequence[_Row], room: int) -> int:
    dirs.make_home(os.path.join(workspace, ".rooda"), "runs", run)
    log = files.open_append(os.path.join(workspace, run_folder.RUNS, run, EVENTS), 0o600)
    try:
        for _, data in _contents(mirror, _sized(mirror, parts)):
            room -= len(data)
            if room < 0:
                raise _refuse(f"it has more than {LARGEST_EVENTS:,} bytes of events")
            files.append(log, data if data.endswith(b"\n") or not data else data + b"\n")
    finally:
        os.close(log)
    return room


def _sized(mirror: Mirror, rows: Sequence[_Row]) -> list[_Row]:
    """Return the rows, each with the size of its object."""
    asked = files.to_bytes("".join(f"{row.object}\n" for row in rows))
    done = mirror.run("cat-file", "--batch-check=%(objectsize)", stdin=asked)
    sizes = files.to_text(done.out).splitlines()
    if len(sizes) != len(rows) or not all(size.isdecimal() for size in sizes):
        raise _refuse("objects are missing")
    return [row._replace(size=int(size)) for row, size in zip(rows, sizes, strict=True)]


def _contents(mirror: Mirror, rows: Sequence[_Row]) -> Iterator[tuple[_Row, bytes]]:
    """Yield each file with its content; the contents are read in groups that fit into memory."""
    group, size = list[_Row](), 0
    for row in [*rows, None]:
        if group and (row is None or size + row.size > GROUP):
            for each, found in zip(group, mirror.read([one.object for one in group]), strict=True):
                if found is None or found.type != "blob":
                    raise _refuse(f"{each.path!r} is missing")
                yield each, found.data
            group, size = [], 0
        if row is not None:
            group.append(row)
            size += row.size


def _trees(mirror: Mirror, names: Sequence[str]) -> list[list[_Row]]:
    """Return the entries of each of these tree objects; [] for a tree that is missing."""
    found = (each if each and each.type == "tree" else None for each in mirror.read(names))
    rows = ([*objects.entries(each.data, each.id)] if each else [] for each in found)
    return [[_Row(entry.mode, entry.id, 0, name) for name, entry in each] for each in rows]
