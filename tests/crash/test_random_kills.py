"""SIGKILL at random moments: the state survives, at most one iteration is begun again, nobody is left."""

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import kills

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and a child subreaper")


def test_O_020_OA_46_random_kills_lose_nothing(tmp_path: Path) -> None:
    """25 kills of loop, guardian, both or group; then the run goes to its limit and leaves nobody and nothing."""
    found = kills.run(25, random.randrange(1 << 32), str(tmp_path))
    assert kills.harmless(found), found
    assert found["calls"] > 3
