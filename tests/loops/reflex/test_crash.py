"""A loop that is killed anywhere and resumed comes to the same end, with the same artifact, and pays no phase twice."""

import json
import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.kit.reflex import ALIAS, Kit, traced
from tests.kit.reflex_scenarios import T, by_iteration
from tests.kit.workspace import Workspace, until

HOOKS = str(Path(__file__).parent / "hooks")


def environment(kit: Kit, **more: str) -> dict[str, str]:
    return {"PYTHONPATH": HOOKS, **more}


def new(kit: Kit, maximum: int, *more: str, **env: str) -> int:
    arguments = kit.arguments(maximum, *more)
    ran = kit.ws.rooda(*arguments, stdin=b"y\ny\n", env=environment(kit, **env) if env else None, timeout=60)
    until(lambda: not kit.ws.leftovers(), what="every process to be gone")
    return ran.code


def same_end(kit: Kit, name: str, calls: int, alone: int = 1) -> None:
    """What an uninterrupted run would have left; at most the interrupted phases were asked once more."""
    wanted = T[name]
    run = kit.run
    assert (run["status"], run["stop"]["reason"], run["iteration"]) == (wanted.status, wanted.reason, wanted.iteration)
    assert traced(kit.ev) == wanted.trace
    assert sorted(kit.files()) == [f"{ALIAS}/{each}" for each in ("artifact.md", "history.jsonl", "run.json")]
    assert kit.said(f"PRODUCE.i{wanted.iteration}.1") == kit.artifact
    assert len(kit.started("*")) <= calls + 2 * alone


def writes_of(kit: Kit, name: str, *more: str) -> tuple[int, int]:
    """How often an uninterrupted run changes the public folder, and how many calls it makes."""
    count = os.path.join(kit.ws.root, "count")
    by_iteration(kit, name)
    new(kit, T[name].maximum, *more, COUNT_IN=count)
    assert traced(kit.ev) == T[name].trace
    return int(Path(count).read_text()), len(kit.started("*"))


def killed_at_each(tmp_path: Path, name: str, places: range, writes: int, calls: int, *more: str) -> None:
    for place in places:
        ws = Workspace(str(tmp_path / f"{place}"))
        kit = Kit(ws)
        by_iteration(kit, name)
        new(kit, T[name].maximum, *more, KILL_AT=str(place))
        for path in kit.home.rglob("*.json"):
            assert json.loads(path.read_text()), (place, path)
        if not kit.path("history.jsonl").exists() or not kit.history:
            new(kit, T[name].maximum, *more)
        elif not kit.path("run.json").exists() or kit.run["status"] == "running":
            ran = kit.reflex("resume", *more)
            assert ran.code == T[name].code, (place, ran.both)
        else:
            kit.reflex("resume", *more)  # it has ended; what was left half-done is put right by the next start
            assert kit.reflex("clean", "no-such-loop").code == 2
            kit.ws.rooda("reflex", "stop")
            tidied(kit)
        same_end(kit, name, calls)
        ws.close()


def tidied(kit: Kit) -> None:
    """A next `new` that does nothing still tidies up: its criteria are confirmed, its agent says nothing."""
    kit.ws.write("none.json", '[{"id": "a.b.c", "severity": "info", "description": "d"}]')
    for phase in ("PLAN",):
        kit.answer(f"{phase}.i9.1", "")
    ran = kit.ws.rooda(
        *("reflex", "new", "other loop", "--rules", "none.json", "--ai-cmd", "true", "--alias", "other"),
        stdin=b"y\ny\n",
    )
    assert ran.code == 1, ran.both
    kit.ws.rooda("reflex", "clean", "other", "--yes")


@pytest.fixture
def t6(tmp_path: Path) -> tuple[int, int]:
    ws = Workspace(str(tmp_path / "whole"))
    found = writes_of(Kit(ws), "T6")
    ws.close()
    return found


