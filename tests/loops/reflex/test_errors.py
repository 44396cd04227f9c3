"""R-230 to R-257: errors, resume, and that every loop ends."""

import json
import signal

import pytest
from hypothesis import HealthCheck, given, settings

from tests.kit.examples import examples
from tests.kit.reflex import ALIAS, ENDPOINTS, FAKE, NAMING, PLAN, RS1, Kit, checks, checks_of, issue, judged, words
from tests.kit.reflex_memory import Memory
from tests.kit.reflex_reference import Reference, Script
from tests.kit.reflex_scenarios import T, by_iteration, play, script
from tests.kit.reflex_strategies import scripts
from tests.kit.workspace import until


def test_R_230_R_102_a_retry_works(kit: Kit) -> None:
    """T8: the same end as T1, one phase_error event; the second input quotes the breach (L-04)."""
    kit.answer("PLAN.1", "not json")
    kit.answer("PLAN.2", PLAN)
    assert kit.new().code == 0
    assert kit.ev.count("phase_error") == 1 and kit.counts()["PLAN"] == 2
    one, two = kit.started("PLAN")
    assert two["stdin"].startswith(one["stdin"].rstrip()) and "not one JSON object" in two["stdin"]
    error = next(event for event in kit.history if event["event"] == "phase_error")
    assert (error["step"], error["status"], error["payload"]["attempt"]) == ("PLAN", "error", 1)
    assert error["payload"]["excerpt"] == "not json" and error["payload"]["error"]


def test_R_234_an_agent_that_says_nothing(kit: Kit) -> None:
    """A breach of the contract; twice is the end, once is not."""
    kit.answer("PLAN.1", "")
    assert kit.new().code == 1
    assert kit.ev == ["run_started", "phase_error", "phase_error", "failed"]
    kit.answer("PLAN.3", "")
    kit.answer("PLAN.4", PLAN)
    assert kit.new(4, "--alias", "second").code == 0


@pytest.mark.parametrize("ways", [("exit 3", "stderr 529 overloaded"), ("sleep 60",)])
def test_L_03_R_234_a_call_that_fails_is_repeated(kit: Kit, ways: tuple[str, ...]) -> None:
    """Three tries, then exit 1; the loop stays as after a kill, and a resume repeats the call."""
    kit.config(table="retry_wait = 0\n" + ("iteration_timeout = 0.7" if "sleep 60" in ways else ""))
    kit.answer("PLAN.1", PLAN, *ways)
    ran = kit.new()
    assert (ran.code, kit.ev, kit.counts()) == (1, ["run_started"], {"PLAN": 3}), ran.both
    assert (kit.run["status"], kit.run["current_step"]) == ("running", "PLAN") and (kit.home / "current.json").exists()
    assert "call 2 of 3" in ran.err and f"rooda reflex resume {ALIAS}" in ran.both
    assert ("529 overloaded" if "exit 3" in ways else "0.7 s") in ran.both
    kit.answer("PLAN.5", PLAN)
    assert kit.reflex("resume").code == 0 and "phase_error" not in kit.ev and kit.counts()["PLAN"] == 5


def test_L_03_what_its_neighbour_answered_is_kept(kit: Kit) -> None:
    """PREPARE fails for good while PRODUCE answers: the artifact is saved, and the resume asks for checks only."""
    kit.config(table="retry_wait = 0")
    kit.answer("PREPARE.A.1", "", "exit 1")
    assert kit.new().code == 1
    assert kit.artifact == words("ENAD") and kit.ev == ["run_started", "plan_created", "artifact_created"]
    kit.give_rules(RS1)
    assert kit.reflex("resume").code == 0 and kit.counts() == {"PLAN": 1, "PRODUCE": 1, "PREPARE": 5}


