"""R-040 to R-106: the files, the keys of run.json, the history and its events."""

import json
import re
import time

import pytest

from tests.kit.reflex import (
    ALIAS,
    ENDPOINTS,
    PLAN,
    RS1,
    TASK,
    Kit,
    checks,
    checks_of,
    command,
    content,
    issue,
    judged,
    sha,
    traced,
    words,
)
from tests.kit.reflex_scenarios import T, by_iteration, play, script
from tests.kit.workspace import until

THREE = [f"{ALIAS}/{each}" for each in ("artifact.md", "history.jsonl", "run.json")]
EVENTS = {
    "run_started", "plan_created", "artifact_created", "checks_prepared", "evaluation_done", "critique_done",
    "refinement_done", "phase_switched", "iteration_advanced", "phase_error", "stopped", "failed",
}  # fmt: skip
KEYS = [
    *("run_id", "task_alias", "status", "iteration", "max_iterations", "phase", "current_step", "task", "criteria"),
    *("plan", "prepared_checks", "evaluation", "critique", "stop", "last_score", "stagnation_count"),
    *("created_at", "updated_at"),
]
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
LINE = ["ts", "run_id", "iteration", "phase", "step", "event", "status", "payload"]
TYPES = [str, str, int, str, str, str, str, dict]


def broken(kit: Kit) -> None:
    """T7."""
    kit.answer("PLAN.1", "not json")
    assert kit.new().code == 1


def schema(kit: Kit) -> None:
    """Every line of the history has its eight keys, with their types; the run's files are whole."""
    data = kit.path("history.jsonl").read_bytes()
    assert data.endswith(b"\n")
    for event in kit.history:
        assert [*event] == LINE and [type(value) for value in event.values()] == TYPES, event
        assert event["phase"] in "AB" and re.fullmatch(TIME, event["ts"]) and event["run_id"] == kit.run["run_id"]
        assert event["status"] == ("error" if event["event"] in ("phase_error", "failed") else "ok")
    assert set(kit.ev) <= EVENTS
    assert [*kit.run] == KEYS


@pytest.mark.parametrize("name", ["T1", "T2", "T3", "T4", "T5", "T6", "T7"])
def test_R_040_R_041_R_045_R_047_R_090_R_091_R_092_R_105_R_250_R_254_all_scenarios(kit: Kit, name: str) -> None:
    """After every end: three files, no pointer, well-formed events of the twelve names only."""
    broken(kit) if name == "T7" else play(kit, name)
    assert kit.files() == (THREE[1:] if name == "T7" else THREE)
    schema(kit)
    if name in ("T1", "T2", "T4", "T6"):
        assert {event["status"] for event in kit.history} == {"ok"}


def test_R_040_R_042_R_044_during_the_run(kit: Kit) -> None:
    """Four files while it works; the pointer's time continues with the loop."""
    kit.answer("PLAN.1", PLAN, "wait one")
    kit.answer("PRODUCE.1", words("ENAD"), "wait two")
    running = kit.start()
    until(lambda: kit.started("PLAN"))
    pointer = kit.home / "current.json"
    first = json.loads(pointer.read_text())["updated_at"]
    until(lambda: time.time() > _seconds(first) + 1.1, what="the clock to show another second")
    kit.ws.write("one", "")
    until(lambda: kit.started("PRODUCE"))
    assert json.loads(pointer.read_text())["updated_at"] > first
    kit.ws.write("two", "")
    assert running.finish() == 0
    assert not pointer.exists()


def _seconds(stamp: str) -> float:
    import calendar

    return calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ"))


def test_R_041_R_053_nothing_is_left_after_a_kill(kit: Kit) -> None:
    """Leftovers of a writer that was killed half-way are gone after the next start, and nothing else is."""
    by_iteration(kit, "T2")
    kit.kill_in("CRITIQUE.1", kit.said("CRITIQUE.1"))
    for name in (f"{ALIAS}/run.json.77.tmp", f"{ALIAS}/artifact.md.2-PLAN.tmp", f"{ALIAS}/artifact.md.9.tmp"):
        (kit.home / name).write_text("{")
    (kit.home / "current.json.5.tmp").write_text("{")
    (kit.home / "unborn").mkdir()
    (kit.home / "unborn" / "history.jsonl").write_text("")
    kit.ws.write(".rooda/locks/reflex-unborn.lock", "")
    assert kit.reflex("resume").code == 0
    assert kit.files() == THREE
    assert "unborn" not in [path.name for path in kit.home.iterdir()]


