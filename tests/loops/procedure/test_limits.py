"""How many iterations there are, and the three things that end a loop."""

import signal

import pytest

from tests.kit.workspace import Workspace, masked


def test_O_009_O_052_the_loop_repeats_up_to_its_limit(bare: Workspace) -> None:
    """A limit of 4 is four calls and the line that says so, no more and no less."""
    bare.procedure("prune-docs")
    ran = bare.rooda("prune-docs", "--max-iterations", "4")
    assert ran.code == 0
    assert len(bare.calls) == 4
    assert ran.lines[-1][11:].startswith("Reached max iterations: 4 (total: ")


def test_O_010_O_040_three_endings(ws: Workspace) -> None:
    """Limit, signal and failures end a loop as completed, interrupted and aborted; the limit's state is removed."""
    assert ws.rooda("build", "-n", "1").code == 0
    assert (ws.events()[-1]["status"], ws.events()[-1]["reason"]) == ("completed", "max-iterations")
    assert ws.state() is None
    ws.signal_at(2)
    assert ws.rooda("build", "-n", "9").code == 130
    assert (ws.events()[-1]["status"], ws.state()["status"]) == ("interrupted", "interrupted")
    assert ws.rooda("build", "-n", "9", "--fresh", env={"FAKE_EXIT": "1"}).code == 1
    assert (ws.events()[-1]["status"], ws.state()["status"]) == ("aborted", "aborted")


def test_O_010_O_012_unlimited_keeps_running(ws: Workspace) -> None:
    """Without limit, signal or enough failures the loop is alive after twenty calls, some of them failed."""
    ws.exits(*[1, 1, 0] * 6)
    running = ws.start("build", "--max-iterations", "0")
    ws.wait_calls(20)
    assert running.process.poll() is None
    running.signal(signal.SIGINT)
    assert running.finish() == 130
    assert running.lines[0].endswith("Starting procedure: build (unlimited iterations)")


def test_O_012_only_a_signal_stops_it(ws: Workspace) -> None:
    """An unlimited run makes exactly the calls up to the one that sends the signal."""
    ws.signal_at(20)
    ran = ws.rooda("build", "--max-iterations", "0")
    assert ran.code == 130
    assert len(ws.calls) == 20
    assert "Reached max" not in ran.out


def test_O_012_failures_stop_it_too(ws: Workspace) -> None:
    """An unlimited run of failures ends at the threshold."""
    ran = ws.rooda("build", "--unlimited", env={"FAKE_EXIT": "2"})
    assert ran.code == 1
    assert len(ws.calls) == 3
    assert masked(ran.lines)[-2:] == [
        "[T] WARNING: AI CLI failed (exit 2), consecutive failures: 3/3",
        "[T] ERROR: Aborting after 3 consecutive failures (3 iterations completed, total: D)",
    ]


def test_O_011_zero_inside_one_outside(ws: Workspace) -> None:
    """While the screen says 2/3 the state says 1, and the agent gets 2."""
    ws.copy_state_at(1, 2, 3)
    for n in (1, 2, 3):
        ws.side(n, f'cp {ws.root}/output-0.out "$FAKE/seen-$n"')
    assert ws.rooda("build", "-n", "3").code == 0
    for call in ws.calls:
        assert ws.copies[call.n]["iteration"] == call.n - 1
        assert ws.read(f"../fake/seen-{call.n}").splitlines()[-1].endswith(f"Iteration {call.n}/3 starting...")
        assert call.env["ROODA_ITERATION"] == str(call.n)


def test_O_014_number_and_time_between_iterations(ws: Workspace) -> None:
    """By the time an agent starts, the line of every earlier iteration with its time is on the screen."""
    ws.side("iteration", f'cp {ws.root}/output-0.out "$FAKE/seen-$n"')
    assert ws.rooda("build", "-n", "3").code == 0
    for n in (1, 2, 3):
        seen = masked(ws.read(f"../fake/seen-{n}").splitlines())
        assert [line for line in seen if "completed" in line] == [
            f"[T] Iteration {done}/3 completed in D" for done in range(1, n)
        ]


def test_OA_28_one_is_written_like_many(ws: Workspace) -> None:
    """The lines of the specification have one form, easy to match: `max 1 iterations`, `1 iterations completed`."""
    assert "(max 1 iterations)" in ws.rooda("build", "-n", "1").lines[0]
    ws.put_state(iteration=1, elapsed_per_iteration=["1.0s"], max_iterations=1)
    assert ws.rooda("resume", "build").lines[1].endswith("Previous session: 1 iterations completed in 1s")
    ran = ws.rooda("build", "-n", "3", "--failure-threshold", "1", env={"FAKE_EXIT": "1"})
    assert "Aborting after 1 consecutive failures (1 iterations completed, total: " in ran.lines[-1]


def test_OA_31_zero_beats_a_configured_limit(ws: Workspace) -> None:
    """A limit of 0 on the command line is a choice, not the lack of one."""
    ws.procedure(keys="default_iterations = 2\n")
    ws.signal_at(4)
    ran = ws.rooda("build", "--max-iterations", "0")
    assert ran.code == 130
    assert len(ws.calls) == 4
    assert ran.lines[0].endswith("(unlimited iterations)")


@pytest.mark.parametrize("value", ["-1", "many", "1.5", ""])
def test_OA_31_not_a_limit(ws: Workspace, value: str) -> None:
    """A limit that is negative or no whole number is a usage error; nothing is started."""
    ran = ws.rooda("build", "--max-iterations", value)
    assert ran.code == 2
    assert "--max-iterations" in ran.err
    assert ws.calls == []
    assert not ws.exists(".rooda")


@pytest.mark.parametrize("value", ["-3", '"five"', "2.5", "true"])
def test_OA_31_not_a_limit_in_a_file(ws: Workspace, value: str) -> None:
    """The same in a settings file, with file, line and key."""
    ws.procedure(keys=f"default_iterations = {value}\n")
    ran = ws.rooda("build")
    line = ws.read("rooda.toml").splitlines().index(f"default_iterations = {value}") + 1
    assert ran.code == 2
    assert f"rooda.toml:{line}: procedures.build.default_iterations" in ran.err
    assert ws.calls == []


@pytest.mark.parametrize("place", ["flag", "environment", "loop", "procedure"])
def test_OA_32_a_threshold_of_zero_is_refused(ws: Workspace, place: str) -> None:
    """A threshold below 1 would abort before the first call; it is an error wherever it is set."""
    if place == "loop":
        ws.procedure(loop={"failure_threshold": 0})
    if place == "procedure":
        ws.procedure(keys="failure_threshold = 0\n")
    flags = ["--failure-threshold", "0"] if place == "flag" else []
    env = {"ROODA_LOOP_FAILURE_THRESHOLD": "0"} if place == "environment" else {}
    ran = ws.rooda("build", "-n", "1", *flags, env=env)
    assert ran.code == 2
    assert "threshold" in ran.err.lower()
    assert ws.calls == []
    assert not ws.exists(".rooda")