def test_L_03_a_refused_login_is_not_repeated(kit: Kit) -> None:
    """The next call would fail in the same way: one call, exit 1, and the loop can be resumed."""
    record = {"type": "result", "is_error": True, "result": "Invalid API key · Please run /login"}
    kit.ws.config(f'[loop]\nagent = "fk"\n[agents.fk]\ncommand = "{FAKE}"\noutput = "claude"\n')
    kit.answer("PLAN.1", json.dumps({**record, "subtype": "success"}), "exit 1")
    ran = kit.new()
    assert (ran.code, kit.counts(), kit.run["status"]) == (1, {"PLAN": 1}, "running"), ran.both
    assert "Invalid API key" in ran.both


def test_R_234_an_agent_that_is_not_there(kit: Kit) -> None:
    """Found before anything starts: exit code 2. One that vanishes later ends the session, not the loop."""
    assert kit.new(4, "--ai-cmd", "no-such-agent").code == 2 and not kit.home.exists()
    agent = kit.ws.write("agent", f"#!/bin/sh\nrm -f {kit.ws.file('agent')}\nexec {json.dumps(FAKE)}\n", 0o755)
    assert kit.new(4, "--ai-cmd", agent).code == 1
    assert kit.run["status"] == "running" and "phase_error" not in kit.ev


def test_R_232_the_retry_is_per_phase(kit: Kit) -> None:
    """One breach in PLAN and one in PRODUCE: the loop continues."""
    kit.answer("PLAN.1", "no")
    kit.answer("PLAN.2", PLAN)
    kit.answer("PRODUCE.1", "")
    kit.answer("PRODUCE.2", words("ENAD"))
    assert kit.new().code == 0
    assert kit.ev.count("phase_error") == 2


@pytest.mark.parametrize("damage", ["{", "", "[]", '{"run_id": 3}', "gone", '{"status": "running"}', "\x00\x01"])
def test_R_235_R_236_run_json_is_rebuilt(kit: Kit, damage: str) -> None:
    """From the history, whatever is wrong with it; criteria, limit and task are the originals."""
    by_iteration(kit, "T2")
    kit.kill_in("PLAN.2", PLAN)
    before = kit.run
    if damage == "gone":
        kit.path("run.json").unlink()
    else:
        kit.path("run.json").write_text(damage)
    assert "interrupted" in kit.reflex("list").out
    ran = kit.reflex("resume", ALIAS)
    assert ran.code == 0 and "rebuilt" in ran.both
    assert all(kit.run[key] == before[key] for key in ("criteria", "max_iterations", "task", "run_id", "created_at"))
    assert (kit.run["iteration"], kit.run["stop"]["reason"]) == (2, "threshold_reached")
    assert [*kit.run] == [*before]


@pytest.mark.parametrize("phase", ["PRODUCE.i2.1", "CRITIQUE.1", "REFINE.i1.1", "PREPARE.B.1"])
def test_R_235_rebuilt_in_every_phase(kit: Kit, phase: str) -> None:
    """The rebuilt state is what run.json said."""
    by_iteration(kit, "T2")
    kit.kill_in(phase, kit.said(phase))
    before = kit.run
    kit.path("run.json").unlink()
    kit.reflex("stop")
    after = kit.run
    changed = {"status", "stop", "updated_at"}
    assert {k: v for k, v in after.items() if k not in changed} == {k: v for k, v in before.items() if k not in changed}


def test_R_237_without_a_history(kit: Kit) -> None:
    """`resume` and `history` say so, suggest `new`, and call no agent; status, list and clean still work."""
    kit.kill_in("PLAN.1", "x")
    calls = len(kit.log_lines())
    kit.path("history.jsonl").unlink()
    for said in (["resume"], ["resume", ALIAS], ["history", ALIAS]):
        ran = kit.reflex(*said)
        assert ran.code == 1 and "history.jsonl" in ran.err
        assert ran.err.index("rooda reflex stop") < ran.err.index("rooda reflex new")  # which refuses until then
    assert len(kit.log_lines()) == calls
    assert kit.reflex("status").code == 0 and ALIAS in kit.reflex("list").out
    assert kit.reflex("stop").code == 0
    assert kit.reflex("clean", ALIAS, "--yes").code == 0 and not (kit.home / ALIAS).exists()


