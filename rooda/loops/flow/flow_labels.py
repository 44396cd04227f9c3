"""Names of things in a flow: dot labels, slugs, run ids, artifact paths. Pure."""

import re
import unicodedata

from rooda.loops.flow.model import Node

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
