"""The Store of a reflex loop. Each transition is artifact, `run.json`, history, pointer, in this order.

A new artifact waits under another name until `run.json` says that its phase is done: after a crash in between, the
name tells whether it counts, so that an interrupted phase is repeated with the input that it had.
"""

import os
from typing import Any

from rooda.base import clock, files
from rooda.base.json import Json
from rooda.errors import Undecided
from rooda.loops.kernel import Saved, Scope
from rooda.loops.reflex import files as reflex_files
from rooda.loops.reflex import history as reflex_history
from rooda.loops.reflex.files import Alone, Place
from rooda.loops.reflex.state import EVALUATE, RUNNING, State, encoded, stopped
from rooda.processes import lock


class ReflexStore:
    """Remembers finished phases: they are what `run.json` says."""

    def __init__(self, place: Place, known: State | None) -> None:
        self._place = place
        self._state = known  # what is on disk; None: a new loop
        self._staged: bytes | None = None
        self._events: list[Json] = []  # of the history's first so many lines
        self._lines = 0

    @property
    def state(self) -> State | None:
        """What is on disk; None before the loop began."""
        return self._state

    def latest(self) -> State | None:
        """The same, or what a person in another terminal has made of it meanwhile."""
        return self._ended_elsewhere() or self._state

    def load(self, scope: Scope) -> Saved:
        return Saved(self._state)

    def begin(self, scope: Scope, name: str) -> None:
        """`run.json` names the next step since the last one ended."""

    def end(self, scope: Scope, name: str, value: Any) -> Any:
        return self.save(value)

    def carry(self, scope: Scope, state: Any) -> Any:
        return self.save(state)

    def stage(self, text: str) -> None:
        """The artifact that the next saved state is about."""
        self._staged = files.to_bytes(text)

    def save(self, state: State, by_user: bool = False) -> State:
        """This state on disk, or what somebody else has made of the loop meanwhile. `by_user`: a person stops it."""
        if state == self._state and self._staged is None:
            self._state = self._ended_elsewhere() or state
            return self._state
        with Alone(self._place.workspace):
            if self._state is None:
                self._begin()
            if foreign := self._ended_elsewhere():
                self._staged = None
                self._state = foreign
                return foreign
            now = clock.rfc3339(clock.now())
            state = state._replace(updated_at=now, created_at=state.created_at or now)
            self._transition(state, by_user)
        return state

    def _begin(self) -> None:
        """A new loop's folder, unless another loop was begun a moment ago."""
        require_none_running(self._place.workspace)
        files.make_folder(self._place.folder)

    def _transition(self, state: State, by_user: bool) -> None:
        place, before = self._place, self._state
        new, self._staged = self._staged, None
        waiting = f"{place.artifact}.{state.iteration}-{state.current_step}.tmp"
        if new is not None:
            files.replace(waiting, new)
        facts = self._facts(new)
        events = reflex_history.events(before, state, facts, by_user)
        if before is None:  # a beginning that only the history has can be rebuilt, one that only run.json has can't
            reflex_files.append(place, state.run_id, events, state.updated_at)
        reflex_files.write_json(place.run, encoded(state))
        if new is not None:
            files.move_folder_aside(place.artifact)
            files.rename(waiting, place.artifact, synced=False)
        if before is not None:
            reflex_files.append(place, state.run_id, events, state.updated_at)
        reflex_files.point_at(place, state)
        self._state = state

    def _facts(self, new: bytes | None) -> reflex_history.Artifact:
        """What the events will tell of the artifact: nothing where they do not speak of it."""
        old = reflex_files.read_artifact(self._place)
        if new is not None:
            return reflex_files.facts(old, new, judged=False)
        judged = self._state is not None and self._state.current_step == EVALUATE
        return reflex_files.facts(None, old if judged else None, judged)

    def record_breach(self, state: State, phase: str, attempt: int, error: str, excerpt: str) -> None:
        """A phase broke its contract: only the history tells."""
        event = reflex_history.breach(state, phase, attempt, error, excerpt)
        with Alone(self._place.workspace):
            if not self._ended_elsewhere():
                reflex_files.append(self._place, state.run_id, [event], clock.rfc3339(clock.now()))

    def _ended_elsewhere(self) -> State | None:
        """Somebody has stopped the loop: it is theirs."""
        if self._state is None or self._state.status != RUNNING:
            return None
        disk = reflex_files.read_state(self._place)
        if disk is None or disk.run_id != self._state.run_id or disk.status == RUNNING:
            return None
        return disk._replace(elsewhere=True)

    def history(self) -> list[Json]:
        """Every event so far; only what is new is parsed."""
        lines = reflex_files.read_lines(self._place) or []
        if len(lines) < self._lines:  # somebody cut it
            self._events, self._lines = [], 0
        self._events += reflex_files.parsed(lines[self._lines :])
        self._lines = len(lines)
        return self._events