def test_R_048_run_json_is_the_truth(kit: Kit) -> None:
    """It says EVALUATE of iteration 2 while the history is in iteration 1: there the loop continues."""
    by_iteration(kit, "T2")
    kit.kill_in("CRITIQUE.1", kit.said("CRITIQUE.1"))
    run = kit.run
    prepared = json.loads(checks_of(RS1, "A"))
    run |= {"iteration": 2, "current_step": "EVALUATE", "plan": ["x"], "prepared_checks": prepared}
    kit.path("run.json").write_text(json.dumps(run))
    kit.path("artifact.md").write_text(words("ENAD"))
    before = kit.counts()
    assert kit.reflex("resume").code == 0
    assert kit.counts() == before | {"PREPARE": before["PREPARE"] + 1}
    assert (kit.run["iteration"], kit.run["status"]) == (2, "completed")
    assert traced(kit.ev) == "RPacEEScEX"


def test_R_049_R_050_R_051_the_artifact_is_one_file(kit: Kit) -> None:
    """Its text is there and nowhere else in the public folder; what lies there is what is judged."""
    marker = "0123456789abcdef0123456789abcdef01234567"
    script(kit, "T3")
    kit.answer("PRODUCE.1", f"{words('N')}\n{marker}\n")
    kit.answer("PREPARE.A.1", checks())
    verdict = judged({ENDPOINTS: "fail", "a.style.naming": "pass"})
    kit.kill_in("EVALUATE.1", verdict, 2)
    assert kit.artifact == f"{words('N')}\n{marker}\n"
    assert [event["payload"] for event in kit.history if event["event"] == "artifact_created"] == [
        {"artifact_hash": sha(kit.artifact)}
    ]
    for name in ("run.json", "history.jsonl"):
        assert marker not in kit.path(name).read_text()
    kit.path("artifact.md").write_text("other words\n")
    kit.reflex("resume")
    assert "other words" in kit.prompt("EVALUATE", 2) and marker not in kit.prompt("EVALUATE", 2)


SHOWS = [
    *("cat {0}", "grep -n MARK {0}", "grep -H MARK {0}", "grep -nH '' {0}", "diff {0} /dev/null", "sed 's/^/> /' {0}"),
    *("grep -o 'MARK.*' {0}", "head -c 30 {0}; echo", 'echo "line: $(grep MARK {0}) is bad"'),
]


@pytest.mark.parametrize("shows", SHOWS)
def test_R_049_a_check_that_shows_the_artifact(kit: Kit, shows: str) -> None:
    """However it prints what it found, only its own words get into run.json and the history."""
    line = "QZQZQZ-MARK-0123456789abcdef0123456789"
    kit.answer("PRODUCE.1", f"{line}\nx\n")
    text = f"{shows.format(f'.ai-factory/evolution/{ALIAS}/artifact.md')}; echo no luck; exit 1"
    kit.answer("PREPARE.A.1", checks(command(ENDPOINTS, text), content("a.style.naming", "x")))
    kit.new(1)
    for name in ("run.json", "history.jsonl"):
        assert "0123456789" not in kit.path(name).read_text() and "-MARK" not in kit.path(name).read_text()
    assert "no luck; expected" in kit.run["evaluation"]["failed"][0]["message"]


def test_R_050_checks_look_at_the_file(kit: Kit) -> None:
    """A file that was changed between kill and resume is judged as it is now."""
    script(kit, "T3")
    kit.answer("PREPARE.A.1", checks(*json.loads(checks_of(RS1, "A"))["checks"][:1]))
    kit.kill_in("EVALUATE.1", judged({"a.style.naming": "pass"}), 1)
    kit.path("artifact.md").write_text(words("EN"))
    kit.reflex("resume")
    assert "EVALUATE" in kit.counts() and kit.ev[-1] == "stopped"
    assert next(e["payload"]["passed"] for e in kit.history if e["event"] == "evaluation_done") is True


