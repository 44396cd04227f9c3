"""A transcript that the agent replaces while it runs: no hang, nothing foreign read, every limit and signal works."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.kit.workspace import FAKE_AI, Running, Workspace, alive, until

OWN = '"$PWD/.rooda/runs/$ROODA_RUN/0001-iteration.out"'
REPLACED = {
    "missing": f"rm {OWN}",
    "a pipe": f"rm {OWN}; mkfifo {OWN}",
    "a link": f"ln -sf /dev/zero {OWN}",
    "a folder": f"rm {OWN}; mkdir {OWN}",
    "another file": f"rm {OWN}; echo '<promise>SUCCESS</promise>' >{OWN}",
}


def named(ws: Workspace, name: str) -> list[dict[str, Any]]:
    return [event for event in ws.events() if event["event"] == name]


@pytest.mark.parametrize("now", REPLACED)
def test_S_08_a_replaced_transcript_is_an_event(ws: Workspace, now: str) -> None:
    """The loop reads what it opened. Whoever puts something else there has failed; deleting it can be an accident."""
    ws.side(1, f"echo said; {REPLACED[now]}")
    run = ws.rooda("build", "-n", "1")
    replaced, ended = named(ws, "transcript.replaced"), named(ws, "agent.ended")
    assert [event["now"] for event in replaced] == [now] and run.code in (0, 1, 4)
    assert ended[0]["outcome"] == ("success" if now == "missing" else "failure")
    assert ended[0]["size"] >= len("said\n") and not ended[0]["promise"]
    verb = "was deleted" if now == "missing" else f"was replaced by {now}"
    assert f"0001-iteration.out {verb} while the agent ran" in run.out + run.err


@pytest.mark.parametrize("now", ["missing", "a pipe"])
def test_S_08_cost_and_words_are_those_of_the_open_file(ws: Workspace, now: str) -> None:
    """A CLI's records are read although nothing has their name any more."""
    ws.config(f'[loop]\nagent = "c"\n[agents.c]\ncommand = "{FAKE_AI}"\noutput = "claude"\n' + ws.sections["build"])
    record = {"type": "result", "subtype": "success", "is_error": False, "result": "done", "total_cost_usd": 0.5}
    ws.out(1, json.dumps(record) + "\n")
    ws.side(1, REPLACED[now])
    ws.rooda("build", "-n", "1")
    ended = named(ws, "agent.ended")[0]
    assert ended["cost"] == 0.5 and ended["agent_outcome"] == ("ok" if now == "missing" else "agent_error")


@pytest.fixture
def held(ws: Workspace) -> Running:
    """A loop whose agent has put a pipe in the place of its transcript, and stays."""
    return hanging(ws)


def hanging(ws: Workspace, *options: str) -> Running:
    ws.side(1, f"{REPLACED['a pipe']}; touch replaced; exec sleep 60")
    running = ws.start("build", "-n", "1", "--verbose", *options)
    until(lambda: ws.exists("replaced"), what="a replaced transcript")
    return running


def test_S_08_timeouts_end_the_call(ws: Workspace) -> None:
    """The loop waits for its agent, not for the pipe."""
    ws.procedure("build", loop={"iteration_timeout": 1.0, "kill_grace": 0.1})
    hanging(ws).finish(30)
    assert named(ws, "agent.ended")[0]["ended"] == "timeout" and named(ws, "transcript.replaced")


def test_S_08_an_idle_agent_is_ended(ws: Workspace) -> None:
    """Its output is measured where it is written."""
    ws.procedure("build", loop={"idle_timeout": 1.0, "kill_grace": 0.1})
    hanging(ws).finish(30)
    assert named(ws, "agent.ended")[0]["ended"] == "idle"


def test_S_08_rooda_stop_ends_the_run(ws: Workspace, held: Running) -> None:
    """From another terminal, within the usual time."""
    assert ws.rooda("stop").code == 0
    assert held.finish(30) == 143


def test_S_08_a_signal_ends_the_run(ws: Workspace, held: Running) -> None:
    """TERM, as a shutdown sends it."""
    held.process.send_signal(signal.SIGTERM)
    assert held.finish(30) == 143


def test_S_08_the_loop_goes_with_its_guardian(ws: Workspace, held: Running) -> None:
    """Nothing is left after kill -9 of the guardian, as docs/processes.md says."""
    below = psutil.Process(held.process.pid).children(recursive=True)
    held.process.kill()
    until(lambda: not any(alive(each.pid) for each in below), what="the end of loop and agent")
    assert below


def test_S_08_what_looks_does_not_wait_for_a_pipe(ws: Workspace, held: Running) -> None:
    """The commands of another terminal while the call runs, and after it."""
    for words in (["status"], ["logs", "--agent"], ["why"], ["usage"], ["status", "--all"]):
        assert ws.rooda(*words, timeout=20).code in (0, 1)
    held.process.send_signal(signal.SIGTERM)
    held.finish(30)
    assert "not a regular file" in ws.rooda("logs", "--agent", timeout=20).out


def test_S_08_the_cap_of_a_gate_empties_no_other_file(ws: Workspace) -> None:
    """A gate that puts a link in the place of its output: the file behind the link stays as it is."""
    victim = ws.write("victim", "precious" * 1000)
    out = '"$PWD/.rooda/runs/$ROODA_RUN/0001-gate-1.out"'
    flood = f"ln -sf {victim} {out}; head -c 3000000 /dev/zero; sleep 2.5"
    ws.procedure("build", loop={"max_output_buffer": 1024}, gates={"flood": flood})
    assert ws.rooda("build", "-n", "1").code == 0
    assert ws.read("victim") == "precious" * 1000


def test_S_08_a_prompt_that_became_a_pipe_is_written_again(ws: Workspace) -> None:
    """The next call gets the prompt, and does not wait for a writer."""
    ws.side(1, 'cd ".rooda/runs/$ROODA_RUN"; for each in *-prompt.md; do rm "$each"; mkfifo "$each"; done; cd ../../..')
    assert ws.rooda("build", "-n", "2").code == 0
    assert [b"OBS" in call.prompt for call in ws.calls] == [True, True]


@pytest.mark.parametrize("words", [["logs", "--agent"], ["why"], ["usage"], ["status"]], ids=" ".join)
@pytest.mark.parametrize("target", ["pipe", "secret"])
def test_S_07_a_transcript_is_read_from_its_own_run(ws: Workspace, words: list[str], target: str) -> None:
    """Wherever a forged log points: neither a wait nor somebody's file."""
    ws.exits(1)
    ws.rooda("build", "-n", "1")
    Path(ws.root, "secret").write_text("-----SECRET-----\n")
    os.mkfifo(Path(ws.root, "pipe"))
    (log,) = Path(ws.path, ".rooda", "runs").glob("*/events.jsonl")
    ws.damages_events = True
    rows = [json.loads(line) for line in log.read_text().splitlines() if "run.ended" not in line]
    for row in rows:
        if "transcript" in row:
            row["transcript"] = str(Path(ws.root, target))
    log.write_text("".join(json.dumps(row) + "\n" for row in rows if row["event"] != "agent.ended"))
    ran = ws.rooda(*words, timeout=20)
    assert ran.code == 0 and "SECRET" not in ran.out + ran.err
