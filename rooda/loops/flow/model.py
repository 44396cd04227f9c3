"""Records of the flow loop, shared by everything that runs one. No behaviour worth a test."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Any, NamedTuple

from rooda.base.text import escape_line

NOT_ENTERED = -1
RUNNING, COMPLETE, LIMIT, ERROR = "running", "complete", "max-iterations-reached", "error"
STATUSES = (RUNNING, COMPLETE, LIMIT, ERROR)
REASON_OF = {COMPLETE: "target-met", LIMIT: "max-iterations", ERROR: "error"}
DIRECT, COMPOSITE, LOOP = "direct", "composite", "loop"
PENDING, PASS, FAIL = "pending", "pass", "fail"
ROOT = "root"  # what stands where the top node's parent would


class Sensor(NamedTuple):
    """One sensor of a node: its name and its agent file, relative to the project's root."""

    name: str
    path: str


class Node(NamedTuple):
    """One loop of the flow, with the one inside it."""

    id: str
    path: str  # ids from the root, joined by /
    controller: str  # agent file
    strategy: str  # direct | composite | loop
    max_iterations: int
    sensors: tuple[Sensor, ...] = ()
    agent: str = ""  # direct: the actuator's agent file
    child: "Node | None" = None  # composite
    loop: tuple[tuple[str, Any], ...] = ()  # loop: which kind, and how it is asked

    @property
    def depth(self) -> int:
        return self.path.count("/")

    @property
    def parent(self) -> str:
        """The parent's path; `root` for the top node."""
        return self.path.rpartition("/")[0] or ROOT


class NodeEntry(NamedTuple):
    """One entry into a node: its setpoint, and the iteration of the parent that it belongs to."""

    node: Node
    setpoint: str
    parent_label: str = ""  # empty: the top node

    @property
    def inner(self) -> bool:
        """True if a composite actuator entered the node."""
        return bool(self.parent_label)


class Reading(NamedTuple):
    """What a sensor's file says: pass, fail, or pending."""

    sensor: str
    status: str


class Decision(NamedTuple):
    """What the controller's file says."""

    met: bool
    plan: str = ""  # the Action Plan, verbatim


class Action(NamedTuple):
    """What the actuator did, in one line."""

    text: str


class NodeState(NamedTuple):
    """A node after its last boundary: exactly what that commit's message says."""

    iteration: int = NOT_ENTERED
    status: str = RUNNING
    readings: tuple[Reading, ...] = ()
    summary: str = ""
    action: str = ""
    error: str = ""  # what was wrong, of a node that ended with an error


class NodeFailed(Exception):
    """A node can't go on: an agent, a contract or a commit failed for good. `why` is one sentence."""

    def __init__(self, why: str, detail: str = "") -> None:
        super().__init__(why)
        self.why, self.detail = why, detail


class Breach(NamedTuple):
    """What an agent did beside what it was asked for. `text` goes on after its name."""

    text: str
    offence: bool = True  # the second in a run ends its node


def listed(names: Iterable[str]) -> str:
    """The first five of them, fit for a screen."""
    each = [*map(escape_line, names)]
    return ", ".join(each[:5]) + (f" and {len(each) - 5} more" if len(each) > 5 else "")


# Names of things in a flow: dot labels, slugs, run ids, artifact paths. Pure.
LONGEST_SLUG = 50
RUNS = ".ai-loop/runs"
FLOW_FILE = ".ai-loop/flow.yaml"
PREFIX = "ai-loop/"  # of every branch
RUN_ID = re.compile(r"run_([0-9]{8})_([0-9]{3,9})")
LONGEST_NUMBER = 9


def label(parent: str, iteration: int) -> str:
    """`2` at the top, `1.2` in a node entered in its parent's iteration 1."""
    return f"{parent}.{iteration}" if parent else str(iteration)


def own_iteration(parent: str, text: str) -> int | None:
    """The node's own number if the label belongs to this entry, else None."""
    before, _, last = text.rpartition(".")
    number = last.isdecimal() and last.isascii() and len(last) <= LONGEST_NUMBER
    return int(last) if before == parent and number else None


def slug(task: str) -> str:
    """A short kebab-case word for a branch; `task` when nothing of the text can be in one."""
    plain = unicodedata.normalize("NFKD", task).encode("ascii", "ignore").decode().lower()
    return shortened(re.sub(r"[^a-z0-9]+", "-", plain).strip("-"), LONGEST_SLUG) or "task"


def shortened(word: str, longest: int) -> str:
    """Cut at a hyphen where there is one."""
    if len(word) <= longest:
        return word
    cut = word[: longest + 1]
    return (cut.rpartition("-")[0] or cut[:longest]).strip("-")


def numbered(word: str, number: int) -> str:
    """The slug with -2, -3, … still within its length."""
    if number == 1:
        return word
    tail = f"-{number}"
    return shortened(word, LONGEST_SLUG - len(tail)) + tail


def next_run_id(day: str, known: list[str]) -> str:
    """`run_20260225_001`: one more than the highest of the same day."""
    found = [match for each in known if (match := RUN_ID.fullmatch(each))]
    return f"run_{day}_{max((int(match[2]) for match in found if match[1] == day), default=0) + 1:03d}"


def run_folder(run: str) -> str:
    return f"{RUNS}/{run}"


def artifacts(run: str, path: str) -> str:
    """Where a node's files are, without a slash at the end."""
    return f"{run_folder(run)}/nodes/{path}"


def sensor_file(name: str) -> str:
    return f"sensor-{name}-output.md"


def chain(node: Node) -> list[Node]:
    """The node and all below it, outermost first."""
    found = [node]
    while (below := found[-1].child) is not None:
        found.append(below)
    return found


def in_chain(node: Node, path: str) -> Node | None:
    return next((each for each in chain(node) if each.path == path), None)


def agent_files(node: Node) -> list[str]:
    """Every agent file that the flow names, each once."""
    named = [
        path
        for each in chain(node)
        for path in (each.controller, each.agent, *(sensor.path for sensor in each.sensors))
        if path
    ]
    return list(dict.fromkeys(named))
