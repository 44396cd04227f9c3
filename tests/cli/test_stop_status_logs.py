"""Looking at runs and ending them: status, stop, logs, resume without a name."""

import json
import os
import signal

import pytest

from tests.kit.workspace import Workspace, alive, masked, until

BUSY = "sleep 30 & wait"


def busy(ws: Workspace, *names: str, n: int = 1) -> list:
    """Start a run of each procedure, whose agent does not end by itself."""
    started = []
    for place, name in enumerate(names, n):
        ws.procedure(name)
        ws.side(place, BUSY)
        started.append(ws.start(name))
        ws.wait_calls(place)
    return started


def test_stop_ends_a_live_run(ws: Workspace) -> None:
    """`rooda stop build`: the run ends with 143, its state is saved, its agent is gone, stop itself exits 0."""
    (run,) = busy(ws, "build")
    stop = ws.rooda("stop", "build")
    assert (stop.code, stop.err) == (0, "")
    assert stop.out == "Stopped procedure 'build'. Resume with: rooda resume build\n"
    assert run.finish(5) == 143
    assert run.lines[-1].endswith("Interrupted. State saved. Resume with: rooda resume build")
    state = ws.state()
    assert state is not None and (state["status"], state["iteration"]) == ("interrupted", 1)
    assert not alive(ws.calls[0].pid)


def test_stop_at_the_question_whether_to_resume(ws: Workspace) -> None:
    """No run has begun, so that stop does not wait until one could take its order; nothing is started."""
    ws.put_state()
    terminal = ws.terminal("build")
    until(lambda: "Resume? [Y/n] " in terminal.out, what="the question")
    assert json.loads(ws.read(".rooda/state/build.lock"))["asks"]
    ran = ws.rooda("stop", "build")
    assert ran.code == 0 and ran.out.startswith("Stopped procedure 'build'."), ran.both
    assert terminal.finish() == 143 and not ws.calls


def test_stop_without_a_name(ws: Workspace) -> None:
    """The only run is the one that is meant; a procedure that ran before and is over is none."""
    ws.procedure("over")
    assert ws.rooda("over", "-n", "1").code == 0
    (run,) = busy(ws, "build", n=2)
    assert "Stopped procedure 'build'" in ws.rooda("stop").out
    assert run.finish(5) == 143


def test_stop_among_several(ws: Workspace) -> None:
    """Several runs are listed, exit 3, and all continue; a name then ends one and leaves the other."""
    first, second = busy(ws, "build", "review")
    ran = ws.rooda("stop")
    assert ran.code == 3
    assert ran.err.splitlines()[-2:] == ["  rooda stop build", "  rooda stop review"]
    assert ws.rooda("stop", "review").code == 0
    assert second.finish(5) == 143
    assert first.process.poll() is None
    assert ws.rooda("status").out.startswith("build: running")


@pytest.mark.parametrize("words", [("stop",), ("stop", "build")], ids=" ".join)
def test_stop_with_nothing_running(ws: Workspace, words: tuple[str, ...]) -> None:
    """Nothing to stop is reported on stdout and isn't a failure, even with a saved run."""
    ws.put_state()
    ran = ws.rooda(*words)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out in ("Nothing is running here.\n", "Procedure 'build' is not running.\n")
    assert ws.state()["status"] == "interrupted"


def test_stop_waits_for_a_stubborn_agent(ws: Workspace) -> None:
    """Stop returns when the run is over, even if its agent had to be killed."""
    ws.procedure("build", loop={"kill_grace": 0.3})
    ws.side(1, "trap '' TERM INT; while :; do sleep 1; done")
    run = ws.start("build")
    ws.wait_calls(1)
    assert "Stopped procedure 'build'" in ws.rooda("stop").out
    assert run.finish(1) == 143
    assert not ws.leftovers()


def test_resume_without_a_name(ws: Workspace) -> None:
    """The only run that can continue continues; completed and damaged ones are not candidates."""
    ws.put_state("build", max_iterations=4)
    ws.put_state("other", status="completed")
    ws.write(".rooda/state/broken.json", "{")
    ran = ws.rooda("resume")
    assert ran.code == 0
    assert masked(ran.lines)[0] == "[T] Resuming procedure: build from iteration 3 (max 4)"


