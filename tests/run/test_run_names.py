"""The name of a run, as --detach prints it, works in place of a loop's name, also for a run that has ended."""

import json

from tests.kit.background import detached, let_go, prepare
from tests.kit.workspace import Workspace


def test_the_name_printed_by_detach_works_everywhere(ws: Workspace) -> None:
    """Every command about a loop accepts the name of a run; an unknown run is an error, exit 2."""
    run = detached(ws)
    assert ws.rooda("status", run).out.startswith("build: running (pid ")
    assert ws.rooda("pause", run).out == "Paused procedure 'build'. Continue with: rooda continue build\n"
    assert ws.rooda("continue", run).code == 0
    assert ws.rooda("stop", run).out == "Stopped procedure 'build'. Resume with: rooda resume build\n"
    assert ws.rooda("attach", run).out == "Procedure 'build' is not running.\n"
    let_go(ws)
    assert ws.rooda("resume", run, "-C", ws.path, cwd=ws.root).code == 0
    assert ws.rooda("status", run).out == "No saved state for procedure 'build'.\n"
    for verb in ("status", "logs", "why", "events", "usage", "stop", "resume"):
        ran = ws.rooda(verb, f"{run}0")
        assert ran.code == 2 and f"Did you mean '{run}'?" in ran.err, (verb, ran.both)


def test_commands_show_the_named_run(ws: Workspace) -> None:
    """A session that is not the newest has its own lines, reasons, calls and snapshots."""
    ws.git("init", "-q")
    safe = ("--safety", "snapshot")
    runs = []
    for number in ("1", "2"):
        ran = ws.rooda("build", "-n", number, "--detach", *safe)
        assert ran.code == 0, ran.both
        runs.append(ran.lines[0].rpartition(" ")[2])
        assert ws.rooda("logs", "-f").code == 0
    for run, calls in zip(runs, (1, 2), strict=True):
        events = [json.loads(line) for line in ws.rooda("events", run).lines]
        assert {event["run"] for event in events} == {run} and events[-1]["event"] == "run.ended"
        assert f"Reached max iterations: {calls}" in ws.rooda("logs", run).out
        assert {run} == {row["evidence"].split("/")[-2] for row in json.loads(ws.rooda("why", run, "--json").out)}
        assert json.loads(ws.rooda("usage", run, "--json").out)["total"]["calls"] == calls
        assert {row["run"] for row in json.loads(ws.rooda("snapshots", run, "--json").out)} == {run}
        assert (ws.rooda("diff", run, "2").code == 0) == (calls == 2)


def test_an_ended_reflex_loop_is_reported_as_one(ws: Workspace) -> None:
    """`rooda resume ALIAS` says what `rooda reflex resume ALIAS` says; the other words call it by its kind."""
    assert ws.rooda(*prepare(ws, "reflex", ":")).code == 0
    ran, own = ws.rooda("resume", "page"), ws.rooda("reflex", "resume", "page")
    assert (ran.code, ran.err) == (own.code, own.err) and "rooda reflex new TASK" in ran.err
    for verb in ("stop", "pause", "continue"):
        assert ws.rooda(verb, "page").out == "Reflex 'page' is not running.\n"
