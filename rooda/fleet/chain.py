"""Encodes and decodes the records in a task's chain (the commits of its ref), and counts lost claims. Pure.

The chain is the first-parent history of `refs/rooda/task/ID`: the ticket, then claims and turns. A claim says which
worker has the task from then on. A turn is an iteration of the task's loop. The tree of each commit has `task.json`,
the encoded Record. A turn's second parent is the work commit, whose tree is the work tree and whose first parent is
HEAD.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from rooda.base import json as base_json
from rooda.base.json import Json
from rooda.errors import RoodaError

VERSION = 1
TICKET, CLAIM, TURN = "ticket", "claim", "turn"
KINDS = (TICKET, CLAIM, TURN)
MOST_LOST = 3  # claims in a row without a turn; then the task is parked
LONGEST_NAME = 100  # characters of a worker's name in a subject
HEADS = "refs/heads/"


class ChainProblem(RoodaError):
    """Raised for a record that is damaged or that a newer rooda wrote."""


class Record(NamedTuple):
    """The content of `task.json`."""

    kind: str
    task: int
    seq: int = 0  # turns of the task so far, over all its loops
    fence: int = 0  # claims of the task so far
    worker: str = ""
    rooda: str = ""  # version
    at: str = ""
    loop: str = ""  # kind of loop
    name: str = ""
    iteration: int = 0
    outcome: str = ""
    failures: int = 0
    over: bool = False
    ending: str = ""
    branch: str = ""  # checked out in the clone; "" if HEAD is detached
    head: str = ""  # commit of HEAD; "" before the first commit
    work: str = ""  # commit with the work tree
    cost: float | None = None
    tokens: int = 0
    unknown: int = 0  # calls of unknown cost
    gates: tuple[Any, ...] = ()
    seconds: float = 0.0
    message: str = ""
    refs: Any = None  # local branches and checkpoints of the clone: name to commit
    sparse: str = ""  # "cone" or "patterns", and the patterns of a sparse checkout
    anew: bool = False  # a claim after the user continued a task: earlier lost claims don't count
    v: int = VERSION
    more: Any = None  # keys that this version does not know


_OWN = tuple(name for name in Record._fields if name not in ("v", "more"))


def encode(record: Record) -> bytes:
    """Encode a record as JSON. Leave out `refs`, `sparse` and `anew` if they are empty."""
    import json

    values: Json = {"v": record.v, **{name: getattr(record, name) for name in _OWN}, **(record.more or {})}
    for name in ("refs", "sparse", "anew"):
        if not values[name]:
            del values[name]
    return json.dumps(base_json.encode(values), indent=2, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def decode(data: bytes) -> Record:
    """Decode `task.json`. Raises ChainProblem if it is damaged, or if a newer rooda wrote it."""
    try:
        found = base_json.parse_object(data)
        version = found.get("v")
        if type(version) is int and version > VERSION:
            why = f"Task {found.get('task')} was written by a newer rooda (format {version}; this one knows {VERSION})."
            raise ChainProblem(why, "Update rooda on this machine.")
        known = {key: value for key, value in found.items() if key in _OWN}
        record = base_json.decode(Record, {**known, "more": {k: v for k, v in found.items() if k not in (*_OWN, "v")}})
    except base_json.Mismatch as problem:
        raise ChainProblem(f"task.json of a task's ref is damaged: {problem}") from None
    if version != VERSION or record.kind not in KINDS or min(record.task, record.seq, record.fence) < 0:
        raise ChainProblem(f"task.json of a task's ref is damaged: v {version!r}, kind {record.kind!r}")
    if not isinstance(record.refs or {}, dict):
        raise ChainProblem("task.json of a task's ref is damaged: refs must be an object")
    return record._replace(refs=record.refs or None, more=record.more or None)


def subject(record: Record, ref: str) -> str:
    """Return the subject of the record's commit. If `ref` is a branch, `[skip ci]` keeps a forge from running CI."""
    if record.kind == TICKET:
        text = f"ticket of {record.task}"
    else:
        text = f"{record.kind} {record.fence if record.kind == CLAIM else record.seq} of {record.task}"
    worker = "".join(sign if sign.isprintable() else "?" for sign in record.worker)[:LONGEST_NAME]
    return f"{text} by {worker or 'unknown'}{' [skip ci]' if ref.startswith(HEADS) else ''}"


class Entry(NamedTuple):
    """One commit of the chain."""

    commit: str
    record: Record


def next_fence(entries: Sequence[Entry]) -> int:
    return max((entry.record.fence for entry in entries), default=0) + 1


def next_seq(entries: Sequence[Entry]) -> int:
    return max((entry.record.seq for entry in entries), default=0) + 1


def last_turn(entries: Sequence[Entry]) -> Entry | None:
    return next((entry for entry in reversed(entries) if entry.record.kind == TURN), None)


def lost_claims(entries: Sequence[Entry]) -> int:
    """Return how many workers in a row lost the task: the claims since its last turn, or since a claim with `anew`."""
    lost = 0
    for entry in reversed(entries):
        if entry.record.kind == TURN:
            break
        lost += entry.record.kind == CLAIM
        if entry.record.anew:
            break
    return lost


def is_poisoned(entries: Sequence[Entry]) -> bool:
    """True if the task must be parked because too many workers in a row lost it before they completed a turn."""
    return lost_claims(entries) >= MOST_LOST


def claim_after(entries: Sequence[Entry], worker: str, version: str, at: str, anew: bool = False) -> Record:
    """Return the record of the next claim, with the task's progress up to its last turn."""
    last = last_turn(entries)
    before = last.record if last else entries[-1].record
    empty = Record(CLAIM, before.task, next_seq(entries) - 1, next_fence(entries), worker, version, at, anew=anew)
    names = ("loop", "name", "iteration", "failures", "over", "ending", "branch", "head", "work")
    return empty._replace(**{name: getattr(before, name) for name in names})
