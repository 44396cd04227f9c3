"""R-110 to R-158: order and parallelism, and the contract of each phase."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.kit.reflex import (
    ALIAS,
    AUTH,
    DESCR,
    ENDPOINTS,
    FAKE,
    NAMING,
    PLAN,
    RS1,
    TASK,
    Kit,
    checks,
    checks_of,
    command,
    content,
    issue,
    issues,
    judged,
    rule,
    sha,
    traced,
    words,
)
from tests.kit.reflex_scenarios import by_iteration, play, script
from tests.kit.workspace import until

PATH = f".ai-factory/evolution/{ALIAS}/artifact.md"


def overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(max(one["t_start"], other["t_start"]) < min(one["t_end"], other["t_end"]))


def spans(kit: Kit) -> list[dict[str, Any]]:
    return sorted((line for line in kit.log_lines() if line["kind"] == "end"), key=lambda line: line["t_start"])


def test_R_110_R_115_six_phases_in_order(kit: Kit) -> None:
    """T2: PLAN, the pair, CRITIQUE, REFINE, and again; T1 has neither CRITIQUE nor REFINE."""
    play(kit, "T2")
    order = [line["phase"] for line in spans(kit)]
    pairs = [sorted(order[1:3]), sorted(order[6:8])]
    assert pairs == [["PREPARE", "PRODUCE"]] * 2
    assert [order[0], *order[3:6], *order[8:]] == ["PLAN", "CRITIQUE", "REFINE", "PLAN", "PREPARE"]
    found = spans(kit)
    assert found[3]["t_end"] <= found[4]["t_start"]


def test_R_115_R_172_R_180_nothing_to_refine(kit: Kit) -> None:
    """T1: passed in A and B at once."""
    play(kit, "T1")
    assert kit.counts() == {"PLAN": 1, "PRODUCE": 1, "PREPARE": 2}


def test_R_111_R_113_R_255_the_pair_is_parallel_and_nothing_else(kit: Kit) -> None:
    """Each of the two waits for the other to have begun; PLAN is over before, the evaluation comes after both."""
    other = {"PRODUCE": "prepare-is-here", "PREPARE": "produce-is-here"}
    script(kit, "T2")
    kit.answer("PRODUCE.1", words("N"), f"wait {other['PRODUCE']}")
    kit.answer("PREPARE.A.1", checks_of(RS1, "A"), f"wait {other['PREPARE']}")
    running = kit.start()
    for phase, flag in (("PREPARE", "prepare-is-here"), ("PRODUCE", "produce-is-here")):
        until(lambda phase=phase: kit.started(phase))
        kit.ws.write(flag, "")
    assert running.finish() == 0
    found = spans(kit)
    assert overlap(kit.ended("PRODUCE")[0], kit.ended("PREPARE")[0])
    pairs = [(a["phase"], b["phase"]) for i, a in enumerate(found) for b in found[i + 1 :] if overlap(a, b)]
    assert {frozenset(pair) for pair in pairs} == {frozenset(("PRODUCE", "PREPARE"))}
    assert kit.ended("PLAN")[0]["t_end"] <= min(kit.started(p)[0]["t_start"] for p in ("PRODUCE", "PREPARE"))
    assert kit.started("CRITIQUE")[0]["t_start"] >= max(kit.ended(p)[0]["t_end"] for p in ("PRODUCE", "PREPARE"))


def test_R_112_neither_sees_the_other(kit: Kit) -> None:
    """PRODUCE gets no checks, PREPARE no artifact."""
    script(kit, "T2")
    kit.answer("PRODUCE.1", words("N", "TEXT-OF-THE-ARTIFACT\n"))
    kit.answer("REFINE.1", words("EN", "TEXT-OF-THE-ARTIFACT\n"))
    kit.new()
    produced, prepared = kit.started("PRODUCE"), kit.started("PREPARE")
    assert produced and prepared
    assert not any("rule_id" in line["stdin"] or '"checks"' in line["stdin"] for line in produced)
    assert not any("TEXT-OF-THE-ARTIFACT" in line["stdin"] for line in prepared)


def test_R_114_checks_run_in_parallel(kit: Kit) -> None:
    """Two commands, each of which waits for the other to have begun, both end well before their time is over."""
    meet = "touch {0}; i=0; while ! test -e {1}; do sleep 0.05; i=$((i+1)); test $i -lt 200; done; test -s {2}"
    kit.answer(
        "PREPARE.A.1",
        checks(command(ENDPOINTS, meet.format("one", "two", PATH)), command(NAMING, meet.format("two", "one", PATH))),
    )
    kit.config(table="check_timeout = 5")
    assert kit.new().code == 0
    assert [each["verdict"] for each in _evaluation(kit)["rule_results"]] == ["pass", "pass"]


def test_R_114_an_agent_judges_while_commands_run(kit: Kit) -> None:
    """A command and the agent's judgement of the rule without a check each wait for the other to have begun."""
    meet = f"touch one; i=0; while ! test -e two; do sleep 0.05; i=$((i+1)); test $i -lt 200; done; test -s {PATH}"
    kit.answer("PREPARE.A.1", checks(command(ENDPOINTS, meet)))
    kit.answer("EVALUATE.1", judged({NAMING: "pass"}), "touch two", "wait one")
    kit.config(table="check_timeout = 5")
    assert kit.new().code == 0
    assert [each["verdict"] for each in _evaluation(kit)["rule_results"]] == ["pass", "pass"]