def test_R_052_R_099_refine_replaces_it(kit: Kit) -> None:
    """While the next plan is made the file is REFINE's answer; the event has the hash of what was replaced."""
    script(kit, "T2")
    kit.answer("PLAN.2", PLAN, "wait go")
    running = kit.start()
    until(lambda: len(kit.started("PLAN")) == 2)
    assert kit.artifact == words("EN")
    done = next(event for event in kit.history if event["event"] == "refinement_done")
    assert done["payload"]["previous_artifact_hash"] == sha(words("N"))
    assert done["payload"]["artifact_hash"] == sha(words("EN"))
    kit.ws.write("go", "")
    assert running.finish() == 0


def test_R_060_R_061_R_062_R_063_R_067_R_068_R_069_R_070_R_071_R_079_keys_at_the_end(kit: Kit) -> None:
    """Names, task, criteria and times as they were confirmed; the status one of four; the counter at 2."""
    play(kit, "T2", "--ideal-result", "Spec and notes pass phase B")
    run = kit.run
    assert re.fullmatch(rf"{ALIAS}-\d{{8}}-\d{{6}}", run["run_id"])
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", run["task_alias"]) and run["task_alias"] == ALIAS
    stamp = run["created_at"].replace("-", "").replace(":", "").replace("T", "-").removesuffix("Z")
    assert run["run_id"].endswith(stamp)
    assert run["status"] == "completed" and run["iteration"] == 2
    assert run["task"] == {"prompt": TASK, "ideal_result": "Spec and notes pass phase B"}
    assert (run["criteria"]["name"], run["criteria"]["version"]) == ("loop_default_v1", 1)
    assert run["criteria"]["phase"] == {
        "A": {"threshold": 0.8, "active_levels": ["A"]},
        "B": {"threshold": 0.9, "active_levels": ["A", "B"]},
    }
    assert run["criteria"] == kit.history[0]["payload"]["criteria"]
    assert re.fullmatch(TIME, run["created_at"]) and run["created_at"] <= run["updated_at"]


def test_R_063_R_076_R_077_R_078_counters(kit: Kit) -> None:
    """T1 ends in iteration 1, T3 in its last; stop, last score and count say what the scenario says."""
    play(kit, "T1")
    assert (kit.run["iteration"], kit.run["stop"]) == (1, {"passed": True, "reason": "threshold_reached"})
    play(kit, "T3", "--alias", "three")
    three = json.loads((kit.home / "three" / "run.json").read_text())
    assert (three["iteration"], three["stop"]) == (2, {"passed": False, "reason": "iteration_limit"})
    play(kit, "T5", "--alias", "five")
    five = json.loads((kit.home / "five" / "run.json").read_text())
    assert five["stagnation_count"] == 2 and five["last_score"] == pytest.approx(2 / 3)


STEPS = [
    ("PLAN", "PLAN.1", "PLAN", {"plan": [], "prepared_checks": None, "evaluation": None, "critique": None}),
    ("PRODUCE", "PRODUCE.1", "PRODUCE_PREPARE", {"plan": json.loads(PLAN)["plan"], "prepared_checks": None}),
    ("CRITIQUE", "CRITIQUE.1", "CRITIQUE", {"critique": None, "iteration": 1}),
    ("REFINE", "REFINE.1", "REFINE", {"critique": {"issues": [issue(ENDPOINTS, f"Add what {ENDPOINTS} asks for")]}}),
]


@pytest.mark.parametrize("phase, name, step, values", STEPS, ids=[each[0] for each in STEPS])
def test_R_065_R_066_R_072_R_073_R_074_R_075_life_cycles(
    kit: Kit, phase: str, name: str, step: str, values: dict
) -> None:
    """What run.json holds while a phase is at work."""
    script(kit, "T2")
    text = kit.said(name)
    kit.answer(name, text, "wait go")
    running = kit.start()
    until(lambda: kit.started(phase))
    run = kit.run
    assert (run["current_step"], run["phase"], run["stop"]) == (step, "A", {"passed": False, "reason": ""})
    assert {key: run[key] for key in values} == values
    if step in ("CRITIQUE", "REFINE"):
        assert run["prepared_checks"] == json.loads(checks_of(RS1, "A"))
        assert run["evaluation"]["score"] == pytest.approx(1 / 3) == run["last_score"]
    if step == "PLAN":
        assert (run["last_score"], run["stagnation_count"]) == (0, 0)
    kit.ws.write("go", "")
    assert running.finish() == 0


