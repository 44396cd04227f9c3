"""The scheduler while nothing happens: T-14 of the page on tasks."""

import json
import re
import time
from pathlib import Path

import pytest

from tests.kit.workspace import Workspace, waiting

MOST = 20_000  # kB


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux")
def test_T_14_waiting_tasks_cost_one_small_process_that_sleeps(repo: Workspace) -> None:
    """While one task runs and 100 wait for it, the scheduler is at most 20 MB large and never wakes up."""
    repo.rooda("tasks", "add", "First", "-n", "1")
    folder = Path(repo.path, ".git/rooda/tasks")
    repo.rooda("tasks", "add", "Later", "--after", "1")
    later = json.loads((folder / "2.json").read_text())
    for number in range(3, 102):
        (folder / f"{number}.json").write_text(json.dumps({**later, "id": number}))
    repo.side(1, waiting(f"{repo.fake}/go"))
    running = repo.start("tasks", "run", "-j", "4")
    repo.wait_calls(1)
    pid = json.loads((folder / "run.lock").read_text())["pid"]
    time.sleep(1.0)  # until the loop has begun, and then to show that nothing happens
    before = switches(pid)
    time.sleep(2.0)
    assert switches(pid) == before
    size = int(re.search(r"^Pss: +(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)[1])  # type: ignore[index]
    assert size <= MOST, size
    Path(repo.fake, "go").touch()
    assert running.finish(30) == 4


def switches(pid: int) -> int:
    """How often the process has gone to sleep."""
    rows = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", rows, re.M)[1])  # type: ignore[index]