def test_R_114_an_agent_that_writes_while_commands_run(kit: Kit) -> None:
    """The artifact is put back, and the commands say again what they make of it; the agent is reported, not they."""
    spoilt = "test -e seen && exit 0; touch seen; until grep -q SPOILT {0}; do sleep 0.05; done; exit 1"
    kit.answer("PREPARE.A.1", checks(command(ENDPOINTS, spoilt.format(PATH))))
    kit.answer("EVALUATE.1", "SPOILT", f"write {PATH}")
    kit.answer("EVALUATE.2", judged({NAMING: "pass"}))
    kit.config(table="check_timeout = 5")
    assert kit.new().code == 0
    assert [each["verdict"] for each in _evaluation(kit)["rule_results"]] == ["pass", "pass"]
    assert "SPOILT" not in kit.artifact
    assert [event["event"] for event in kit.ws.events()].count("reflex.restored") == 1


def _evaluation(kit: Kit, nth: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = [event["payload"] for event in kit.history if event["event"] == "evaluation_done"][nth - 1]
    return found


@pytest.mark.parametrize("name", ["T1", "T2", "T3", "T4", "T5", "T6"])
def test_R_116_sequential(kit: Kit, name: str) -> None:
    """One after the other: the same trace, and no two calls at the same time."""
    from tests.kit.reflex_scenarios import T

    ran = play(kit, name, "--sequential")
    assert ran.code == T[name].code and traced(kit.ev) == T[name].trace
    found = spans(kit)
    assert not any(overlap(a, b) for i, a in enumerate(found) for b in found[i + 1 :])


def test_R_117_the_preamble(kit: Kit) -> None:
    """Every prompt begins with the same three lines, filled."""
    script(kit, "T6")
    kit.answer("PREPARE.A.1", checks())
    kit.answer("EVALUATE.1", judged({ENDPOINTS: "pass", NAMING: "pass"}))
    kit.new()
    phases = set()
    for line in kit.started("*"):
        lines = line["stdin"].split("\n")[:3]
        assert lines == [
            f"You are executing phase {line['phase']} for run {kit.run['run_id']}, "
            f"iteration {line['iteration']}, phase level {line['level']}.",
            "Return only the required output format.",
            "Do not add explanations or commentary outside the specified format.",
        ]
        phases.add(line["phase"])
        assert line["env"]["ROODA_CALL"] == line["phase"].lower() and line["env"]["ROODA_LOOP"] == "reflex"
        assert line["cwd"] == kit.ws.path and line["env"]["ROODA_ITERATION"] == str(line["iteration"])
    assert phases == {"PLAN", "PRODUCE", "PREPARE", "EVALUATE", "CRITIQUE", "REFINE"}


def test_R_120_the_input_of_a_plan(kit: Kit) -> None:
    """Task, level, active rules, the latest events, and what failed before."""
    play(kit, "T2")
    one, two = kit.prompt("PLAN"), kit.prompt("PLAN", 2)
    assert TASK in one and "## Phase level\n\nA\n" in one
    assert ENDPOINTS in one and NAMING in one and AUTH not in one and DESCR not in one
    events = [line for line in one.splitlines() if line.startswith("{") and '"event":' in line]
    assert [json.loads(line)["event"] for line in events] == ["run_started"]
    events = [line for line in two.splitlines() if line.startswith("{") and '"event":' in line]
    assert [json.loads(line)["event"] for line in events] == ["critique_done", "refinement_done", "iteration_advanced"]
    assert set(events) <= set(kit.path("history.jsonl").read_text().splitlines())
    assert ENDPOINTS in two.partition("## Failures of the previous evaluation")[2]
    assert "none" in one.partition("## Failures of the previous evaluation")[2].partition("##")[0]


def test_R_120_rules_of_both_phases_in_B(kit: Kit) -> None:
    """T6: the second plan is made at level B, of all rules."""
    play(kit, "T6")
    two = kit.prompt("PLAN", 2)
    assert all(each["id"] in two for each in RS1) and "## Phase level\n\nB\n" in two


def six(count: int) -> str:
    return json.dumps({"plan": [f"step {number}" for number in range(count)]})


BAD = {
    "PLAN": [
        "[]",
        '{"plan":"x"}',
        '{"steps":["a","b","c"]}',
        "Here is the plan.",
        six(6),
        six(2),
        six(1),
        six(0),
        "",
        '{"plan":["a","b",3]}',
        '{"plan":["a","b",""]}',
        f"{PLAN}\n{PLAN}",
        '{"plan":["a","b","c"],"plan":["a","b","c"]}',
        '{"plan":["a","b","c"],"n":NaN}',
        "null",
        '"plan"',
        "[" * 100_000,
    ],
    "PRODUCE": ["", " \n\n", "```markdown\n\n```"],
    "PREPARE": [
        "{}",
        '{"checks":{}}',
        checks({"rule_id": ENDPOINTS, "type": "content", "expected": "x"}),
        checks({"rule_id": ENDPOINTS, "type": "content", "search": "", "expected": "x"}),
        checks({"rule_id": ENDPOINTS, "type": "content", "search": "x"}),
        checks({"type": "content", "search": "x", "expected": "x"}),
        checks(content("b.completeness.auth", "x")),
        checks(content("a.un.known", "x")),
        checks({"rule_id": ENDPOINTS, "type": "manual", "search": "x", "expected": "x"}),
        checks(command(ENDPOINTS, "test -s artifact.md")),
        checks(command(ENDPOINTS, "test -s .ai-factory/evolution/<task-alias>/artifact.md")),
        checks(command(ENDPOINTS, f"test -s {PATH}; touch .ai-factory/evolution/<task-alias>/artifact.md")),
        *(checks(command(ENDPOINTS, text)) for text in (f"test -s {PATH}.bak", f"cat {PATH}x", f"cat /a/{PATH}")),
        *(checks(command(ENDPOINTS, f"cat {each} {PATH}")) for each in ("<task_alias>", "<alias>", "<artifact-path>")),
        checks(content(ENDPOINTS, "x", absent="yes")),
        checks(content([ENDPOINTS], "x")),
        checks({"rule_id": ENDPOINTS, "type": "executable", "expected": "x"}),
        json.dumps({"checks": ["x"]}),
    ],
    "CRITIQUE": [
        issues(),
        issues(*[issue(ENDPOINTS)] * 6),
        issues(issue(NAMING)),
        issues(issue("a.un.known")),
        json.dumps({"issues": [issue(ENDPOINTS) | {"rule_id": [ENDPOINTS]}]}),
        *(json.dumps({"issues": [issue(ENDPOINTS) | {key: ""}]}) for key in issue(ENDPOINTS)),
        json.dumps({"issues": [{k: v for k, v in issue(ENDPOINTS).items() if k != "expected_effect"}]}),
    ],
    "REFINE": ["", "\n"],
    "EVALUATE": [
        judged({ENDPOINTS: "pass"}),
        judged({ENDPOINTS: "pass", NAMING: "pass", AUTH: "pass"}),
        judged({ENDPOINTS: "good", NAMING: "pass"}),
        judged({ENDPOINTS: "na", NAMING: "pass"}),
        "{}",
        '{"score": 1.0, "passed": true}',
        json.dumps({"rule_results": [{"id": ENDPOINTS, "verdict": "pass"}, {"id": NAMING, "verdict": "pass"}]}),
        json.dumps({"rule_results": [{"id": ENDPOINTS, "verdict": "pass", "details": ""}] * 2}),
    ],
}
EACH = [(phase, number) for phase, answers in BAD.items() for number in range(len(answers))]
SHORT = [each for each in EACH if each[1] < 2]


def readers() -> dict[str, Any]:
    from rooda.loops.reflex import contract

    def of(judge: Any) -> Any:
        return lambda text: judge(contract.one_object(text))

    active = [ENDPOINTS, NAMING]
    return {
        "PLAN": of(contract.plan),
        "PRODUCE": contract.markdown,
        "PREPARE": of(lambda found: contract.checks(found, active, PATH)),
        "NAMED": of(lambda found: contract.checks(found, active, PATH, ["/my/work"])),
        "CRITIQUE": of(lambda found: contract.issues(found, [ENDPOINTS])),
        "REFINE": contract.markdown,
        "EVALUATE": of(lambda found: contract.verdicts(found, active)),
    }


@pytest.mark.parametrize("phase, number", EACH)
def test_R_121_R_122_R_126_R_130_R_131_R_133_R_134_R_148_R_151_R_152_R_153_R_155_R_251_R_252_a_breach(
    phase: str, number: int
) -> None:
    """None of these answers is accepted by its phase's contract."""
    from rooda.loops.reflex.contract import Breach

    with pytest.raises(Breach):
        readers()[phase](BAD[phase][number])


GOOD = {
    "PLAN": [
        six(3),
        six(5),
        f"\ufeff {PLAN}\n",
        f"```json\n{PLAN}\n```",
        f"```\n{PLAN}\n```",
        PLAN[:-1] + ',"more":1}',
        *(f"Sure!\n{PLAN}", f"{PLAN} done", f"```json\n{PLAN}\n```\ntext"),
    ],
    "PRODUCE": ["x", "# A\r\n\r\ntext"],
    "PREPARE": [checks(), checks(content(ENDPOINTS, "x", absent=True)), checks(command(ENDPOINTS, f"test -s {PATH}"))],
    "NAMED": [
        checks(command(ENDPOINTS, text))
        for text in (
            *(f"test -s `pwd`/{PATH}", f'test -s "`pwd`"/{PATH}', f'test -s "$(pwd)/{PATH}"'),
            *(f"test -s ./{PATH}", f'test -s "$PWD/{PATH}"', f"test -s ${{PWD}}/{PATH}", f'grep -q x "$PWD"/{PATH}'),
            *(f"grep -q '<html>' '{PATH}'", f"wc -l<{PATH}|grep 3", f"A={PATH};test -s $A", f"test -s /my/work/{PATH}"),
            *(f"test -s $(pwd)/{PATH}", f"test -s {PATH}\ntrue", f"python3 -c \"open('{PATH}')\"", f"(cat {PATH})"),
        )
    ],
    "CRITIQUE": [issues(*[issue(ENDPOINTS)] * 5), issues(issue(ENDPOINTS))],
    "EVALUATE": [judged({ENDPOINTS: "warn", NAMING: "fail"}), judged({NAMING: "pass", ENDPOINTS: "pass"})],
}


@pytest.mark.parametrize("phase, number", [(p, n) for p, answers in GOOD.items() for n in range(len(answers))])
def test_R_121_R_136_R_152_an_answer_that_is_fine(phase: str, number: int) -> None:
    """These are accepted; unknown keys are dropped."""
    assert readers()[phase](GOOD[phase][number]) is not None


@pytest.mark.parametrize("phase", BAD)
def test_R_102_R_230_R_231_R_232_R_234_once_more_then_the_end(kit: Kit, phase: str) -> None:
    """A first breach is an event and a second call that quotes it; a second ends the loop as failed."""
    by_iteration(kit, "T2")
    if phase == "EVALUATE":
        kit.answer("PREPARE.A.1", checks())
    good = {name: kit.said(name) for name in kit.answers() if name.startswith(f"{phase}.")}
    kit.forget(*good)
    text = [*good.values(), judged({ENDPOINTS: "pass", NAMING: "pass"})][0]
    kit.answer(f"{phase}.1", BAD[phase][0])
    assert kit.new().code == 1
    run = kit.run
    assert (run["status"], run["stop"]["reason"], kit.ev[-1]) == ("failed", "phase_error", "failed")
    assert kit.ev.count("phase_error") == 2 and kit.counts()[phase] == 2
    first, second = (line["stdin"] for line in kit.started(phase))
    assert second.startswith(first.rstrip()) and "## Your previous answer" in second
    kit.answer(f"{phase}.{4}", text)
    kit.answer(f"{phase}.{3}", BAD[phase][1])
    kit.new(4, "--alias", "second")
    events = [json.loads(line)["event"] for line in (kit.home / "second" / "history.jsonl").read_text().splitlines()]
    at = events.index("phase_error")
    assert events[at + 1] not in ("phase_error", "failed")


def test_R_123_R_127_R_143_R_154_R_158_R_253_contracts_in_prompts(kit: Kit) -> None:
    """The constraints of each contract are in its prompt."""
    script(kit, "T2")
    kit.answer("PREPARE.A.1", checks())
    for number, verdict in ((1, {ENDPOINTS: "fail", NAMING: "pass"}), (2, {ENDPOINTS: "pass", NAMING: "pass"})):
        kit.answer(f"EVALUATE.{number}", judged(verdict))
    kit.new()
    demands = {
        "PLAN": ("3 and 5 steps", "named active rule", "No speculative architecture", "nothing to do with"),
        "PRODUCE": ("this plan only", "unchanged parts", "No meta commentary"),
        "PREPARE": ("`rule_id` of an active rule", PATH, "fast and deterministic", "absent"),
        "EVALUATE": ("no others", "No fix suggestions"),
        "CRITIQUE": ("at most 5 issues", "specific and actionable", "Do not rewrite"),
        "REFINE": ("only the requested fixes", "Preserve all unchanged parts", "No explanation"),
    }
    for phase, texts in demands.items():
        for text in texts:
            assert text in kit.prompt(phase), (phase, text)


def test_R_124_R_170_the_input_of_produce(kit: Kit) -> None:
    """Task and plan; from the second iteration on the artifact that lies on disk."""
    play(kit, "T2")
    one, two = kit.prompt("PRODUCE"), kit.prompt("PRODUCE", 2)
    assert TASK in one and all(step in one for step in json.loads(PLAN)["plan"])
    assert "## Previous artifact" not in one and "NAMING" not in one
    assert words("EN") in two
    assert kit.counts()["PRODUCE"] == 2


@pytest.mark.parametrize(
    "said, kept",
    [
        ("# A\n\ntext\n", "# A\n\ntext\n"),
        ("# A", "# A\n"),
        ("\ufeff\n# A\r\n\r\nb\r\n\r\n\r\n", "# A\n\nb\n"),
        ("```markdown\n# A\n\n```py\nx = 1\n```\n```", "# A\n\n```py\nx = 1\n```\n"),
        ("```md\n# A\n```\n", "# A\n"),
        ("```python\nx = 1\n```", "```python\nx = 1\n```\n"),
        ("```markdown\na\n```\n\nmore\n\n```md\nb\n```", "```markdown\na\n```\n\nmore\n\n```md\nb\n```\n"),
    ],
)
def test_R_125_R_157_the_answer_is_the_artifact(said: str, kept: str) -> None:
    """Markdown only: one outer fence is taken off, lines end with \\n, one of them at the end."""
    from rooda.loops.reflex.contract import markdown

    assert markdown(said) == kept


def test_R_051_R_125_R_157_on_disk(kit: Kit) -> None:
    """The bytes of PRODUCE's answer, then of REFINE's."""
    script(kit, "T3")
    kit.answer("PRODUCE.1", "## Ünï\n\nNAMING\n")
    kit.new(1)
    assert kit.path("artifact.md").read_bytes() == "## Ünï\n\nNAMING\n".encode()


@pytest.mark.parametrize("answer", [words("ENAD"), ""], ids=["answers too", "says nothing"])
def test_R_128_its_own_writing_is_not_trusted(kit: Kit, answer: str) -> None:
    """An agent that writes the artifact itself: what counts is its answer, and none is a breach."""
    kit.answer("PRODUCE.1", "written by hand", f"write {PATH}")
    kit.answer("PLAN.1", PLAN, f"stderr {'noise'}")
    if answer:
        kit.answer("PRODUCE.2", answer)
    ran = kit.new()
    assert ran.code == (0 if answer else 1)
    assert "put back" in ran.err
    assert kit.ev.count("phase_error") == (1 if answer else 2)
    if answer:
        assert kit.artifact == answer
    else:
        assert not kit.path("artifact.md").exists()


@pytest.mark.parametrize("phase", ["CRITIQUE", "PLAN"])
def test_R_128_R_154_other_phases_do_not_touch_it_either(kit: Kit, phase: str) -> None:
    """What they write into the artifact is undone."""
    script(kit, "T3")
    nth = 1 if phase == "CRITIQUE" else 2
    text = kit.said(f"{phase}.1")
    kit.answer(f"{phase}.{nth}", "vandal", f"write {PATH}")
    kit.answer(f"{phase}.{nth + 1}", text)
    ran = kit.new(2)
    assert ran.code == 4 and "put back" in ran.err and kit.artifact == words("N")


def test_R_129_R_156_R_150_inputs(kit: Kit) -> None:
    """PREPARE: task, plan, checks, level. CRITIQUE: task, artifact, what failed. REFINE: task, artifact, issues."""
    script(kit, "T6")
    kit.new()
    one, two = kit.prompt("PREPARE"), kit.prompt("PREPARE", 2)
    for text in (TASK, json.loads(PLAN)["plan"][0], RS1[0]["check"], "## Phase level\n\nA\n", PATH):
        assert text in one
    assert AUTH not in one and "## Phase level\n\nB\n" in two and all(each["check"] in two for each in RS1)
    critique = kit.prompt("CRITIQUE")
    assert words("END") in critique and f'"id": "{AUTH}"' in critique and TASK in critique
    refine = kit.prompt("REFINE")
    assert words("END") in refine and f"Add what {AUTH} asks for" in refine and TASK in refine


def test_R_132_all_checks_of_a_rule_must_hold(kit: Kit) -> None:
    """Two content checks, one misses: the rule fails."""
    kit.answer(
        "PREPARE.A.1", checks(content(ENDPOINTS, "ENDPOINTS"), content(ENDPOINTS, "MISSING"), content(NAMING, "N"))
    )
    kit.new(1)
    assert [each["verdict"] for each in _evaluation(kit)["rule_results"]] == ["fail", "pass"]
    assert "MISSING" in _evaluation(kit)["failed"][0]["message"]


def test_R_135_a_check_has_a_time_limit(kit: Kit) -> None:
    """One that hangs fails with `timed out`; the loop continues."""
    kit.answer("PREPARE.A.1", checks(command(ENDPOINTS, f"sleep 999; test -s {PATH}"), content(NAMING, "NAMING")))
    ran = kit.new(1, "--check-timeout", "0.3")
    assert ran.code == 4
    assert "timed out" in _evaluation(kit)["failed"][0]["message"]


def test_R_135_a_search_has_one_too(kit: Kit) -> None:
    """A regular expression that would continue forever is ended, and the rule fails."""
    kit.answer("PRODUCE.1", "NAMING ENDPOINTS " + "a" * 60 + "!")
    kit.answer("PREPARE.A.1", checks(content(ENDPOINTS, "^(.*a+)+(a+)+$"), content(NAMING, "NAMING")))
    assert kit.new(1, "--check-timeout", "0.5").code == 4
    assert "timed out" in _evaluation(kit)["failed"][0]["message"]


def test_a_signal_ends_a_search_without_a_limit(kit: Kit) -> None:
    """check_timeout = 0 is no limit; Ctrl+C ends the search all the same, and its verdict is not kept."""
    kit.answer("PRODUCE.1", "NAMING ENDPOINTS " + "a" * 60 + "!")
    kit.answer("PREPARE.A.1", checks(content(ENDPOINTS, "^(.*a+)+(a+)+$"), content(NAMING, "NAMING")))
    run = kit.start(1, "--check-timeout", "0")
    until(lambda: any(_searches(pid) for pid in kit.ws.leftovers()), what="the search to begin")
    run.signal(signal.SIGINT)
    assert run.finish() == 130
    assert kit.run["current_step"] == "EVALUATE" and kit.run["evaluation"] is None and kit.ws.leftovers() == []


def _searches(pid: int) -> bool:
    try:
        return b"re.search" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_R_136_R_146_R_138_without_checks_rules_are_judged_inline(kit: Kit) -> None:
    """One EVALUATE call an evaluation, with the artifact, the rules and their weights, and the checks."""
    kit.answer("PREPARE.A.1", checks())
    kit.answer("PREPARE.B.1", checks(content(ENDPOINTS, "ENDPOINTS")))
    kit.answer("EVALUATE.A.1", judged({ENDPOINTS: "pass", NAMING: "pass"}))
    kit.answer("EVALUATE.B.1", judged({NAMING: "pass", AUTH: "pass", DESCR: "pass"}))
    assert kit.new().code == 0
    assert kit.counts()["EVALUATE"] == 2
    one, two = kit.prompt("EVALUATE"), kit.prompt("EVALUATE", 2)
    for text in (words("ENAD"), ENDPOINTS, NAMING, '"weight": 2', '"severity": "warn"'):
        assert text in one
    assert AUTH not in one and '"search": "ENDPOINTS"' in two
    assert f'"id": "{ENDPOINTS}"' not in two.partition("## Prepared checks")[0]


def test_R_137_the_prepared_check_decides(kit: Kit) -> None:
    """Not the rule's own words."""
    kit.give_rules([rule(ENDPOINTS, "fail") | {"check": "UNREACHABLE"}])
    assert kit.new().code == 0


def test_R_139_R_140_R_141_R_142_the_evaluation(kit: Kit) -> None:
    """Its keys and verdicts, in A for two rules and in B for four."""
    play(kit, "T4")
    found = kit.run["evaluation"]
    assert {"score", "passed", "failed", "warnings", "rule_results"} <= set(found)
    assert set(found) <= {"score", "passed", "failed", "warnings", "rule_results", "artifact_hash"}
    assert found["artifact_hash"] == sha(kit.artifact)
    assert [each["verdict"] for each in found["rule_results"]] == ["pass", "pass", "pass", "warn"]
    assert [each["id"] for each in found["rule_results"]] == [each["id"] for each in RS1]
    assert found["failed"] == [] and [each["id"] for each in found["warnings"]] == [DESCR]
    assert {*found["warnings"][0]} == {"id", "severity", "message"} and found["warnings"][0]["severity"] == "warn"
    assert len(_evaluation(kit)["rule_results"]) == 2
    assert all({*each} == {"id", "verdict", "details"} for each in found["rule_results"])
    assert (found["score"], found["passed"]) == (pytest.approx(5 / 6), False)


def test_R_140_a_failed_fail_rule(kit: Kit) -> None:
    """Verdict fail, and in `failed`."""
    play(kit, "T3")
    found = kit.run["evaluation"]
    assert [each["verdict"] for each in found["rule_results"]] == ["fail", "pass"]
    assert [(each["id"], each["severity"]) for each in found["failed"]] == [(ENDPOINTS, "fail")]


def test_R_143_messages_state_facts(kit: Kit) -> None:
    """What rooda itself says of a failed check is what it found, no advice."""
    play(kit, "T3")
    message = kit.run["evaluation"]["failed"][0]["message"]
    assert message == "missing: ENDPOINTS; expected: ENDPOINTS is there"


@pytest.mark.parametrize("there, named", [("link", "work"), ("work", "link")])
def test_R_134_a_folder_with_two_names(kit: Kit, there: str, named: str) -> None:
    """The whole path may begin with the real name of a linked workspace, or with the name that the shell has."""
    link = Path(kit.ws.root, "link")
    link.symlink_to(kit.ws.path)
    kit.give_rules([rule("a.x.one", "fail")])
    for level in "AB":
        kit.answer(f"PREPARE.{level}.1", checks(command("a.x.one", f"test -s {Path(kit.ws.root, named)}/{PATH}")))
    ran = kit.ws.rooda(*kit.arguments(1), "-C", str(Path(kit.ws.root, there)), stdin=b"y\ny\n", env={"PWD": str(link)})
    assert "phase_error" not in kit.ev and "threshold_reached" in ran.out, ran.both


def test_R_144_commands(kit: Kit) -> None:
    """Exit code 0 holds; anything else fails, 126 and 127 too, and is no phase error."""
    found = [rule(f"a.x.r{number}", "warn") for number in range(5)]
    kit.give_rules(found)
    texts = (
        f"test -s {PATH}",
        f"false # {PATH}",
        f"nosuchprogram {PATH}",
        f"/etc/passwd {PATH}",
        f"echo why; exit 3 #{PATH}",
    )
    kit.answer("PREPARE.A.1", checks(*(command(f"a.x.r{n}", text) for n, text in enumerate(texts))))
    kit.new(1, "--threshold-a", "0.9")
    said = [each["details"] for each in _evaluation(kit)["rule_results"]]
    assert [each["verdict"] for each in _evaluation(kit)["rule_results"]] == ["pass", *["warn"] * 4]
    assert said[1].startswith("exit 1") and said[2].startswith("exit 127") and said[3].startswith("exit 126")
    assert said[4].startswith("exit 3: why") and "phase_error" not in kit.ev


@pytest.mark.parametrize(
    "pattern, text, holds",
    [
        ('"example":|examples:', 'the "example": 1', True),
        ('"example":|examples:', "examples: none", True),
        ("GET /courses/{id}/chapters", "GET /courses/{id}/chapters\n", True),
        ("GET /x?page=", "GET /x?page=2", True),
        ("GET /x?page=", "GET /xpage=2", True),
        ("^## End$", "# A\n## End\nmore", True),
        ("(unclosed", "an (unclosed one", True),
        ("(unclosed", "nothing", False),
        ("a.c", "abc", True),
        ("a+b+c", "aabbcc", True),
        ("a+b+c", "abd", False),
    ],
)
def test_R_145_literal_or_regex(pattern: str, text: str, holds: bool) -> None:
    """A search is found literally or as a regular expression with line anchors."""
    from rooda.processes.regex import search

    assert ("found" if pattern in text else search(pattern, text, 10.0)) == ("found" if holds else "missing")


def test_R_145_absent(kit: Kit) -> None:
    """With `absent` a check holds if nothing is found."""
    kit.answer("PREPARE.A.1", checks(content(ENDPOINTS, "SECRET", absent=True), content(NAMING, "NAMING", absent=True)))
    kit.new(1)
    assert [each["verdict"] for each in _evaluation(kit)["rule_results"]] == ["pass", "warn"]


def test_R_147_R_256_the_score_is_computed(kit: Kit) -> None:
    """Whatever the agent claims."""
    kit.answer("PREPARE.A.1", checks())
    claim = json.loads(judged({ENDPOINTS: "fail", NAMING: "pass"})) | {"score": 1.0, "passed": True, "failed": []}
    kit.answer("EVALUATE.1", json.dumps(claim))
    kit.new(1)
    found = kit.run["evaluation"]
    assert (found["score"], found["passed"]) == (pytest.approx(1 / 3), False)


@pytest.mark.parametrize("verdict", ["fail", "warn"])
def test_R_140_severity_decides_the_verdict(kit: Kit, verdict: str) -> None:
    """A fail rule judged `warn` has failed, a warn rule judged `fail` warns."""
    kit.answer("PREPARE.A.1", checks())
    kit.answer("EVALUATE.1", judged({ENDPOINTS: verdict, NAMING: verdict}))
    kit.new(1)
    assert [each["verdict"] for each in kit.run["evaluation"]["rule_results"]] == ["fail", "warn"]


def test_R_149_a_check_can_not_change_the_artifact(kit: Kit) -> None:
    """The bytes come back, the rule fails, and its neighbours are judged by the true text."""
    kit.answer(
        "PREPARE.A.1", checks(command(ENDPOINTS, f"echo x >> {PATH}"), command(NAMING, f"grep -q NAMING {PATH}"))
    )
    kit.new(1)
    assert kit.artifact == words("ENAD")
    assert [each["verdict"] for each in _evaluation(kit)["rule_results"]] == ["fail", "pass"]
    assert "changed the artifact" in _evaluation(kit)["failed"][0]["message"]


@pytest.mark.parametrize(
    "harm",
    [
        *(f"rm {PATH}", f"ln -sf /etc/passwd {PATH}", f"chmod 000 {PATH}; rm -f {PATH}; mkfifo {PATH}"),
        *(f"rm {PATH}; mkdir {PATH}", f"rm {PATH}; mkdir -p {PATH}/x"),
    ],
)
def test_R_149_not_even_by_removing_it(kit: Kit, harm: str) -> None:
    """Deleted, replaced by a link, a pipe or a folder: it is put back."""
    kit.answer("PREPARE.A.1", checks(command(ENDPOINTS, harm), content(NAMING, "NAMING")))
    kit.new(1)
    assert kit.artifact == words("ENAD") and not kit.path("artifact.md").is_symlink()
    assert _evaluation(kit)["failed"][0]["id"] == ENDPOINTS


def test_RQ_09_a_folder_in_its_place_loses_nothing(kit: Kit) -> None:
    """Foreign files that were moved there get another name next to it, and `clean` leaves them."""
    kit.ws.write("src/one.py", "one")
    kit.answer("PREPARE.A.1", checks(command(ENDPOINTS, f"rm {PATH}; mv src {PATH}"), content(NAMING, "NAMING")))
    assert kit.new(1).code == 4 and kit.artifact == words("ENAD")
    ran = kit.reflex("clean", ALIAS, "--yes")
    assert ran.code == 0 and "artifact.md.folder in " in ran.out
    assert (kit.home / ALIAS / "artifact.md.folder" / "one.py").read_text() == "one"


@pytest.mark.parametrize("mode, code", [("resume", 0), ("stop", 0)])
def test_RQ_09_a_folder_that_a_crash_left_in_its_place(kit: Kit, mode: str, code: int) -> None:
    """Resume makes the artifact again, stop ends the loop; then its files can be removed, and nothing of it stays."""
    by_iteration(kit, "T2")
    kit.kill_in("CRITIQUE.1", issues(issue(ENDPOINTS)))
    kit.path("artifact.md").rename(kit.path("artifact.md.1-CRITIQUE.tmp"))
    kit.path("artifact.md").mkdir()
    assert kit.reflex(mode).code == code
    assert kit.reflex("clean", ALIAS, "--yes").code == 0 and not (kit.home / ALIAS).exists()


def test_RQ_26_an_agent_puts_a_folder_in_its_place(kit: Kit) -> None:
    """Before there is one, and while it is criticised: it is put back, and the loop continues."""
    harm = f'case "$ROODA_CALL$ROODA_ITERATION" in plan1 | critique1) rm -f {PATH}; mkdir -p {PATH}/x;; esac'
    kit.ws.write("agent.sh", f"{harm}\nexec {FAKE}\n")
    script(kit, "T2")
    kit.ws.config(kit.ws.read("rooda.toml").replace(json.dumps(FAKE), '"sh agent.sh"'))
    ran = kit.new()
    assert ran.code == 0 and kit.artifact == words("ENAD"), ran.both
    assert ran.err.count("it was put back") == 2


@pytest.mark.parametrize("way, runs", [("run", True), ("skip", False), ("ask", False), (None, True)])
def test_L_12_R_144_exec_checks(kit: Kit, way: str | None, runs: bool) -> None:
    """Commands are shown; once the criteria are confirmed they run, unless the settings say otherwise."""
    kit.config()
    kit.ws.config(kit.ws.read("rooda.toml").replace('exec_checks = "run"', f'exec_checks = "{way}"' if way else ""))
    kit.answer("PREPARE.A.1", checks(command(ENDPOINTS, f"touch RAN; test -s {PATH}"), content(NAMING, "NAMING")))
    kit.answer("EVALUATE.1", judged({ENDPOINTS: "pass"}))
    ran = kit.new()
    assert ran.code == 0 and kit.ws.exists("RAN") == runs
    assert f"$ touch RAN; test -s {PATH}" in ran.err
    told = "Checks: commands that the agent writes for these rules " + ("are shown and run" if runs else "are not run")
    assert told in ran.out.partition("Use these success criteria")[0]
    assert kit.counts().get("EVALUATE", 0) == (0 if runs else 1)


def test_exec_checks_by_option(kit: Kit) -> None:
    """--exec-checks beats the settings."""
    kit.answer("PREPARE.A.1", checks(command(ENDPOINTS, f"touch RAN; test -s {PATH}"), content(NAMING, "NAMING")))
    kit.answer("EVALUATE.1", judged({ENDPOINTS: "pass"}))
    assert kit.new(4, "--exec-checks", "skip").code == 0 and not kit.ws.exists("RAN")


def test_R_233_only_the_failing_one_of_the_pair(kit: Kit) -> None:
    """PREPARE breaks its contract, PRODUCE is not asked again; and the other way round."""
    kit.answer("PREPARE.A.1", "no json")
    kit.answer("PREPARE.A.2", checks_of(RS1, "A"))
    assert kit.new().code == 0
    assert kit.counts() == {"PLAN": 1, "PRODUCE": 1, "PREPARE": 3}
    assert kit.ev.count("phase_error") == 1
    kit.answer("PRODUCE.2", "")
    kit.answer("PRODUCE.3", words("ENAD"))
    assert kit.new(4, "--alias", "other").code == 0
    assert kit.counts() == {"PLAN": 2, "PRODUCE": 3, "PREPARE": 5}
