"""No process outlives the loop, and there are never two agents: every way to end the loop × every kind of agent."""

import os
import sys
from pathlib import Path

import pytest

from tests.kit.swarm import ENDINGS, KINDS, WAYS, Swarm, kill
from tests.kit.workspace import Workspace, until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and a child subreaper")
ALL = [(way, kind) for way in WAYS for kind in KINDS]
# Every way three times, every kind two or three times.
SHORT = [(way, [*KINDS][(3 * row + column * 4) % len(KINDS)]) for row, way in enumerate(WAYS) for column in range(3)]
ROUNDS = int(os.environ.get("ROODA_ROUNDS", "100"))


def one_case(ws: Workspace, way: str, kind: str) -> None:
    """Start, kill, look; start again, and let the next agents look."""
    swarm = Swarm(ws, kind)
    running = swarm.start()
    kill(running.pid, way)
    assert running.finish() == WAYS[way], running.both
    if way in ENDINGS or way == "KILL-loop":
        assert swarm.living() == [], running.both
    if way in ENDINGS:
        assert ws.state()["status"] == "interrupted"
    ran = swarm.resume()
    assert ran.code == 0, ran.both
    assert swarm.seen() == [""] * (1 if way in ENDINGS else 2), ran.both
    until(lambda: swarm.living() == [], what="everybody to be gone")
    assert sorted(os.listdir(ws.file(".rooda/state"))) == ["build.lock"]


@pytest.mark.parametrize(("way", "kind"), SHORT)
def test_O_069_no_process_outlives_the_loop(ws: Workspace, way: str, kind: str) -> None:
    """A selection of the matrix: the exit code is right, no process is left, and the next start's agents are alone."""
    one_case(ws, way, kind)


@pytest.mark.long
@pytest.mark.timeout(ROUNDS * 60)
@pytest.mark.parametrize(("way", "kind"), ALL)
def test_the_whole_matrix(tmp_path: Path, way: str, kind: str) -> None:
    """All of it, $ROODA_ROUNDS times (100)."""
    for turn in range(ROUNDS):
        ws = Workspace(str(tmp_path / str(turn)))
        try:
            one_case(ws, way, kind)
        finally:
            ws.close()