@pytest.mark.parametrize("offset", range(4))
def test_R_053_R_218_killed_before_some_writes(tmp_path: Path, t6: tuple[int, int], offset: int) -> None:
    """A loop killed before any change of its public folder (each fourth one, in four tests) resumes to the same end."""
    writes, calls = t6
    killed_at_each(tmp_path, "T6", range(1 + 4 * offset, writes + 1, 16), writes, calls)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["T2", "T3", "T4", "T5", "T6"])
@pytest.mark.parametrize("more", [(), ("--sequential",)], ids=["parallel", "sequential"])
def test_R_218_killed_before_every_write(tmp_path: Path, name: str, more: tuple[str, ...]) -> None:
    """All of them, in every scenario."""
    ws = Workspace(str(tmp_path / "whole"))
    writes, calls = writes_of(Kit(ws), name, *more)
    ws.close()
    killed_at_each(tmp_path, name, range(1, writes + 1), writes, calls, *more)


CALLS = [
    *(("PLAN", 1), ("PRODUCE", 1), ("PREPARE", 1), ("PREPARE", 2), ("CRITIQUE", 1), ("REFINE", 1)),
    *(("PLAN", 2), ("PRODUCE", 2), ("PREPARE", 3)),
]


@pytest.mark.parametrize("phase, nth", CALLS)
def test_R_218_R_239_killed_in_a_call(kit: Kit, phase: str, nth: int) -> None:
    """KILL while an agent works: the resumed loop repeats that phase and no other."""
    by_iteration(kit, "T6")
    whole = {"PLAN": 2, "PRODUCE": 2, "PREPARE": 3, "CRITIQUE": 1, "REFINE": 1}
    flag = kit.ws.file("../go")
    waiting(kit, phase, nth, flag)
    running = kit.start(4)
    if phase in ("PRODUCE", "PREPARE") and (phase, nth) != ("PREPARE", 2):
        other, place = ("PREPARE", nth + (nth > 1)) if phase == "PRODUCE" else ("PRODUCE", min(nth, 2))
        until(lambda: len(kit.started(other)) >= place, what=f"the call of {other} beside it")
    until(lambda: len(kit.started(phase)) >= nth, what=f"call {nth} of {phase}")
    kit.killed(running)
    Path(flag).touch()
    ran = kit.reflex("resume")
    assert ran.code == 0, ran.both
    again = {"PRODUCE", "PREPARE"} if phase in ("PRODUCE", "PREPARE") and (phase, nth) != ("PREPARE", 2) else {phase}
    assert Counter(kit.counts()) == Counter(whole) + Counter(dict.fromkeys(again, 1))
    same_end(kit, "T6", sum(whole.values()))


def waiting(kit: Kit, phase: str, nth: int, flag: str) -> None:
    """The answers of this phase's nth call wait for a file, so that the kill meets it at work."""
    where = {1: "i1.A", 2: "i2.B"}
    if phase == "PREPARE":
        where = {1: "i1.A", 2: "i1.B", 3: "i2.B"}
    names = [f"{phase}.{where.get(nth, 'i1.B')}.1"]
    if phase in ("CRITIQUE", "REFINE"):
        names = [f"{phase}.i1.B.1"]
    for name in names:
        source = next(
            each
            for each in (name.replace(".A.", ".").replace(".B.", "."), f"{phase}.{name.split('.')[2]}.1", f"{phase}.1")
            if each in kit.answers()
        )
        kit.answer(name, kit.said(source), f"wait {flag}")


def test_R_218_everything_but_the_agent_is_killed(kit: Kit) -> None:
    """KILL of loop and guardian at once: the next start ends the agent that is left, and continues."""
    by_iteration(kit, "T6")
    kit.answer("CRITIQUE.i1.B.1", kit.said("CRITIQUE.1"), "touch asleep", "sleep 60")
    running = kit.start(4)
    until(lambda: kit.ws.exists("asleep"), what="the agent to have read its answer")
    os.killpg(running.pid, signal.SIGKILL)
    running.process.wait()
    kit.forget("CRITIQUE.i1.B.1")
    ran = kit.reflex("resume")
    assert ran.code == 0, ran.both
    assert "still alive" in ran.err and not kit.ws.leftovers()
    same_end(kit, "T6", 9)
