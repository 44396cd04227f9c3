"""Kills and Ctrl+C in every kind of call and at every question, limits of all sessions, a lost seal."""

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.kit.goal import SPEC, A, B, Goals, blocks, claim, plan
from tests.kit.processes import Terminal, until
from tests.kit.workspace import FAKE_AI

REVIEWED = {"name": "reads well", "verification": "code review"}


def in_call(g: Goals, kind: str) -> None:
    """A goal with every kind of call; the first call of this kind stays until it is killed."""
    g.planned(reversibility="1", criteria=[*plan()["criteria"], REVIEWED])
    g.out("precheck", "- one\n- it must not be two\n- never three\n")
    g.out("judge", '{"met": true, "quote": "a.ok"}')
    g.side("step", "touch a.ok b.ok")
    g.claims(True)
    stay = 'if mkdir "$FAKE/once" 2>/dev/null; then touch "$FAKE/there"; sleep 60 & wait; fi'
    super(Goals, g).side(f"{kind}-1", stay)


def await_call(g: Goals) -> None:
    until(lambda: os.path.exists(f"{g.fake}/there"), what="the call that stays")


KINDS = ["plan", "precheck", "step", "judge"]


@pytest.mark.parametrize("kind", KINDS)
def test_C_071_kill_9_in_every_kind_of_call(g: Goals, kind: str) -> None:
    """Before the state is written there is not a goal; afterwards continue repeats the step and completes."""
    in_call(g, kind)
    running = g.start("goal", "run", SPEC)
    await_call(g)
    running.signal(signal.SIGKILL)
    running.finish()
    until(lambda: not g.leftovers(), what="nobody left")
    began = kind in ("step", "judge")
    assert g.exists(".loop/state.json") == began and "<loop-complete>" not in running.out
    ran = g.go_on("--yes") if began else g.run()
    assert ran.code == 0 and g.public["status"] == "completed" and g.public["exit_signal"] is True, ran.both
    assert "🟡 MONITOR" in ran.out and len(g.journal) == g.public["iteration"] + 1


def test_temporary_files_of_a_killed_writer_are_deleted(g: Goals) -> None:
    """Of each file that is replaced whole; a file of that kind that is no one's of ours stays."""
    names = ("state.json", "run.json", "iterations.jsonl", "summary.md", ".gitignore")
    ours = [f".loop/{name}.4711.tmp" for name in names]
    g.planned()
    g.side("step", "touch a.ok b.ok")
    g.claims(True)
    for name in (*ours, ".loop/notes.tmp"):
        g.write(name, "half")
    assert g.run().code == 0
    assert [name for name in ours if g.exists(name)] == [] and g.exists(".loop/notes.tmp")


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_signal_in_every_kind_of_call(g: Goals, kind: str, number: signal.Signals, code: int) -> None:
    """The state is paused, the iteration not counted, and the message says how to continue, or that nothing began."""
    in_call(g, kind)
    running = g.start("goal", "run", SPEC)
    await_call(g)
    running.signal(number)
    assert running.finish() == code
    if kind in ("plan", "precheck"):
        assert "nothing to resume" in running.err and not g.exists(".loop/state.json")
        assert g.go_on().code == 2
        return
    assert "[LOOP] ⏸ Paused: interrupted" in running.lines and "Resume: rooda goal continue" in running.lines
    assert (g.public["status"], g.public["iteration"], g.private["reason"]) == ("paused", 0, "interrupted")
    assert g.go_on().code == 0


def colleague(g: Goals) -> None:
    g.planned(6, steps=[{"name": "step1", "criteria": [A]}, {"name": "step2", "criteria": [B]}])
    g.side("step-1", "touch a.ok")
    g.side("step-2", "touch b.ok")
    g.claims(True)


def answered(terminal: Terminal, answers: list[tuple[str, str]]) -> None:
    for words, keys in answers:
        until(lambda words=words: words in terminal.out, 20, repr(words))  # type: ignore[misc]
        terminal.type(keys)


