"""Faults of the scheduler and of landings: T-11 and T-22. All of them: `python -m benchmarks.kills`."""

from pathlib import Path

import pytest

from benchmarks.faults import landing, scheduler
from benchmarks.faults.judge import Tally
from tests.kit.needed import LINUX, needs

LONG = (pytest.mark.long, pytest.mark.timeout(3600))
pytestmark = [LINUX, needs("cc"), needs("flock")]


@pytest.mark.parametrize("fault", ["KILL", "EIO", "ENOSPC"])
@pytest.mark.parametrize("most", [1, pytest.param(0, marks=LONG)])
def test_T_11_a_fault_of_the_disk_loses_no_task(tmp_path: Path, fault: str, most: int) -> None:
    """The next runs complete all tasks; at most one call is made again, and nothing of the user's tree is touched."""
    found, problems = scheduler.run(fault, str(tmp_path), seed=1, most=most)
    assert not problems and Tally(*(found[name] for name in Tally._fields)).harmless, problems


@pytest.mark.parametrize(
    ("fault", "most"), [("KILL", 2), *(pytest.param(each, 60, marks=LONG) for each in ("KILL", "EIO", "ENOSPC"))]
)
def test_T_22_a_fault_inside_a_landing_or_its_git_loses_nothing(tmp_path: Path, fault: str, most: int) -> None:
    """The target is green at every moment, the good tasks land, and nothing of the user's tree is touched."""
    found, problems = landing.run(fault, str(tmp_path), seed=1, most=most)
    assert not problems and Tally(*(found[name] for name in Tally._fields)).harmless, problems
