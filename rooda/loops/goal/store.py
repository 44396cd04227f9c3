"""Saves and loads a goal: `state.json` for tools, `run.json` with the full state, `iterations.jsonl` as its backup."""

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from rooda.base import files
from rooda.base import json as base_json
from rooda.base.json import Json, loads
from rooda.errors import StateDamaged
from rooda.loops.goal.files import FOREIGN, Place, make_ready, move_folders, tidy
from rooda.loops.goal.rules import not_completed
from rooda.loops.goal.state import STATUSES, UNFINISHED, GoalState, is_public_of, public
from rooda.loops.goal.world import Fingerprint
from rooda.loops.kernel import Saved, Scope
from rooda.run.event_records import Emit, Problem, StateSaved, StateUnsaved
from rooda.run.seal import Doubt, Seal
from rooda.run.spending import Spent, difference

RUN, JOURNAL = os.path.join(".loop", "run.json"), os.path.join(".loop", "iterations.jsonl")
_SPENT = {"dollars": "cost", "calls": "calls", "unknown": "unknown", "estimated": "estimated"}  # keys of run.json


class GoalStore:
    """Saves the state of a goal and loads it."""

    def __init__(
        self,
        place: Place,
        emit: Emit,
        clean: Callable[[str], str] = str,
        new_limits: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        """`new_limits`: returns the limits that the user has changed while the goal runs."""
        self._place, self._emit, self._clean, self._new_limits = place, emit, clean, new_limits
        self._written: GoalState | None = None
        self._limit_set = 0
        self._bytes: tuple[bytes, ...] = ()  # contents that the state file can have if only rooda writes it
        self._unsure = False  # a write failed: the file has one of the contents in `_bytes`, or is missing
        self._journaled = ("", -1)  # run and iteration of the journal's last line
        self.last: GoalState | None = None  # the latest state, even if it could not be saved
        self._known: GoalState | None = None  # the goal that is resumed
        self._seal = place.seal
        self._on_disk: dict[str, bytes] = {}  # path to sealed content: run.json, and the journal's copy of it

    def load(self, scope: Scope) -> Saved:
        self._tidy()
        record = last_record(self._place)
        self._journaled = (str(record["run"].get("run", "")), record["iteration"]) if record else ("", -1)
        self._on_disk = sealed_files(self._place)
        try:
            self._known = load(self._place)
        except StateDamaged:  # already reported when the goal was opened
            return Saved()
        return Saved(self._known)

    def _limited(self, state: GoalState) -> GoalState:
        """Return the state with the limits that the user has set; apply each new iteration limit only once."""
        found = self._new_limits()
        limit, budget = int(found.get("iterations", 0)), max(found.get("cost", 0.0), state.budget)
        if limit and limit != self._limit_set:
            self._limit_set = limit
            state = state._replace(limit=limit)
        return state if budget == state.budget else state._replace(budget=budget)

    def _tidy(self) -> None:
        try:
            tidy(self._place)
        except OSError:
            pass  # leftover files do no harm

    def carry(self, scope: Scope, state: Any) -> Any:
        """Save the state; state.json is written last, so that the other files are never behind it."""
        state = self._limited(state)
        self.last = shown = self._shown(state)
        if shown == self._written:
            return state
        try:
            self._save(shown)
        except OSError as problem:
            if self._journaled[0] != state.brief.run:  # a goal must not start if its first state can't be saved
                raise
            why = problem.strerror or str(problem)
            self._emit(StateUnsaved(path=self._place.state, why=why))
            return not_completed(state, why)
        self._written = shown
        self._emit(StateSaved(phase="persist"))
        return state

    def _shown(self, state: GoalState) -> GoalState:
        """Return the state with secrets redacted in the user's text; commands keep secrets, because they run again."""
        brief, clean = state.brief, self._clean
        brief = brief._replace(spec=clean(brief.spec), clarified=clean(brief.clarified))
        return state._replace(brief=brief, instructions=tuple(map(clean, state.instructions)))

    def _save(self, state: GoalState) -> None:
        make_ready(self._place)
        self._set_foreign_aside()
        move_folders(self._place)
        data = encode(private(state), 2)
        sealed = self._seal.exists or not self._on_disk  # don't seal an old unsealed file, only its replacement
        if sealed:
            self._seal.cover(data, map(files.sha256, self._on_disk.values()))
        another = self._journaled[0] != state.brief.run  # keep an earlier goal until the new run.json replaces it
        if not another and state.iteration > self._journaled[1]:
            self._journal(state, data)
        files.replace(self._place.run, data)
        self._on_disk[self._place.run] = data
        if another:
            self._journal(state, data)
        if not sealed:
            self._seal.cover(data, map(files.sha256, self._on_disk.values()))
        data = encode(public(state), 2)
        self._bytes, self._unsure = (*self._bytes, data), True
        files.replace(self._place.state, data)
        self._bytes, self._unsure = (data,), False

    def _set_foreign_aside(self) -> None:
        """Keep a copy of a state file that another program changed, and ignore its content."""
        if not self._bytes:
            self._keep_state_of_another_loop()
            return
        try:
            found = files.read_ours(self._place.state)
        except OSError:
            if not self._unsure:
                self._emit(Problem(text="Another program deleted state.json. rooda has written it again."))
            return
        if found not in self._bytes:
            files.replace(self._place.foreign, found)
            kept = os.path.relpath(self._place.foreign, self._place.workspace)
            self._emit(
                Problem(
                    text="Another program changed state.json. "
                    f"rooda has overwritten it, and kept the changed version as {kept}."
                )
            )

    def _keep_state_of_another_loop(self) -> None:
        """Rename a file, such as another tool's, that replaced this goal's state file while no session ran."""
        if self._known is None or not os.path.lexists(self._place.state) or holds_state_of(self._place, self._known):
            return
        kept = os.path.relpath(files.set_aside(self._place.state, FOREIGN), self._place.workspace)
        self._emit(Problem(text=f"state.json did not belong to this goal. rooda has kept it as {kept}."))

    def _journal(self, state: GoalState, data: bytes) -> None:
        """Write an iteration's line to the journal; a goal's first line replaces the journal of an earlier goal."""
        if self._journaled[0] == state.brief.run:
            self._append(state)
        else:
            files.replace(self._place.journal, encode(record(None, state)))
        self._journaled = (state.brief.run, state.iteration)
        self._on_disk[self._place.journal] = data

    def _append(self, state: GoalState) -> None:
        """Append a line to the journal; if the file was deleted, write the previous state first."""
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
    """Return a journal line: the full state and the result of this iteration."""
    names = [each.name for each in state.brief.criteria]
    marks = dict(zip(names, state.marks, strict=True))
    began = before or state
    good = state.done > began.done or state.exit_signal
    return {
        **public(state),
        "step": began.step if state.iteration else "",
        "outcome": "success" if good else "failure" if state.iteration else "start",
        "cost": _rounded(difference(before.spent if before else Spent(), state.spent).known_cost),
        "elapsed": round(state.elapsed - (before.elapsed if before else 0.0), 3),
        "claimed": state.claim.exit,
        "evidence": {name: mark.evidence for name, mark in marks.items() if mark.evidence},
        "at": state.updated_at or state.brief.started_at,
        "run": private(state),
    }


def _rounded(cost: float | None) -> float | None:
    return None if cost is None else round(cost, 6)


def private(state: GoalState) -> Json:
    """Return the content of run.json: the brief, the reason for a pause, and the `progress` needed to resume."""
    progress = base_json.encode(state._replace(brief=()))  # type: ignore[arg-type]
    del progress["brief"]
    progress["spent"] = {key: getattr(state.spent, field) for key, field in _SPENT.items()}
    return {
        **base_json.encode(state.brief),
        "status": state.status,
        "pause": state.pause,
        "reason": state.reason,
        "cost": state.spent.known_cost,
        "budget": state.budget,
        "max_iterations": state.limit,
        "keep": state.keep,
        "progress": progress,
    }


def decode(data: Any) -> GoalState:
    """Decode the content of run.json; raise Mismatch if it is invalid."""
    if not isinstance(data, dict) or not isinstance(data.get("progress"), dict):
        raise base_json.Mismatch("key 'progress' is missing")
    progress = {**data["progress"], "brief": data}
    if isinstance(spent := progress.get("spent"), dict):
        progress["spent"] = {field: spent[key] for key, field in _SPENT.items() if key in spent}
    state = base_json.decode(GoalState, progress)
    if state.status not in STATUSES:
        raise base_json.Mismatch(f"status {state.status!r} is none of {', '.join(STATUSES)}")
    if len(state.marks) != len(state.brief.criteria) or not 0 <= state.done <= len(state.steps):
        raise base_json.Mismatch("its parts do not match")
    return state


def load(place: Place) -> GoalState | None:
    """Load the goal from run.json, or from the journal if run.json is older, unreadable or not written by rooda."""
    seal = place.seal
    backup = _backup(place, seal)
    try:
        data = files.read_ours(place.run)
        state = decode(base_json.parse_object(data))
        if not seal.covers(data):
            raise base_json.Mismatch("it was not written by rooda")
    except (OSError, base_json.Mismatch) as problem:
        if backup is None and not os.path.lexists(place.run) and not os.path.lexists(place.state):
            return None
        if backup is None:
            gone = isinstance(problem, FileNotFoundError)
            why = "it is missing" if gone else getattr(problem, "strerror", None) or str(problem)
            raise StateDamaged(place.run, f"{why}, and {JOURNAL}, its backup, has no complete line") from None
        return backup
    ahead = backup if backup and backup.brief.run == state.brief.run else state  # ignore the backup of an earlier goal
    found = ahead if ahead.iteration > state.iteration else state
    return found if seal.exists else unsealed(found)


def unsealed(state: GoalState) -> GoalState:
    """Return the state of an unsealed run.json, marked so that the user must confirm completion."""
    unknown = Fingerprint(RUN, "the seal is missing")
    return state if unknown in state.tests else state._replace(tests=(*state.tests, unknown))


def unfinished(place: Place) -> GoalState | None:
    """Load the goal if it can be resumed; None otherwise."""
    state = load(place)
    return state if state and state.status in UNFINISHED else None


def ended(place: Place) -> GoalState | None:
    """Load the goal if it has ended; None otherwise."""
    state = load(place)
    return state if state and state.status not in UNFINISHED else None


def finish_files(place: Place, state: GoalState) -> bool:
    """Rewrite an ended goal's two state files if a kill left one outdated; return True if both were up to date."""
    seal, same = place.seal, True
    tidy(place)
    for path, data in ((place.run, encode(private(state), 2)), (place.state, encode(public(state), 2))):
        if path == place.state and os.path.lexists(path) and not holds_state_of(place, state):
            continue  # another loop's
        if seal.exists and not _holds(path, data):
            same = False
            if path == place.run:
                seal.cover(data, map(files.sha256, sealed_files(place).values()))
            files.replace(path, data)
    return same


def holds_state_of(place: Place, state: GoalState) -> bool:
    """True if the state file was written by this goal, in any of its iterations."""
    try:
        return is_public_of(loads(files.read_ours(place.state)), state)
    except (OSError, ValueError):
        return False


def doubt(place: Place) -> Doubt | None:
    """Return a Doubt listing the goal's specification and commands if this user has not sealed them; else None."""
    try:
        state, seal, found = load(place), place.seal, sealed_files(place)
    except StateDamaged:
        return None
    why = seal.doubt() if state else ""
    if state is None or not why:
        return None
    brief = state.brief
    commands = [f"{each.name}: {each.command}" for each in brief.criteria if each.command]
    commands += [f"{each.text}: {each.violated_if}" for each in brief.mustNot if each.violated_if]
    hashes = [files.sha256(data) for data in found.values() if seal.covers(data) and _is_of(state, data)]
    return Doubt(f"{place.run} is {why}", [f"specification: {brief.spec}", *commands], lambda: seal.write(hashes))


def _is_of(state: GoalState, data: bytes) -> bool:
    """True if these bytes encode this state, the one that rooda showed to the user."""
    try:
        return unsealed(decode(base_json.parse_object(data))) == unsealed(state)
    except base_json.Mismatch:
        return False


def sealed_files(place: Place) -> dict[str, bytes]:
    """Return the sealed content by path: run.json as it is, the journal's last record in run.json's format."""
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
        return decode(found["run"]) if found and seal.covers(encode(found["run"], 2)) else None
    except base_json.Mismatch:
        return None


def last_record(place: Place) -> Json | None:
    """Return the journal's last complete record; None if there is none."""
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
    """Encode a value as JSON with a newline, escaping non-ASCII characters only if some can't be encoded."""
    try:
        return json.dumps(value, indent=indent, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent).encode() + b"\n"