PATH = [("Delete after session?", "n\n"), ("Proceed?", "y\n"), ("Continue?", "y\n"), ("Confirm done?", "y\n")]


@pytest.mark.parametrize("at", range(4))
def test_C_046_ctrl_c_at_every_question(g: Goals, at: int) -> None:
    """Exit 130, paused, nothing lost: continue asks the same question again and comes to the end."""
    colleague(g)
    terminal = g.on_terminal()
    answered(terminal, [*PATH[:at], (PATH[at][0], "\x03")])
    assert terminal.finish() == 130, terminal.out
    assert (g.public["status"], g.private["reason"]) == ("paused", "interrupted") and "Resume:" in terminal.out
    again = g.terminal("goal", "continue", columns=160)
    answered(again, PATH[max(at, 1) :])
    assert again.finish() == 0 and "All success criteria satisfied:" in again.out


def test_ctrl_c_in_the_intent_dialogue(g: Goals) -> None:
    """Exit 130, and neither a state nor a third scoring."""
    g.planned(4)
    terminal = g.on_terminal()
    answered(terminal, [("TASK:", "x\n"), ("CONTEXT:", "\x03")])
    assert terminal.finish() == 130 and g.kinds == ["plan"] and not g.exists(".loop/state.json")


def test_CA_15_no_at_G3_is_the_one_question_of_its_stop(g: Goals) -> None:
    """What is missing goes verbatim into the next call, and the user is not asked to continue before it."""
    colleague(g)
    terminal = g.on_terminal("--keep-state")
    answered(terminal, PATH[1:3])
    answered(terminal, [("Confirm done?", "n\n"), ("What is missing?", "a  gamma file\n")])
    until(lambda: len(g.kinds) == 4, what="the third step call")
    assert "a  gamma file" in g.calls[3].prompt.decode() and terminal.out.count("Continue?") == 1
    until(lambda: terminal.out.count("Confirm done?") == 2, what="the second G3")
    terminal.type("\n")
    assert terminal.finish() == 0


def envelope(text: str, cost: float) -> str:
    return json.dumps({"type": "result", "is_error": False, "result": text, "total_cost_usd": cost}) + "\n"


def costly(g: Goals, dollars: float) -> None:
    agent = f'[agents.c]\ncommand = "{FAKE_AI}"\noutput = "claude"\n'
    g.config(f'[goal]\nagent = "c"\n{agent}[hooks]\npaused = "cat >>hooked"\n')
    g.out("plan", envelope(json.dumps(plan()), dollars))
    g.out("step", envelope(claim(False), dollars))


def test_max_cost_counts_over_all_sessions(g: Goals) -> None:
    """The plan counts; at the limit: paused with its reason, a hook runs, and continue remembers limit and spending."""
    costly(g, 1.0)
    ran = g.run("--max-cost", "3")
    assert ran.code == 4 and g.kinds == ["plan", "step", "step"], ran.both
    assert "[LOOP] ⏸ Paused: Cost limit reached: $3.00 of $3.00" in ran.lines
    assert (g.public["status"], g.private["cost"]) == ("paused", 3.0) and '"moment": "paused"' in g.read("hooked")
    again = g.go_on()
    assert again.code == 4 and len(g.calls) == 3 and "Cost limit reached: $3.00 of $3.00" in again.out
    more = g.go_on("--max-cost", "4")
    assert more.code == 4 and len(g.calls) == 4 and g.private["cost"] == 4.0
    assert g.rooda("resume", "goal", "--max-cost", "5").code == 4 and len(g.calls) == 5
    other = g.go_on("--max-duration", "9h")
    assert "Cost limit reached: $5.00 of $5.00" in other.out and len(g.calls) == 5  # a limit that is typed keeps others
    assert "resume with: rooda goal continue --max-cost 10\n" in g.rooda("goal", "status").out
    assert "Cost limit reached" not in g.go_on("--max-cost", "0").out and len(g.calls) > 5


