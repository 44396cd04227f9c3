"""What a snapshot says of itself, which one a person means, and which are too many. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

BEFORE, AFTER, UNDO = "before", "after", "undo"
ROOT = "refs/rooda/"
_KEYS = ("run", "loop", "iteration", "moment", "number", "place", "head", "branch")


class Snapshot(NamedTuple):
    """A commit outside of all branches whose tree is the whole work tree of a moment."""

    run: str
    loop: str  # the procedure
    iteration: int  # as the screen shows it: counts from 1
    moment: str  # before | after | undo
    number: int  # 1, 2, 3, … within the run
    place: str  # which work tree of the repository, which folder of it
    head: str = ""  # where HEAD was; "" where nothing is committed
    branch: str = ""  # "" when detached
    commit: str = ""
    tree: str = ""
    seconds: int = 0  # since 1970

    @property
    def name(self) -> str:
        """What it is called within its run."""
        return f"{UNDO}-{self.number}" if self.moment == UNDO else f"{self.iteration}-{self.moment}"

    @property
    def ref(self) -> str:
        return ref(self.run, self.name)


class Turn(NamedTuple):
    """One iteration as its snapshots have it."""

    before: Snapshot
    after: Snapshot | None  # None: it was cut off, or goes on


def ref(run: str, name: str) -> str:
    return f"{ROOT}{run}/{name}"


def message(snapshot: Snapshot) -> str:
    """The commit's message: a line for people, and the facts."""
    facts = "".join(f"Rooda-{key.capitalize()}: {getattr(snapshot, key)}\n" for key in _KEYS)
    return f"{snapshot.loop}: {snapshot.moment} iteration {snapshot.iteration}\n\n{facts}"


def read(text: str) -> Snapshot | None:
    """`COMMIT TREE SECONDS` in the first line, the message below. None: it is no snapshot."""
    first, _, body = text.lstrip("\n").partition("\n")
    pairs = (line.removeprefix("Rooda-").partition(": ") for line in body.splitlines() if line.startswith("Rooda-"))
    facts = {key.rstrip(":").lower(): value for key, _, value in pairs}
    try:
        commit, tree, seconds = first.split(" ")
        values: dict[str, Any] = {key: facts.get(key, "") for key in _KEYS}
        values |= {key: int(facts[key]) for key in ("iteration", "number")}
        return Snapshot(**values, commit=commit, tree=tree, seconds=int(seconds))
    except (KeyError, ValueError):
        return None


def turns(run: Iterable[Snapshot]) -> list[Turn]:
    """The iterations of one run, oldest first. The last word about an iteration counts."""
    found: dict[int, Turn] = {}
    for each in sorted(run, key=lambda snapshot: snapshot.number):
        if each.moment == BEFORE:
            known = found.get(each.iteration)
            found[each.iteration] = known if known and not known.after else Turn(each, None)
        elif each.moment == AFTER and each.iteration in found:
            found[each.iteration] = found[each.iteration]._replace(after=each)
    return [found[number] for number in sorted(found)]


def standing(run: Sequence[Snapshot]) -> int:
    """Before which iteration the work tree stands, as far as undoing goes; behind the last one if nothing is undone."""
    newest = max(run, key=lambda snapshot: snapshot.number)
    return newest.iteration if newest.moment == UNDO else max(each.iteration for each in run) + 1


def next_undone(turns: Iterable[Turn], present: str, standing: int) -> Turn | None:
    """The newest iteration that is not undone and did something: undoing again goes one step further back."""
    open_turns = [turn for turn in turns if turn.before.iteration < standing and turn.before.tree != present]
    return open_turns[-1] if open_turns else None


def too_many(tips: Iterable[Snapshot], keep: int) -> list[Snapshot]:
    """The runs, told by their newest snapshots, that are not among the last `keep` of their procedure and place."""
    seen: dict[tuple[str, str], int] = {}
    old = []
    for tip in sorted(tips, key=lambda tip: (tip.seconds, tip.run), reverse=True):
        whose = (tip.loop, tip.place)
        seen[whose] = seen.get(whose, 0) + 1
        old += [tip] if seen[whose] > keep else []
    return old
