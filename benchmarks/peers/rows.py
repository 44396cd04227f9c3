"""The peers, one row each: where it comes from, how it is made to run N iterations of a fake agent, and what is odd.

All of this was read in the packages themselves: their `--help`, and their source where that says too little. A peer
that knows the agents by name finds the fake one as `claude` on its PATH.
"""

import json
import os
import subprocess
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.bench import Workspace, write

SAYS = json.dumps(
    {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": "Done.",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
)


class Peer(NamedTuple):
    """One tool. `furnish` makes a workspace ready for (agent, N iterations), also once more; `words`: its arguments."""

    name: str
    registry: str  # PyPI | npm
    version: str  # the one that this row was written for
    program: str
    prompt: str  # how the agent gets it: stdin | argument
    furnish: Callable[[Workspace, str, int], None]
    words: Callable[[Workspace, int], list[str]]
    quirk: str
    again: bool = False  # the first INT asks it to finish the iteration; a second one ends it
    pause: bool = False  # it sleeps between two iterations, and nothing can turn that off
    code: int = 0  # how it exits at its limit
    sized: bool = True  # the prompt's size is ours to choose
    python: str = ""  # the oldest Python it runs on, if that is newer than rooda's


def text_of(place: Workspace) -> str:
    with open(place.prompt, encoding="utf-8") as file:
        return file.read()


def _ralphify(place: Workspace, agent: str, count: int) -> None:
    write(os.path.join(place.path, "RALPH.md"), f"---\nagent: {agent}\n---\n{text_of(place)}")


def _nothing(place: Workspace, agent: str, count: int) -> None:
    pass


def _ralph_loop(place: Workspace, agent: str, count: int) -> None:
    """What `ralph init` makes, as far as `ralph run` asks for it."""
    fresh = json.dumps({"version": 1, "iteration": 0, "status": "IDLE", "current_index": 0, "specs": []})
    write(os.path.join(place.path, "PROMPT.md"), text_of(place))
    os.makedirs(os.path.join(place.path, ".ralph"), exist_ok=True)
    for name, text in {"handoff.md": "", "guardrails.md": "", "status": "IDLE", "state.json": fresh}.items():
        write(os.path.join(place.path, ".ralph", name), text)


def _tasks(place: Workspace, agent: str, count: int) -> None:
    """A git repository, and more tasks than iterations."""
    write(os.path.join(place.path, "PRD.md"), "".join(f"- [ ] task {number}\n" for number in range(count + 2)))
    if os.path.exists(os.path.join(place.path, ".git")):
        return
    name = ["-c", "user.name=b", "-c", "user.email=b@c.invalid"]
    for words in (["init", "-q", "-b", "main"], [*name, "commit", "-q", "--allow-empty", "-m", "none"]):
        subprocess.run(["git", *words], cwd=place.path, check=True, capture_output=True)


def _prd(place: Workspace, count: int) -> list[str]:
    return ["--claude", "--no-commit", "--fast", "--max-iterations", str(count)]


PEERS = (
    Peer(
        "ralphify",
        "PyPI",
        "0.3.0",
        "ralph",
        "stdin",
        _ralphify,
        lambda place, count: ["run", ".", "-n", str(count)],
        "keeps no state; the first Ctrl+C waits for the agent, a second one ends it",
        again=True,
    ),
    Peer(
        "ralph-runner",
        "PyPI",
        "0.1.0",
        "ralph-runner",
        "stdin",
        _nothing,
        lambda place, count: [
            "--prompt",
            text_of(place),
            "--no-plan",
            "--iterations",
            str(count),
            "--max-iterations",
            str(count),
        ],
        "claude only; its own prompt comes as an argument, so 128 KiB at most; the first Ctrl+C waits for the agent",
        again=True,
    ),
    Peer(
        "ralph-py",
        "PyPI",
        "0.4.0",
        "ralph",
        "argument",
        _nothing,
        lambda place, count: ["run", "-p", "claude", "-n", str(count), "-d", "0", "-f", place.prompt],
        "four agents by name; the prompt is an argument: 128 KiB at most",
    ),
    Peer(
        "ralphy",
        "PyPI",
        "4.0.1",
        "ralphy",
        "argument",
        _tasks,
        _prd,
        "six agents by name; works a list of tasks; one second of sleep between two",
        pause=True,
        sized=False,
    ),
    Peer(
        "ralph-loop",
        "PyPI",
        "0.6.0",
        "ralph",
        "argument",
        _ralph_loop,
        lambda place, count: ["run", "-m", str(count), "--agents", "claude"],
        "three agents by name; looks at every file before and after each call; an agent without output has crashed",
        code=3,
    ),
    Peer(
        "ralphy-cli",
        "npm",
        "4.7.2",
        "ralphy",
        "argument",
        _tasks,
        _prd,
        "eight agents by name; works a list of tasks; one file of 100 MB with its own JavaScript runtime",
        sized=False,
    ),
)