def test_max_cost_reached_by_the_plan_starts_nothing(g: Goals) -> None:
    """The second plan call is not made: exit 4, and no state."""
    costly(g, 1.0)
    g.out("plan", envelope("no plan", 1.0))
    ran = g.run("--max-cost", "1")
    assert (
        ran.code == 4 and g.kinds == ["plan"] and "Cost limit reached" in ran.err and "Nothing was started" in ran.err
    )
    assert not g.exists(".loop/state.json")


def test_C_094_a_killed_call_is_paid(g: Goals) -> None:
    """Interrupted or cut off by kill -9: what its transcript says it cost is in the sum."""
    g.out("plan", envelope(json.dumps(plan()), 2.0))
    cost = json.dumps({"type": "result", "is_error": False, "result": "half", "total_cost_usd": 4.0})
    stay = f'echo \'{cost}\'; [ -e "$FAKE/go" ] || {{ touch "$FAKE/there"; sleep 60 & wait; }}'
    g.side("step-1", stay)
    running = g.start("goal", "run", SPEC)
    await_call(g)
    running.signal(signal.SIGINT)
    assert running.finish() == 130 and g.private["cost"] == 6.0
    os.remove(f"{g.fake}/there")
    running = g.start("goal", "continue")
    await_call(g)
    running.signal(signal.SIGKILL)
    running.finish()
    until(lambda: not g.leftovers(), what="nobody left")
    open(f"{g.fake}/go", "w").close()
    ran = g.go_on("--iterations", "1")
    assert "Cost: $10.00/$25 | Step: step1" in ran.out and g.private["cost"] == 14.0, ran.both


def test_without_its_seal_a_person_must_sign_the_commands(g: Goals) -> None:
    """Commands forged, the seal removed, everything killed: continue shows them, and runs none."""
    forge = "sed -i 's/test -f [ab].ok/true/' .loop/run.json .loop/iterations.jsonl; rm .rooda/goal.seal"
    g.side("2", f"{forge}\nkill -9 $PPID; sleep 60 & wait")
    g.claims(True)
    g.start("goal", "run", SPEC).finish()
    until(lambda: not g.leftovers(), what="nobody left")
    ran = g.go_on()
    assert ran.code == 3 and "tests pass: true\n" in ran.err and "<loop-complete>" not in ran.out, ran.both


def test_C_094_money_is_asked_about_before_any_gate(g: Goals) -> None:
    """A plan that costs it all: paused for the budget first, and G1 is asked after the budget was raised."""
    g.out("plan", envelope(json.dumps(plan(6)), 30.0))
    ran = g.run()
    assert ran.code == 4 and "Paused: budget exceeded: $30.00/$25" in ran.out and "Proceed?" not in ran.out
    again = g.go_on("--budget=20")
    assert "Proceed? [Y/n]" in again.lines and "Paused: gate G1" in again.out and g.kinds == ["plan"]


def test_C_022_must_nots_are_checked_before_every_continue(g: Goals) -> None:
    """Paused for another reason in the meantime: no call is made while it is true."""
    g.planned(mustNot=[{"text": "no gamma", "violated_if": "test -e gamma"}])
    assert g.run("-n", "1").code == 4
    g.write("gamma", "")
    ran = g.go_on()
    assert ran.code == 4 and "Paused: mustNot: no gamma" in ran.out and len(g.calls) == 2
    os.remove(g.file("gamma"))
    g.go_on("--iterations", "1")
    assert len(g.calls) == 3


def test_C_105_a_judge_needs_no_repository(g: Goals) -> None:
    """Without git init there is a change to look at all the same."""
    g.planned(criteria=[REVIEWED], steps=["write"])
    g.side("step-1", "echo some fresh words >text.md")
    g.claims(True)
    g.out("judge", '{"met": true, "quote": "+some fresh words"}')
    ran = g.run()
    assert ran.code == 0 and "🟡 MONITOR" in ran.out and not g.exists(".git"), ran.both


