"""A day with each kind of loop on a terminal of 80 columns: the same words start, watch, stop, resume and end it."""

import os

import pytest

from tests.kit.background import KINDS, began, kill_all, let_go, prepare, rows
from tests.kit.processes import Terminal
from tests.kit.workspace import Ran, Workspace

STEP = 'touch "$FAKE/began"; while [ ! -e "$FAKE/go" ]; do sleep 0.05; done'


class Day:
    """One kind's day; `rooda` runs a shared word, `of_kind` the same word of the kind's own group."""

    def __init__(self, ws: Workspace, kind: str) -> None:
        self.ws, self.kind = ws, kind
        self.words = prepare(ws, kind, STEP)
        self.group = [] if kind == "ooda" else [kind]

    def start(self, *words: str) -> Terminal:
        """Type a command that runs a loop, and wait for its held call."""
        for name in ("began", "go"):
            if os.path.exists(f"{self.ws.fake}/{name}"):
                os.remove(f"{self.ws.fake}/{name}")
        terminal = self.ws.terminal(*words, columns=80)
        try:
            began(self.ws)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{terminal.out}") from None
        return terminal

    def begin_again(self) -> Terminal:
        """Start a second loop like the first one."""
        self.ws.forget_calls()
        if self.kind == "flow":
            self.ws.git("checkout", "-q", "main")
        if self.kind == "goal":
            os.remove(self.ws.file("made"))
        return self.start(*self.words)

    def rooda(self, *words: str) -> Ran:
        ran = self.ws.rooda(*words)
        assert ran.code == 0, (words, ran.both)
        return ran

    def of_kind(self, *words: str) -> Ran:
        return self.rooda(*self.group, *words)

    @property
    def name(self) -> str:
        (row,) = rows(self.ws)
        return str(row["name"])


@pytest.mark.parametrize("kind", KINDS)
def test_L_01_L_02_E_38_a_day(ws: Workspace, kind: str) -> None:
    """Start, watch, Ctrl+C, SIGKILL of everything, resume with higher limits, end; start again, cancel, list, clean."""
    day = Day(ws, kind)
    terminal = day.start(*day.words)
    name = day.name
    for word in ("status", "logs"):
        assert day.rooda(word, name).out.strip() and day.of_kind(word).out.strip()
    terminal.type("\x03")
    assert terminal.finish() == 130, terminal.out
    assert rows(ws)[0]["state"] == "interrupted"
    terminal = day.start("resume", name)
    kill_all(ws)
    terminal.finish()
    assert rows(ws)[0]["state"] == "interrupted"
    named = [name] if kind in ("ooda", "flow") else []
    terminal = day.start(*day.group, "resume", *named, "-n", "7", "--max-cost", "9")
    assert "6 iterations" in day.rooda("set", name, "-n", "6").out
    let_go(ws)
    assert terminal.finish(60) == 0, terminal.out
    assert not rows(ws) or rows(ws)[0]["state"] == "completed"
    assert name in day.rooda("runs").out
    again = day.begin_again()
    other = day.name
    cancelled = day.rooda("cancel") if kind == "goal" else day.of_kind("cancel", other)
    assert "ancelled" in cancelled.out and again.finish() == 143, cancelled.out
    assert not [row for row in rows(ws) if row["state"] != "completed"] and not ws.leftovers()
    refused = ws.rooda("resume", other)
    assert refused.code in (2, 3), refused.both
    assert "nothing to cancel" in day.rooda("cancel", other).out.lower()
    assert name in day.of_kind("list").out
    cleaned = ws.rooda(*day.group, "clean", *{"reflex": (name, "--yes"), "goal": ("--yes",)}.get(kind, ()))
    assert cleaned.code == (2 if kind == "flow" else 0), cleaned.both
    assert day.rooda("logs", name).out and day.rooda("runs").out.count("\n") >= 3  # nothing of the runs is lost
