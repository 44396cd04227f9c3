"""kill -9 at git commands and at random moments: after `resume` log, tree and state are those of a whole run."""

import os
import random
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.kit.flow import Flow
from tests.kit.flow_kills import outcome
from tests.kit.workspace import Workspace, until

GIT = """#!/bin/sh
# Counts git's calls in the loop; at the one in $FAKE/git-kill it kills the loop: before git works, after, or meanwhile
# together with the guardian, so that git is left alone.
real=%s
n=$(($(cat "$FAKE/git-n" 2>/dev/null || echo 0) + 1)); echo $n >"$FAKE/git-n"
if [ "$n" = "$(cat "$FAKE/git-kill" 2>/dev/null)" ]; then
  guardian=$(ps -o ppid= -p $PPID)
  case $(cat "$FAKE/git-mode") in
  before) kill -9 $PPID; exit 1 ;;
  after) "$real" "$@"; code=$?; kill -9 $PPID; exit $code ;;
  alone) "$real" "$@" & kill -9 $guardian $PPID; wait; exit 0 ;;
  esac
fi
exec "$real" "$@"
"""
MODES = ("before", "after", "alone")


def shimmed(flow: Flow) -> Flow:
    """`git` on the loop's PATH is the shim."""
    real = subprocess.run(["sh", "-c", "command -v git"], capture_output=True, text=True, check=True).stdout.strip()
    shim = Path(flow.ws.root, "bin", "git")
    shim.parent.mkdir()
    shim.write_text(GIT % real)
    shim.chmod(0o755)
    return flow


def path_of(flow: Flow) -> dict[str, str]:
    return {"PATH": f"{flow.ws.root}/bin:{flow.ws.env['PATH']}"}


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Run S2 uninterrupted; return its log and the number of git calls."""
    flow = shimmed(Flow(Workspace(str(tmp_path_factory.mktemp("kills")))).scenario("S2"))
    assert flow.run(env=path_of(flow)).code == 0
    return outcome(flow), int(Path(flow.ws.fake, "git-n").read_text())


def ended_as(flow: Flow, expected: Any, code: int = 0) -> None:
    """Resume until the run ends; expect the same log and tree, and no open run."""
    runs = flow.ws.file(".ai-loop/runs")
    begun = os.path.isdir(runs) and any(name.startswith("run_") for name in os.listdir(runs))
    ran = flow.resume()
    if ran.code == 2 and (not begun or flow.state["status"] != "complete"):
        ran = flow.run("--new", "do it")  # killed before there was a run
    elif ran.code == 2:  # killed after its last commit
        code = 2
    assert ran.code == code, ran.both
    log, tree, status = outcome(flow)
    assert (log, status) == (expected[0], expected[2])
    if flow.state["branch"] == "ai-loop/do-it":
        assert tree == expected[1]
    labels = [(each.fields["node-path"], each.label) for each in flow.log()]
    assert len(labels) == len(set(labels))


def killed_at_git(flow: Flow, mode: str, number: int, whole: Any) -> None:
    shimmed(flow.scenario("S2"))
    Path(flow.ws.fake, "git-kill").write_text(str(number))
    Path(flow.ws.fake, "git-mode").write_text(mode)
    running = flow.ws.start("flow", "run", "do it", env=path_of(flow))
    code = running.finish(60)
    assert code in (0, -9, 137) and (code or number > whole[1] - 8)  # git is asked a few times more or less
    until(lambda: not flow.ws.leftovers() or mode == "alone", 15)
    ended_as(flow, whole[0])


@pytest.mark.parametrize("part", range(9))
def test_F_177_F_139_killed_at_git_commands(flow: Flow, whole: Any, part: int) -> None:
    """Kill at git commands of all parts of a run, in all three ways."""
    number = 1 + part * whole[1] // 9
    killed_at_git(flow, MODES[part % 3], number, whole)


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("number", range(1, 80))
def test_F_177_killed_at_every_git_command(flow: Flow, whole: Any, mode: str, number: int) -> None:
    """Kill at each git command, in each way."""
    if number <= whole[1]:
        killed_at_git(flow, mode, number, whole)


def killed_at_random(flow: Flow, seed: int, whole: Any) -> None:
    """The guardian, the loop, or both are killed again and again after random times, until the run is over."""
    chance = random.Random(seed)
    flow.scenario("S2")
    words = ["run", "do it"]
    for _ in range(4):
        running = flow.ws.start("flow", *words)
        try:
            running.process.wait(chance.uniform(0.15, 1.5))
            break
        except subprocess.TimeoutExpired:
            pass
        if chance.random() < 0.5:
            os.killpg(os.getpgid(running.pid), signal.SIGKILL)
        else:
            running.signal(signal.SIGKILL)
        running.finish()
        words = ["resume"] if os.path.isdir(flow.ws.file(".ai-loop/runs")) else ["run", "do it"]
    ended_as(flow, whole[0])


@pytest.mark.parametrize("seed", [0, *(pytest.param(each, marks=pytest.mark.long) for each in range(1, 120))])
def test_F_177_killed_at_random_moments(flow: Flow, whole: Any, seed: int) -> None:
    """Kill several times in one run."""
    killed_at_random(flow, seed, whole)