def test_an_unwritable_state_file_is_reported(g: Goals) -> None:
    """With a folder in its place the problem is reported, and the loop continues to its end."""
    g.succeeds()
    g.side("step-1", "rm .loop/state.json; mkdir -p .loop/state.json/x")
    ran = g.run()
    assert ran.code == 0 and "state.json" in ran.err and "<loop-complete>" in ran.lines, ran.both


LOST = "rm -rf .loop; touch .loop"


@pytest.mark.parametrize("where", ["step-3", "step-1"])
def test_C_101_without_its_state_on_disk_nothing_is_complete(g: Goals, where: str) -> None:
    """A file in the place of the folder: all criteria hold and the agent claims it, and it pauses instead, exit 4."""
    g.succeeds()
    g.side("step-3", "touch b.ok")
    g.side(where, f"{LOST}; touch {'a' if where == 'step-1' else 'b'}.ok")
    ran = g.run()
    assert ran.code == 4 and "<loop-complete>" not in ran.out and "SHIP" in ran.out, ran.both
    assert "[LOOP] ⏸ Paused: the state can't be written: File exists" in ran.lines
    assert not any(signal for signal, *_ in blocks(ran.out))


def test_C_101_folders_in_place_of_files_are_set_aside(g: Goals) -> None:
    """Whatever is in them is kept beside the files, which are written all the same."""
    g.succeeds()
    names = ("state.json", "run.json", "iterations.jsonl")
    g.side("step-3", f"touch b.ok; for i in {' '.join(names)}; do rm .loop/$i; mkdir -p .loop/$i/x; done")
    ran = g.run()
    assert ran.code == 0 and "<loop-complete>" in ran.lines and g.public["exit_signal"] is True, ran.both
    assert all(g.exists(f".loop/{name}.agent/x") for name in names) and g.journal[-1]["iteration"] == 3


def test_a_goal_that_cannot_be_written_does_not_begin(g: Goals) -> None:
    """The plan call puts a file in the folder's place: exit 1, and no step."""
    g.side("plan", LOST)
    ran = g.run()
    assert ran.code == 1 and ".loop" in ran.err and g.kinds == ["plan"], ran.both


def test_a_lost_workspace_fails_the_goal(g: Goals) -> None:
    """The agent removes it: exit 1 after that call, whatever was made in its place since."""
    g.side("step-1", f"cd /; rm -rf {g.path}")
    g.damages_events = True
    ran = g.run()
    assert ran.code == 1 and f"ERROR: the workspace is gone: {g.path}" in ran.lines and g.kinds == ["plan", "step"]
    assert g.go_on().code == 2


def test_reboot_then_continue(g: Goals) -> None:
    """A lock file with another boot's owner blocks nothing."""
    g.side("step-2", '[ -e "$FAKE/once" ] || { touch "$FAKE/once"; kill -9 $PPID; sleep 60 & wait; }')
    g.start("goal", "run", SPEC).finish()
    until(lambda: not g.leftovers(), what="nobody left")
    lock = ".rooda/locks/goal-goal.lock"
    boot = g.read("/proc/sys/kernel/random/boot_id").strip()
    assert boot in g.read(lock)
    g.write(lock, g.read(lock).replace(boot, "0" * len(boot)))
    ran = g.go_on()
    assert ran.code == 4 and ran.lines[0] == "[LOOP RESUME] Active loop detected", ran.both


def test_detached(g: Goals) -> None:
    """In the background to its end; logs and status find it."""
    g.succeeds()
    assert g.run("--detach").code == 0
    until(lambda: g.exists(".loop/summary.md") and g.public["status"] == "completed", what="the end")
    until(lambda: not g.leftovers(), what="nobody left")
    assert "<loop-complete>" in g.rooda("logs", "goal").out and "goal: completed" in g.rooda("status", "goal").out


