"""A loop in the background: started, watched, paused, stopped, and never in the way of a terminal."""

import contextlib
import json
import os
import signal
import subprocess
import time

import pytest

from tests.kit.background import HOLD, MORE, began, begin, detached, kill_all, let_go
from tests.kit.loops import Loops
from tests.kit.workspace import Workspace, until

STAYS = "touch began; while [ ! -e go ]; do read -t 0.05 x <>pipe || true; done; echo worked"


def background(ws: Workspace, *words: str) -> str:
    """Start `rooda build` with an agent that works until the file `go` is there; the run's name."""
    os.mkfifo(ws.file("pipe"))
    ws.write("agent.sh", STAYS)
    ran = ws.rooda("build", "-n", "1", "--ai-cmd", "bash agent.sh", "--detach", *words)
    assert ran.code == 0, ran.both
    until(lambda: ws.exists("began"), what="the agent")
    return ran.lines[0].rpartition(" ")[2]


def test_detach_returns_at_once_and_the_loop_continues(ws: Workspace) -> None:
    """The starter ends with the run's name while the agent works; the loop ends by itself and says so in its file."""
    run = background(ws)
    status = ws.rooda("status").lines
    assert status[0].startswith("build: running (pid ")
    ws.write("go", "")
    until(lambda: ws.state() is None, what="the end of the run")
    until(lambda: ws.leftovers() == [], what="everybody to be gone")
    assert "Reached max iterations: 1" in ws.read(f".rooda/runs/{run}/console.log")


def test_a_run_in_another_folder_prints_how_to_reach_it(ws: Workspace) -> None:
    """In a worktree, or where -C led: the lines that are printed show it and end it; one that works here has none."""
    ws.write("agent.sh", STAYS.replace("<>pipe", "<>$FAKE/pipe"))
    ws.git("init", "-q")
    ws.git("add", "-A")
    ws.git("commit", "-qm", "the beginning")
    os.mkfifo(f"{ws.fake}/pipe")
    start = ["build", "-n", "1", "--ai-cmd", "bash agent.sh", "--detach"]
    there = ws.file(".rooda/worktrees/build-1")
    elsewhere = ["--fresh", "-C", ws.path], ws.root, ws.path
    for words, cwd, path in ((["--worktree"], ws.path, there), elsewhere, (["--fresh"], ws.path, "")):
        ran = ws.rooda(*start, *words, cwd=cwd)
        assert ran.code == 0, ran.both
        wanted = [f"Watch it: rooda status -C {path}", f"End it: rooda stop -C {path}"] if path else []
        assert ran.lines[2:] == wanted
        typed = wanted or ["of it: rooda status", "of it: rooda stop"]
        seen, ended = (ws.rooda(*line.partition(": rooda ")[2].split(), cwd=cwd) for line in typed)
        assert seen.out.startswith("build: running (pid ") and ended.out.startswith("Stopped procedure 'build'")
    said = ws.rooda("build", "-n", "1", "--ai-cmd", "true", "--worktree").err
    there = ws.file(".rooda/worktrees/build-2")
    assert f" Watch it: rooda status -C {there}\n" in said and f" End it: rooda stop -C {there}\n" in said


def test_the_terminal_may_go(ws: Workspace) -> None:
    """Closing the terminal that it was started on, with a hang-up for everybody there, leaves the loop alone."""
    os.mkfifo(ws.file("pipe"))
    ws.write("agent.sh", STAYS)
    terminal = ws.terminal("build", "-n", "1", "--ai-cmd", "bash agent.sh", "--detach")
    until(lambda: ws.exists("began"), what="the agent")
    assert terminal.finish() == 0
    terminal.stop()
    assert ws.rooda("status").lines[0].startswith("build: running")
    ws.write("go", "")
    until(lambda: ws.state() is None, what="the end of the run")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--ai-cmd", "no-such-agent"], 2, "AI command binary not found: no-such-agent"),
        (["--max-iterations", "x"], 2, "--max-iterations"),
        (["--observe", "./gone.md"], 2, "gone.md"),
    ],
)
def test_a_failed_start_in_the_background_is_reported(ws: Workspace, words: list[str], code: int, said: str) -> None:
    """The exit code and the sentence are those of a start in the foreground."""
    ran = ws.rooda("build", "--detach", *words)
    assert ran.code == code and said in ran.err, ran.both
    assert ws.leftovers() == []


