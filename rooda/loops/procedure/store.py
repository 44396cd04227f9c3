"""Reads and writes a procedure's state file, `.rooda/state/<procedure>.json`.

If the file can't be written, the loop reports that and continues.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rooda.base import clock, files
from rooda.base import json as base_json
from rooda.base.dirs import make_home
from rooda.base.text import parse_seconds
from rooda.errors import StateDamaged
from rooda.loops.kernel import Saved, Scope
from rooda.loops.procedure.state import COMPLETED, RUNNING, STATUSES, OodaState
from rooda.processes import lock
from rooda.run.event_records import Emit, StateSaved, StateUnsaved

_json = json.JSONEncoder().encode
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)


class Place(NamedTuple):
    """Paths of one procedure's files."""

    workspace: str
    procedure: str

    @property
    def folder(self) -> str:
        return os.path.join(self.workspace, ".rooda", "state")

    @property
    def state(self) -> str:
        return os.path.join(self.folder, f"{self.procedure}.json")

    @property
    def lock(self) -> str:
        return os.path.join(self.folder, f"{self.procedure}.lock")

    @property
    def corrupt(self) -> str:
        return f"{self.state}.corrupt"


class ProcedureStore:
    """Saves the state at the end of each turn. An interrupted turn is repeated."""

    def __init__(self, place: Place, emit: Emit, new_limits: Callable[[], Mapping[str, float]] = dict) -> None:
        """`new_limits`: returns the limits that the user has changed while the loop runs."""
        self._place, self._emit, self._new_limits = place, emit, new_limits
        self._written: OodaState | None = None
        self._durations = bytearray()
        self._complained = -1

    def load(self, scope: Scope) -> Saved:
        try:
            return Saved(load_state(self._place))
        except StateDamaged:  # the start of the run has reported it
            return Saved()

    def carry(self, scope: Scope, state: Any) -> Any:
        """Save the state, or delete its file once the procedure has completed. Report a failed write; do not raise."""
        state = state._replace(max_iterations=int(self._new_limits().get("iterations", state.max_iterations)))
        if state == self._written:
            return state
        began = clock.monotonic()
        try:
            self._save(state)
        except OSError as problem:
            self._written = None
            if state.iteration != self._complained:  # two writes may fail at the end of an iteration; report one
                self._emit(StateUnsaved(path=self._place.state, why=problem.strerror or str(problem)))
            self._complained = state.iteration
            return state
        self._written, self._complained = state, -1
        self._emit(StateSaved(phase="persist", elapsed=round(clock.monotonic() - began, 6)))
        return state

    def _save(self, state: OodaState) -> None:
        if state.status == COMPLETED:
            files.remove(self._place.state)
            return
        data = self._encoded(state)
        settled = self._written is None or state.status != RUNNING  # otherwise fsync runs while the next agent starts
        try:
            files.replace(self._place.state, data, 0o600, settled)
        except FileNotFoundError:
            make_room(self._place)
            files.replace(self._place.state, data, 0o600)

    def _encoded(self, state: OodaState) -> bytes:
        """Encode the state as JSON. Only new durations are encoded; they are appended to the ones encoded before."""
        known = self._written.elapsed_per_iteration if self._written else ()
        new = state.elapsed_per_iteration[len(known) :]
        if not known or state.elapsed_per_iteration[: len(known)] != known:
            new = state.elapsed_per_iteration
            self._durations.clear()
        for duration in new:
            self._durations += f', "{duration}"'.encode() if self._durations else f'"{duration}"'.encode()
        pairs = zip(state._fields[:-1], state[:-1], strict=True)
        lines = [f'  "{key}": {value if type(value) is int else _json(value)}' for key, value in pairs]
        head = ",\n".join(["{\n" + lines[0], *lines[1:], f'  "{state._fields[-1]}": ['])
        return b"".join((head.encode(), self._durations, b"]\n}\n"))


def make_room(place: Place) -> None:
    """Create the folder of the state files."""
    make_home(os.path.join(place.workspace, ".rooda"), os.path.basename(place.folder))


def tidy(place: Place) -> None:
    """Remove temporary files that a killed process left. The caller must hold the lock."""
    start = f"{place.procedure}.json."
    try:
        for entry in os.listdir(place.folder):
            if entry.startswith(start) and entry.endswith(".tmp") and entry[len(start) : -len(".tmp")].isdigit():
                files.remove(os.path.join(place.folder, entry))
    except OSError:
        pass  # the next run that takes the lock tries again


def load_state(place: Place) -> OodaState | None:
    """Return the saved state, None if there is none; raise StateDamaged if the file is invalid."""
    try:
        data = files.read_ours(place.state)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise StateDamaged(place.state, problem.strerror or str(problem)) from None
    try:
        state = _checked(base_json.decode(OodaState, _tolerant(base_json.parse_object(data))))
    except (base_json.Mismatch, ValueError) as problem:
        raise StateDamaged(place.state, str(problem)) from None
    return state._replace(procedure_name=place.procedure)  # the file may have been copied from another name


def _tolerant(data: dict[str, Any]) -> dict[str, Any]:
    """Accept a `last_iteration_at` that is missing or Go's zero time, as other programs write before iteration 1."""
    if str(data.get("last_iteration_at") or "").startswith("0001-01-01"):
        return {**data, "last_iteration_at": None}
    return {"last_iteration_at": None, **data} if data.get("iteration") == 0 else data


def _checked(state: OodaState) -> OodaState:
    if state.status not in STATUSES:
        raise base_json.Mismatch(f"status {state.status!r} is not one of {', '.join(STATUSES)}")
    for key, least in (("iteration", 0), ("max_iterations", 0), ("consecutive_failures", 0), ("failure_threshold", 1)):
        if getattr(state, key) < least:
            raise base_json.Mismatch(f"{key} must be at least {least}, found {getattr(state, key)}")
    for key in ("started_at", "last_iteration_at"):
        if (text := getattr(state, key)) and not _TIME.fullmatch(text):  # an empty string counts as null
            raise base_json.Mismatch(f"{key} is not a time such as 2026-02-06T10:00:00Z")
    for duration in state.elapsed_per_iteration:
        if parse_seconds(duration) < 0:
            raise base_json.Mismatch(f"elapsed_per_iteration: {duration!r} is negative")
    return state


def keep_damaged(place: Place) -> str:
    """Rename a damaged state file without replacing one kept earlier; return the new path, "" if that fails."""
    try:
        kept = files.set_aside(place.state, "corrupt")
        files.sync_parent(kept)
    except OSError:
        return ""
    return kept


def names(workspace: str) -> list[str]:
    """Return the procedures of this workspace that have a state file."""
    return _stems(workspace, ".json")


def locks(workspace: str) -> list[str]:
    """Return the procedures that have run in this workspace, even if their files were deleted since."""
    return sorted({*_stems(workspace, ".lock"), *with_deleted_files(workspace)})


def with_deleted_files(workspace: str) -> list[str]:
    """Return procedures that are running or were killed here, even if an agent has deleted their files."""
    left = (name.removeprefix("state/") for name in lock.recorded(workspace) if name.startswith("state/"))
    return [name.removesuffix(".lock") for name in left]


def _stems(workspace: str, ending: str) -> list[str]:
    entries = files.list_folder(Place(workspace, "").folder)
    return sorted(entry.removesuffix(ending) for entry in entries if entry.endswith(ending))
