"""The order of things inside one iteration, seen from outside."""

import json
import os
import re
from datetime import datetime

from tests.kit.stalled import Stalled
from tests.kit.workspace import Workspace, until


def test_O_008_the_phases_of_an_iteration(ws: Workspace) -> None:
    """The log has assemble, budget, execute, gates, persist in this order, and the outcome comes last."""
    ws.procedure(gates={"ok": "true"})
    assert ws.rooda("build", "-n", "3", "--token-budget", "1").code == 0
    second = [record for record in ws.events() if record.get("display") == 2]
    assert (second[0]["event"], second[-1]["event"]) == ("iteration.started", "iteration.ended")
    phases = [record["phase"] for record in second if "phase" in record]
    order = [phase for place, phase in enumerate(phases) if phases[:place][-1:] != [phase]]
    assert order == ["assemble", "budget", "execute", "gates", "persist"]


def test_O_008_gates_run_between_the_call_and_the_count(ws: Workspace) -> None:
    """When the gate of iteration N runs, call N is over and the state still shows N-1."""
    gate = 'n=$ROODA_ITERATION; ls "$FAKE/calls" >"$FAKE/gate-$n.ls"; cp .rooda/state/audit.json "$FAKE/gate-$n.json"'
    ws.side("iteration", 'echo "$ROODA_ITERATION" >>over.txt')
    ws.procedure("audit", gates={"look": f'{gate}; cp over.txt "$FAKE/over-$n"'})
    assert ws.rooda("audit", "-n", "3").code == 0
    for n in (1, 2, 3):
        assert f"{n}.in" in ws.read(f"../fake/gate-{n}.ls").split()
        assert ws.read(f"../fake/over-{n}").split()[-1] == str(n)
        assert json.loads(ws.read(f"../fake/gate-{n}.json"))["iteration"] == n - 1


def test_O_008_the_end_is_tested_before_anything_is_assembled(ws: Workspace) -> None:
    """A resumed run whose limit is reached neither assembles a prompt nor starts an iteration."""
    ws.put_state(iteration=3, max_iterations=3)
    assert ws.rooda("resume", "build").code == 0
    events = [record["event"] for record in ws.events()]
    assert "run.resumed" in events
    assert "run.ended" in events
    assert not {"iteration.started", "prompt.assembled", "agent.started"} & set(events)


def test_O_063_the_progress_line_comes_after_the_write(ws: Workspace) -> None:
    """While the line of iteration 1 can't be written, the state on disk counts it already."""
    ws.side(1, 'until [ -e "$FAKE/go" ]; do sleep 0.01; done')
    ws.copy_state_at(2)
    run = Stalled(ws, "build", "-n", "2")
    ws.wait_calls(1)
    run.fill()
    ws.write("../fake/go", "")
    until(lambda: (ws.state() or {})["iteration"] == 1, what="the state to count iteration 1")
    assert "completed" not in run.seen()
    lines = run.drain()
    assert run.code == 0
    assert re.fullmatch(r"\[\d\d:\d\d:\d\d\] Iteration 1/2 completed in \d+\.\ds", lines[0])
    assert ws.copies[2]["iteration"] == 1


def test_O_056_the_duration_is_the_agents_alone(ws: Workspace) -> None:
    """The time of a gate is no part of an iteration's duration, and the agent's own time is all of it."""
    ws.procedure(gates={"slow": '[ "$ROODA_ITERATION" = 2 ] || { : >"$FAKE/gate-began"; sleep 0.5; }'})
    ws.side(1, ': >"$FAKE/began"; sleep 0.2; : >"$FAKE/ended"')
    ws.copy_state_at(2)
    ran = ws.rooda("build", "-n", "2")
    began, ended, gate = (os.stat(f"{ws.fake}/{name}").st_mtime for name in ("began", "ended", "gate-began"))
    shown = re.findall(r"completed in (\d+\.\d)s", ran.out)[0]
    assert ended - began - 0.06 <= float(shown) < gate - called_at(ws) + 0.06
    assert ws.copies[2]["elapsed_per_iteration"] == [f"{shown}s"]


def called_at(ws: Workspace) -> float:
    """When the agent was about to be started, as the log has it."""
    record = next(record for record in ws.events() if record["event"] == "agent.started")
    return datetime.fromisoformat(record["ts"].replace("Z", "+00:00")).timestamp()
