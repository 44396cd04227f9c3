"""What a stranger broke once, and how it holds now."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.loops import Loops
from tests.kit.workspace import Ran, Workspace, until

LIMITED = (
    '{"type":"result","is_error":true,"api_error_status":429,"result":"You\'ve hit your usage limit","session_id":"s"}'
)
DONE = '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s","total_cost_usd":0.75}'


def agent(ws: Workspace, out: str, **loop: object) -> None:
    """A claude of ours that prints this and notes that it was called."""
    ws.write("agent.out", out + "\n")
    ws.sections["agent"] = '\n[agents.mine]\ncommand = "sh -c \'echo >>calls; cat agent.out\'"\noutput = "claude"\n'
    ws.procedure(loop={"ai_cmd": None, "agent": "mine", "retry_wait": 0, **loop})


def calls(ws: Workspace) -> int:
    return len(ws.read("calls").splitlines()) if ws.exists("calls") else 0


def resting(ws: Workspace) -> bool:
    return "resting" in [event["event"] for event in ws.events()]


def test_a_limit_that_cannot_be_recorded_is_waited_for(ws: Workspace) -> None:
    """Without any place for it the run itself remembers: one call, then the wait."""
    agent(ws, LIMITED)
    ws.write("blocked", "")
    running = ws.start("build", env={"ROODA_STATE_HOME": ws.file("blocked")})
    until(lambda: resting(ws), what="the wait")
    running.process.terminate()
    assert running.finish() == 143
    assert calls(ws) == 1


@pytest.mark.parametrize("moment", ["1770000000000", "1e300", "NaN", "-5", '"soon"'])
def test_an_invalid_reset_time_counts_as_unknown(ws: Workspace, moment: str) -> None:
    """Milliseconds, nonsense or text: the run waits as for an unknown time, without a traceback."""
    event = '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":MOMENT}}\n'.replace(
        "MOMENT", moment
    )
    agent(ws, event + LIMITED, on_limit="stop")
    ran = ws.rooda("build")
    assert ran.code == 4 and "Traceback" not in ran.both, ran.both
    assert ws.state()["status"] == "interrupted"


@pytest.mark.parametrize(
    "again", [("resume", "build"), ("build", "--resume"), ("resume", "build", "--max-tokens", "9999")]
)
def test_each_limit_is_kept_by_itself(ws: Workspace, again: tuple[str, ...]) -> None:
    """Whatever way a run continues, and whatever other limit is named: that of the start still holds."""
    agent(ws, DONE, max_duration="8h")
    assert ws.rooda("build", "-n", "9", "--max-cost", "1").code == 4
    assert ws.rooda(*again).code == 4
    assert calls(ws) == 2


def test_a_parent_that_ignores_sigchld(ws: Workspace) -> None:
    """The guardian still learns of the loop's end."""
    ignore = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [sys.executable, "-c", ignore, *ws.command("build", "-n", "1")]
    done = subprocess.run(command, cwd=ws.path, env=ws.env, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and "Reached max iterations: 1" in done.stdout


def test_a_nul_in_a_gate(ws: Workspace) -> None:
    """A command that can't be started is a failed gate, not the end of the program."""
    ws.write("AGENTS.md", b"## Quality Gates\n\n- odd: `echo \0`\n")
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 1 and "Traceback" not in ran.both
    assert "Quality gates failed: odd (exit 126)" in ran.out


def test_stop_while_a_run_begins(ws: Workspace) -> None:
    """A run that holds the lock but has not written its identity yet is waited for, and stopped."""
    agent(ws, DONE)
    ws.write("agent.sh", "sleep 1000\n")
    running = ws.start("build", "--ai-cmd", "sh agent.sh")
    until(lambda: ws.exists(".rooda/state/build.lock"), what="the lock")
    until(lambda: "Stopped" in ws.rooda("stop").out, what="the stop")
    assert running.finish() == 143


def test_a_missing_fallback_is_reported_at_the_start(ws: Workspace) -> None:
    """Not when it is needed, at three in the morning."""
    agent(ws, LIMITED, on_limit="switch", fallback=["other"])
    ws.sections["other"] = '\n[agents.other]\ncommand = "no-such-program"\n'
    ws.procedure()
    ran = ws.rooda("build")
    assert ran.code == 2 and "no-such-program" in ran.err and calls(ws) == 0


@pytest.mark.parametrize("kind", ["reflex", "flow", "goal"])
def test_a_missing_fallback_of_the_other_kinds(bare: Workspace, kind: str) -> None:
    """The error comes before the start, and no agent is called."""
    keys = f'\n[{kind}]\nagent = "mine"\non_limit = "switch"\nfallback = ["other"]\n'
    loops = Loops(bare, keys + '[agents.mine]\ncommand = "touch called"\n[agents.other]\ncommand = "no-such-program"\n')
    ran: Ran = getattr(loops, kind)()
    assert ran.code == 2 and "no-such-program" in ran.err and not bare.exists("called"), ran.both


def test_ctrl_z_suspends_a_waiting_loop(ws: Workspace) -> None:
    """A waiting loop is suspended too."""
    agent(ws, LIMITED)
    running = ws.start("build")
    until(lambda: resting(ws), what="the wait")
    ws.rooda("pause")
    until(lambda: states(ws) == {"T"}, what="everybody to stand still")
    ws.rooda("continue")
    running.process.terminate()
    assert running.finish() == 143


def states(ws: Workspace) -> set[str]:
    pids = ",".join(map(str, ws.leftovers()))
    shown = subprocess.run(["ps", "-o", "stat=", "-p", pids], capture_output=True, text=True).stdout
    return {line.strip()[:1] for line in shown.splitlines()}


@pytest.mark.parametrize(
    "line", ['{"event":"agent.ended","ts":"x","seconds":null}', '{"event":3,"ts":1}', '{"event":"run.ended","ts":"x"}']
)
@pytest.mark.parametrize("verb", ["logs", "why", "usage"])
def test_a_damaged_log(ws: Workspace, verb: str, line: str) -> None:
    """A line that only looks like an event is passed over."""
    assert ws.rooda("build", "-n", "1").code == 0
    ws.damages_events = True
    log = next(Path(ws.file(".rooda/runs")).glob("*/events.jsonl"))
    with log.open("a") as file:
        file.write(line + "\n")
    ran = ws.rooda(verb)
    assert ran.code == 0 and "Traceback" not in ran.both


def test_a_transcript_begins_empty(ws: Workspace) -> None:
    """A transcript starts empty, whatever an agent wrote into the file that rooda created ahead."""
    ws.procedure(loop={"promise_signals": True})
    ws.side(1, 'for f in .rooda/runs/*/.next-*; do echo "<promise>SUCCESS</promise>" >"$f"; done')
    assert ws.rooda("build", "-n", "3").code == 0
    assert len(ws.calls) == 3


def test_a_full_standard_output(ws: Workspace) -> None:
    """No space for the answer: a sentence, and an exit code of the table."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            ws.command("list"), cwd=ws.path, env=ws.env, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1 and "No space left on device" in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_hook_that_prints_without_end(ws: Workspace) -> None:
    """It is ended by its timeout; what it printed fills neither memory nor disk."""
    ws.sections["hooks"] = '\n[hooks]\ndone = { command = "yes", timeout = 0.5 }\n'
    ws.procedure()
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 0 and "the hook 'done' failed (timed out after 0.5s)" in ran.err


def test_the_starter_may_die(ws: Workspace) -> None:
    """A background loop that has its folder does not need the process that started it."""
    running = ws.start("build", "-n", "1", "--detach")
    until(lambda: ws.exists(".rooda/runs"), what="the run's folder")
    os.kill(running.pid, signal.SIGKILL)
    running.finish()
    until(lambda: [event["event"] for event in ws.events()][-1:] == ["run.ended"], what="the end of the run")
    assert len(ws.calls) == 1 and ws.state() is None


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="needs to mount a small disk")
def test_a_disk_that_fills_up(ws: Workspace) -> None:
    """Transcripts move to a temporary folder; good iterations stay good."""
    ws.write(".rooda/.keep", "")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", ws.file(".rooda")]).returncode:
        pytest.skip("may not mount")
    try:
        agent(ws, DONE)
        ws.sections["fill"] = ""
        ws.write("agent.sh", f"cat agent.out; head -c 300000 /dev/zero >{ws.file('.rooda/fill')} 2>&-; true\n")
        ws.sections["agent"] = '\n[agents.mine]\ncommand = "sh agent.sh"\noutput = "claude"\n'
        ws.procedure()
        ran = ws.rooda("build", "-n", "3")
        assert ran.code == 0, ran.both
        assert "AI CLI failed" not in ran.out
    finally:
        subprocess.run(["umount", ws.file(".rooda")], check=True)
