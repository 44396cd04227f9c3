"""Decides when a snapshot is due, which one the user means, and which are deleted; pure functions on records."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rooda.base.text import escape_line

BEFORE, AFTER, UNDO = "before", "after", "undo"
ROOT = "refs/rooda/"
_STATE = re.compile(r"(?:^|/)(\.ai-factory/evolution/|\.ai-loop/runs/|\.loop/(?!shape/)|\.rooda/)")
_KEYS = (
    *("run", "kind", "loop", "family", "iteration", "moment", "number"),
    *("place", "head", "branch", "trouble", "resumed"),
)


class Snapshot(NamedTuple):
    """A commit on no branch, whose tree is the whole work tree at one moment."""

    run: str
    kind: str  # kind of loop
    loop: str  # name of the loop: the procedure, the alias, the flow's run, or goal
    family: str  # the procedure, or the kind of loop; its runs are pruned together
    iteration: int  # as the screen shows it
    moment: str  # before | after | undo
    number: int  # position in the run: 1, 2, 3, …
    place: str  # which work tree, and the folder in it, as one line
    head: str = ""  # commit of HEAD; "" before the first commit
    branch: str = ""  # "" when detached
    trouble: str = ""  # files that could not be read
    resumed: str = ""  # "yes" if the run resumed an iteration of an earlier run
    private: tuple[str, ...] = ()  # private files that were left out
    commit: str = ""
    tree: str = ""
    seconds: int = 0  # Unix time

    @property
    def name(self) -> str:
        """Return the snapshot's name within its run."""
        return f"{UNDO}-{self.number}" if self.moment == UNDO else f"{self.iteration}-{self.moment}"

    @property
    def ref(self) -> str:
        return ref(self.run, self.name)

    def is_of(self, name: str | None) -> bool:
        """True if `name` selects this snapshot, by its loop, its kind of loop or its run; None selects all."""
        return name in (None, self.loop, self.family, self.run)


class Turn(NamedTuple):
    """The snapshots of one iteration."""

    before: Snapshot
    after: Snapshot | None  # None: not finished


def folder(run: str) -> str:
    """Return the run's ID in a form valid in a ref: git forbids `..` there."""
    return run.replace("..", "._")


def ref(run: str, name: str) -> str:
    return f"{ROOT}{folder(run)}/{name}"


def message(snapshot: Snapshot) -> str:
    """Return the commit message: a readable subject, then the fields."""
    facts = "".join(f"Rooda-{key.capitalize()}: {getattr(snapshot, key)}\n" for key in _KEYS)
    facts += f"Rooda-Private: {json.dumps(snapshot.private)}\n" if snapshot.private else ""
    return f"{snapshot.loop}: {snapshot.moment} iteration {snapshot.iteration}\n\n{facts}"


def parse(text: str) -> Snapshot | None:
    """Return the snapshot in a line `COMMIT TREE SECONDS` and a commit message; None if it isn't one."""
    first, _, body = text.lstrip("\n").partition("\n")
    pairs = (line.removeprefix("Rooda-").partition(": ") for line in body.splitlines() if line.startswith("Rooda-"))
    facts = {key.rstrip(":").lower(): value for key, _, value in pairs}
    try:
        commit, tree, seconds = first.split(" ")
        values: dict[str, Any] = {key: facts.get(key, "") for key in _KEYS}
        values["private"] = tuple(map(str, json.loads(facts.get("private", "[]"))))
        values |= {"family": facts["family"], **{key: int(facts[key]) for key in ("iteration", "number")}}
        return Snapshot(**values, commit=commit, tree=tree, seconds=int(seconds))
    except (KeyError, ValueError, TypeError, RecursionError):
        return None


def due_snapshots(turn: int | None, ended: bool, begun: int | None) -> tuple[list[tuple[int, str]], int | None]:
    """Return the snapshots that are due when an event ends or begins a turn, and the turn that is open afterwards.

    `turn`: the turn that is open before the event. `begun`: the turn that the event begins.
    """
    begins = begun is not None and begun != turn
    found = [(turn, AFTER)] if turn is not None and (ended or begins) else []
    if begun is not None and begins:
        found.append((begun, BEFORE))
    return found, begun if begins else None if ended else turn


def belongs_to_another_loop(path: str, snapshot: Snapshot, own: Sequence[str] = ()) -> bool:
    """True if a path is the state of a loop that an undo must not change.

    `own`: the undone loop's own files and folders, relative to the workspace, which an undo restores.
    """
    found = _STATE.search(path)
    if found is None:
        return False
    in_workspace = escape_line(path[: found.start(1)]) == snapshot.place.partition(":")[2]
    inner = path[found.start(1) :]
    return not (in_workspace and any(inner == each or inner.startswith(f"{each}/") for each in own))


def turns(run: Iterable[Snapshot]) -> list[Turn]:
    """Return a run's iterations with their snapshots, oldest first. A repeat of a finished iteration replaces it."""
    found: dict[int, Turn] = {}
    for each in sorted(run, key=lambda snapshot: snapshot.number):
        if each.moment == BEFORE:
            known = found.get(each.iteration)
            found[each.iteration] = known if known and not known.after else Turn(each, None)
        elif each.moment == AFTER and each.iteration in found:
            found[each.iteration] = found[each.iteration]._replace(after=each)
    return [found[number] for number in sorted(found)]


def undo_position(run: Sequence[Snapshot]) -> int:
    """Return the iteration from which the next undo counts back.

    If the newest snapshot is an undo, this is the iteration to which it went back; otherwise, one after the last.
    """
    newest = max(run, key=lambda snapshot: snapshot.number)
    return newest.iteration if newest.moment == UNDO else max(each.iteration for each in run) + 1


def last_undo(run: Sequence[Snapshot]) -> Snapshot | None:
    """Return the snapshot of the work that the last undo of a run removed; None if nothing was undone.

    After an undo by the user, the run has no iterations; after an undo by the loop (`on_red`), it may have some.
    """
    undone = [each for each in run if each.moment == UNDO]
    return max(undone, key=lambda snapshot: snapshot.number) if undone else None


def next_undone(turns: Iterable[Turn], present: str, position: int) -> Turn | None:
    """Return the newest iteration before `position` that began with a tree other than `present`; None if none did."""
    open_turns = [turn for turn in turns if turn.before.iteration < position and turn.before.tree != present]
    return open_turns[-1] if open_turns else None


def excess_runs(tips: Iterable[Snapshot], keep: int) -> list[Snapshot]:
    """Return the newest snapshot of each run to prune: all runs but the last `keep` per family and work tree."""
    seen: dict[tuple[str, str], int] = {}
    old = []
    for tip in sorted(tips, key=lambda tip: (tip.seconds, tip.run), reverse=True):
        group = (tip.family, tip.place)
        seen[group] = seen.get(group, 0) + 1
        old += [tip] if seen[group] > keep else []
    return old
