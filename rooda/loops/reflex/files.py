"""Reads and writes the folder of reflex loops: the pointer to the active loop, and the files of each loop."""

import json
import os
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from rooda.base import clock, files
from rooda.base import json as base_json
from rooda.base.json import Json, loads
from rooda.errors import RoodaError, Undecided, UsageProblem
from rooda.loops.reflex import history as reflex_history
from rooda.loops.reflex.rules import hashes, is_alias
from rooda.loops.reflex.state import RUNNING, State, decoded, read_ended
from rooda.processes import lock
from rooda.run.folder import UNSIGNED
from rooda.run.seal import Doubt, Seal

HOME = os.path.join(".ai-factory", "evolution")
LINE = (
    ("event", str),
    ("step", str),
    ("phase", str),
    ("iteration", int),
    ("payload", dict),
)  # required keys of an event
OWN_NAMES = re.compile(r"/(?:run\.json|history\.jsonl|artifact\.md)$")
TEMPORARY = re.compile(r"/(?:run\.json|artifact\.md)\.[^/]+\.tmp$")
PATIENCE = 10.0  # seconds to wait for another writer


class Place(NamedTuple):
    """Paths of one loop's files."""

    workspace: str
    alias: str

    @property
    def folder(self) -> str:
        return os.path.join(self.workspace, HOME, self.alias)

    @property
    def run(self) -> str:
        return os.path.join(self.folder, "run.json")

    @property
    def history(self) -> str:
        return os.path.join(self.folder, "history.jsonl")

    @property
    def artifact(self) -> str:
        return os.path.join(self.folder, "artifact.md")

    @property
    def shown_artifact(self) -> str:
        """Return the artifact's path relative to the workspace, as checks and messages show it."""
        return "/".join((*HOME.split(os.sep), self.alias, "artifact.md"))

    @property
    def lock(self) -> str:
        return os.path.join(self.workspace, ".rooda", "locks", f"reflex-{self.alias}.lock")

    @property
    def seal(self) -> Seal:
        """Return the seal that signs saved commands and prompts. The rest of the state can do no harm."""
        return Seal(self.workspace, f"reflex-{self.alias}")


class Found(NamedTuple):
    """A loop's state and history as read from disk. `state` is None if neither file has a valid one."""

    state: State | None
    history: list[Json]
    rebuilt: bool = False  # from the history
    no_history: bool = False


def pointer(workspace: str) -> str:
    return os.path.join(workspace, HOME, "current.json")


def aliases(workspace: str) -> list[str]:
    """Return the names of all loops in this workspace."""
    return [place.alias for place in places(workspace) if is_begun(place)]


def places(workspace: str) -> list[Place]:
    """Return the places of all folders whose names are valid for a loop."""
    entries = files.list_folder(os.path.join(workspace, HOME))
    places = [Place(workspace, entry) for entry in sorted(entries) if is_alias(entry)]
    return [place for place in places if os.path.isdir(place.folder)]


def is_begun(place: Place) -> bool:
    """True if the loop has written a file; a start may have been killed before that."""
    return any(os.path.isfile(path) and os.path.getsize(path) for path in (place.run, place.history, place.artifact))


def is_leftover(place: Place) -> bool:
    """True if the folder has only empty and temporary files of a start that was killed after it took the lock."""
    if os.path.islink(place.folder) or not os.path.lexists(place.lock):
        return False
    return all(_is_leftover(os.path.join(place.folder, name)) for name in files.list_folder(place.folder))


def _is_leftover(path: str) -> bool:
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    return bool(TEMPORARY.search(path) or (OWN_NAMES.search(path) and not os.path.getsize(path)))


def load(place: Place) -> Found:
    """Read the state from `run.json`; if that is missing or invalid, rebuild it from the history."""
    lines = read_lines(place)
    history = parsed(lines or ())
    state = read_state(place)
    rebuilt = state is None
    if rebuilt and ended_elsewhere(place) is None:
        state = reflex_history.rebuilt(history)
    state = state and state._replace(task_alias=place.alias)  # the user may have renamed the folder
    return Found(state, history, rebuilt, lines is None)