def test_resume_among_several(ws: Workspace) -> None:
    """Several are listed, exit 3, and nothing is touched."""
    ws.procedure("review")
    ws.put_state("build")
    ws.put_state("review", status="aborted")
    ran = ws.rooda("resume")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.splitlines()[-2:] == ["  rooda resume build", "  rooda resume review"]
    assert not ws.calls and ws.state("review")["status"] == "aborted"


def test_OA_21_nothing_to_resume(ws: Workspace) -> None:
    """Without a saved run: a sentence, exit 2, with and without a name."""
    ran = ws.rooda("resume")
    assert ran.code == 2 and "Nothing to resume here." in ran.err
    ran = ws.rooda("resume", "build")
    assert ran.code == 2 and "No saved state for procedure 'build'." in ran.err
    assert "rooda build" in ran.err and not ws.exists(".rooda")
    ran = ws.rooda("resume", "biuld")
    assert ran.code == 2
    assert ran.err == "Error: No saved state for procedure 'biuld'.\nDid you mean 'build'?\n"


def test_a_live_run_is_not_resumed(ws: Workspace) -> None:
    """A run that lives is not resumed a second time, named or not."""
    busy(ws, "build")
    for words in (("resume",), ("resume", "build"), ("build",), ("build", "--fresh"), ("build", "--resume")):
        ran = ws.rooda(*words)
        assert ran.code == 3, words
        assert "is already running here (pid" in ran.err
    assert len(ws.calls) == 1


def test_OA_22_limits_on_resume(ws: Workspace) -> None:
    """Resume takes a new limit and threshold; at or below the counter it says what would help, exit 0."""
    ws.put_state()
    ran = ws.rooda("resume", "build", "--max-iterations", "3")
    assert ran.code == 0 and not ws.calls
    assert masked(ran.lines) == [
        "[T] Resuming procedure: build from iteration 3 (max 3)",
        "[T] Previous session: 3 iterations completed in D",
        "[T] Reached max iterations: 3 (total: D)",
    ]
    assert "To run with a higher limit: rooda build --max-iterations N" in ran.err
    assert ws.rooda("build", "--max-iterations", "4").code == 0 and len(ws.calls) == 4


def test_status_of_a_live_run(ws: Workspace) -> None:
    """Status shows what runs, with the pid in the lock; as JSON for programs."""
    (run,) = busy(ws, "build")
    ran = ws.rooda("status")
    assert ran.code == 0 and ran.lines[0].startswith(f"build: running (pid {run.pid}), 0")
    (facts,) = json.loads(ws.rooda("status", "--json").out)
    assert (facts["running"], facts["pid"], facts["state"], facts["iteration"]) == (True, run.pid, "running", 0)
    run.signal(signal.SIGTERM)
    run.finish(5)


def test_OU_25_status_of_a_saved_run(ws: Workspace) -> None:
    """Status of a saved run: how far, how it ended, the timing of its iterations, how to continue."""
    ws.put_state()
    ran = ws.rooda("status", "build")
    assert ran.lines[0] == "build: interrupted, 3/10 iterations completed in 2m16s"
    assert "  Iteration timing: count=3 min=38.7s max=52.1s mean=45.3s stddev=5.5s" in ran.lines
    assert ran.lines[-1].strip() == "resume with: rooda resume build"
    (facts,) = json.loads(ws.rooda("status", "--json").out)
    assert facts["details"]["timing"] == {"count": 3, "min": 38.7, "max": 52.1, "mean": 45.333, "stddev": 5.471}
    assert facts["running"] is False


def test_status_of_other_shapes(ws: Workspace) -> None:
    """An unlimited run, one that was killed, a damaged file and no file at all each have their words; exit 0."""
    assert ws.rooda("status").out == "Nothing is running here, and nothing can be resumed.\n"
    assert ws.rooda("status", "build").out == "No saved state for procedure 'build'.\n"
    assert json.loads(ws.rooda("status", "--json").out) == []
    ws.put_state("endless", max_iterations=0, iteration=1, elapsed_per_iteration=["1.0s"])
    ws.put_state("killed", status="running")
    ws.write(".rooda/state/torn.json", "{")
    lines = ws.rooda("status").lines
    assert lines[0] == "endless: interrupted, 1 iteration completed in 1s"
    assert "killed: interrupted, 3/10 iterations completed in 2m16s" in lines
    assert lines[-1].startswith("torn: state file is damaged")


