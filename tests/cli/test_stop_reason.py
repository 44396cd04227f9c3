"""`rooda stop --reason`: why the user ended a loop is on record, for every kind of loop."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.kit.background import KINDS, begin, detached, rows
from tests.kit.workspace import Workspace, until

WHY = "the wrong branch"


@pytest.mark.parametrize("kind", KINDS)
def test_the_reason_is_on_record(ws: Workspace, kind: str) -> None:
    """In the event of the run's end, in its lines, in `rooda why` and `rooda status`; every kind can be resumed."""
    begin(ws, kind)
    (row,) = rows(ws)
    ran = ws.rooda("stop", row["name"], "--reason", f"  {WHY}\n")
    assert ran.code == 0 and f"Stopped {'procedure' if kind == 'ooda' else row['loop']} '{row['name']}'." in ran.out
    end = ws.events()[-1]
    assert (end["event"], end["stopped_by"], end["exit_code"]) == ("run.ended", "person", 143)
    assert end["stopped_because"] == WHY
    assert f"Stopped by the user: {WHY}" in ws.rooda("logs", row["name"]).out
    assert WHY in ws.rooda("why", row["name"]).out
    assert f"Resume with: rooda resume {row['name']}" in ran.out
    assert WHY in ws.rooda("status", row["name"]).out
    assert not ws.leftovers()


def test_without_a_reason(ws: Workspace) -> None:
    """The user's stop is still recorded; a signal from elsewhere is not the user."""
    detached(ws)
    assert ws.rooda("stop", "--now").code == 0
    assert (ws.events()[-1]["stopped_by"], ws.events()[-1]["stopped_because"]) == ("person", "")
    assert "stopped by the user at 20" in ws.rooda("status").out
    running = ws.start("resume", "build")
    ws.wait_calls(2)
    os.kill(running.pid, signal.SIGTERM)
    running.finish()
    assert "stopped_by" not in ws.events()[-1] and "stopped by" not in ws.rooda("status").out


def test_an_order_that_comes_too_late_is_not_the_cause(ws: Workspace) -> None:
    """A run that completes, although the user has ordered a stop in its last moment, completed by itself."""
    late = "import sys; from rooda.run import folder; assert folder.leave_order(sys.argv[1], folder.STOP)"
    ws.side(1, f'{sys.executable} -c "{late}" "$PWD/.rooda/runs/$ROODA_RUN" >$FAKE/late 2>&1; echo $? >>$FAKE/late')
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 0 and "rooda stop" not in ran.both, ran.both
    assert Path(ws.fake, "late").read_text() == "0\n"
    assert "stopped_by" not in ws.events()[-1] and ws.events()[-1]["state"] == "completed"


def test_after_an_agent_that_cleans_up(ws: Workspace) -> None:
    """The order is on record even if `git clean` has taken the run's folder away."""
    ws.damages_events = True
    ws.side(1, "rm -rf .rooda")
    detached(ws, "5", 2)
    assert ws.rooda("stop", "--reason", WHY).code == 0
    assert ws.events()[-1]["stopped_because"] == WHY
    assert ws.rooda("resume", "--all").out.startswith("No run was cut off")


def test_a_key_in_the_reason_is_hidden(ws: Workspace) -> None:
    """What looks like a key reaches no file."""
    key = "sk-very-secret-0123456789"
    detached(ws)
    env = {"SOME_API_KEY": key}
    assert ws.rooda("stop", "--reason", f"the key {key} is wrong", env=env).code == 0
    until(lambda: ws.state() and ws.state()["status"] == "interrupted")
    assert ws.events()[-1]["stopped_because"] == "the key *** is wrong"
    assert not any(key.encode() in path.read_bytes() for path in Path(ws.path, ".rooda").rglob("*") if path.is_file())
