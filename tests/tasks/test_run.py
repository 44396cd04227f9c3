"""Running tasks: T-10 and following of the page on tasks."""

import json
import os
import signal
from pathlib import Path

import psutil

from tests.kit.workspace import Workspace, until


def test_T_10_tasks_run_in_clones_of_their_own(repo: Workspace) -> None:
    """Each has a clone outside of the repository, a branch, and a slot; the user's checkout stays as it is."""
    repo.rooda("tasks", "add", "Left", "-n", "1")
    repo.rooda("tasks", "add", "Right", "-n", "1")
    for call in (1, 2):
        repo.side(call, 'echo "$ROODA_SLOT" > made; git add made; git commit -qm work')
    done = repo.rooda("tasks", "run", "-j", "2", timeout=60)
    assert done.code == 0, done.text
    found = json.loads(repo.rooda("tasks", "--json").out)
    assert [task["state"] for task in found] == ["completed", "completed"]
    assert repo.git("status", "--porcelain") == "" and repo.git("branch", "--show-current") == "main\n"
    for task, branch in zip(found, ("rooda/1-left", "rooda/2-right"), strict=True):
        assert task["details"]["branch"] == branch and task["details"]["clone"].startswith(repo.home)
        assert repo.git("log", "-1", "--format=%s", branch) == "work\n"
    slots = {repo.git("show", f"{task['details']['branch']}:made") for task in found}
    assert slots == {"0\n", "1\n"}
    assert "origin\tno-push" in repo.git("-C", found[0]["details"]["clone"], "remote", "-v")


def test_T_11_a_killed_scheduler_loses_nothing(repo: Workspace) -> None:
    """SIGKILL of scheduler and guardian: nothing of its loops stays, and the next `run` goes on where they were."""
    repo.rooda("tasks", "add", "Long", "-n", "2")
    repo.side(1, "echo one >> made; git add made; git commit -qm one")
    repo.side(2, "touch $FAKE/waiting; sleep 60")
    running = repo.start("tasks", "run")
    until(lambda: os.path.exists(f"{repo.fake}/waiting"), what="the second iteration")
    for pid in (
        running.pid,
        *(each.pid for each in psutil.Process(running.pid).children() if "tasks" in each.cmdline()),
    ):
        os.kill(pid, signal.SIGKILL)
    running.finish(30)
    repo.side(3, "echo two >> made; git add made; git commit -qm two")
    done = repo.rooda("tasks", "run", timeout=60)
    assert done.code == 0, done.text
    assert len(repo.calls) == 3 and repo.git("show", "rooda/1-long:made") == "one\ntwo\n"


def test_T_11_stop_leaves_a_task_for_the_next_run(repo: Workspace) -> None:
    """`stop 1` and `cancel 2` while they run: the first goes on in the next `run`, the second never."""
    for title in ("Stopped", "Cancelled"):
        repo.rooda("tasks", "add", title, "-n", "1")
    for call in (1, 2):
        repo.side(call, "sleep 60")
    running = repo.start("tasks", "run")
    repo.wait_calls(2)
    assert repo.rooda("tasks", "stop", "1").code == 0
    assert repo.rooda("tasks", "cancel", "2").code == 0
    assert running.finish(30) == 4
    found = [task["state"] for task in json.loads(repo.rooda("tasks", "--json").out)]
    assert found == ["waiting", "cancelled"]
    assert repo.rooda("tasks", "run", timeout=60).code == 0 and len(repo.calls) == 3
    found = [task["state"] for task in json.loads(repo.rooda("tasks", "--json").out)]
    assert found == ["completed", "cancelled"]


def test_T_13_a_failed_task_is_tried_again_once(repo: Workspace) -> None:
    repo.procedure(loop={"failure_threshold": 1})
    repo.git("commit", "-qam", "settings")
    repo.rooda("tasks", "add", "Fails", "-n", "2")
    repo.exits(1, 1, 0)
    assert repo.rooda("tasks", "run", timeout=60).code == 1 and len(repo.calls) == 2
    assert repo.rooda("tasks", "retry", "1").code == 0
    assert repo.rooda("tasks", "run", "--retries", "0", timeout=60).code == 0


def test_T_11_a_second_run_names_the_first(repo: Workspace) -> None:
    repo.rooda("tasks", "add", "One", "-n", "1")
    repo.side(1, "touch $FAKE/waiting; until [ -e $FAKE/go ]; do sleep 0.05; done")
    running = repo.start("tasks", "run", "-j", "2")
    until(lambda: os.path.exists(f"{repo.fake}/waiting"), what="the first task")
    second = repo.rooda("tasks", "run")
    assert second.code == 3 and "already running here (pid " in second.err
    repo.rooda("tasks", "add", "Added later", "-n", "1")
    repo.wait_calls(2)
    Path(repo.fake, "go").touch()
    assert running.finish(30) == 0
