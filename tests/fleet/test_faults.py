"""Faults: workers that die, hang, stand still or lose their link. Effects are counted outside of the engine."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit import clocks, temporal
from tests.kit.hands import BEAT, Crew, agents, wish, worker_below
from tests.kit.processes import alive, until

TURNS = 3


@pytest.fixture
def link(server: temporal.Server) -> Iterator["Link"]:
    """A proxy to the server, whose link can be cut."""
    found = Link(server.port)
    yield found
    found.end()


class Link:
    """A TCP proxy; while it is stopped, its link is cut."""

    def __init__(self, port: int) -> None:
        self.port = temporal.free_port()
        words = [sys.executable, "-m", "tests.kit.link", str(self.port), str(port)]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        until(lambda: temporal.answers(self.port), 30)

    @property
    def address(self) -> str:
        return f"temporal://127.0.0.1:{self.port}/default"

    def cut(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def mend(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def submit(engine: Any, key: str, count: int, seconds: float, turns: int = TURNS) -> None:
    for number in range(1, count + 1):
        engine.submit(wish(key, number, ticket={"number": number, "turns": turns, "seconds": seconds}))


def completed(engine: Any, key: str) -> int:
    return sum(each["task"]["state"] == "completed" for each in engine.board(key))


def turns_once(crew: Crew, count: int, turns: int = TURNS) -> None:
    """Every turn was published exactly once."""
    found = Counter((each["task"], each["turn"]) for each in crew.of("turn"))
    assert found == {(task, turn): 1 for task in range(1, count + 1) for turn in range(1, turns + 1)}


def repeated(crew: Crew, count: int, turns: int = TURNS) -> int:
    return len(crew.of("call")) - count * turns


def fault(engine: Any, crew: Crew, victim: Callable[[], Any]) -> None:
    """Let blue begin two tasks, whose agents wait for `crew.go()`, and red come; then blue's fault."""
    submit(engine, crew.key, 2, -1)
    until(lambda: len(crew.of("call")) == 2, 30)
    crew.start("red")
    until(lambda: len([each for each in engine.workers() if each["pool"] == crew.key]) == 2, 30)
    victim()


def finish(engine: Any, crew: Crew, repeats: int = 2) -> None:
    """Both tasks are completed, every turn exactly once, and this many calls were made twice."""
    crew.go()
    until(lambda: completed(engine, crew.key) == 2, 60)
    turns_once(crew, 2)
    assert repeated(crew, 2) == repeats


def calls_of_red(crew: Crew) -> list[float]:
    """When red's first call for each task began."""
    first = {each["task"]: each["at"] for each in reversed(crew.of("call")) if each["by"] == "red"}
    return sorted(first.values())


def await_seconds(seconds: float) -> None:
    """Let time pass, in which something must not happen."""
    since = time.monotonic()
    until(lambda: time.monotonic() - since > seconds, seconds + 10)


def test_FL_05_a_killed_worker_leaves_nothing_and_others_go_on(engine: Any, crew: Crew) -> None:
    """SIGKILL of the worker: its guardian ends the agents and exits with 75; both tasks go on elsewhere."""
    blue = crew.start("blue")
    fault(engine, crew, lambda: os.kill(worker_below(blue.pid), signal.SIGKILL))
    since = time.monotonic()
    assert blue.wait(20) == 75
    assert not agents(crew.folder)
    until(lambda: len(calls_of_red(crew)) == 2, 10 * BEAT)
    print(f"take-over: {calls_of_red(crew)[-1] - since:.1f} s of {2 * BEAT:g}")
    finish(engine, crew)
    assert not crew.of("refused")


def test_FL_05_a_stopped_worker_is_ended_while_it_stands_still(engine: Any, crew: Crew) -> None:
    """SIGSTOP: before anybody else takes the tasks, the guardian ends the worker and its agents."""
    blue = crew.start("blue")
    fault(engine, crew, lambda: os.kill(worker_below(blue.pid), signal.SIGSTOP))
    assert blue.wait(30) == 75
    assert not calls_of_red(crew) or not [pid for pid in agents(crew.folder) if not is_of_red(pid, crew)]
    assert "No proof of life" in crew.said("blue")
    until(lambda: len(calls_of_red(crew)) == 2, 10 * BEAT)
    finish(engine, crew)


def test_FL_05_a_link_that_is_cut_ends_the_worker(engine: Any, crew: Crew, link: Link) -> None:
    """Fenced while the link is cut, the tasks go on elsewhere."""
    blue = crew.start("blue", address=link.address)
    fault(engine, crew, link.cut)
    assert blue.wait(30) == 75
    until(lambda: len(calls_of_red(crew)) == 2, 10 * BEAT)
    link.mend()
    finish(engine, crew)


