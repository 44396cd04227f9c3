"""A goal's public files: `state.json` by its schema, `run.json` with the rest, `iterations.jsonl` as their backup."""

import json
import os
from collections.abc import Callable
from typing import Any

from rooda.base import files
from rooda.base import json as base_json
from rooda.base.json import Json
from rooda.errors import StateDamaged
from rooda.loops.goal.breakers import not_completed
from rooda.loops.goal.files import Place, Seal, make_ready, tidy
from rooda.loops.goal.state import STATUSES, UNFINISHED, GoalState, public
from rooda.loops.goal.world import Fingerprint
from rooda.loops.kernel import Saved, Scope
from rooda.run.event_records import Emit, Problem, StateSaved, StateUnsaved
from rooda.run.spending import Spent, since

RUN, JOURNAL = os.path.join(".loop", "run.json"), os.path.join(".loop", "iterations.jsonl")
_SPENT = {"dollars": "cost", "calls": "calls", "unknown": "unknown", "estimated": "estimated"}  # by key of run.json


class GoalStore:
    """Remembers iterations, not steps: one that did not end is repeated."""

    def __init__(self, place: Place, emit: Emit, clean: Callable[[str], str] = str) -> None:
        self._place, self._emit, self._clean = place, emit, clean
        self._written: GoalState | None = None
        self._bytes: tuple[bytes, ...] = ()  # what the state file holds, if nobody has touched it
        self._unsure = False  # a write of it failed: it holds one of these, or is not there
        self._journaled = ("", -1)  # the journal's last line: of which goal, after which iteration
        self.last: GoalState | None = None  # also what could not be written
        self._seal = Seal(place.seal)
        self._there: dict[str, bytes] = {}  # what was written last into run.json, and into the journal for it

    def load(self, scope: Scope) -> Saved:
        self._tidy()
        record = last_record(self._place)
        self._journaled = (str(record["run"].get("run", "")), record["iteration"]) if record else ("", -1)
        self._there = written(self._place)
        try:
            return Saved(load(self._place))
        except StateDamaged:  # whoever opened the goal has said so
            return Saved()

    def _tidy(self) -> None:
        try:
            tidy(self._place)
        except OSError:
            pass  # it is in nobody's way

    def carry(self, scope: Scope, state: Any) -> Any:
        """Backup first, the state file last: whoever sees an iteration there finds it everywhere."""
        self.last = shown = self._shown(state)
        if shown == self._written:
            return state
        try:
            self._save(shown)
        except OSError as problem:
            if self._journaled[0] != state.brief.run:  # nothing of this goal is on the disk: it does not begin
                raise
            why = problem.strerror or str(problem)
            self._emit(StateUnsaved(path=self._place.state, why=why))
            return not_completed(state, why)
        self._written = shown
        self._emit(StateSaved(phase="persist"))
        return state

    def _shown(self, state: GoalState) -> GoalState:
        """Without keys in what a person has told. Commands must run again, so they stay as they are."""
        brief, clean = state.brief, self._clean
        return state._replace(brief=brief._replace(spec=clean(brief.spec), clarified=clean(brief.clarified)))

    def _save(self, state: GoalState) -> None:
        make_ready(self._place)
        self._set_foreign_aside()
        data = encode(private(state), 2)
        sealed = self._seal.there or not self._there  # what nobody has proved yet is not proved by what follows it
        if sealed:
            self._seal.vouch(data, self._there.values())
        another = self._journaled[0] != state.brief.run  # an earlier goal stays until the new run.json is in its place
        if not another and state.iteration > self._journaled[1]:
            self._journal(state, data)
        files.replace(self._place.run, data)
        self._there[self._place.run] = data
        if another:
            self._journal(state, data)
        if not sealed:
            self._seal.vouch(data, self._there.values())
        data = encode(public(state), 2)
        self._bytes, self._unsure = (*self._bytes, data), True
        files.replace(self._place.state, data)
        self._bytes, self._unsure = (data,), False

    def _set_foreign_aside(self) -> None:
        """Nobody else writes the state file; what somebody wrote there is kept, and does not count."""
        if not self._bytes:
            return
        try:
            found = files.read_ours(self._place.state)
        except OSError:
            if not self._unsure:
                self._emit(Problem(text="state.json was taken away by somebody else; written again"))
            return
        if found not in self._bytes:
            files.replace(self._place.foreign, found)
            kept = os.path.relpath(self._place.foreign, self._place.workspace)
            self._emit(Problem(text=f"state.json was changed by somebody else; overwritten, kept as {kept}"))

    def _journal(self, state: GoalState, data: bytes) -> None:
        """One line per iteration; a goal's first line takes the place of an earlier goal's journal."""
        if self._journaled[0] == state.brief.run:
            self._append(state)
        else:
            files.replace(self._place.journal, encode(record(None, state)))
        self._journaled = (state.brief.run, state.iteration)
        self._there[self._place.journal] = data

    def _append(self, state: GoalState) -> None:
        """If the file is gone, it begins again with what was written last."""
        records = [record(self._written, state)]
        if self._written and not os.path.exists(self._place.journal):
            records.insert(0, record(None, self._written))
        descriptor = files.open_append(self._place.journal)
        try:
            files.append(descriptor, b"".join(encode(each) for each in records))
            files.sync(descriptor)
        finally:
            os.close(descriptor)