@pytest.mark.parametrize("kind", ["step-2", "judge-1"])
def test_a_usage_limit_pauses_with_on_limit_stop(g: Goals, kind: str) -> None:
    """`on_limit = "stop"`, in a step's call or a judge's: exit 4, state paused with the reason, what was spent kept."""
    costly(g, 1.0)
    g.config(g.read("rooda.toml").replace("[goal]\n", '[goal]\non_limit = "stop"\n'))
    g.out("plan", envelope(json.dumps(plan(criteria=[*plan()["criteria"], REVIEWED])), 1.0))
    said = {"type": "result", "is_error": True, "api_error_status": 429, "result": "You've hit your usage limit"}
    g.out(kind, json.dumps(said) + "\n")
    g._script(kind, "exit", "1\n")
    g.side("step-1", "touch a.ok b.ok")
    ran = g.run()
    assert ran.code == 4 and "[LOOP] ⏸ Paused: Usage limit of " in ran.out, ran.both
    assert g.public["status"] == "paused" and g.private["reason"].startswith("Usage limit of ")
    assert g.private["cost"] >= 2.0 and "Resume: rooda goal continue" in ran.out


def test_CA_45_killed_before_its_log_it_continues_with_its_options(g: Goals) -> None:
    """The state is there, its log does not say yet that it has begun: what was typed at the start holds."""
    g.config("")
    g.planned(6)
    assert "Paused: gate G1" in g.run("--ai-cmd", FAKE_AI).out
    (log,) = Path(g.path, ".rooda", "runs").glob("*/events.jsonl")
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[: next(n for n, line in enumerate(lines) if '"state.saved"' in line)]))
    os.remove(g.file(".loop/state.json"))
    ran = g.go_on("--yes", "--iterations", "1")
    assert ran.code == 4 and "Iteration 1/" in ran.out, ran.both


def test_CA_11_killed_before_the_limit_s_pause_is_written_it_pauses_first(g: Goals) -> None:
    """The kill left the last iteration in the journal: continuing pauses, only the next continue grants more."""
    assert g.run("-n", "1").code == 4
    os.remove(g.file(".loop/run.json"))
    os.remove(g.file(".loop/state.json"))
    ran = g.go_on()
    assert ran.code == 4 and "[LOOP] ⏸ Paused: iteration limit: 1" in ran.lines and len(g.calls) == 2, ran.both
    assert "[LOOP] Iteration 2/2 |" in g.go_on().out and len(g.calls) == 3


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_ended_at_random_moments_it_ends_the_same(g: Goals, seed: int) -> None:
    """Signals of every sort, wherever they fall: each iteration is reported, written and checkpointed exactly once."""
    chance = random.Random(seed)
    g.git("init", "-q")
    g.write("plan.json", json.dumps(plan(reversibility="2B")))
    g.git("add", ".")
    g.git("commit", "-qm", "first")
    g.succeeds()
    g.side("step", "sleep 0.15")
    words, said = ["goal", "run", SPEC, "--plan", "plan.json"], ""
    for _ in range(20):
        running = g.start(*words)
        time.sleep(chance.uniform(0.05, 1.2))
        running.signal(chance.choice([signal.SIGKILL, signal.SIGINT, signal.SIGTERM]))
        running.finish()
        until(lambda: not g.leftovers(), what="nobody left")
        said += running.out
        if "<loop-complete>" in said:
            break
        words = ["goal", "continue"] if g.rooda("goal", "status", "--json").out != "[]\n" else words
    assert "<loop-complete>" in said and len(blocks(said)) == 3 and g.public["status"] == "completed"
    assert [record["iteration"] for record in g.journal] == [0, 1, 2, 3]
    assert g.git("for-each-ref", "--format=%(refname:lstrip=4)", "refs/rooda").split() == ["1", "2", "3"]
    assert g.git("status", "--porcelain").split() == ["??", "a.ok", "??", "b.ok"]