def test_R_238_a_torn_last_line(kit: Kit) -> None:
    """History, rebuild and resume work, and the next event is on a line of its own."""
    by_iteration(kit, "T2")
    kit.kill_in("CRITIQUE.1", kit.said("CRITIQUE.1"))
    path = kit.path("history.jsonl")
    path.write_bytes(path.read_bytes()[:-10])
    assert kit.reflex("history").code == 0
    kit.path("run.json").write_text("{")
    ran = kit.reflex("resume")
    assert ran.code == 0, ran.both
    whole = [line for line in path.read_text().splitlines() if _is_json(line)]
    assert len(path.read_text().splitlines()) == len(whole) + 1
    assert json.loads(whole[-1])["event"] == "stopped"


@pytest.mark.parametrize("data", [b"", b"\0\xff no event\n"])
def test_R_237_a_history_without_an_event(kit: Kit, data: bytes) -> None:
    """It is said, and the loop continues by run.json."""
    kit.kill_in("PLAN.1", PLAN)
    kit.path("history.jsonl").write_bytes(data)
    ran = kit.reflex("resume")
    assert ran.code == 0 and "history.jsonl has no event of this loop" in ran.err, ran.both


PAIRS = [  # scenario, the answer while which it is killed, the events of the transition before
    ("T2", "PLAN.i2.1", PLAN, ["refinement_done", "iteration_advanced"]),
    ("T6", "PREPARE.B.1", checks_of(RS1, "B"), ["evaluation_done", "phase_switched"]),
]


@pytest.mark.parametrize("lost", [1, 2])
@pytest.mark.parametrize("scenario, name, text, pair", PAIRS)
def test_R_099_R_238_an_event_that_is_there_is_not_written_again(
    kit: Kit, scenario: str, name: str, text: str, pair: list[str], lost: int
) -> None:
    """Of the two events of a transition the second was lost, or both: the history is the same afterwards."""
    by_iteration(kit, scenario)
    kit.kill_in(name, text)
    path, before = kit.path("history.jsonl"), kit.ev
    rows = path.read_bytes().splitlines(keepends=True)
    assert before[-2:] == pair
    path.write_bytes(b"".join(rows[:-lost]) + rows[-lost][:-10])
    assert kit.reflex("resume").code == 0
    events = [json.loads(line)["event"] for line in path.read_text().splitlines() if _is_json(line)]
    assert events[: len(before)] == before and all(events.count(each) == before.count(each) for each in pair[1:])


def test_R_103_a_lost_end_is_written_again_as_it_was(kit: Kit) -> None:
    """The evaluation that ended the loop is in the history: the end is its own, not the user's."""
    by_iteration(kit, "T3")
    kit.new(2)
    path, last = kit.path("history.jsonl"), kit.history[-1]
    path.write_bytes(path.read_bytes()[:-10])
    kit.reflex("resume")
    events = [json.loads(line) for line in path.read_text().splitlines() if _is_json(line)]
    assert (events[-1]["payload"], [event["event"] for event in events].count("stopped")) == (last["payload"], 1)


@pytest.mark.parametrize("lost", [1, 2])
@pytest.mark.parametrize("scenario", ["T1", "T2", "T3", "T4", "T5", "T6"])
def test_R_099_the_last_events_are_written_again_all_of_them(kit: Kit, scenario: str, lost: int) -> None:
    """The end is in run.json and not in the history: what was judged is there again too, whatever came before."""
    by_iteration(kit, scenario)
    kit.new()
    path = kit.path("history.jsonl")
    rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(rows[:-lost]))
    kit.reflex("resume")
    again = [json.loads(row) for row in path.read_bytes().splitlines()]
    assert [{**row, "ts": ""} for row in again] == [{**json.loads(row), "ts": ""} for row in rows]


