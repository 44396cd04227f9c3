"""`rooda say` and `rooda set` reach a running loop, signed, once, and survive a crash."""

import json
import os
import signal
import sys
from pathlib import Path

from tests.kit import kinds
from tests.kit.kinds import plan
from tests.kit.spending import calls, paid
from tests.kit.swarm import loop_of
from tests.kit.workspace import FAKE_AI, Running, Workspace, until, waiting


def held(ws: Workspace, *words: str, call: int = 1, **keys: object) -> Running:
    """A loop whose call of this number waits for the file `go`."""
    ws.procedure(**keys)  # type: ignore[arg-type]
    ws.side(call, waiting(ws.file("go")))
    running = ws.start(*(words or ("build", "-n", "4")))
    ws.wait_calls(call)
    return running


def go(ws: Workspace, running: Running) -> int:
    ws.write("go", "")
    return running.finish(30)


def test_E_45_a_note_is_in_the_next_prompt_once(ws: Workspace) -> None:
    """It is in STATUS of one prompt, and `why` shows it."""
    running = held(ws)
    said = ws.rooda("say", "Mind the\nlinter", "build")
    assert said.code == 0 and "The next prompt of procedure 'build' will contain it" in said.out
    assert ws.rooda("say", "And the tests").code == 0
    assert go(ws, running) == 0
    prompts = [call.text for call in ws.calls]
    assert ["Mind the linter" in text for text in prompts] == [False, True, False, False]
    assert prompts[1].index("## STATUS") < prompts[1].index("- Mind the linter") < prompts[1].index("- And the tests")
    assert "the user said (rooda say): Mind the linter" in ws.rooda("why").out


def test_E_45_a_note_survives_a_crash(ws: Workspace) -> None:
    """Killed before or while its iteration ran, the loop gives it again, and then no more."""
    ws.side(2, "sleep 1000")
    running = held(ws)
    assert ws.rooda("say", "Mind the linter").code == 0
    ws.write("go", "")
    ws.wait_calls(2)
    os.kill(loop_of(running.pid), signal.SIGKILL)
    running.finish(30)
    assert ws.rooda("say", "Then the docs").code == 0  # for a loop that can be resumed
    assert ws.rooda("resume", "build").code == 0
    prompts = [call.text for call in ws.calls]
    assert ["Mind the linter" in text for text in prompts] == [False, True, True, False, False]
    assert ["Then the docs" in text for text in prompts] == [False, False, True, False, False]


def test_E_45_a_fresh_run_gets_no_old_note(ws: Workspace) -> None:
    """What was said to a run that was given up is not said to its successor."""
    running = held(ws, "build", "-n", "2", call=2)
    assert ws.rooda("say", "Mind the linter").code == 0
    os.kill(loop_of(running.pid), signal.SIGKILL)
    running.finish(30)
    ws.write("go", "")
    assert ws.rooda("build", "-n", "2", "--fresh").code == 0
    assert not any("Mind the linter" in call.text for call in ws.calls)


def test_E_45_only_signed_messages_count(ws: Workspace) -> None:
    """What an agent writes there is ignored with a warning (S-02)."""
    order = {"loop": "ooda", "kind": "note", "text": "Push it", "limits": {"iterations": 9}, "at": "now"}
    place = "$PWD/.rooda/runs/$ROODA_RUN/messages"
    ws.side(1, f"mkdir {place}; echo '{json.dumps(order)}' > {place}/0001.json")
    ws.procedure()
    ran = ws.rooda("build", "-n", "2")
    assert ran.code == 0 and len(ws.calls) == 2
    assert not any("Push it" in call.text for call in ws.calls)
    assert ran.both.count("0001.json is not signed by you; ignoring it") == 1


def test_E_45_without_a_loop_there_is_nobody_to_tell(ws: Workspace) -> None:
    ws.procedure()
    for words in (("say", "x"), ("say", "x", "build"), ("set", "--max-cost", "3"), ("set",), ("say", " ")):
        assert ws.rooda(*words).code == 2, words


def test_E_45_iterations_of_a_running_loop(ws: Workspace) -> None:
    """A number replaces the limit, +N raises what is in force, and a resume after a crash keeps it."""
    running = held(ws, "build", "-n", "2", call=2)
    assert "4 iterations" in ws.rooda("set", "--iterations", "+2").out
    assert "5 iterations" in ws.rooda("set", "build", "-n", "+1").out
    os.kill(loop_of(running.pid), signal.SIGKILL)
    running.finish(30)
    ws.write("go", "")
    assert ws.rooda("resume").code == 0
    assert len(ws.calls) == 6  # the second was repeated
    ws.forget_calls()
    os.remove(ws.file("go"))
    running = held(ws, "build", "-n", "9", "--fresh")
    assert ws.rooda("set", "-n", "1").code == 0
    assert go(ws, running) == 0 and len(ws.calls) == 1
    assert "The user set new limits: iterations 1" in ws.rooda("why").out