def test_status_leaves_no_trace(bare: Workspace) -> None:
    """Asking writes nothing."""
    for words in (("status",), ("stop",), ("logs",), ("list",), ("info", "build"), ("config", "show"), ("resume",)):
        bare.rooda(*words)
    assert os.listdir(bare.path) == []


def test_logs_of_the_latest_run(ws: Workspace) -> None:
    """`rooda logs` prints the latest run in the words of its screen, with full times and paths of transcripts."""
    ws.exits(1)
    shown = ws.rooda("build", "-n", "2")
    ran = ws.rooda("logs")
    assert ran.code == 0
    out, err, logged = (
        [line.partition("] ")[2] for line in lines] for lines in (shown.lines, shown.err.splitlines(), ran.lines)
    )
    assert [line for line in logged if line not in err] == out and [line for line in logged if line not in out] == err
    assert all(line.startswith("[20") and line[20:22] == "] " for line in ran.lines)
    folder = ran.err.strip().rpartition(" ")[2]
    assert "0001-prompt.md" in os.listdir(folder) and "0002-iteration.out" in os.listdir(folder)


def test_logs_of_a_procedure(ws: Workspace) -> None:
    """With a name it is the latest run of that procedure; a name that only begins the same is another one."""
    ws.procedure("build-more")
    ws.rooda("build", "-n", "2")
    ws.rooda("build-more", "-n", "1")
    assert "Starting procedure: build-more" in ws.rooda("logs").lines[0]
    assert "Starting procedure: build (max 2" in ws.rooda("logs", "build").lines[0]
    assert "No runs of 'nothing' recorded here." in ws.rooda("logs", "nothing").err


def test_E_32_the_end_of_what_an_agent_said(ws: Workspace) -> None:
    """--tail N shows the last N lines over all iterations; only the ends of transcripts are read."""
    ws.side("iteration", 'seq -f "line %.0f" 200000')
    ws.rooda("build", "-n", "2")
    assert ws.rooda("logs", "--agent", "--tail", "2").lines == ["--- Iteration 2 ---", "line 199999", "line 200000"]
    ran = ws.rooda("logs", "--agent", "--tail", "200001")
    assert ran.lines[:3] == ["--- Iteration 1 ---", "line 200000", "--- Iteration 2 ---"]
    assert len(ran.lines) == 200003 and ran.lines[3] == "line 1"
    assert ws.rooda("logs", "--tail", "2").code == 2


def test_E_32_logs_and_screen_have_one_clock(ws: Workspace) -> None:
    """Both are local; the events name their zone."""
    env = {"TZ": "Asia/Tokyo"}
    shown = ws.rooda("build", "-n", "1", env=env).lines[0]
    for words in (("logs",), ("why",)):
        line = ws.rooda(*words, env=env).lines[0]
        assert line[12:14] == shown[1:3], (words, line, shown)
    assert ws.events()[0]["ts"].endswith("Z")


def test_logs_as_json_and_in_detail(ws: Workspace) -> None:
    """--json gives the events as they are on disk, -v the details; a torn last line is passed over."""
    ws.rooda("build", "-n", "1")
    assert [json.loads(line) for line in ws.rooda("logs", "--json").lines] == ws.events()
    assert "Iteration timing: count=1" in ws.rooda("logs", "-v").out
    assert "Iteration timing" not in ws.rooda("logs").out
    before = ws.rooda("logs").out
    run = ws.events()[0]["run"]
    ws.damages_events = True
    with open(ws.file(f".rooda/runs/{run}/events.jsonl"), "a", encoding="utf-8") as log:
        log.write('{"v": 1, "ts": "20')
    assert ws.rooda("logs").out == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_OA_44_a_second_signal_skips_the_grace(ws: Workspace, number: int) -> None:
    """An agent that does not go is killed at the second signal, long before its grace is over."""
    ws.procedure("build", loop={"kill_grace": 60})
    ws.side(1, "trap 'touch asked' TERM; touch ready; while :; do sleep 0.05; done")
    run = ws.start("build")
    until(lambda: ws.exists("ready"), what="the agent")
    run.signal(number)
    until(lambda: ws.exists("asked"), what="the agent to be asked")
    assert run.process.poll() is None
    run.signal(number)
    assert run.finish(10) == (130 if number == signal.SIGINT else 143)
    assert ws.state()["status"] == "interrupted" and not ws.leftovers()


