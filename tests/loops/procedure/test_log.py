"""The structured log: one record per iteration with timing, phase, number and outcome; and what belongs to each."""

import re

from tests.kit.workspace import Workspace


def test_O_024_one_record_per_iteration(bare: Workspace) -> None:
    """Every iteration has one closing record with its number, phase, time and outcome, equal to screen and state."""
    bare.procedure("translate", gates={"third": '[ "$ROODA_ITERATION" != 3 ]'})
    bare.exits(0, 1, 0, 0)
    bare.side(1, "sleep 0.2")
    bare.signal_at(4)
    ran = bare.rooda("translate", "-n", "9")
    ended = [record for record in bare.events() if record["event"] == "iteration.ended"]
    assert [(record["iteration"], record["display"]) for record in ended] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert [record["outcome"] for record in ended] == ["success", "failure", "failure", "interrupted"]
    assert [record["exit_code"] for record in ended[:3]] == [0, 1, 0]
    assert [record["consecutive_failures"] for record in ended] == [0, 1, 2, 2]
    assert all(record["phase"] for record in ended)
    assert [f"{record['elapsed']:.1f}s" for record in ended] == bare.state("translate")["elapsed_per_iteration"]
    assert ended[0]["elapsed"] >= 0.2
    assert [f"{record['elapsed']:.1f}s" for record in ended[:3]] == re.findall(r"completed in (\S+)", ran.out)


def test_O_024_every_line_is_a_record(ws: Workspace) -> None:
    """Each line has version, time, run, loop, procedure, a growing number and its event."""
    assert ws.rooda("build", "-n", "2").code == 0
    events = ws.events()
    assert [record["seq"] for record in events] == list(range(1, len(events) + 1))
    for record in events:
        assert (record["v"], record["loop"], record["procedure"]) == (1, "ooda", "build")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record["ts"])
    assert len({record["run"] for record in events}) == 1
    assert [record["ts"] for record in events] == sorted(record["ts"] for record in events)
    assert (events[-1]["event"], events[-1]["status"], events[-1]["exit_code"]) == ("run.ended", "completed", 0)


def test_O_024_the_phases_are_timed(ws: Workspace) -> None:
    """Assembling, executing, gates and persisting each have a time of their own."""
    ws.procedure(gates={"slow": "sleep 0.2"})
    assert ws.rooda("build", "-n", "1").code == 0
    times = {record["phase"]: record["elapsed"] for record in ws.events() if "elapsed" in record and "phase" in record}
    assert {"assemble", "execute", "gates", "persist"} <= set(times)
    assert times["gates"] >= 0.2


def test_O_024_a_log_for_each_run(ws: Workspace) -> None:
    """A second run has a log of its own, and the first one's is still there."""
    assert ws.rooda("build", "-n", "1").code == 0
    first = ws.events()[0]["run"]
    ws.exits(0, 3)
    assert ws.rooda("build", "-n", "1").code == 1
    assert ws.events()[0]["run"] != first
    assert [record["outcome"] for record in ws.events() if record["event"] == "iteration.ended"] == ["failure"]
    assert ws.exists(f".rooda/runs/{first}/events.jsonl")