def close(place: Place, reason: str) -> State | None:
    """End the loop for the user; `stop.reason` says why. None if it had ended before."""
    found = reflex_files.look(place)
    if found.state is None or found.state.status != RUNNING:
        return None
    store = ReflexStore(place, found.state) if lock.is_held(place.lock) else opened(place, found)
    return store.save(stopped(found.state, reason), by_user=True)


def require_none_running(workspace: str) -> None:
    if running := reflex_files.running(workspace):
        raise Undecided(f"The loop '{running[0]}' has just been started; no second one was.")


def opened(place: Place, found: reflex_files.Found) -> ReflexStore:
    """A loop that goes on: what an earlier process left half-done is put right."""
    assert found.state is not None
    with Alone(place.workspace):
        tidy(place, found.state)
        _repair(place, found)
    return ReflexStore(place, found.state)


def tidy(place: Place, state: State | None) -> None:
    """Temporary files are gone; an artifact that only had to be renamed is."""
    mark = f"artifact.md.{state.iteration}-{state.current_step}.tmp" if state else ""
    for name in _leftovers(place.folder, ("run.json.", "artifact.md.")):
        path = os.path.join(place.folder, name)
        if name == mark:
            files.move_folder_aside(place.artifact)
            files.rename(path, place.artifact)
        else:
            files.remove(path)
    home = os.path.dirname(place.folder)
    for name in _leftovers(home, ("current.json.",)):
        files.remove(os.path.join(home, name))


def tidy_all(workspace: str) -> None:
    """What earlier processes left half-done, of loops that nobody works on; of ended ones the pointer too."""
    for place in reflex_files.places(workspace):
        if lock.is_held(place.lock):
            continue
        if not reflex_files.is_begun(place):
            if not os.path.islink(place.folder):
                remove(place)
            continue
        found = reflex_files.look(place)
        if found.state is not None and found.state.status != RUNNING:
            opened(place, found)
        else:
            tidy(place, found.state)


def remove(place: Place) -> list[str]:
    """The loop's files are gone; gives the names of what is not ours and stays. Of a link only the link is gone."""
    with Alone(place.workspace):
        if os.path.islink(place.folder):
            files.remove(place.folder)
            return []
        tidy(place, None)
        for path in (place.artifact, place.run, place.history):
            files.move_folder_aside(path)
            files.remove(path)
        left = sorted(os.listdir(place.folder))
        if not left:
            files.remove_empty_parents(place.folder)
    return left


def _leftovers(folder: str, starts: tuple[str, ...]) -> list[str]:
    return [entry for entry in files.list_folder(folder) if entry.startswith(starts) and entry.endswith(".tmp")]


def _repair(place: Place, found: reflex_files.Found) -> None:
    """run.json when it was rebuilt; events that were not written any more; the pointer."""
    state = found.state
    assert state is not None
    if found.rebuilt:
        reflex_files.write_json(place.run, encoded(state))
    data, replaced = reflex_files.artifact_if_readable(place), (state.evaluation or {}).get("artifact_hash", "")
    sections = reflex_files.facts(None, data, judged=True).sections
    artifact = reflex_files.facts(None, data, judged=False)._replace(before=replaced, sections=sections)
    events = reflex_history.missing(found.history, state, artifact)
    reflex_files.append(place, state.run_id, events, clock.rfc3339(clock.now()))
    reflex_files.point_at(place, state)
