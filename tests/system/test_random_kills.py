"""SIGKILL at random moments: the end of an undisturbed run, no finished work is repeated, no process is left."""

import os
import random
import sys
from pathlib import Path

import pytest

from benchmarks import kills as campaign
from benchmarks.faults import randomly
from benchmarks.faults.judge import Tally
from benchmarks.faults.kinds import KINDS
from benchmarks.faults.table import table

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and a child subreaper")
ROUNDS = int(os.environ.get("ROODA_ROUNDS", "300"))


def kills(loop: str, count: int, folder: Path) -> None:
    """So many kills of loop, guardian, both, group or everybody."""
    seed = random.randrange(1 << 32)
    found, problems = randomly.run(loop, count, seed, str(folder))
    assert problems == [], f"seed {seed}"
    assert found["faults"] == count == sum(found["targets"].values())


@pytest.mark.parametrize("loop", KINDS)
def test_O_020_OA_46_R_218_F_177_C_071_random_kills_lose_nothing(tmp_path: Path, loop: str) -> None:
    """One run of each kind of loop, killed twice."""
    kills(loop, 2, tmp_path)


@pytest.mark.long
@pytest.mark.timeout(ROUNDS * 30)
@pytest.mark.parametrize("loop", KINDS)
def test_many_random_kills_lose_nothing(tmp_path: Path, loop: str) -> None:
    """$ROODA_ROUNDS of them (300)."""
    kills(loop, ROUNDS, tmp_path)


def test_the_table_has_a_line_for_each_sort_and_kind(tmp_path: Path) -> None:
    """Figures are kept beside those of earlier runs; what was lost is no longer harmless."""
    path, counts = str(tmp_path / "kills.json"), Tally(faults=1200)._asdict()
    assert table(path) == ""
    results = campaign.load(path)
    campaign.keep(results, "steps", "goal", counts | {"lost": 2})
    campaign.save(path, results)
    again = campaign.load(path)
    campaign.keep(again, "random", "flow", counts)
    campaign.save(path, again)
    rows = table(path).splitlines()[2:]
    assert [row.split(" | ")[1:4] for row in rows] == [["flow", "1,200", "0"], ["goal", "1,200", "2"]]
    assert table(path, by_loop=False).splitlines()[-1] == "| all | 2,400 | 2 | 0 | 0 | 0 | 0 |"
    assert again["kills"] == 1200 and again["lost"] == 0
    assert campaign.harmless(again["faults"]["random"]["flow"])
    assert not campaign.harmless(again["faults"]["steps"]["goal"])