SECONDS = [("T6", "phase_switched"), ("T6", "iteration_advanced"), *((f"T{n}", "stopped") for n in (1, 3, 4, 5))]


@pytest.mark.parametrize("scenario, second", SECONDS)
def test_R_235_a_rebuild_without_the_second_event_of_a_transition(kit: Kit, scenario: str, second: str) -> None:
    """run.json is gone, and the history ends behind the evaluation or refinement: what follows from it is known."""
    by_iteration(kit, scenario)
    kit.new(T[scenario].maximum)
    path, wanted = kit.path("history.jsonl"), kit.run
    rows = path.read_bytes().splitlines(keepends=True)
    place = kit.ev.index(second)
    path.write_bytes(b"".join(rows[:place]))
    kit.path("run.json").unlink()
    ran = kit.reflex("resume", ALIAS)
    assert ran.code == (3 if second == "stopped" else 0), ran.both
    again = [json.loads(row) for row in path.read_bytes().splitlines()][: place + 1]
    assert [{**row, "ts": ""} for row in again] == [{**json.loads(row), "ts": ""} for row in rows[: place + 1]]
    assert (kit.run["status"], kit.run["stop"]) == (wanted["status"], wanted["stop"])


def test_the_files_of_a_loop_are_removed_while_it_runs(kit: Kit) -> None:
    """Nothing is saved, and nothing is said to be."""
    kit.ws.write("agent.sh", f'[ "$ROODA_CALL" = produce ] && rm -rf .ai-factory\nexec {FAKE}\n')
    kit.ws.config(kit.ws.read("rooda.toml").replace(json.dumps(FAKE), '"sh agent.sh"'))
    ran = kit.new()
    assert ran.code == 1 and "saved" not in ran.both and "rooda reflex new" in ran.out, ran.both
    assert ".tmp" not in ran.both


TOO_LONG = "the answer is too long to be read as a whole"


def test_R_125_an_answer_that_is_too_long(kit: Kit) -> None:
    """It breaks the contract, its end is not taken for the whole; what is shorter is whole and needs no warning."""
    line = "filler " * 20 + "end\n"
    kit.answer("PRODUCE.bad.1", f"# T\n{line * 140_000}")
    kit.answer("PRODUCE.1", f"{words('ENAD')}{line * 80_000}")
    ran = kit.new()
    assert ran.code == 0 and kit.artifact == f"{words('ENAD')}{line * 80_000}"
    assert f"PRODUCE broke its contract: {TOO_LONG}" in ran.err and "max_output_buffer" not in ran.both


def test_R_125_a_record_that_is_too_long(kit: Kit) -> None:
    """A CLI's last message is passed over if it is huge; what it said before is not taken for its answer."""
    items = [{"type": "agent_message", "text": each} for each in (PLAN, "x" * 5_000_000)]
    said = [{"type": "item.completed", "item": each} for each in items]
    kit.answer("PLAN.1", "".join(f"{json.dumps(each)}\n" for each in (*said, {"type": "turn.completed", "usage": {}})))
    kit.ws.config(f'[loop]\nagent = "fk"\n[agents.fk]\ncommand = "{FAKE}"\noutput = "codex"\n')
    assert kit.new().code == 1
    assert {event["payload"]["error"] for event in kit.history if event["event"] == "phase_error"} == {TOO_LONG}