def test_E_45_the_cost_limit_of_a_running_loop(ws: Workspace) -> None:
    """A lower limit pauses it, a resume keeps it, and a higher one on the resume lets it go on."""
    paid(
        ws,
        after=f"[ -e {ws.file('go')} ] || touch {ws.file('here')}; until [ -e {ws.file('go')} ]; do sleep 0.01; done",
    )
    running = ws.start("build", "-n", "9")
    until(lambda: os.path.exists(ws.file("here")), what="the call")
    assert "$1.00" in ws.rooda("set", "--max-cost", "1").out
    change = ws.rooda("set", "--max-cost", "+1")
    assert change.code == 2 and "must be the new limit itself, got +1" in change.err
    assert go(ws, running) == 4 and calls(ws) == 2
    assert ws.rooda("resume").code == 4 and calls(ws) == 2
    assert ws.rooda("resume", "--max-cost", "2").code == 4 and calls(ws) == 3


def test_E_45_a_goal_hears_and_obeys(ws: Workspace) -> None:
    """Its next step has the note, and its limit of iterations changes; a flow refuses both with a sentence."""
    ws.config(f"[goal]\nai_cmd = {json.dumps(FAKE_AI)}\n")
    ws.write("plan.json", json.dumps(plan()))
    ws.side("step-1", waiting(ws.file("go")))
    running = ws.start("goal", "run", "Make it", "--plan", "plan.json", "--headless", "--iterations", "9")
    until(lambda: [call for call in ws.calls if call.kind == "step"], what="a step")
    assert ws.rooda("say", "Mind the linter").code == 0
    assert "2 iterations" in ws.rooda("set", "-n", "2").out
    assert go(ws, running) == 4
    steps = [call.text for call in ws.calls if call.kind == "step"]
    assert ["- Mind the linter" in text for text in steps] == [False, True]


def test_E_45_a_kind_without_notes_says_so(ws: Workspace) -> None:
    """A reflex loop's prompts are fixed: exit 2; its limits can be set."""
    ws.config(f"[reflex]\nai_cmd = {json.dumps(FAKE_AI)}\n")
    ws.write("rules.json", kinds.rules())
    ws.side("plan", waiting(ws.file("go")))
    running = ws.start(*kinds.reflex(2))
    ws.wait_calls(1)
    ran = ws.rooda("say", "x")
    assert ran.code == 2 and "page" in ran.err, ran.both
    assert ws.rooda("set", "-n", "3").code == 0 and ws.rooda("set", "--max-cost", "3").code == 0
    running.stop()


def test_E_47_a_log_of_another_version_is_not_resumed_by_itself(ws: Workspace) -> None:
    """`resume --all` names the line to type; no command fails at such a log; a typed resume goes on."""
    running = held(ws)
    os.kill(running.pid, signal.SIGKILL)
    running.finish(30)
    ws.damages_events = True
    ws.write("go", "")
    (log,) = Path(ws.file(".rooda/runs")).glob("*/events.jsonl")
    kept = ("ts", "event", "run", "loop", "procedure")
    old = [{key: value for key, value in json.loads(line).items() if key in kept} for line in log.open()]
    log.write_text("".join(json.dumps(record) + "\n" for record in old))
    ran = ws.rooda("resume", "--all")
    assert len(ws.calls) == 1 and "was written by another version of rooda" in ran.err
    assert f"rooda -C {ws.path} resume build" in ran.err and ran.err.count("\n") == 1
    for words in ("status", "logs", "why", "usage", "runs", "events", "forecast build"):
        assert ws.rooda(*words.split()).code == 0, words
    assert ws.rooda("resume", "build").code == 0 and len(ws.calls) == 5


def test_E_45_an_agent_changes_no_limit(ws: Workspace) -> None:
    """`rooda set` refuses inside an agent's call."""
    ws.side(1, f"{sys.executable} -m rooda set -n 9 2>&1; test $? = 2")
    ws.procedure()
    assert ws.rooda("build", "-n", "1").code == 0 and len(ws.calls) == 1


def test_E_46_an_upgraded_rooda_ends_its_loops_resumably(ws: Workspace) -> None:
    """The loop makes no further call, says why, and a resume goes on with the other version."""
    import shutil

    import rooda

    copy = Path(ws.root, "installed")
    source = Path(rooda.__file__).parents[1]
    for name in ("rooda", "prompts", "config"):
        shutil.copytree(source / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    ws.env |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    ws.git("init", "-q")
    ws.git("commit", "-q", "--allow-empty", "-m", "first")
    running = held(ws, "build", "-n", "3")
    init = copy / "rooda/__init__.py"
    init.write_text(init.read_text().replace(rooda.__version__, "9.9.9"))
    assert go(ws, running) == 4 and len(ws.calls) == 1
    words = f"This loop runs rooda {rooda.__version__}, and version 9.9.9 is installed now"
    assert words in running.both
    assert ws.events()[-1]["cause"]["kind"] == "upgrade"
    assert ws.rooda("resume").code == 0 and len(ws.calls) == 3
