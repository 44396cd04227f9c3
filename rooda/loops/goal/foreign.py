"""Finds files in `.loop` that rooda did not write, and renames them when a new goal needs their paths."""

import os
from typing import Any, NamedTuple

from rooda.base import files
from rooda.base.json import loads
from rooda.errors import StateDamaged, Undecided, UsageProblem
from rooda.loops.goal.files import FOREIGN, IGNORED, Place
from rooda.loops.goal.state import is_complete, is_public_of
from rooda.loops.goal.store import load
from rooda.run import questions

NOTES = ("precheck.md", "intent.md", "evidence")  # written while a goal is planned
TAKE_OVER = "To start a new goal with its criteria and steps: rooda goal run --plan .loop/state.json SPEC"
STATES = ("state.json", "run.json", "iterations.jsonl", "summary.md")


class Foreign(NamedTuple):
    """A file, link or folder that rooda did not write, at a path that a new goal needs."""

    name: str  # relative to the workspace
    what: str


def is_ours(place: Place) -> bool:
    """True if rooda created `.loop`, or has a goal there."""
    return _has_goal(place) or place.seal.exists or _content(place.file(".gitignore")) == IGNORED


def find(place: Place) -> list[Foreign]:
    """Return the files that rooda did not write and whose paths a new goal needs."""
    if not os.path.lexists(place.folder):
        return []
    names = [name for name in (*STATES, *NOTES) if os.path.lexists(place.file(name))]
    if is_ours(place):
        names = ["state.json"] if "state.json" in names and _is_another_loops(place) else []
    return [Foreign(os.path.join(".loop", name), describe(place.file(name))) for name in names]


def _is_another_loops(place: Place) -> bool:
    """True if the state file belongs to another tool's loop; False if it is this goal's, damaged or missing."""
    found = _parsed(_content(place.state))
    try:
        state = load(place)
    except StateDamaged:
        state = None
    has_goal = state is not None or place.seal.exists
    return isinstance(found, dict) and bool(found) and not (has_goal and is_public_of(found, state))


def describe(path: str) -> str:
    """Describe in a few words what is at a path."""
    if os.path.islink(path):
        return "a link"
    if os.path.isdir(path):
        return "a folder"
    try:
        data = files.read_ours(path)
    except OSError as problem:
        return f"it can't be read: {problem.strerror or problem}"
    if not path.endswith(".json"):
        return "a file of another tool"
    return _form(data)


def _form(data: bytes) -> str:
    found = _parsed(data)
    if not data.strip():
        return "empty"
    if not isinstance(found, dict):
        return "not JSON" if found is None else "JSON, but not an object"
    if is_complete(found):
        return f"a loop of another tool: {found['status']}, iteration {found['iteration']}, {_steps(found)}"
    return "JSON of another form"


def _steps(found: dict[str, Any]) -> str:
    return f"{len(found['completedSteps'])} of {len(found['steps'])} steps"


def shown(place: Place) -> str:
    """Return how a status describes another tool's state file; "" if there is none or rooda has a goal here."""
    return "" if _has_goal(place) else "; ".join(f"{name}: {what}" for name, what in find(place) if "state" in name)


def keep_state(place: Place) -> str:
    """Rename a state file that may not be rooda's, so that it isn't deleted; return the new path, "" if not renamed."""
    unknown = not (_has_goal(place) or place.seal.exists) or bool(find(place))
    return files.set_aside(place.state, FOREIGN) if unknown and os.path.lexists(place.state) else ""


def _has_goal(place: Place) -> bool:
    try:
        return load(place) is not None
    except StateDamaged:
        return False


def refuse(place: Place) -> None:
    """Raise UsageProblem if another tool wrote the state file: then rooda has no goal to resume or cancel."""
    if what := shown(place):
        raise UsageProblem(f"There is no goal of rooda here. Not written by rooda: {what}", TAKE_OVER)


def require_yes(found: list[Foreign], yes: bool, attended: bool) -> None:
    """Ask the user whether to rename these files and start a new goal; raise Undecided unless the answer is yes."""
    if not found or yes:
        return
    rows = "\n".join(f"  {name}: {what}" for name, what in found)
    text = f"rooda did not write these files:\n{rows}"
    if attended and questions.at_terminal():
        answer = questions.typed_answer(f"{text}\nKeep each as NAME.{FOREIGN} and start? [y/N] ")
        if (answer or "").strip().lower() in ("y", "yes"):
            return
    raise Undecided(
        f"{text}\nNothing was started.",
        f"Move them away, or start with --yes, which keeps each as NAME.{FOREIGN}\n{TAKE_OVER}",
    )


def keep(place: Place, found: list[Foreign], names: tuple[str, ...]) -> None:
    """Rename the files in `found` whose names are in `names`, so that they are kept."""
    for each in found:
        path = os.path.join(place.workspace, each.name)
        if os.path.basename(path) in names and os.path.lexists(path):
            files.set_aside(path, FOREIGN)


def _content(path: str) -> bytes | None:
    try:
        return files.read_ours(path)
    except OSError:
        return None


def _parsed(data: bytes | None) -> Any:
    try:
        return None if data is None else loads(data)
    except ValueError:
        return None