def test_R_065_R_066_R_073_the_switch(kit: Kit) -> None:
    """PREPARE of phase B works in the same iteration and holds B's rules. The second plan empties the rest."""
    script(kit, "T6")
    kit.answer("PREPARE.B.1", checks_of(RS1, "B"), "wait go")
    kit.answer("PLAN.2", PLAN, "wait go-on")
    running = kit.start()
    until(lambda: len(kit.started("PREPARE")) == 2)
    assert (kit.run["current_step"], kit.run["phase"], kit.run["iteration"]) == ("PREPARE", "B", 1)
    kit.ws.write("go", "")
    until(lambda: len(kit.started("PLAN")) == 2)
    run = kit.run
    assert (run["current_step"], run["phase"], run["iteration"]) == ("PLAN", "B", 2)
    assert (run["plan"], run["prepared_checks"], run["critique"]) == ([], None, None)
    assert run["evaluation"]["failed"][0]["id"] == "b.completeness.auth"
    kit.ws.write("go-on", "")
    assert running.finish() == 0
    assert kit.run["phase"] == "B"
    assert {each["rule_id"] for each in kit.run["prepared_checks"]["checks"]} == {each["id"] for each in RS1}
    assert kit.run["critique"] is None


def test_R_090_only_ever_appended(kit: Kit) -> None:
    """What was there in the middle of the run begins the final file, also over kill and resume."""
    by_iteration(kit, "T6")
    kit.kill_in("REFINE.i1.1", words("END"))
    middle = kit.path("history.jsonl").read_bytes()
    kit.reflex("resume")
    assert kit.path("history.jsonl").read_bytes().startswith(middle) and middle.endswith(b"\n")


NAMES = {
    "R_093": lambda ev, h: ev[0] == "run_started" and ev.count("run_started") == 1,
    "R_094": lambda ev, h: ev.count("plan_created") == 2,
    "R_095": lambda ev, h: ev.count("artifact_created") == 2,
    "R_096": lambda ev, h: [e["phase"] for e in h if e["event"] == "checks_prepared"] == ["A", "A", "B"],
    "R_097": lambda ev, h: (
        [e["payload"]["passed"] for e in h if e["event"] == "evaluation_done"] == [False, True, True]
    ),
    "R_098": lambda ev, h: ev.count("critique_done") == 1,
    "R_099": lambda ev, h: ev.count("refinement_done") == 1,
    "R_100": lambda ev, h: ev.count("phase_switched") == 1,
    "R_101": lambda ev, h: ev.count("iteration_advanced") == 1,
    "R_103": lambda ev, h: ev[-1] == "stopped" and h[-1]["payload"]["reason"] == "threshold_reached",
}


def test_R_093_R_094_R_095_R_096_R_097_R_098_R_100_R_101_R_103_events_of_T2(kit: Kit) -> None:
    """Each event as often, and with what, T2 wants it; the order inside an iteration is T2's trace."""
    play(kit, "T2")
    for name, holds in NAMES.items():
        assert holds(kit.ev, kit.history), name
    assert traced(kit.ev) == T["T2"].trace


def test_R_106_order_inside_an_iteration(kit: Kit) -> None:
    """Plan, then artifact and checks, then the evaluation, then critique, refinement, advance, or the switch."""
    play(kit, "T6")
    assert traced(kit.ev) == "RPacEScECFIPacEX"
    assert [e["step"] for e in kit.history] == [
        *("PLAN", "PLAN", "PRODUCE", "PREPARE", "EVALUATE", "EVALUATE", "PREPARE", "EVALUATE", "CRITIQUE", "REFINE"),
        *("PLAN", "PLAN", "PRODUCE", "PREPARE", "EVALUATE", "EVALUATE"),
    ]


def test_R_102_R_104_failures(kit: Kit) -> None:
    """T7: two phase errors, then `failed` as the last event, with status error."""
    broken(kit)
    assert kit.ev == ["run_started", "phase_error", "phase_error", "failed"]
    assert [e["payload"]["attempt"] for e in kit.history[1:3]] == [1, 2]
    assert kit.history[-1]["payload"]["reason"] == "phase_error"
