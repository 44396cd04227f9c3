"""Stores a reflex loop. A transition writes the artifact, `run.json`, the history and the pointer, in this order.

A new artifact has a temporary name until `run.json` records its phase as done. After a crash in between, the name
shows whether the artifact counts, so rooda repeats an interrupted phase with the same input.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from rooda.base import clock, files
from rooda.base.json import Json
from rooda.errors import Undecided
from rooda.loops.kernel import Saved, Scope
from rooda.loops.reflex import files as reflex_files
from rooda.loops.reflex import history as reflex_history
from rooda.loops.reflex.files import Place, WriteLock
from rooda.loops.reflex.state import EVALUATE, RUNNING, State, encoded, stopped
from rooda.processes import lock

MOST_SEALED = 200


class ReflexStore:
    """Records finished phases in `run.json`."""

    def __init__(self, place: Place, known: State | None) -> None:
        self._place = place
        self._state = known  # what is on disk; None: a new loop
        self._staged: bytes | None = None
        self._seal = place.seal
        self._events: list[Json] = []  # parsed from the first `_lines` lines of the history
        self._lines = 0
        self.new_limits: Callable[[], Mapping[str, float]] = dict  # limits that the user has changed since the start

    @property
    def state(self) -> State | None:
        """Return the state on disk; None for a new loop."""
        return self._state

    def latest(self) -> State | None:
        """Return the state on disk if another command has ended the loop, else the state saved last."""
        return self._ended_elsewhere() or self._state

    def load(self, scope: Scope) -> Saved:
        return Saved(self._state)

    def begin(self, scope: Scope, name: str) -> None:
        """Do nothing: `run.json` already names the next step."""

    def end(self, scope: Scope, name: str, value: Any) -> Any:
        return self.save(value)

    def carry(self, scope: Scope, state: Any) -> Any:
        return self.save(state)

    def stage(self, text: str) -> None:
        """Keep an artifact in memory, to be written with the next state."""
        self._staged = files.to_bytes(text)

    def save(self, state: State, by_user: bool = False) -> State:
        """Save this state unless another command has ended the loop; return the state on disk.

        `by_user`: the user stops the loop.
        """
        if limit := int(self.new_limits().get("iterations", 0)):
            state = state._replace(max_iterations=max(limit, state.iteration))
        if state == self._state and self._staged is None:
            self._state = self._ended_elsewhere() or state
            return self._state
        with WriteLock(self._place.workspace):
            if self._state is None:
                self._begin()
            elif self._state.status != RUNNING:
                require_none_running(self._place.workspace)
            if foreign := self._ended_elsewhere():
                self._staged = None
                self._state = foreign
                return foreign
            now = clock.rfc3339(clock.now())
            state = state._replace(updated_at=now, created_at=state.created_at or now)
            self._transition(state, by_user)
        return state

    def _begin(self) -> None:
        """Create a new loop's folder; raise Undecided if another loop was started at the same time."""
        require_none_running(self._place.workspace)
        files.make_real_folder(self._place.workspace, os.path.join(reflex_files.HOME, self._place.alias))

    def _transition(self, state: State, by_user: bool) -> None:
        place, before = self._place, self._state
        new, self._staged = self._staged, None
        waiting = f"{place.artifact}.{state.iteration}-{state.current_step}.tmp"
        if new is not None:
            files.replace(waiting, new)
        if not by_user:  # an ended loop needs no seal, and the user has not seen what it would cover
            self._cover(state)
        facts = self._facts(new)
        events = reflex_history.events(before, state, facts, by_user)
        opening = before is None or reflex_history.is_reopened(before, state)
        if opening:  # run.json can be rebuilt from the history, not the other way round
            reflex_files.append(place, state.run_id, events, state.updated_at)
        reflex_files.write_json(place.run, encoded(state))
        if new is not None:
            files.move_folder_aside(place.artifact)
            files.rename(waiting, place.artifact, synced=False)
        if not opening:
            reflex_files.append(place, state.run_id, events, state.updated_at)
        reflex_files.point_at(place, state)
        self._state = state

    def _cover(self, state: State) -> None:
        """Seal the next state's commands and prompts before it is written. Keep earlier seals, which an undo needs."""
        words, known = reflex_files.words_of(state), self._seal.hashes if self._state else []
        if not (self._seal.exists and self._state and self._seal.covers(words)):
            with suppress(OSError):  # without a seal, a resume asks the user
                self._seal.cover(words, known[:MOST_SEALED])

    def _facts(self, new: bytes | None) -> reflex_history.Artifact:
        """Return the artifact's hashes for the events of this transition."""
        old = reflex_files.read_artifact(self._place)
        if new is not None:
            return reflex_files.facts(old, new, judged=False)
        judged = self._state is not None and self._state.current_step == EVALUATE
        return reflex_files.facts(None, old if judged else None, judged)

    def record_breach(self, state: State, phase: str, attempt: int, error: str, excerpt: str) -> None:
        """Append a breach of a phase's contract to the history; no other file records it."""
        event = reflex_history.breach(state, phase, attempt, error, excerpt)
        with WriteLock(self._place.workspace):
            if not self._ended_elsewhere():
                reflex_files.append(self._place, state.run_id, [event], clock.rfc3339(clock.now()))

    def _ended_elsewhere(self) -> State | None:
        """Return the state on disk if another command has ended the loop; else None."""
        if self._state is None or self._state.status != RUNNING:
            return None
        disk = reflex_files.read_state(self._place)
        if disk is None or disk.run_id != self._state.run_id or disk.status == RUNNING:
            return None
        return disk._replace(elsewhere=True)

    def history(self) -> list[Json]:
        """Return all events so far. Only new lines are parsed."""
        lines = reflex_files.read_lines(self._place) or []
        if len(lines) < self._lines:  # the file was truncated
            self._events, self._lines = [], 0
        self._events += reflex_files.parsed(lines[self._lines :])
        self._lines = len(lines)
        return self._events