def words_of(state: State) -> bytes:
    """Return the bytes that the seal covers: task, rules and checks. Users may edit the limit, so it is left out."""
    words = (state.run_id, state.task, state.criteria, state.prepared_checks)
    return json.dumps(words, sort_keys=True).encode()


def doubt(place: Place) -> Doubt | None:
    """Return a Doubt about an open loop's saved commands and prompts if this user has not sealed them; else None."""
    state, seal = load(place).state, place.seal
    if state is None or not (state.status == RUNNING or state.can_go_on):
        return None
    words = words_of(state)
    why = seal.doubt() or ("" if seal.covers(words) else UNSIGNED)
    if not why:
        return None
    checks = (state.prepared_checks or {}).get("checks", ())
    shown = [f"task: {state.task['prompt']}", *(f"rule: {rule['description']}" for rule in state.rules)]
    shown += [f"check: {check.get('command') or check.get('search')}" for check in checks]
    return Doubt(f"{place.run} is {why}", shown, lambda: seal.cover(words, seal.hashes if seal.signed else ()))


def read_state(place: Place) -> State | None:
    """Return the state in `run.json`; None if the file is missing or invalid."""
    try:
        return decoded(base_json.parse_object(files.read_ours(place.run)))
    except (OSError, base_json.Mismatch):
        return None


def ended_elsewhere(place: Place) -> State | None:
    """Return the final state of another tool's loop, even if its `run.json` lacks keys or has values of other types.

    Return None if rooda wrote the file, or if the file doesn't say that the loop has ended.
    """
    try:
        data = base_json.parse_object(files.read_ours(place.run))
    except (OSError, base_json.Mismatch):
        return None
    return None if place.seal.exists else read_ended(data, place.alias)


def events(place: Place) -> list[Json]:
    """Return all events of the history, including those that rooda does not know."""
    found = []
    for line in read_lines(place) or ():
        try:
            event = loads(line)
        except ValueError:
            continue
        found += [event] if isinstance(event, dict) else []
    return found


def read_lines(place: Place) -> list[bytes] | None:
    """Return the lines of the history; None if the file can't be read."""
    try:
        return files.read_ours(place.history).splitlines()
    except OSError:
        return None


def parsed(lines: Iterable[bytes]) -> list[Json]:
    return [event for line in lines if (event := _event(line))]


def _event(line: bytes) -> Json | None:
    """Parse a line of the history; None if it is torn or invalid."""
    try:
        event = loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and all(isinstance(event.get(key), kind) for key, kind in LINE) else None


def active(workspace: str) -> str | None:
    """Return the alias of the active loop: the one in the pointer, or the only loop marked as running."""
    named = _pointed_at(workspace)
    if named and _is_running(Place(workspace, named)):
        return named
    running = [alias for alias in aliases(workspace) if _is_running(Place(workspace, alias))]
    return running[0] if len(running) == 1 else None


def running(workspace: str) -> list[str]:
    """Return the aliases of all loops marked as running, whether or not a process works on them."""
    return [alias for alias in aliases(workspace) if _is_running(Place(workspace, alias))]


def _pointed_at(workspace: str) -> str | None:
    try:
        named = base_json.parse_object(files.read_ours(pointer(workspace))).get("task_alias")
    except (OSError, base_json.Mismatch):
        return None
    return named if isinstance(named, str) and is_alias(named) else None


def _is_running(place: Place) -> bool:
    state = load(place).state
    return state is not None and state.status == RUNNING


def artifact_if_readable(place: Place) -> bytes | None:
    """Return the artifact for display; None if it can't be read."""
    try:
        return read_artifact(place)
    except OSError:
        return None


def read_artifact(place: Place) -> bytes | None:
    """Return the artifact; None if there is none. Raise OSError if it can't be read."""
    return files.read_ours_if_exists(place.artifact)


def facts(before: bytes | None, after: bytes | None, judged: bool) -> reflex_history.Artifact:
    """Return hashes for the history: those of the old and new artifact or, if `judged`, of the artifact's sections."""
    one, other = ("" if data is None or judged else files.sha256(data) for data in (before, after))
    return reflex_history.Artifact(one, other, hashes(files.to_text(after or b""), files.sha256) if judged else {})