def test_a_second_start_is_refused(ws: Workspace) -> None:
    """The lock holds for loops in the background too."""
    background(ws)
    ran = ws.rooda("build", "--ai-cmd", "true", "--detach")
    assert ran.code == 3 and "is already running here" in ran.err
    assert ws.rooda("stop").code == 0


def test_stop_now_gives_no_grace(ws: Workspace) -> None:
    """An agent that ignores TERM is killed at once; the state is saved."""
    ws.write("agent.sh", "trap '' TERM; touch began; while :; do sleep 1; done")
    ws.procedure(loop={"kill_grace": 100})
    assert ws.rooda("build", "--ai-cmd", "sh agent.sh", "--detach").code == 0
    until(lambda: ws.exists("began"), what="the agent")
    ran = ws.rooda("stop", "--now")
    assert ran.code == 0 and "Stopped procedure 'build'" in ran.out
    assert ws.state()["status"] == "interrupted"
    assert ws.leftovers() == []


def states(ws: Workspace) -> set[str]:
    """The process states of loop and agent."""
    pids = ",".join(map(str, ws.leftovers()))
    shown = subprocess.run(["ps", "-o", "stat=", "-p", pids], capture_output=True, text=True).stdout
    return {line.strip()[:1] for line in shown.splitlines()}


def test_pause_and_continue(ws: Workspace) -> None:
    """All processes are suspended, then continue to the end."""
    background(ws)
    assert "Paused procedure 'build'" in ws.rooda("pause").out
    until(lambda: states(ws) == {"T"}, what="everybody to stand still")
    ws.write("go", "")
    assert "Continued procedure 'build'" in ws.rooda("continue").out
    until(lambda: ws.state() is None, what="the end of the run")


def test_a_second_pause_and_a_second_continue_do_nothing(ws: Workspace) -> None:
    """Each says how things are, and claims nothing."""
    background(ws)
    assert "Procedure 'build' is not paused. Watch it with: rooda attach build" in ws.rooda("continue").out
    ws.rooda("pause")
    until(lambda: states(ws) == {"T"}, what="everybody to stand still")
    assert "Procedure 'build' is already paused. Continue with: rooda continue build" in ws.rooda("pause").out
    assert "Continued" in ws.rooda("continue").out
    until(lambda: "T" not in states(ws), what="everybody to go on")
    assert "is not paused" in ws.rooda("continue").out
    ws.rooda("stop")


def test_pause_and_continue_in_turns(ws: Workspace) -> None:
    """Again and again, each as soon as the one before has spoken; each is true when it is said."""
    background(ws)
    for _ in range(8):
        assert "Paused procedure 'build'" in ws.rooda("pause").out
        assert "T" in states(ws)
        assert "Continued procedure 'build'" in ws.rooda("continue").out
    until(lambda: "T" not in states(ws), what="everybody to go on")
    ws.write("go", "")
    until(lambda: ws.state() is None, what="the end of the run")


def test_time_limits_are_suspended_with_a_paused_loop(ws: Workspace) -> None:
    """A run that was paused for longer than its --max-duration continues to its end."""
    background(ws, "-n", "2", "--max-duration", "2.5")
    ws.rooda("pause")
    until(lambda: states(ws) == {"T"}, what="everybody to stand still")
    since = time.monotonic()
    until(lambda: time.monotonic() - since > 2.5, what="more time than the limit allows")
    ws.write("go", "")
    ws.rooda("continue")
    until(lambda: ws.state() is None, what="the end of the run")


def test_a_paused_loop_can_be_stopped(ws: Workspace) -> None:
    """TERM reaches it although it sleeps."""
    background(ws)
    ws.rooda("pause")
    until(lambda: states(ws) == {"T"}, what="everybody to stand still")
    assert ws.rooda("stop").code == 0
    assert ws.state()["status"] == "interrupted"
    until(lambda: not ws.leftovers(), what="the guardian to be gone")


@pytest.mark.parametrize("words", [("attach",), ("logs", "-f", "--agent"), ("attach", "build")])
def test_a_watcher_sees_all_and_ends_with_the_run(ws: Workspace, words: tuple[str, ...]) -> None:
    """What was said before, what the agent prints, and the end."""
    background(ws)
    watcher = ws.start(*words)
    until(lambda: "Iteration 1/1 starting" in watcher.out, what="the first lines")
    ws.write("go", "")
    assert watcher.finish() == 0
    assert "worked" in watcher.out and "Reached max iterations: 1" in watcher.out