def record(before: GoalState | None, state: GoalState) -> Json:
    """The whole state, and what this iteration was."""
    names = [each.name for each in state.brief.criteria]
    marks = dict(zip(names, state.marks, strict=True))
    began = before or state
    good = state.done > began.done or state.exit_signal
    return {
        **public(state),
        "step": began.step if state.iteration else "",
        "outcome": "success" if good else "failure" if state.iteration else "start",
        "cost": _rounded(since(before.spent if before else Spent(), state.spent).known),
        "elapsed": round(state.elapsed - (before.elapsed if before else 0.0), 3),
        "claimed": state.claim.exit,
        "evidence": {name: mark.evidence for name, mark in marks.items() if mark.evidence},
        "at": state.updated_at or state.brief.started_at,
        "run": private(state),
    }


def _rounded(cost: float | None) -> float | None:
    return None if cost is None else round(cost, 6)


def private(state: GoalState) -> Json:
    """run.json: the brief, why it stands still, and under `progress` what a continue needs."""
    progress = base_json.encode(state._replace(brief=()))  # type: ignore[arg-type]
    del progress["brief"]
    progress["spent"] = {key: getattr(state.spent, field) for key, field in _SPENT.items()}
    return {
        **base_json.encode(state.brief),
        "status": state.status,
        "pause": state.pause,
        "reason": state.reason,
        "cost": state.spent.known,
        "budget": state.budget,
        "max_iterations": state.limit,
        "keep": state.keep,
        "progress": progress,
    }


def decode(data: Any) -> GoalState:
    """The state in run.json's words; Mismatch if it isn't one."""
    if not isinstance(data, dict) or not isinstance(data.get("progress"), dict):
        raise base_json.Mismatch("key 'progress' is missing")
    progress = {**data["progress"], "brief": data}
    if isinstance(spent := progress.get("spent"), dict):
        progress["spent"] = {field: spent[key] for key, field in _SPENT.items() if key in spent}
    state = base_json.decode(GoalState, progress)
    if state.status not in STATUSES:
        raise base_json.Mismatch(f"status {state.status!r} is none of {', '.join(STATUSES)}")
    if len(state.marks) != len(state.brief.criteria) or not 0 <= state.done <= len(state.steps):
        raise base_json.Mismatch("its parts do not fit together")
    return state


def load(place: Place) -> GoalState | None:
    """The goal as it was left: run.json, or the journal where that is ahead of it or run.json is not ours."""
    seal = Seal(place.seal)
    backup = _backup(place, seal)
    try:
        data = files.read_ours(place.run)
        state = decode(base_json.parse_object(data))
        if not seal.proves(data):
            raise base_json.Mismatch("it was changed by somebody else")
    except (OSError, base_json.Mismatch) as problem:
        if backup is None and not os.path.lexists(place.run) and not os.path.lexists(place.state):
            return None
        if backup is None:
            gone = isinstance(problem, FileNotFoundError)
            why = "it is missing" if gone else getattr(problem, "strerror", None) or str(problem)
            raise StateDamaged(place.run, f"{why}, and {JOURNAL} has no whole line of it") from None
        return backup
    ahead = backup if backup and backup.brief.run == state.brief.run else state  # else of the goal before this one
    found = ahead if ahead.iteration > state.iteration else state
    return found if seal.there else unproved(found)


def unproved(state: GoalState) -> GoalState:
    """Without its seal nobody knows who wrote run.json last: a person must accept the end."""
    unknown = Fingerprint(RUN, "the seal is missing")
    return state if unknown in state.tests else state._replace(tests=(*state.tests, unknown))


def unfinished(place: Place) -> GoalState | None:
    """The goal, if it can go on."""
    state = load(place)
    return state if state and state.status in UNFINISHED else None


def ended(place: Place) -> GoalState | None:
    """The goal, if it can't go on."""
    state = load(place)
    return state if state and state.status not in UNFINISHED else None


def finish_files(place: Place, state: GoalState) -> bool:
    """Did both files have the end? If not, a kill came between, and they are written now."""
    seal, same = Seal(place.seal), True
    tidy(place)
    for path, data in ((place.run, encode(private(state), 2)), (place.state, encode(public(state), 2))):
        if seal.there and not _holds(path, data):
            same = False
            if path == place.run:
                seal.vouch(data, written(place).values())
            files.replace(path, data)
    return same


def written(place: Place) -> dict[str, bytes]:
    """What vouching is about: run.json, and how the journal's last line would stand in it."""
    record = last_record(place)
    found = {place.journal: encode(record["run"], 2)} if record else {}
    try:
        return found | {place.run: files.read_ours(place.run)}
    except OSError:
        return found


def _holds(path: str, data: bytes) -> bool:
    try:
        return files.read_ours(path) == data
    except OSError:
        return False


def _backup(place: Place, seal: Seal) -> GoalState | None:
    found = last_record(place)
    try:
        return decode(found["run"]) if found and seal.proves(encode(found["run"], 2)) else None
    except base_json.Mismatch:
        return None


def last_record(place: Place) -> Json | None:
    """The last whole line of the journal."""
    try:
        lines = files.read_ours(place.journal).splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        try:
            found = base_json.parse_object(line)
        except base_json.Mismatch:
            continue
        if isinstance(found.get("iteration"), int) and isinstance(found.get("run"), dict):
            return found
    return None


def encode(value: Json, indent: int | None = None) -> bytes:
    """JSON with its line end; characters stay as they are, bytes that are none are escaped."""
    try:
        return json.dumps(value, indent=indent, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent).encode() + b"\n"
