"""An agent deletes `.rooda` while its loop runs: no second loop starts, and every command still finds the first."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.kit.background import KINDS, begin, rows
from tests.kit.workspace import Running, Workspace, until

BUSY = "sleep 60 & wait"
CLEANED = {"rm": "rm -rf .rooda", "git clean": "git clean -fdxq -e rooda.toml -e prompts"}


def beheaded(ws: Workspace, how: str = CLEANED["rm"]) -> Running:
    """Start a loop whose first agent deletes rooda's folder and goes on working."""
    ws.damages_events = True
    ws.side(1, f"{how}; touch $FAKE/cleaned; {BUSY}")
    running = ws.start("build", "-n", "5")
    until(lambda: os.path.exists(f"{ws.fake}/cleaned"), what="the agent's clean-up")
    assert not ws.exists(".rooda")
    return running


@pytest.mark.parametrize("how", CLEANED)
def test_S_09_no_second_loop_after_a_clean_up(ws: Workspace, how: str) -> None:
    """`rm -rf .rooda` and `git clean -fdx`: a start and a resume are refused and name the first loop's process."""
    ws.git("init", "-q")
    running = beheaded(ws, CLEANED[how])
    for words in (("build", "-n", "1"), ("build", "--fresh"), ("resume", "build")):
        ran = ws.rooda(*words)
        assert ran.code == 3 and f"is already running here (pid {running.pid})" in ran.err, ran.both
    assert len(ws.calls) == 1
    assert ws.rooda("stop").code == 0 and running.finish() == 143


def test_S_09_every_command_still_sees_the_loop(ws: Workspace) -> None:
    """`status`, `status --all`, `attach`'s list, `undo` and `resume --all` know of it; `stop` ends it."""
    ws.git("init", "-q")
    running = beheaded(ws)
    assert f"build: running (pid {running.pid})" in ws.rooda("status").out
    (row,) = json.loads(ws.rooda("status", "--all", "--json").out)
    assert (row["name"], row["running"], row["pid"]) == ("build", True, running.pid)
    assert "Resumed" not in ws.rooda("resume", "--all").both
    assert "Paused procedure 'build'" in ws.rooda("pause").out
    assert "Continued procedure 'build'" in ws.rooda("continue").out
    assert ws.rooda("stop", "build").code == 0 and running.finish() == 143


def test_S_09_a_forged_lock_file_leads_nowhere(ws: Workspace) -> None:
    """An agent puts another process into a lock file of its own: `status` and `stop` mean the loop."""
    ws.damages_events = True
    forged = {"pid": os.getpid(), "start": 1, "boot": "x", "run": "20260101T000000Z-build-1", "calls": []}
    ws.side(1, f"rm -rf .rooda; mkdir -p .rooda/state; echo '{json.dumps(forged)}' >.rooda/state/build.lock")
    ws.side(1, f"touch $FAKE/cleaned; {BUSY}")
    running = ws.start("build", "-n", "5")
    until(lambda: os.path.exists(f"{ws.fake}/cleaned"), what="the forged lock")
    assert f"running (pid {running.pid})" in ws.rooda("status").out
    assert ws.rooda("stop").code == 0 and running.finish() == 143


def test_S_09_the_loop_itself_goes_on(ws: Workspace) -> None:
    """It takes its lock again after the call, and leaves nothing in the user's state when it ends."""
    ws.damages_events = True
    ws.side(1, "rm -rf .rooda")
    ran = ws.rooda("build", "-n", "3")
    assert ran.code == 0 and len(ws.calls) == 3 and "another run" not in ran.err
    assert os.listdir(f"{ws.home}/.state/rooda/locks") == []


def test_S_09_a_killed_loop_is_found_although_its_files_are_gone(ws: Workspace) -> None:
    """Loop and guardian are killed after the clean-up: nothing seems to run, and the next start ends the agent."""
    running = beheaded(ws)
    for pid in (running.pid, ws.calls[0].ppid):
        os.kill(pid, signal.SIGSTOP)
    for pid in (running.pid, ws.calls[0].ppid):
        os.kill(pid, signal.SIGKILL)
    running.finish()
    until(lambda: "Nothing is running" in ws.rooda("status").out, what="the end of the lock")
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 0 and "were still alive" in ran.err, ran.both


def test_S_09_two_workspaces_of_one_path_are_two(ws: Workspace) -> None:
    """As in two containers that share the user's state: the inode tells workspaces of the same path apart."""
    running = beheaded(ws)
    os.rename(ws.path, f"{ws.path}-moved")
    shutil.copytree(f"{ws.path}-moved", ws.path, ignore=shutil.ignore_patterns(".rooda"))
    assert ws.rooda("build", "-n", "1").code == 0
    os.kill(running.pid, signal.SIGTERM)
    running.finish()


def test_S_09_a_state_home_that_refuses_is_said_once(ws: Workspace) -> None:
    """A second lock that can't be had, without HOME too: one line at the start, and the loop runs as before."""
    for env in ({"ROODA_STATE_HOME": "/proc/nowhere"}, {"HOME": "", "XDG_STATE_HOME": ""}):
        ran = ws.rooda("build", "-n", "3", "--fresh", env=env)
        assert ran.code == 0 and ran.err.count("No lock outside of the workspace") == 1, ran.both
        ran = ws.rooda("status", env=env)
        assert ran.code == 0 and not ran.err


@pytest.mark.parametrize("kind", KINDS)
def test_S_09_each_kind_is_still_seen(ws: Workspace, kind: str) -> None:
    """A loop of each kind whose folder `.rooda` is gone, and for a goal and a reflex loop their own files, too."""
    ws.damages_events = True
    begin(ws, kind)
    (before,) = rows(ws)
    for folder in (".rooda", ".loop", ".ai-factory", ".git/rooda"):
        shutil.rmtree(ws.file(folder), ignore_errors=True)
    after = rows(ws)[0]
    assert (after["name"], after["running"], after["pid"]) == (before["name"], True, before["pid"])
    assert ws.rooda("stop", after["name"]).code == 0
    until(lambda: not ws.leftovers(), what="the end of the loop")


def test_S_09_the_second_lock_is_private(ws: Workspace) -> None:
    """Nobody else can open it, so nobody else can hold it."""
    ws.side(1, f"touch $FAKE/there; {BUSY}")
    running = ws.start("build", "-n", "1")
    until(lambda: os.path.exists(f"{ws.fake}/there"), what="the agent")
    (path,) = Path(ws.home, ".state", "rooda", "locks").iterdir()
    assert path.stat().st_mode & 0o077 == 0
    facts = json.loads(path.read_text())
    assert facts["pid"] == running.pid and facts["lock"] == os.path.realpath(ws.file(".rooda/state/build.lock"))
    assert ws.rooda("stop").code == 0 and running.finish() == 143
