"""What a snapshot says of itself, when one is due, which one a person means, and which are too many. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rooda.base.text import escape_line

BEFORE, AFTER, UNDO = "before", "after", "undo"
ROOT = "refs/rooda/"
OODA = "ooda"
HOMES = {".ai-factory/evolution/": "reflex", ".ai-loop/runs/": "flow"}  # where loops keep files that git sees
POINTER = "current.json"  # to the active reflex loop
TURN_EVENTS = (  # events that begin or end a turn
    *("run.started", "run.resumed", "iteration.started", "reflex.phase"),
    *("node.boundary", "iteration.ended", "run.ended"),
)
_STATE = re.compile(r"(?:^|/)(\.ai-factory/evolution/|\.ai-loop/runs/|\.loop/(?!shape/)|\.rooda/)")
_KEYS = ("run", "kind", "loop", "iteration", "moment", "number", "place", "head", "branch", "trouble", "resumed")


class Snapshot(NamedTuple):
    """A commit outside of all branches whose tree is the whole work tree of a moment."""

    run: str
    kind: str  # of loop: ooda | reflex | flow | goal
    loop: str  # its name: the procedure, the alias, the flow's run, goal
    iteration: int  # as the screen shows it
    moment: str  # before | after | undo
    number: int  # 1, 2, 3, … within the run
    place: str  # which work tree of the repository, which folder of it, in one line
    head: str = ""  # where HEAD was; "" where nothing is committed
    branch: str = ""  # "" when detached
    trouble: str = ""  # why something is missing in it
    resumed: str = ""  # "yes": the run went on with what an earlier one had begun
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

    @property
    def family(self) -> str:
        return family(self.kind, self.loop)

    def is_of(self, name: str | None) -> bool:
        """Does a person mean it by this name, of a loop, a kind of loop or a run? Without one all are meant."""
        return name in (None, self.loop, self.family, self.run)


class Turn(NamedTuple):
    """One iteration as its snapshots have it."""

    before: Snapshot
    after: Snapshot | None  # None: it was cut off, or goes on


def family(kind: str, loop: str) -> str:
    """Whose snapshots belong together: a procedure's; of the other kinds all, as each of their loops is another one."""
    return loop if kind == OODA else kind


def folder(run: str) -> str:
    """A run as part of a ref, where two dots have a meaning."""
    return run.replace("..", "._")


def ref(run: str, name: str) -> str:
    return f"{ROOT}{folder(run)}/{name}"


def message(snapshot: Snapshot) -> str:
    """The commit's message: a line for people, and the facts."""
    facts = "".join(f"Rooda-{key.capitalize()}: {getattr(snapshot, key)}\n" for key in _KEYS)
    return f"{snapshot.loop}: {snapshot.moment} iteration {snapshot.iteration}\n\n{facts}"


def parse(text: str) -> Snapshot | None:
    """`COMMIT TREE SECONDS` in the first line, the message below. None: it is no snapshot."""
    first, _, body = text.lstrip("\n").partition("\n")
    pairs = (line.removeprefix("Rooda-").partition(": ") for line in body.splitlines() if line.startswith("Rooda-"))
    facts = {"kind": OODA} | {key.rstrip(":").lower(): value for key, _, value in pairs}
    try:
        commit, tree, seconds = first.split(" ")
        values: dict[str, Any] = {key: facts.get(key, "") for key in _KEYS}
        values |= {key: int(facts[key]) for key in ("iteration", "number")}
        return Snapshot(**values, commit=commit, tree=tree, seconds=int(seconds))
    except (KeyError, ValueError):
        return None


def due_snapshots(turn: int | None, event: str, facts: Mapping[str, Any]) -> tuple[list[tuple[int, str]], int | None]:
    """The snapshots that an event calls for, and the turn that goes on then. `turn` is the one until now, if any."""
    ended, begun = _turn_change(event, facts)
    begins = begun is not None and begun != turn
    found = [(turn, AFTER)] if turn is not None and (ended or begins) else []
    if begun is not None and begins:
        found.append((begun, BEFORE))
    return found, begun if begins else None if ended else turn


def _turn_change(event: str, facts: Mapping[str, Any]) -> tuple[bool, int | None]:
    """Does it end a turn, and which one begins or goes on with it? Turns are iterations, a flow's those at its top."""
    if event in ("iteration.started", "reflex.phase"):
        return False, facts["iteration"] + 1
    if event in ("run.started", "run.resumed"):
        return False, facts.get("number")
    if event == "node.boundary" and facts["level"] == 0:
        return True, facts["number"] + 1 if facts["status"] == "running" else None
    return event in ("iteration.ended", "run.ended"), None


def belongs_to_another_loop(path: str, whose: Snapshot) -> bool:
    """Is it what a loop keeps of itself, and not the loop that is undone? That is nobody else's to take back.

    A reflex loop's own folder goes with its artifact, which lies in it; a flow's own run with the files it worked on.
    """
    found = _STATE.search(path)
    if found is None:
        return False
    here = escape_line(path[: found.start(1)]) == whose.place.partition(":")[2]
    own = path[found.end() :].partition("/")[0] in (whose.loop, POINTER)
    return not (here and own and HOMES.get(found[1]) == whose.kind)


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


def undo_position(run: Sequence[Snapshot]) -> int:
    """Before which iteration the work tree stands, as far as undoing goes; behind the last one if nothing is undone."""
    newest = max(run, key=lambda snapshot: snapshot.number)
    return newest.iteration if newest.moment == UNDO else max(each.iteration for each in run) + 1


def next_undone(turns: Iterable[Turn], present: str, standing: int) -> Turn | None:
    """The newest iteration that is not undone and did something: undoing again goes one step further back."""
    open_turns = [turn for turn in turns if turn.before.iteration < standing and turn.before.tree != present]
    return open_turns[-1] if open_turns else None


def excess_runs(tips: Iterable[Snapshot], keep: int) -> list[Snapshot]:
    """The runs, told by their newest snapshots, that are not among the last `keep` of their family and place."""
    seen: dict[tuple[str, str], int] = {}
    old = []
    for tip in sorted(tips, key=lambda tip: (tip.seconds, tip.run), reverse=True):
        whose = (tip.family, tip.place)
        seen[whose] = seen.get(whose, 0) + 1
        old += [tip] if seen[whose] > keep else []
    return old