def test_FL_05_a_short_cut_of_the_link_ends_and_repeats_nothing(engine: Any, crew: Crew, link: Link) -> None:
    """The server is away for half of the timeout: turns wait to be confirmed, and go on."""
    blue = crew.start("blue", address=link.address)
    submit(engine, crew.key, 2, -1)
    until(lambda: len(crew.of("call")) == 2, 30)
    link.cut()
    crew.go()
    until(lambda: len(crew.of("turn")) == 2, 30)
    await_seconds(BEAT / 2)
    assert len(crew.of("turn")) == 2
    link.mend()
    finish(engine, crew, repeats=0)
    assert blue.poll() is None
    assert {each["leg"] for each in crew.of("begin")} == {1}


def test_FL_05_a_thaw_is_noticed_although_new_proofs_arrive(engine: Any, crew: Crew) -> None:
    """Worker and guardian stand still together, as on a frozen machine: at the thaw everything of them ends."""
    blue = crew.start("blue")
    worker = 0

    def freeze() -> None:
        nonlocal worker
        worker = worker_below(blue.pid)
        for pid in (blue.pid, worker):
            os.kill(pid, signal.SIGSTOP)

    fault(engine, crew, freeze)
    await_seconds(BEAT)
    os.kill(worker, signal.SIGCONT)
    await_seconds(0.5)  # the worker proves its life again
    os.kill(blue.pid, signal.SIGCONT)
    assert blue.wait(20) == 75
    until(lambda: len(calls_of_red(crew)) == 2, 10 * BEAT)
    finish(engine, crew)


def test_FL_10_without_any_fence_the_late_report_is_refused(engine: Any, crew: Crew) -> None:
    """A worker that stands still for two timeouts and goes on as if nothing was: what it reports does not count."""
    blue = crew.start("blue", ROODA_TEST_FENCE="off")
    fault(engine, crew, lambda: os.kill(worker_below(blue.pid), signal.SIGSTOP))
    until(lambda: len(calls_of_red(crew)) == 2, 10 * BEAT)
    finish(engine, crew)
    os.kill(worker_below(blue.pid), signal.SIGCONT)
    until(lambda: len(crew.of("refused")) == 2, 30)
    turns_once(crew, 2)
    assert {each["by"] for each in crew.of("refused")} == {"blue"}
    shown = [engine.show(wish(crew.key, number).workflow) for number in (1, 2)]
    assert [(each["task"]["state"], each["fleet"]["legs"]) for each in shown] == [("completed", 2)] * 2
    blue.terminate()
    assert blue.wait(30) == 143


def test_FL_05_without_its_guardian_a_worker_ends_everything(engine: Any, crew: Crew) -> None:
    """SIGKILL of the guardian alone: nothing of the worker is left, and the tasks go on elsewhere."""
    blue, workers = crew.start("blue"), list[int]()

    def kill() -> None:
        workers.append(worker_below(blue.pid))
        blue.kill()

    fault(engine, crew, kill)
    until(lambda: not alive(workers[0]), 20)
    until(lambda: not [pid for pid in agents(crew.folder) if not is_of_red(pid, crew)], 20)
    until(lambda: len(calls_of_red(crew)) == 2, 10 * BEAT)
    finish(engine, crew)


def is_of_red(pid: int, crew: Crew) -> bool:
    from rooda.processes import table

    return pid in table.descendants(crew.running[-1].pid)


def test_FL_11_a_drain_repeats_and_loses_nothing(engine: Any, crew: Crew) -> None:
    """Turns are finished, the tasks go on elsewhere, and the worker exits with 0."""
    blue = crew.start("blue")

    def drain() -> None:
        (found,) = [each for each in engine.workers() if each["name"] == "blue" and each["pool"] == crew.key]
        assert engine.message(found["queue"], {"drain": "blue is drained"})
        until(lambda: "Draining" in crew.said("blue"), 20)
        crew.go()

    fault(engine, crew, drain)
    assert blue.wait(30) == 0
    finish(engine, crew, repeats=0)
    assert Counter(each["by"] for each in crew.of("turn")) == {"blue": 2, "red": 2 * TURNS - 2}


def test_FL_05_a_second_signal_ends_everything_at_once(engine: Any, crew: Crew) -> None:
    """The first lets the loops end, the second does not wait for that; nothing is left."""
    blue = crew.start("blue")
    submit(engine, crew.key, 2, -1)
    until(lambda: len(agents(crew.folder)) == 2, 30)
    blue.send_signal(signal.SIGINT)
    until(lambda: "Draining" in crew.said("blue"), 20)
    blue.send_signal(signal.SIGINT)
    assert blue.wait(20) == 130
    assert not agents(crew.folder)


def test_FL_10_a_clock_that_is_an_hour_off_has_no_effect(engine: Any, crew: Crew, tmp_path: Path) -> None:
    """One worker is an hour early, another an hour late; both work, and nobody is fenced."""
    for name, shift in (("early", -3600), ("late", 3600)):
        crew.start(name, slots=1, **clocks.shifted(shift, tmp_path / name))
    submit(engine, crew.key, 2, -1)
    until(lambda: {each["by"] for each in crew.of("call")} == {"early", "late"}, 30)
    await_seconds(BEAT)
    finish(engine, crew, repeats=0)
    assert all(each.poll() is None for each in crew.running)
