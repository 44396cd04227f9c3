"""A loop of each kind is killed on one machine in the middle of a turn, and ends on another one."""

import json
import os
import signal
from pathlib import Path

import pytest

from rooda.loops import registry
from tests.kit.fleet_git import Worker, git
from tests.kit.four import KINDS, Four
from tests.kit.workspace import Workspace, until

TURN = {"ooda": 2, "reflex": 3, "flow": 4, "goal": 3}  # the call that is killed; earlier turns are closed
REFS = ("for-each-ref", "refs/heads", "refs/rooda/checkpoint")
REPEATED = {"ooda": 1, "reflex": 2, "flow": 1, "goal": 1}  # calls, as on one machine: reflex makes two at a time


def cut_after_turn(workspace: str, kind: str) -> None:
    """Leave only those events that were there when the last turn was published."""
    ends = {*registry.turns(kind).turn_ends, "phase.ended", "state.saved"}
    for log in Path(workspace, ".rooda", "runs").glob("*/events.jsonl"):
        lines = log.read_bytes().splitlines(keepends=True)
        last = max((n for n, line in enumerate(lines) if json.loads(line)["event"] in ends), default=len(lines) - 1)
        log.write_bytes(b"".join(lines[: last + 1]))


@pytest.mark.parametrize("kind", KINDS)
def test_FL_03_a_loop_ends_on_another_machine(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counter, files, branches and checkpoints are those of a loop that was killed and resumed on one machine."""
    four = Four(KINDS[kind], str(tmp_path))
    config = four.ws.file("rooda.toml")
    if not four.ws.exists(".git"):
        four.ws.git("init", "-q", "-b", "main")
    four.ws.git("add", "-A")
    four.ws.git("commit", "-q", "--allow-empty", "-m", "all")
    git(tmp_path, "clone", "-q", "--bare", four.ws.path, "remote.git")
    url = str(tmp_path / "remote.git")
    four.ws.env["ROODA_TRUST"] = "all"

    blue = Worker(tmp_path, "blue", url)
    four.ws.env["ROODA_STATE_HOME"] = str(tmp_path / "blue-state")
    number = blue.add()
    blue.claim(number)
    four.ws.path = blue.clone().workspace
    blue.begin()
    reached = tmp_path / "reached"
    stays = f": >{reached}; until [ -e {reached}.no ]; do sleep 0.02; done"
    four.first(f'[ "$(wc -l <"$HELD/calls")" -ne {TURN[kind]} ] || {{ {stays}; }}')
    loop = four.ws.start("--config", config, *four.kind.begin)
    until(reached.exists, what="the call in the middle")
    os.kill(loop.pid, signal.SIGKILL)
    until(lambda: not four.ws.leftovers(), what="the end of all processes")
    cut_after_turn(four.ws.path, kind)
    assert blue.turn(number, loop=kind).kind == "done"

    green = Worker(tmp_path, "green", url)
    monkeypatch.setenv("ROODA_STATE_HOME", str(tmp_path / "green-state"))
    four.ws.env["ROODA_STATE_HOME"] = str(tmp_path / "green-state")
    assert green.claim(number).kind == "done"
    words = {"words": [*four.kind.begin], "task": ""}
    found = green.clone(start=lambda run, loop, name: words)
    assert found.turn and found.turn.commit == blue.tip
    assert git(found.root, *REFS) == git(blue.root, *REFS)
    four.ws.path = found.workspace
    four.first("")
    ran = four.resume("--config", config)
    assert ran.code == 0, ran.out + ran.err
    four.ws.git("update-ref", "refs/heads/main", "refs/remotes/origin/main")
    assert four.done()
    assert len(four.calls()) == KINDS[kind].calls + REPEATED[kind]
    assert not four.doubled()


def test_FL_03_counters_spend_and_feedback_go_on(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the other machine failures are counted on, the prompt quotes the failed gate, and usage is the ref's."""
    ws.procedure("build", gates={"tests": "echo 3 tests failed; test -f good"}, loop={"failure_threshold": 4})
    ws.env |= {"ROODA_TRUST": "all", "ROODA_STATE_HOME": str(tmp_path / "blue-state")}
    ws.git("init", "-q", "-b", "main")
    ws.git("add", "-A")
    ws.git("commit", "-q", "-m", "all")
    git(tmp_path, "clone", "-q", "--bare", ws.path, "remote.git")
    url = str(tmp_path / "remote.git")
    blue, green = Worker(tmp_path, "blue", url), Worker(tmp_path, "green", url)
    blue.add()
    blue.claim(1)
    ws.path = blue.clone().workspace
    blue.begin()
    ws.signal_at(3)
    first = ws.rooda("build", "-n", "9", "--", "fix it")
    assert "consecutive failures: 2/4" in first.out
    state = ws.state()
    usage = json.loads(ws.rooda("usage", "--json").out)
    assert blue.turn(1, over=False).kind == "done"

    monkeypatch.setenv("ROODA_STATE_HOME", str(tmp_path / "green-state"))
    ws.env["ROODA_STATE_HOME"] = str(tmp_path / "green-state")
    green.claim(1)
    ws.path = green.clone(start=lambda *_: {"words": ["build", "-n", "9", "--", "fix it"]}).workspace
    assert json.loads(ws.rooda("usage", "--json").out) == usage
    assert ws.state() == state
    again = ws.rooda("resume")
    assert "Resuming procedure: build from iteration 3" in again.out
    assert "consecutive failures: 3/4" in again.out and "Aborting after 4 consecutive failures" in again.out
    assert "3 tests failed" in ws.calls[3].text


def test_FL_15_a_task_taken_home_asks_before_it_resumes(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without signatures a resume shows the words of the start and asks; nothing is started."""
    ws.env |= {"ROODA_TRUST": "all", "ROODA_STATE_HOME": str(tmp_path / "state")}
    ws.git("init", "-q", "-b", "main")
    ws.git("add", "-A")
    ws.git("commit", "-q", "-m", "all")
    git(tmp_path, "clone", "-q", "--bare", ws.path, "remote.git")
    blue = Worker(tmp_path, "blue", str(tmp_path / "remote.git"))
    blue.add()
    blue.claim(1)
    ws.path = blue.clone().workspace
    blue.begin()
    ws.exits(1, 1, 1)
    ws.rooda("build", "-n", "5")
    blue.turn(1)
    monkeypatch.setenv("ROODA_STATE_HOME", str(tmp_path / "state"))
    words = {"words": ["build", "--gate", "touch evil"]}
    ws.path = blue.clone(start=lambda *_: words, sign=False).workspace
    calls = len(ws.calls)
    asked = ws.rooda("resume")
    assert asked.code == 3 and "touch evil" in asked.both and "not signed by you" in asked.both
    assert len(ws.calls) == calls