def close(place: Place, reason: str) -> State | None:
    """Record that the user stopped the loop, and why; return its state, or None if the loop had already ended."""
    found = reflex_files.load(place)
    if found.state is None or found.state.status != RUNNING:
        return None
    store = ReflexStore(place, found.state) if lock.is_held(place.lock) else open_store(place, found)
    return store.save(stopped(found.state, reason), by_user=True)


def require_none_running(workspace: str) -> None:
    if running := reflex_files.running(workspace):
        raise Undecided(f"Another loop, '{running[0]}', was started at the same time; this one was not started.")


def open_store(place: Place, found: reflex_files.Found) -> ReflexStore:
    """Open a loop to resume it, and complete what an earlier process left unfinished."""
    assert found.state is not None
    with WriteLock(place.workspace):
        tidy(place, found.state)
        _repair(place, found)
    return ReflexStore(place, found.state)


def tidy(place: Place, state: State | None) -> None:
    """Remove temporary files, but rename a new artifact to its final name if its phase is recorded as done."""
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
    """Clean up after killed processes in all loops that aren't running; remove the pointer to a loop that has ended."""
    for place in reflex_files.places(workspace):
        if lock.is_held(place.lock):
            continue
        if not reflex_files.is_begun(place):
            if reflex_files.is_leftover(place):
                remove(place)
            continue
        if not place.seal.exists:
            continue  # another tool's loop, which only a resume or a clean changes
        found = reflex_files.load(place)
        if found.state is not None and found.state.status != RUNNING:
            open_store(place, found)
        else:
            tidy(place, found.state)


def remove(place: Place) -> list[str]:
    """Remove the loop's files or, if its folder is a symlink, only the symlink; return the names of the files left."""
    with WriteLock(place.workspace):
        if os.path.islink(place.folder):
            files.remove(place.folder)
            return []
        tidy(place, None)
        for path in (place.artifact, place.run, place.history):
            files.move_folder_aside(path)
            files.remove(path)
        place.seal.remove()
        left = sorted(os.listdir(place.folder))
        if not left:
            files.remove_empty_parents(place.folder)
    return left


def _leftovers(folder: str, starts: tuple[str, ...]) -> list[str]:
    return [entry for entry in files.list_if_readable(folder) if entry.startswith(starts) and entry.endswith(".tmp")]


def _repair(place: Place, found: reflex_files.Found) -> None:
    """Complete what a crash interrupted: write a rebuilt run.json, missing events, and the pointer."""
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