@pytest.mark.parametrize("beside", ["prose", None])
def test_structured_output_beats_the_result(kit: Kit, beside: str | None) -> None:
    """claude's `structured_output` is the answer, `result` where there is none."""
    record = {"type": "result", "subtype": "success", "is_error": False, "result": beside}
    kit.answer("PLAN.1", json.dumps({**record, "structured_output": json.loads(PLAN)}))
    for name in ("PREPARE.A.1", "PREPARE.B.1", "PRODUCE.1"):
        kit.answer(name, json.dumps({**record, "result": kit.said(name)}))
    kit.ws.config(f'[loop]\nagent = "fk"\n[agents.fk]\ncommand = "{FAKE}"\noutput = "claude"\n')
    ran = kit.new()
    assert ran.code == 0 and kit.run["plan"] == json.loads(PLAN)["plan"], ran.both


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def test_R_239_finished_phases_are_not_repeated(kit: Kit) -> None:
    """Killed in CRITIQUE: no PLAN, PRODUCE or PREPARE of that iteration again."""
    by_iteration(kit, "T3")
    kit.kill_in("CRITIQUE.1", kit.said("CRITIQUE.1"), 2)
    before = kit.counts()
    assert before == {"PLAN": 1, "PRODUCE": 1, "PREPARE": 1, "CRITIQUE": 1}
    kit.reflex("resume")
    assert kit.counts() == {"PLAN": 2, "PRODUCE": 2, "PREPARE": 2, "CRITIQUE": 2, "REFINE": 1}


def test_R_239_half_of_the_pair_is_kept(kit: Kit) -> None:
    """PREPARE broke its contract and is asked again; PRODUCE's answer is paid for and stays."""
    by_iteration(kit, "T1")
    good = kit.said("PREPARE.A.1")
    kit.answer("PREPARE.A.1", "no json")
    kit.kill_in("PREPARE.A.2", good)
    ran = kit.reflex("resume")
    assert ran.code == 0 and kit.counts()["PRODUCE"] == 1
    assert kit.ev.count("phase_error") == 1 and kit.ev.count("artifact_created") == 1


def test_R_239_an_artifact_that_is_gone_is_written_again(kit: Kit) -> None:
    """Without the file the iteration goes back to PRODUCE and PREPARE."""
    by_iteration(kit, "T2")
    kit.kill_in("CRITIQUE.1", kit.said("CRITIQUE.1"))
    kit.path("artifact.md").unlink()
    assert kit.reflex("resume").code == 0
    assert kit.counts()["PRODUCE"] == 3 and kit.counts()["PLAN"] == 2


def test_R_232_a_phase_that_is_run_again_may_be_asked_twice_again(kit: Kit) -> None:
    """What PRODUCE had answered wrongly before the artifact was lost does not count for its second run."""
    by_iteration(kit, "T2")
    kit.answer("PRODUCE.bad.1", "")
    kit.kill_in("CRITIQUE.1", kit.said("CRITIQUE.1"))
    kit.path("artifact.md").unlink()
    kit.answer("PRODUCE.bad.3", "")
    ran = kit.reflex("resume")
    assert ran.code == 0, ran.both
    assert [event["payload"]["attempt"] for event in kit.history if event["event"] == "phase_error"] == [1, 1]


def test_R_240_an_ended_loop(kit: Kit) -> None:
    """It is reported with `new` as a suggestion; for a failed one the last error is shown."""
    play(kit, "T1")
    ran = kit.reflex("resume", ALIAS)
    assert ran.code == 3 and "completed" in ran.err and "reflex new" in ran.err
    kit.answer("PLAN.2", "gibberish")
    kit.new(4, "--alias", "bad")
    ran = kit.reflex("resume", "bad")
    assert ran.code == 3 and "failed" in ran.err and "not one JSON object" in ran.err and "reflex new" in ran.err
    before = len(kit.log_lines())
    assert kit.reflex("resume").code == 3 and len(kit.log_lines()) == before


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_R_241_interrupted(kit: Kit, number: int, code: int) -> None:
    """A signal leaves a running loop that can continue, and no phase error."""
    by_iteration(kit, "T1")
    kit.answer("PRODUCE.i1.1", words("ENAD"), "sleep 30")
    running = kit.start()
    until(lambda: kit.started("PRODUCE"))
    running.signal(number)
    assert running.finish() == code
    assert kit.run["status"] == "running" and (kit.home / "current.json").exists()
    assert "phase_error" not in kit.ev and f"rooda reflex resume {ALIAS}" in running.both
    assert not kit.ws.leftovers()
    kit.answer("PRODUCE.i1.1", words("ENAD"))
    assert kit.reflex("resume").code == 0
    assert kit.run["stop"]["reason"] == "threshold_reached"


