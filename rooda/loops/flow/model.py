"""Defines the records of a flow, and the names of its runs, branches and files. No side effects."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Any, NamedTuple

from rooda.base.text import escape_line

NOT_ENTERED = -1
RUNNING, COMPLETE, LIMIT, ERROR = "running", "complete", "max-iterations-reached", "error"
STATUSES = (RUNNING, COMPLETE, LIMIT, ERROR)  # of a node
CANCELLED = "cancelled"  # a run that the user ended for good
REASON_OF = {COMPLETE: "target-met", LIMIT: "max-iterations", ERROR: "error"}
DIRECT, COMPOSITE, LOOP = "direct", "composite", "loop"
PENDING, PASS, FAIL = "pending", "pass", "fail"
ROOT = "root"  # used as the top node's parent path


class Sensor(NamedTuple):
    """A sensor and its agent file, relative to the project's root."""

    name: str
    path: str


class Node(NamedTuple):
    """One node of the flow, with its child node if it has one."""

    id: str
    path: str  # ids from the root, joined by /
    controller: str  # agent file
    strategy: str  # direct | composite | loop
    max_iterations: int
    sensors: tuple[Sensor, ...] = ()
    agent: str = ""  # direct: the actuator's agent file
    child: "Node | None" = None  # composite
    loop: tuple[tuple[str, Any], ...] = ()  # loop: the keys of the actuator and their values

    @property
    def depth(self) -> int:
        return self.path.count("/")

    @property
    def parent(self) -> str:
        """The parent's path; `root` for the top node."""
        return self.path.rpartition("/")[0] or ROOT


class NodeEntry(NamedTuple):
    """One entry into a node: its setpoint (the task), and the label of the parent's iteration."""

    node: Node
    setpoint: str
    parent_label: str = ""  # empty: the top node

    @property
    def inner(self) -> bool:
        """True if the node was entered by its parent; False for the top node."""
        return bool(self.parent_label)


class Reading(NamedTuple):
    """The status in a sensor's output file: pass, fail or pending."""

    sensor: str
    status: str


class Decision(NamedTuple):
    """The decision in a controller's output file."""

    met: bool
    plan: str = ""  # the Action Plan, verbatim


class Action(NamedTuple):
    """A one-line summary of what an actuator did."""

    text: str


class NodeState(NamedTuple):
    """The state of a node as its last commit message records it."""

    iteration: int = NOT_ENTERED
    status: str = RUNNING
    readings: tuple[Reading, ...] = ()
    summary: str = ""
    action: str = ""
    error: str = ""  # the reason, if the node ended with an error
    tree: str = ""  # git tree of the work tree without the run's files; "" if unknown, for example after a resume
    idle: int = 0  # iterations in a row, in this session, that changed no file and no reading


class NodeFailed(Exception):
    """A node failed, after any retries; `why` is one sentence."""

    def __init__(self, why: str, detail: str = "") -> None:
        super().__init__(why)
        self.why, self.detail = why, detail


class CallFailed(Exception):
    """An agent call failed, after any retries. The run remains open, so that a resume repeats the call."""


class Breach(NamedTuple):
    """A forbidden action of an agent; `text` continues a sentence that starts with the agent's name."""

    text: str
    offence: bool = True  # the second offence in a session ends the node


def listed(names: Iterable[str]) -> str:
    """Join the first five names, escaped for a terminal, and add how many others there are."""
    each = [*map(escape_line, names)]
    return ", ".join(each[:5]) + (f" and {len(each) - 5} more" if len(each) > 5 else "")


# Names: dotted iteration labels, slugs, run ids, paths.
LONGEST_SLUG = 50
RUNS = ".ai-loop/runs"
FLOW_FILE = ".ai-loop/flow.yaml"
PREFIX = "ai-loop/"  # of every run's branch
RUN_ID = re.compile(r"run_([0-9]{8})_([0-9]{3,9})")
LONGEST_NUMBER = 9


def label(parent: str, iteration: int) -> str:
    """Return an iteration's dotted label: `2` in the top node, `1.2` below its iteration 1."""
    return f"{parent}.{iteration}" if parent else str(iteration)


def own_iteration(parent: str, text: str) -> int | None:
    """Return the iteration in a label if it is below the label `parent`; None otherwise."""
    before, _, last = text.rpartition(".")
    number = last.isdecimal() and last.isascii() and len(last) <= LONGEST_NUMBER
    return int(last) if before == parent and number else None


def slug(task: str) -> str:
    """Return a short kebab-case branch name for the task; "task" if it has no usable characters."""
    plain = unicodedata.normalize("NFKD", task).encode("ascii", "ignore").decode().lower()
    return shortened(re.sub(r"[^a-z0-9]+", "-", plain).strip("-"), LONGEST_SLUG) or "task"


def shortened(word: str, longest: int) -> str:
    """Shorten a word to a maximum length, at a hyphen if possible."""
    if len(word) <= longest:
        return word
    cut = word[: longest + 1]
    return (cut.rpartition("-")[0] or cut[:longest]).strip("-")


def numbered(word: str, number: int) -> str:
    """Append -2, -3, … to a slug, shortened if the result would be too long; number 1 adds nothing."""
    if number == 1:
        return word
    tail = f"-{number}"
    return shortened(word, LONGEST_SLUG - len(tail)) + tail


def next_run_id(day: str, known: list[str]) -> str:
    """Return the next run id of the day, such as `run_20260225_001`: the highest known number plus one."""
    found = [match for each in known if (match := RUN_ID.fullmatch(each))]
    return f"run_{day}_{max((int(match[2]) for match in found if match[1] == day), default=0) + 1:03d}"


def run_folder(run: str) -> str:
    return f"{RUNS}/{run}"


def node_folder(run: str, path: str) -> str:
    """Return the folder of a node's files."""
    return f"{run_folder(run)}/nodes/{path}"


def sensor_file(name: str) -> str:
    return f"sensor-{name}-output.md"


def chain(node: Node) -> list[Node]:
    """Return the node and its descendants, outermost first."""
    found = [node]
    while (below := found[-1].child) is not None:
        found.append(below)
    return found


def limited(node: Node, limit: int) -> Node:
    """Return the top node with this iteration limit; 0 keeps the node's own limit."""
    return node._replace(max_iterations=limit) if limit else node


def in_chain(node: Node, path: str) -> Node | None:
    return next((each for each in chain(node) if each.path == path), None)


def agent_files(node: Node) -> list[str]:
    """Return the distinct agent files of the node and its descendants."""
    named = [
        path
        for each in chain(node)
        for path in (each.controller, each.agent, *(sensor.path for sensor in each.sensors))
        if path
    ]
    return list(dict.fromkeys(named))
