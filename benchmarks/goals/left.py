"""Goal 11: however the loop is ended, it ends, and nothing of its agent is left: agents × endings × everybody."""

import os
import signal
import time
from typing import NamedTuple

from benchmarks import contenders, processes
from benchmarks.bench import Bench, Workspace
from benchmarks.contenders import ROODA, Contender
from benchmarks.measure import Failed, Spread, spread, start, until
from benchmarks.verdict import Measured, Row

AGENTS = {"good": "wait", "ignoring": "ignore", "holding stdout": "hold", "setsid": "setsid", "double fork": "fork"}
ENDINGS = ("INT", "TERM", "HUP", "INT to the group", "KILL")
HUNG = 5.0  # seconds; a tool that has not ended by then is asked no further
AGAIN = 0.5  # seconds to the second INT, for a tool whose first one means something else
SOON = 0.4  # seconds after the end in which what is left may still go
GRACE = "kill_grace = 0.1\n"


class Ended(NamedTuple):
    """What came of one ending."""

    seconds: float  # to its exit; HUNG when there was none
    left: int  # processes that were still alive SOON after

    @property
    def hung(self) -> bool:
        return self.seconds >= HUNG

    @property
    def word(self) -> str:
        return ", ".join(word for word, is_so in (("hung", self.hung), ("left", self.left > 0)) if is_so) or "ok"


Cases = dict[tuple[str, str], list[Ended]]


def left(bench: Bench) -> Measured:
    if not processes.readable():
        return Measured([], {})
    notes: dict[str, str] = {}
    found: dict[str, Cases] = {}
    for one in [one for one in contenders.own(bench) if one.name == ROODA] + contenders.peers(bench, notes):
        rounds = 1 if bench.quick or one.name != ROODA else 4
        try:
            found[one.name] = _cases(bench, one, rounds)
        except Failed as problem:
            notes[one.name] += f"; could not be driven: {str(problem).splitlines()[0]}"
    series = {name: _series(cases) for name, cases in found.items()}
    ways = len(AGENTS) * len(ENDINGS)
    rows = [
        Row(11, f"of {ways} ways to end it, those after which it hangs", _count(found, "hung"), 0, ""),
        Row(11, "those after which something of its agent is alive", _count(found, "left"), 0, ""),
    ]
    grids = {
        name: {agent: {ending: _worst(cases[agent, ending]) for ending in ENDINGS} for agent in AGENTS}
        for name, cases in found.items()
    }
    return Measured(rows, series, {"peers": notes, "grid": grids})


def _cases(bench: Bench, one: Contender, rounds: int) -> Cases:
    places = {agent: one.workspace(bench, loop=GRACE, AGENT_DOES=does) for agent, does in AGENTS.items()}
    return {
        (agent, ending): [_end(one, places[agent], ending) for _ in range(rounds)]
        for agent in AGENTS
        for ending in ENDINGS
    }


def _end(one: Contender, place: Workspace, ending: str) -> Ended:
    """Start it, wait for its agent, end it, look."""
    if os.path.exists(place.stamps):
        os.unlink(place.stamps)
    pid = start(one.ready(place, 3), place.env, place.path)
    try:
        until(lambda: os.path.exists(place.stamps) and os.path.getsize(place.stamps) > 0, 20, f"an agent of {one.name}")
        time.sleep(0.1)
        number = signal.Signals[f"SIG{ending.split(maxsplit=1)[0]}"]
        send = os.killpg if "group" in ending else os.kill
        began = time.monotonic()
        send(pid, number)
        again = one.again and ending.startswith("INT")
        seconds = _wait(pid, began, AGAIN if again else HUNG)
        if again and seconds >= AGAIN:
            send(pid, number)
            seconds = _wait(pid, began, HUNG)
        return Ended(seconds, _left(place, pid))
    finally:
        for left in processes.marked(f"STAMPS={place.stamps}"):
            os.kill(left, signal.SIGKILL)
        _wait(pid, time.monotonic(), HUNG)


def _wait(pid: int, began: float, limit: float) -> float:
    """Seconds from `began` to its end; at least `limit` when it does not end."""
    while (passed := time.monotonic() - began) < limit:
        try:
            if os.waitpid(pid, os.WNOHANG)[0]:
                break
        except ChildProcessError:
            break
        time.sleep(0.0005)
    return passed


def _left(place: Workspace, pid: int) -> int:
    """Who of it is alive, some time after its end. Itself, if it hangs, does not count."""
    deadline = time.monotonic() + SOON
    while True:
        alive = [each for each in processes.marked(f"STAMPS={place.stamps}") if each != pid]
        if not alive or time.monotonic() > deadline:
            return len(alive)
        time.sleep(0.02)


def _series(cases: Cases) -> dict[str, Spread]:
    def took(agent: str, ending: str) -> list[float]:
        return [ended.seconds for ended in cases[agent, ending]]

    hung = sum(any(ended.hung for ended in each) for each in cases.values())
    alive = sum(any(ended.left for ended in each) for each in cases.values())
    return {
        "hung": spread([hung]),
        "left alive": spread([alive]),
        "INT to exit": spread(took("good", "INT")),
        "TERM to exit": spread(took("good", "TERM")),
        "TERM to exit, ignoring": spread(took("ignoring", "TERM")),
    }


def _count(found: dict[str, Cases], what: str) -> float:
    return float(sum(any(getattr(ended, what) for ended in each) for each in found[ROODA].values()))


def _worst(endings: list[Ended]) -> str:
    return max((ended.word for ended in endings), key=lambda word: (word != "ok", len(word)))
