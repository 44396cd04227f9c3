"""Why an iteration failed: on stderr, also on a pipe, while stdout keeps the specification's lines."""

from tests.kit.workspace import Workspace, masked


def test_E_20_why_an_iteration_failed(ws: Workspace) -> None:
    """The last line that says something of the agent and of each failed gate, and where the whole output is."""
    noise = "printf 'collected 3 items\\nFAILED tests/x.py::test_y - assert 1 == 2\\n=========\\n'; exit 1"
    ws.procedure("build", "promise_signals = true\n", gates={"tests": noise, "silent": "false"})
    ws.exits(7)
    ws.out(1, "working\nTraceback: no such module\n")
    ws.out(2, "I looked.\n\n<promise>FAILURE</promise>\nThe database is down.\nStart it.\n")
    ran = ws.rooda("build", "-n", "3")
    said = [line.partition("] ")[2] for line in ran.err.splitlines()]
    (run,) = {event["run"] for event in ws.events()}
    folder = f".rooda/runs/{run}"
    assert said[:2] == ["  agent: Traceback: no such module", f"    see {folder}/0001-iteration.out"]
    assert said[2:4] == ["  agent: The database is down.", f"    see {folder}/0002-iteration.out"]
    gates = ["  gate tests: FAILED tests/x.py::test_y - assert 1 == 2", f"    see {folder}/0002-gate-1.out"]
    gates += ["  gate silent: it printed nothing", f"    see {folder}/0002-gate-2.out"]
    assert said[4:8] == gates
    assert [line for line in masked(ran.lines) if "WARNING" in line] == [
        "[T] WARNING: AI CLI failed (exit 7), consecutive failures: 1/3",
        "[T] WARNING: AI signaled FAILURE, consecutive failures: 2/3",
        "[T] WARNING: Quality gates failed: tests (exit 1), silent (exit 1), consecutive failures: 2/3",
        "[T] WARNING: Quality gates failed: tests (exit 1), silent (exit 1), consecutive failures: 3/3",
    ]
