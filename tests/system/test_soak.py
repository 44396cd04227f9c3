"""The soak, in short; and that what it looks for is found."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.soak.__main__ import NAME
from benchmarks.soak.kinds import KINDS, TASKS
from benchmarks.soak.loop import Loop, Tally
from benchmarks.soak.tasks import TaskList
from benchmarks.soak.watch import Seen, Watch
from tests.kit.processes import until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
ROOT = Path(__file__).resolve().parents[2]
NEVER = ("lost", "corrupt", "doubled", "orphaned", "hung", "refused")


def test_a_short_soak_loses_nothing(tmp_path: Path) -> None:
    """Loops, tasks and the page, killed every second: all have called agents, nothing is lost, left or broken."""
    options = ("--minutes", "0.05", "--life", "1", "--results", str(tmp_path))
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.soak", *options], cwd=ROOT, capture_output=True, text=True, timeout=110
    )
    found = json.loads((tmp_path / "soak.json").read_bytes())
    assert {name: found[name] for name in NEVER} == dict.fromkeys(NEVER, 0), found["notes"]
    assert set(found["loops"]) == {"ooda", "reflex", "flow", "goal", "tasks"}, ran.stderr
    assert found["page"]["bytes"] and "Traceback" not in ran.stderr, ran.stderr
    assert all(loop["starts"] for loop in found["loops"].values()) and sum(found["calls"].values()) > 4


@pytest.fixture
def loop(tmp_path: Path) -> Loop:
    """A loop that has not been started, with the files that one leaves."""
    (tmp_path / ".gitconfig").write_text(NAME)
    made = Loop(KINDS[0], str(tmp_path), sys.executable, "good=1", random.Random(1), Watch(str(tmp_path)))
    made._process = subprocess.Popen(["true"])
    made._process.wait()
    state(made, 7)
    Path(made.folder, "said").write_text("")
    made.look()
    assert made.tally == Tally() and made.turns == 7
    return made


def state(loop: Loop, iteration: int) -> None:
    path = Path(loop.folder, ".rooda", "state", "soak.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"started_at": "then", "iteration": iteration}))


def test_a_counter_that_decreases_is_a_loss(loop: Loop) -> None:
    """Forward is fine."""
    state(loop, 9)
    loop.look()
    assert loop.tally.lost == 0 and loop.turns == 9
    state(loop, 8)
    loop.look()
    assert loop.tally == Tally(lost=1)


def test_landed_work_that_is_not_on_the_target_is_a_loss(tmp_path: Path) -> None:
    """A task is landed by its file, and main lacks its work."""
    (tmp_path / ".gitconfig").write_text(NAME)
    tasks = TaskList(str(tmp_path), sys.executable, "good=1", random.Random(1), Watch(str(tmp_path)))
    path = Path(tasks.folder, TASKS, "3.json")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"id": 3, "state": "landed"}))
    Path(tasks.folder, "said").write_text("")
    tasks.look()
    assert tasks.tally == Tally(lost=1) and "work3" in tasks.notes[0]


def test_a_torn_state_is_corrupt(loop: Loop) -> None:
    """Half a JSON file is counted and named."""
    Path(loop.folder, ".rooda", "state", "soak.json").write_text('{"iteration"')
    loop.look()
    assert loop.tally == Tally(corrupt=1) and "soak.json" in loop.notes[0]


def test_a_process_that_is_left_is_an_orphan(loop: Loop) -> None:
    """It carries the mark of the workspace in its environment."""
    left = subprocess.Popen(["sleep", "60"], env={**os.environ, "SOAK": loop.folder})
    try:
        until(lambda: loop.folder.encode() in Path(f"/proc/{left.pid}/environ").read_bytes())
        loop.look()
    finally:
        left.kill()
        left.wait()
    assert loop.tally == Tally(orphaned=1) and "sleep 60" in loop.notes[0]


def test_a_traceback_is_seen(loop: Loop) -> None:
    """What the last command has said is looked through."""
    Path(loop.folder, "said").write_text("Traceback (most recent call last):\n")
    loop.look()
    assert loop.tally == Tally(refused=1)


def test_growth_is_not_flat() -> None:
    """3 MB more at the end are too many; noise around a level is none."""
    watch = Watch("/nowhere")
    for second in range(100):
        watch.seen.append(Seen(second, "ooda loop", 7, 10.0 + second, 10 + 0.03 * second, 12 + second % 2))
    found = watch.flat()
    assert not found["memory"]["flat"] and found["memory"]["per_hour"] == pytest.approx(108, rel=0.01)
    assert found["files"]["flat"] and [row["minutes"] for row in watch.course(2)] == [0.41, 1.24]