def test_a_watcher_s_ctrl_c_leaves_the_loop_alone(ws: Workspace) -> None:
    """It says how to end the loop, and the loop continues."""
    background(ws)
    watcher = ws.start("attach")
    until(lambda: "Iteration 1/1 starting" in watcher.out, what="the first lines")
    os.kill(watcher.pid, signal.SIGINT)
    assert watcher.finish() == 0
    assert "rooda stop build" in watcher.err
    assert ws.rooda("status").lines[0].startswith("build: running")
    ws.rooda("stop")


def test_a_watcher_of_a_killed_run_ends(ws: Workspace) -> None:
    """A killed run has no last event; the watcher does not wait for it."""
    background(ws)
    watcher = ws.start("events", "-f")
    until(lambda: "agent.started" in watcher.out, what="the events")
    for pid in ws.leftovers():
        if pid != watcher.pid:
            with contextlib.suppress(ProcessLookupError):  # the guardian was quicker
                os.kill(pid, signal.SIGKILL)
    assert watcher.finish() == 0
    assert '"event": "run.ended"' not in watcher.out


@pytest.mark.parametrize("verb", ["pause", "continue", "attach", "stop"])
def test_nothing_runs(ws: Workspace, verb: str) -> None:
    """It is said, and that is all."""
    ran = ws.rooda(verb)
    assert (ran.code, ran.out) == (0, "Nothing is running here.\n")


def now(ws: Workspace) -> dict[str, object]:
    """What the running loop is doing."""
    found: dict[str, object] = json.loads(ws.rooda("status", "--json").out)[0]
    return found


def test_status_shows_phase_calls_and_cost(ws: Workspace) -> None:
    """The phase, the number of calls, their known cost, and that the loop is paused."""
    background(ws)
    found = now(ws)
    assert (found["phase"], found["calls"], found["cost"], found["suspended"]) == ("agent", 1, None, False)
    assert "agent for" in ws.rooda("status").out and "cost unknown" in ws.rooda("status").out
    ws.rooda("pause")
    until(lambda: states(ws) == {"T"}, what="everybody to stand still")
    assert now(ws)["suspended"] is True
    assert "suspended" in ws.rooda("status").out
    ws.rooda("stop")


def test_watching_a_run_that_is_killed(ws: Workspace) -> None:
    """`logs -f`, `attach` and `logs` say that it was cut off and how to continue it; not for a run that ended."""
    detached(ws)
    watching = [ws.start("logs", "-f"), ws.start("attach"), ws.start("events", "-f")]
    until(lambda: all("iteration" in each.out.lower() for each in watching), what="what they show")
    kill_all(ws, *(each.pid for each in watching))
    said = "The run was cut off: its log records no end, so the run was killed or the machine stopped."
    for each in watching:
        assert each.finish() == 0 and each.err.startswith(said), each.err
        assert each.err.endswith("Resume with: rooda resume build\n")
    assert said in ws.rooda("logs").err and said not in ws.rooda("logs").out
    let_go(ws)
    assert ws.rooda("resume", "build").code == 0 and said not in ws.rooda("logs").err


@pytest.mark.parametrize("kind", ["ooda", "goal"])
def test_an_iteration_before_a_resume(ws: Workspace, kind: str) -> None:
    """Whichever session of the run made it, logs, why and events show it; one that was never made is exit 2."""
    begin(ws, kind)
    assert ws.rooda("stop").code == 0
    let_go(ws)
    assert ws.rooda("resume").code == 0
    for word in ("logs", "why", "events"):
        told = ws.rooda(word, "--iteration", "1")
        assert told.code == 0 and told.lines, word
        never = ws.rooda(word, "--iteration", "99")
        assert never.code == 2 and never.err.startswith("Error: The latest run of "), never.both
    first = [json.loads(line) for line in ws.rooda("events", "--iteration", "1").lines]
    assert {event["display"] for event in first} == {1} and "agent.ended" in [event["event"] for event in first]


def test_a_goal_that_ends_before_it_is_cancelled(ws: Workspace) -> None:
    """The running iteration finishes first; where that reaches the goal, that is what is said."""
    words = Loops(ws).words("goal", *MORE["goal"], most=2, score=2)
    ws.side("step-1", f"{HOLD}; touch made")
    assert ws.rooda(*words, "--detach").code == 0
    began(ws)
    cancel = ws.start("goal", "cancel")
    until(lambda: "Cancel requested" in cancel.out, what="the request")
    let_go(ws)
    assert cancel.finish() == 0
    assert cancel.lines[1:] == ["The goal ended before it could be cancelled."], cancel.out