@pytest.mark.parametrize(
    ("first", "second", "code"), [("INT", "TERM", 130), ("TERM", "INT", 143), ("HUP", "INT", 143), ("INT", "HUP", 130)]
)
def test_two_different_signals(ws: Workspace, first: str, second: str, code: int) -> None:
    """The first signal decides the exit code."""
    ws.procedure("build", loop={"kill_grace": 60})
    ws.side(1, "trap 'touch asked' TERM; touch ready; while :; do sleep 0.05; done")
    run = ws.start("build")
    until(lambda: ws.exists("ready"), what="the agent")
    run.signal(signal.Signals[f"SIG{first}"])
    until(lambda: ws.exists("asked"), what="the agent to be asked")
    run.signal(signal.Signals[f"SIG{second}"])
    assert run.finish(10) == code
    assert ws.events()[-1]["signal"] == signal.Signals[f"SIG{first}"]


def test_a_signal_during_a_gate(ws: Workspace) -> None:
    """The call counts, the iteration is closed, failures stay, no M05 line, M10 printed; the gate is gone."""
    ws.procedure("build", gates={"slow": "echo $$ > gate; sleep 30"})
    ws.exits(1, 0)
    run = ws.start("build", "-n", "5")
    until(lambda: ws.exists("gate"), what="the gate")
    run.signal(signal.SIGINT)
    assert run.finish(10) == 130
    state = ws.state()
    assert state is not None
    assert (state["iteration"], state["consecutive_failures"], state["status"]) == (2, 1, "interrupted")
    assert masked(run.lines)[-2:] == [
        "[T] Iteration 2/5 starting...",
        "[T] Interrupted. State saved. Resume with: rooda resume build",
    ]
    assert not ws.leftovers()


def test_an_agent_that_deletes_the_state_folder(ws: Workspace) -> None:
    """`git clean -fdx` by the agent: the next write makes the folder again, and stop still finds the run."""
    ws.damages_events = True
    ws.side(1, "rm -rf .rooda")
    ws.side(2, BUSY)
    run = ws.start("build", "-n", "5")
    ws.wait_calls(2)
    assert ws.state()["iteration"] == 1
    assert "Stopped procedure 'build'" in ws.rooda("stop").out
    assert run.finish(5) == 143 and ws.state()["iteration"] == 2


def test_nothing_but_the_documented_files_remain(ws: Workspace) -> None:
    """After a completed run the state folder holds at most the lock."""
    ws.exits(1)
    ws.rooda("build", "-n", "3")
    assert set(os.listdir(ws.file(".rooda/state"))) <= {"build.lock"}
    assert ws.read(".rooda/.gitignore") == "*\n"


@pytest.mark.parametrize(
    "words", [("status",), ("resume",), ("resume", "build"), ("stop",), ("logs",), ("why",)], ids=" ".join
)
def test_a_subfolder_gets_a_hint_to_its_workspace(ws: Workspace, words: tuple[str, ...]) -> None:
    """Inside a workspace of the same repository its folder is named, on stderr; in a repository inside it is not."""
    ws.git("init", "-q")
    ws.write("a folder/inside/file", "")
    inside = os.path.join(ws.path, "a folder", "inside")
    told = f"Loops have run in a folder above: cd {ws.path}\n"
    assert told not in ws.rooda(*words, "-C", inside).err
    ws.signal_at(1)
    assert ws.rooda("build", "-n", "3").code == 130
    ran = ws.rooda(*words, "-C", inside)
    assert ran.err.endswith(told) and ran.code == (2 if "resume" in words else 0)
    ws.git("init", "-q", inside)
    assert told not in ws.rooda(*words, "-C", inside).err
    assert told not in ws.rooda(*words, "-C", ws.path).err