def test_R_241_a_live_loop_is_not_resumed_twice(kit: Kit) -> None:
    """While a process works on it, `resume` is refused and `clean` as well."""
    kit.answer("PLAN.1", PLAN, "wait go")
    running = kit.start()
    until(lambda: kit.started("PLAN"))
    ran = kit.reflex("resume")
    assert ran.code == 3 and "running" in ran.err
    assert kit.reflex("clean", ALIAS, "--yes").code == 3
    kit.ws.write("go", "")
    assert running.finish() == 0


MANY = settings(max_examples=examples(500), deadline=None, suppress_health_check=list(HealthCheck))


@MANY
@given(scripts())
def test_R_257_R_182_every_loop_ends(a_script: Script) -> None:
    """Whatever is answered: within the limit, in one of the three ends."""
    state = Memory(a_script).play()
    assert state.status in ("completed", "stopped", "failed") and 1 <= state.iteration <= a_script.maximum


FEW = settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@pytest.mark.timeout(400)
@FEW
@given(a_script=scripts())
def test_R_257_R_192_the_real_command_is_the_reference(
    tmp_path_factory: pytest.TempPathFactory, a_script: Script
) -> None:
    """Random loops on the real command: trace, calls, run.json and exit code are the reference's."""
    from tests.kit.workspace import Workspace

    ws = Workspace(str(tmp_path_factory.mktemp("loop")))
    kit = Kit(ws)
    scripted(kit, a_script)
    wanted = Reference(a_script).run()
    ran = kit.new(a_script.maximum)
    ws.close()
    assert ran.code == {"completed": 0, "stopped": 4, "failed": 1}[wanted.status], ran.both
    assert kit.ev == wanted.events
    assert kit.counts() == wanted.calls
    run = kit.run
    found = (run["status"], run["stop"]["reason"], run["iteration"], run["phase"], run["stagnation_count"])
    assert found == (wanted.status, wanted.reason, wanted.iteration, wanted.phase, wanted.stagnation)
    assert run["last_score"] == pytest.approx(float(wanted.score or 0))


def scripted(kit: Kit, a_script: Script) -> None:
    """The script as answers: one file for each call, so that the bad ones come where they should."""
    rules = [
        {"id": r.id, "description": r.id, "severity": r.severity, "weight": json.loads(str(r.weight)), "phase": r.phase,
         "check": "c"} for r in a_script.rules
    ]  # fmt: skip
    kit.give_rules(rules, thresholds={level: json.loads(str(v)) for level, v in a_script.thresholds.items()})
    for name in kit.answers():
        if not name.startswith("PREPARE") and name != "PLAN.1":
            kit.forget(name)
    for number, holding in enumerate(a_script.artifacts * 6, 1):
        last = a_script.artifacts[min(number, len(a_script.artifacts)) - 1]
        for phase in ("PRODUCE", "REFINE"):
            kit.answer(f"{phase}.i{number}.1", "# A\n" + "".join(f"{name}\n" for name in sorted(last)))
        assert holding is not None
        if number == 6:
            break
    failing(kit, a_script)
    for phase, number in a_script.bad:
        kit.answer(f"{phase}.bad.{number}", "" if phase in ("PRODUCE", "REFINE") else "no json")