class WriteLock:
    """The lock for writing the loops of a workspace. Writers are a running loop, `rooda reflex stop`, and a start."""

    def __init__(self, workspace: str) -> None:
        self._home = os.path.join(workspace, ".rooda")
        self._held = -1

    def __enter__(self) -> None:
        deadline = clock.monotonic() + PATIENCE
        try:
            while self._held < 0 and clock.monotonic() < deadline:
                self._held = lock.acquire_briefly(os.path.join(self._home, "locks", "reflex.lock"))
        except OSError:
            return  # the lock can't be created; files are replaced atomically anyway

    def __exit__(self, *_: Any) -> None:
        if self._held >= 0:
            os.close(self._held)
            self._held = -1


def write_json(path: str, value: Json) -> None:
    files.move_folder_aside(path)
    files.replace(path, _json(value))


def _json(value: Json) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def point_at(place: Place, state: State) -> None:
    """Update the pointer, a file that exists only while a loop is active."""
    path, named = pointer(place.workspace), _pointed_at(place.workspace)
    if named is None and os.path.lexists(path):
        return  # another tool's file: without the pointer rooda finds the only loop that runs
    if state.status != RUNNING:
        if named == place.alias:
            files.remove(path)
        return
    run, alias = state.run_id, state.task_alias
    facts = {"active_run_id": run, "task_alias": alias, "status": state.status, "updated_at": state.updated_at}
    files.replace_unsynced(path, _json(facts))  # no fsync: a lost pointer can be found again


def line_of(event: Json) -> str:
    """Format an event as a line of the history."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))


def append(place: Place, run_id: str, events: list[reflex_history.Event], when: str) -> None:
    """Append events to the history in one synced write, after terminating a last line that a crash cut off."""
    if not events:
        return
    lines = (line_of({"ts": when, "run_id": run_id, **event._asdict()}) for event in events)
    descriptor = files.open_append(place.history)
    try:
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
        files.append(descriptor, data)
        files.sync(descriptor)
    finally:
        os.close(descriptor)


# Finding the loop that a command names.
START_NEW = "Start a new loop with: rooda reflex new TASK"


def named(workspace: str, alias: str) -> Place:
    """Return the loop called `alias`; raise UsageProblem if the name is invalid or unknown."""
    if not is_alias(alias):
        raise UsageProblem(f"{alias!r} is not the name of a loop.", "See the names with: rooda reflex list")
    if alias not in aliases(workspace):
        raise UsageProblem(f"There is no loop '{alias}' here.", "See the names with: rooda reflex list")
    return Place(workspace, alias)


def find(workspace: str, alias: str | None) -> Place | None:
    """Return the named loop; without a name, the active loop, or None if no loop is active."""
    if alias is not None:
        return named(workspace, alias)
    found = active(workspace)
    return Place(workspace, found) if found else None


def none_active(workspace: str) -> Undecided:
    marked = running(workspace)
    if marked:
        rows = "\n".join(f"  rooda reflex resume {alias}" for alias in marked)
        return Undecided("Several loops are marked as running; give the name of one.", rows)
    over = "See the ended ones: rooda reflex list. " if aliases(workspace) else ""
    return Undecided("There is no active loop here.", f"{over}Start one with: rooda reflex new TASK")


def no_history_error(place: Place, found: Found) -> RoodaError:
    """Return the error for a loop without a history; if the loop is marked as running, its hint says to end it."""
    stop = "End this one first: rooda reflex stop\n" if found.state and found.state.status == RUNNING else ""
    return RoodaError(f"{place.history} is missing: the loop '{place.alias}' can't be resumed.", f"{stop}{START_NEW}")


def newest(workspace: str) -> Place | None:
    """Return the active loop, else the one that was updated last; None if there is none."""
    if place := find(workspace, None):
        return place
    states = [(_touched(Place(workspace, alias)), alias) for alias in aliases(workspace)]
    return Place(workspace, max(states)[1]) if states else None


def _touched(place: Place) -> str:
    state = load(place).state
    return state.updated_at if state else ""
