"""Limits of memory, processes and output end a call or a gate, with and without a sandbox."""

import pytest

from tests.kit.walled import BWRAP, wall
from tests.kit.workspace import Workspace

MEMORY = "exec python3 -c 'import time; held = bytearray(300_000_000); time.sleep(60)'"
PROCESSES = "for n in 1 2 3 4 5 6 7 8 9; do sleep 60 & done; wait"
OUTPUT = "yes | head -c 3000000; sleep 60"
LIMITS = 'max_memory = "200MB"\nmax_processes = 8\nmax_output = "2MB"'


@pytest.mark.parametrize("mode", ["off", pytest.param("workspace", marks=BWRAP)])
def test_S_26_limits_of_resources_end_a_call(ws: Workspace, mode: str) -> None:
    """The outcome says which limit, for agents and gates; the next iteration is told, and nothing is left."""
    for number, shell in enumerate((MEMORY, PROCESSES, OUTPUT), 1):
        ws.side(number, shell)
    gate = f'test "$ROODA_ITERATION" != 4 || {PROCESSES}'
    wall(ws, mode, LIMITS, loop={"failure_threshold": 9, "kill_grace": 1}, gates={"busy": gate})
    run = ws.rooda("build", "-n", "5", timeout=60)
    ended = [event for event in ws.events() if event["event"] == "agent.ended"]
    assert [event["ended"] for event in ended] == ["resources"] * 3 + ["exit"] * 2, run.err
    found = [event["note"].split(" of at most ")[1] for event in ended[:3]]
    assert found == ["200,000,000 bytes of memory", "8 processes", "2,000,000 bytes of output"]
    assert "AI CLI ended because it used" in run.out and "busy (used " in run.out
    assert "the agent was ended because it used" in ws.calls[1].text
    assert not ws.leftovers()
