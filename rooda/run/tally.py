"""Counts what happened in a run: iterations, calls, cost, and the last result of each gate. Pure."""

from collections.abc import Collection

from rooda.base.json import Json
from rooda.run.spending import Spent

EVENTS = (
    "iteration.started",
    "agent.started",
    "agent.ended",
    "gate.ended",
    "baseline.ended",
    "sandbox.chosen",
    "files.restored",
    "network.refused",
)
PASS = "pass"


class Tally:
    """Counts the events of one or several sessions.

    `turn_ends`: the events that end an iteration of this kind of loop. `turn_part`: the event that begins a part of an
    iteration, if a resume continues a cut-off iteration; "" if it repeats the iteration.
    """

    def __init__(self, turn_ends: Collection[str], turn_part: str = "") -> None:
        self._turn_ends, self._turn_part = turn_ends, turn_part
        self._started = self._open = False  # an iteration has started; an agent was called in it
        self.iterations = self.failed = self.cut_off = 0
        self.calls = self.unknown = self.tokens = 0
        self.cost = 0.0
        self.gates: dict[str, str] = {}  # last verdict of each gate, keyed by name
        self.restored: dict[str, None] = {}  # guarded files that were put back
        self.refused: dict[str, None] = {}  # hosts to which connections were refused
        self.sandbox_off = ""  # why there is no sandbox although the settings ask for one
        self.red_before: list[str] | None = None  # gates that failed before the first iteration, if they were run

    def add(self, record: Json) -> None:
        event = record["event"]
        if event == "iteration.started":
            self._started, self._open = True, False
        elif event == self._turn_part:
            self._started = True
        elif event == "agent.started":
            self._open = self._started
        elif event == "agent.ended":
            self._add_call(record)
        elif event == "gate.ended":
            self.gates[str(record["gate"])] = str(record["verdict"])
        elif event == "sandbox.chosen":
            why, is_off = str(record["why"]), record["mode"] == "off"
            self.sandbox_off = why if is_off or not why else f"for the agent, {why}"
        elif event == "files.restored":
            self.restored |= dict.fromkeys(map(str, record["paths"]))
        elif event == "network.refused":
            self.refused |= {str(record["host"]): None}
        elif event == "baseline.ended":
            self.red_before = [str(name) for name in record["failed"]]
        elif event in self._turn_ends and not is_below_top(record):
            self._add_turn(record)

    def add_spent(self, spent: Spent) -> None:
        self.calls += spent.calls
        self.unknown += spent.unknown
        self.cost += spent.cost
        self.tokens += spent.tokens

    def cut(self) -> None:
        """Count the iteration that a crash cut off, if any; called at the end of a session's log."""
        if not self._turn_part:
            self.iterations += self._open
            self.cut_off += self._open
        self._started = self._open = False

    @property
    def used(self) -> Spent:
        return Spent(self.calls, self.cost, self.unknown, self.tokens)

    def _add_turn(self, record: Json) -> None:
        outcome = outcome_of(record)
        self._started = self._open = False
        self.iterations += 1
        self.failed += outcome == "failure"
        self.cut_off += outcome == "interrupted"

    def _add_call(self, record: Json) -> None:
        cost, usage = record.get("cost"), record.get("usage") or {}
        self.calls += 1
        self.unknown += cost is None
        self.cost += cost or 0.0
        self.tokens += sum(usage.values())

    @property
    def facts(self) -> Json:
        return {
            **{"iterations": self.iterations + self._open, "failed": self.failed, "cut_off": self.cut_off + self._open},
            **{"calls": self.calls, "unknown": self.unknown, "cost": round(self.cost, 6), "tokens": self.tokens},
            "gates": dict(self.gates),
            **({"sandbox_off": self.sandbox_off} if self.sandbox_off else {}),
            **{key: [*getattr(self, key)] for key in ("restored", "refused") if getattr(self, key)},
            **({} if self.red_before is None else {"red_before": self.red_before}),
        }


def outcome_of(record: Json) -> str:
    """Return the outcome of an iteration, from the event that ends it: `success`, `failure` or `interrupted`."""
    return str(record.get("outcome") or ("failure" if record.get("accepted") is False else "success"))


def is_below_top(record: Json) -> bool:
    """True if the event is from a node below a flow's top node. In a reflex loop, `level` is a phase, A or B."""
    return isinstance(level := record.get("level"), int) and level > 0
