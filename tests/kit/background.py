"""Loops of every kind whose agent works until the test lets it, started in the background."""

import json
import os
import signal
from contextlib import suppress
from typing import Any

from .flow import Flow
from .loops import SMALL, Loops, hold
from .workspace import Workspace, until

KINDS = tuple(SMALL)
MORE = {"reflex": ("--sequential",), "goal": ("--plan", "plan.json", "--headless", "--yes")}
HOLD = 'touch "$FAKE/began"; while [ ! -e "$FAKE/go" ]; do sleep 0.05; done'


def rows(ws: Workspace, *words: str) -> list[dict[str, Any]]:
    """The output of `rooda status --json`."""
    ran = ws.rooda("status", "--json", *words)
    assert ran.code == 0, ran.both
    found: list[dict[str, Any]] = json.loads(ran.out)
    return found


def began(ws: Workspace) -> None:
    until(lambda: os.path.exists(f"{ws.fake}/began"), what="the agent")


def let_go(ws: Workspace) -> None:
    with open(f"{ws.fake}/go", "w"):
        pass


def kill_all(ws: Workspace, *spared: int) -> None:
    """Kill every process of the workspace, as a logout can. All stop first, so that none reacts to another's end.

    A parent stops before its children, since a guardian wakes its loop, and dies after them for the same reason.
    """
    stopped: list[int] = []
    while fresh := sorted({*ws.leftovers()} - {*stopped, *spared}):
        _send_all(fresh, signal.SIGSTOP)
        stopped += fresh
    _send_all(stopped[::-1], signal.SIGKILL)
    until(lambda: not {*ws.leftovers()} - {*spared}, what="every process to be gone")


def _send_all(pids: list[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def detached(ws: Workspace, n: str = "3", hold: int | str = "iteration-1", *words: str) -> str:
    """`rooda build` in the background, whose call `hold` works until it is let go; the run's name."""
    ws.side(hold, HOLD)
    ran = ws.rooda("build", "-n", n, "--detach", *words)
    assert ran.code == 0, ran.both
    began(ws)
    return ran.lines[0].rpartition(" ")[2]


def prepare(ws: Workspace, kind: str, shell: str = HOLD) -> list[str]:
    """A loop of this kind that ends well; a call in its middle runs `shell`. Gives the words that start it."""
    how: dict[str, Any] = {"steps": 2, "score": 2} if kind == "goal" else {}
    words = Loops(ws).words(kind, *MORE.get(kind, ()), most=3 if kind == "ooda" else 2, **how)
    hold(ws, kind, shell)
    return words


def begin(ws: Workspace, kind: str) -> None:
    """It runs in the background, and the call in the middle has begun."""
    ran = ws.rooda(*prepare(ws, kind), "--detach")
    assert ran.code == 0, ran.both
    began(ws)


def calls(ws: Workspace, kind: str) -> list[str]:
    """What each agent call was, in order."""
    if kind != "flow":
        return [f"{call.kind} {call.env['ROODA_ITERATION']}" for call in ws.calls]
    made = Flow.__new__(Flow)  # one that is there already
    made.ws = ws
    return [call["role"] for call in made.calls]


def outcome(ws: Workspace, kind: str) -> Any:
    """What the loop's public files say at its end, without its times and names."""
    if kind == "ooda":
        return ws.state()
    if kind == "reflex":
        found = ws.json(".ai-factory/evolution/page/run.json")
        return [found[key] for key in ("status", "iteration", "phase", "stop", "last_score")], ws.read(
            ".ai-factory/evolution/page/artifact.md"
        )
    if kind == "goal":
        return ws.json(".loop/state.json")
    log = ws.git("log", "--reverse", "--format=%s", "main..HEAD")
    return log, ws.git("status", "--porcelain"), ws.read("src.txt")