def failing(kit: Kit, a_script: Script) -> None:
    """For each iteration and level an issue about a rule that fails then."""
    for number in range(1, 7):
        holding = a_script.artifacts[min(number, len(a_script.artifacts)) - 1]
        for level in "AB":
            active = [rule for rule in a_script.rules if level == "B" or rule.phase == "A"]
            bad = [rule.id for rule in active if rule.id not in holding]
            if bad:
                kit.answer(f"CRITIQUE.i{number}.{level}.1", json.dumps({"issues": [issue(bad[0])]}))


def test_R_234_R_136_an_inline_judge_that_fails_after_checks(kit: Kit) -> None:
    """Checks of other rules are not lost on the judge's retry; the artifact stays."""
    script(kit, "T1")
    kit.answer("PREPARE.A.1", checks({"rule_id": NAMING, "type": "content", "search": "NAMING", "expected": "x"}))
    kit.answer("EVALUATE.1", "no")
    kit.answer("EVALUATE.2", judged({ENDPOINTS: "pass"}))
    assert kit.new().code == 0
    assert kit.counts()["EVALUATE"] == 2 and kit.ev.count("phase_error") == 1


def test_R_008_R_234_stopped_while_an_agent_fails(kit: Kit) -> None:
    """A stop from outside ends the loop at the next boundary although the agent only ever breaks its contract."""
    kit.answer("PLAN.1", "no json", "wait go")
    running = kit.start()
    until(lambda: kit.started("PLAN"))
    assert kit.reflex("stop").code == 0
    kit.ws.write("go", "")
    assert running.finish() == 4
    assert kit.ev == ["run_started", "stopped"] and kit.counts() == {"PLAN": 1}


def test_R_231_R_239_killed_after_the_last_try(kit: Kit) -> None:
    """Two phase errors are in the history, the end is not: the next start writes it, and calls no agent."""
    kit.answer("PLAN.1", "not json")
    kit.new()
    run = kit.run
    lines = kit.path("history.jsonl").read_text().splitlines(keepends=True)
    kit.path("history.jsonl").write_text("".join(lines[:-1]))
    kit.path("run.json").write_text(json.dumps(run | {"status": "running", "stop": {"passed": False, "reason": ""}}))
    before = len(kit.log_lines())
    ran = kit.reflex("resume", ALIAS)
    assert ran.code == 1 and len(kit.log_lines()) == before
    assert kit.ev == ["run_started", "phase_error", "phase_error", "failed"] and kit.run["status"] == "failed"


@pytest.mark.parametrize("phase", ["PLAN", "PRODUCE", "PREPARE", "EVALUATE", "CRITIQUE", "REFINE"])
def test_R_008_stopped_in_each_phase(kit: Kit, phase: str) -> None:
    """Whatever phase is at work when the loop is stopped from outside: its answer is dropped, nothing is written."""
    script(kit, "T3")
    kit.answer("PREPARE.A.1", checks())
    kit.answer("EVALUATE.1", judged({ENDPOINTS: "fail", NAMING: "pass"}))
    name = f"{phase}.A.1" if phase == "PREPARE" else f"{phase}.1"
    kit.answer(name, kit.said(name), "wait go")
    running = kit.start(2)
    until(lambda: kit.started(phase))
    assert kit.reflex("stop", "enough").code == 0
    before = kit.checksums()
    kit.ws.write("go", "")
    assert running.finish() == 4, running.both
    assert kit.checksums() == before and kit.run["stop"]["reason"] == "enough"
    assert "Traceback" not in running.both and "stop_reason: enough" in running.lines


def test_R_128_an_agent_that_removes_the_folder(kit: Kit) -> None:
    """The loop continues to its end with the artifact that was there."""
    script(kit, "T3")
    agent = f'#!/bin/sh\n[ "$ROODA_CALL" = critique ] && rm -r .ai-factory\nexec {FAKE}\n'
    ran = kit.new(2, "--ai-cmd", kit.ws.write("vandal", agent, 0o755))
    assert ran.code == 4 and kit.artifact == words("N") and "Traceback" not in ran.err
    assert kit.run["stop"]["reason"] == "iteration_limit"
