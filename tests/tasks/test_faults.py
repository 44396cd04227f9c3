"""Faults of the scheduler: T-11 of the page on tasks. All of them: python -m benchmarks.kills --only "tasks KILL"."""

from pathlib import Path

import pytest

from benchmarks.faults import scheduler
from benchmarks.faults.judge import Tally
from tests.kit.needed import LINUX, needs

pytestmark = [LINUX, needs("cc"), needs("flock")]


@pytest.mark.parametrize("fault", ["KILL", "EIO", "ENOSPC"])
@pytest.mark.parametrize("most", [3, pytest.param(0, marks=pytest.mark.long)])
def test_T_11_a_fault_of_the_disk_loses_no_task(tmp_path: Path, fault: str, most: int) -> None:
    """The next runs complete all tasks; at most one call is made again, and nothing of the user's tree is touched."""
    found, problems = scheduler.run(fault, str(tmp_path), seed=1, most=most)
    assert not problems and Tally(*(found[name] for name in Tally._fields)).harmless, problems
