"""R-020 to R-032: what is confirmed before the first iteration, and where the rules come from."""

import json
import os
import signal
from typing import Any

import pytest

from rooda.loops.reflex.drafting import from_template
from tests.kit.reflex import AUTH, ENDPOINTS, RS1, TASK, Kit, checks_of, rule
from tests.kit.reflex_scenarios import by_iteration, script
from tests.kit.workspace import Ran, until

SIX = ["id", "description", "severity", "weight", "phase", "check"]


def nothing_was_started(kit: Kit, ran: Ran) -> bool:
    return ran.code == 3 and not kit.log_lines() and not kit.home.exists() and not kit.ws.exists(".ai-factory")


def test_R_020_R_021_both_are_shown_and_asked(kit: Kit) -> None:
    """All rules with severity and phase, both thresholds, the number; two questions."""
    out = kit.new(3).out
    head = out.partition("Use these success criteria")[0]
    for each in RS1:
        line = next(line for line in head.splitlines() if each["id"] in line)
        assert each["severity"] in line and f"phase {each['phase']}" in line
    assert "Phase A, threshold 0.8" in head and "Phase B, threshold 0.9" in head
    assert out.count("[y/N") == 2
    assert "Maximum iterations: 3. Use this limit?" in out


def test_R_020_R_026_all_digits_of_what_is_confirmed(kit: Kit) -> None:
    """Thresholds and weights are shown as they are stored: no digit is cut, and none comes with an exponent."""
    kit.give_rules([rule("a.x.one", "fail", 1234567.25), rule("a.x.two", "warn", 1)])
    out = kit.new(1, "--threshold-a", "0.8333333", "--threshold-b", "1", stdin=b"n\n").out
    assert "Phase A, threshold 0.8333333\n" in out and "Phase B, threshold 1\n" in out
    assert "weight 1234567.25:" in out and "weight 1:" in out


def test_R_022_asked_even_if_the_task_says_it(kit: Kit) -> None:
    """A task that names criteria and a number changes nothing."""
    out = kit.new(None, task="An API that must have X, at most 3 iterations").out
    assert out.count("[y/N") == 2 and "Maximum iterations: 4. Use this limit?" in out


@pytest.mark.parametrize("said", [b"", b"y\n", b"n\n", b"y\nn\n", b"\n\n", b"y\n\n", b"maybe\n", b"y\n0\n", b"n\ny\n"])
def test_R_023_R_024_nothing_without_two_yeses(kit: Kit, said: bytes) -> None:
    """Anything but yes and yes: no call, no file, exit code 3."""
    assert nothing_was_started(kit, kit.new(4, stdin=said))


def test_R_025_an_edited_number_is_asked_again(kit: Kit) -> None:
    """A number in place of the yes: criteria and limit are asked again, and the new number counts."""
    ran = kit.new(4, stdin=b"y\n2\ny\ny\n")
    assert ran.out.count("Use these success criteria") == 2
    assert ran.out.count("Use this limit?") == 2 and "Maximum iterations: 2. Use this limit?" in ran.out
    assert kit.run["max_iterations"] == 2
    assert kit.new(4, "--alias", "again", stdin=b"y\n2\ny\n").code == 3
    assert kit.new(4, "--alias", "again", stdin=b"y\ne\n3\ny\ny\n").code == 0
    assert json.loads((kit.home / "again" / "run.json").read_text())["max_iterations"] == 3


def test_R_025_edited_criteria_are_asked_again(kit: Kit) -> None:
    """`e` opens the draft in the user's editor; what is saved there is what is confirmed."""
    editor = kit.ws.write("../editor", "#!/bin/sh\nsed -i 's/^A = 0.8/A = 0.5/; s/ENDPOINTS/Points/' \"$1\"\n", 0o755)
    ran = kit.ws.rooda(*kit.arguments(4), stdin=b"e\ny\ny\n", env={"EDITOR": editor, "VISUAL": editor})
    assert ran.code == 0, ran.both
    assert ran.out.count("Use these success criteria") == 2
    assert kit.run["criteria"]["phase"]["A"]["threshold"] == 0.5
    broken = kit.ws.write("../editor", '#!/bin/sh\necho nonsense > "$1"\n', 0o755)
    ran = kit.ws.rooda(*kit.arguments(4), stdin=b"e\ny\ny\n", env={"EDITOR": broken, "VISUAL": broken})
    assert ran.code == 2 and "TOML" in ran.err


def test_R_026_R_064_what_was_confirmed_is_what_counts(kit: Kit) -> None:
    """Limit, thresholds and rules are those of run.json, also after an edit of the number there."""
    by_iteration(kit, "T3")
    kit.kill_in("CRITIQUE.1", kit.said("CRITIQUE.1"), 2)
    run = kit.run
    assert run["max_iterations"] == 2
    assert [run["criteria"]["phase"][level]["threshold"] for level in "AB"] == [0.8, 0.9]
    assert [each["id"] for each in run["criteria"]["rules"]] == [each["id"] for each in RS1]
    kit.path("run.json").write_text(json.dumps(run | {"max_iterations": 3}))
    assert kit.ws.rooda("trust", "--state").code == 0
    assert kit.reflex("resume").code == 4
    assert (kit.run["max_iterations"], kit.run["iteration"], kit.run["stop"]["reason"]) == (3, 3, "iteration_limit")


def test_R_027_four_by_default(kit: Kit) -> None:
    """Without a number the question says 4; [reflex] max_iterations proposes another."""
    ran = kit.new(None)
    assert "Maximum iterations: 4. Use this limit?" in ran.out and kit.run["max_iterations"] == 4
    kit.config(table="max_iterations = 6")
    assert "Maximum iterations: 6. Use this limit?" in kit.new(None, "--alias", "other").out


TEMPLATES: dict[str, Any] = {
    "api": (0.8, 0.9, "fffw", "wwfw"),
    "code": (0.8, 0.9, "fffw", "wwwf"),
    "docs": (0.75, 0.85, "ffww", "wwww"),
    "config": (0.8, 0.9, "ffwf", "wwww"),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_R_028_R_174_templates(kit: Kit, name: str) -> None:
    """Thresholds and severities of each template, normalised to full rules."""
    kit.answer("PLAN.1", "not json")
    ran = kit.ws.rooda("reflex", "new", TASK, "--template", name, "--generic", stdin=b"y\ny\n")
    assert ran.code == 1
    criteria = kit.run["criteria"]
    low, high, first, second = TEMPLATES[name]
    assert [criteria["phase"][level]["threshold"] for level in "AB"] == [low, high]
    letters = {level: "".join(r["severity"][0] for r in criteria["rules"] if r["phase"] == level) for level in "AB"}
    assert letters == {"A": first, "B": second}
    assert all([*each] == SIX and each["check"] and each["description"] for each in criteria["rules"])


def test_R_028_own_thresholds(kit: Kit) -> None:
    """0.8 and 0.9 by default; the file's values override them, and options override those."""
    kit.new()
    assert [kit.run["criteria"]["phase"][level]["threshold"] for level in "AB"] == [0.8, 0.9]
    kit.give_rules(RS1, phase={"A": {"threshold": 0.7}}, thresholds={"B": 0.95})
    kit.new(4, "--threshold-b", "0.85", "--alias", "two-thresholds")
    run = json.loads((kit.home / "two-thresholds" / "run.json").read_text())
    assert [run["criteria"]["phase"][level]["threshold"] for level in "AB"] == [0.7, 0.85]


@pytest.mark.parametrize(
    "task, template",
    [
        ("Write the courses API with its endpoints", "api"),
        ("Implement a function that sorts", "code"),
        ("A guide and tutorial for newcomers", "docs"),
        ("nginx configuration for two hosts", "config"),
        ("Something else entirely", ""),
    ],
)
def test_R_028_the_template_follows_from_the_task(kit: Kit, task: str, template: str) -> None:
    """By its words; if those are ambiguous and there is no terminal, it is an error before anything starts."""
    kit.answer("PLAN.1", "not json")
    ran = kit.ws.rooda("reflex", "new", task, "--generic", stdin=b"y\ny\n")
    if template:
        assert f"template {template}" in ran.out
    else:
        assert ran.code == 2 and "--template" in ran.err and not kit.home.exists()


def test_R_029_R_030_R_160_six_keys_and_weights_by_severity(kit: Kit) -> None:
    """Rules without weights get 2, 1, 0; extra keys are dropped."""
    kit.give_rules([rule("a.x.one", "fail"), rule("a.x.two", "warn"), rule("a.x.three", "info")])
    listed = json.loads(kit.ws.read("rs.json"))
    listed[0]["note"] = "dropped"
    kit.ws.write("rs.json", json.dumps(listed))
    kit.answer("PRODUCE.1", "a.x.one a.x.two a.x.three")
    kit.new()
    assert [[*each] for each in kit.run["criteria"]["rules"]] == [SIX] * 3
    assert [each["weight"] for each in kit.run["criteria"]["rules"]] == [2, 1, 0]


@pytest.mark.parametrize("check", ["", "  ", None])
def test_R_031_no_rule_starts_with_an_empty_check(kit: Kit, check: str | None) -> None:
    """An empty check is drafted from the description and shown; without a description the file is refused."""
    written = rule("a.x.one", "fail") | {"check": check}
    kit.give_rules([written])
    ran = kit.new()
    assert kit.run["criteria"]["rules"][0]["check"] == f"Verify: {written['description']}"
    assert f"check: Verify: {written['description']}" in ran.out
    kit.ws.write("rs.json", json.dumps([written | {"description": ""}]))
    ran = kit.new(4, "--alias", "other")
    assert ran.code == 2 and "a.x.one" in ran.err and not (kit.home / "other").exists()


def test_R_032_the_file_is_not_looked_at_again(kit: Kit) -> None:
    """Rules changed during a run reach no prompt."""
    by_iteration(kit, "T2")
    kit.kill_in("CRITIQUE.1", kit.said("CRITIQUE.1"))
    kit.ws.write("rs.json", json.dumps([rule("a.new.rule", "fail")]))
    kit.reflex("resume")
    text = "".join(line["stdin"] for line in kit.started("*"))
    assert "a.new.rule" not in text and AUTH in kit.prompt("PREPARE", 3)


WRONG = [
    ([], "at least one rule"),
    ({"rules": 3}, "expected a list of rules"),
    ([rule("a.x.y", "error")], "severity"),
    ([rule("a.x.y", "fail") | {"severity": ["fail"]}], "severity"),
    ([rule("c.x.y", "fail")], "id"),
    ([rule("a.x", "fail")], "id"),
    ([rule("a.x.y", "fail") | {"phase": "B"}], "phase"),
    ([rule("a.x.y", "fail"), rule("a.x.y", "warn")], "twice"),
    ([rule("a.x.y", "info", 1)], "weight"),
    ([rule("a.x.y", "fail", -1)], "weight"),
    ([rule("a.x.y", "fail") | {"weight": True}], "weight"),
    ({"rules": [rule("a.x.y", "fail")], "thresholds": {"A": 1.5}}, "threshold"),
    ({"rules": [rule("a.x.y", "fail")], "thresholds": {"C": 0.5}}, "thresholds must be"),
    ({"rules": [rule("a.x.y", "fail")], "thresholds": [0.5, 0.6]}, "thresholds must be"),
    ({"rules": [rule("a.x.y", "fail")], "ideal_result": 7}, "ideal_result"),
    ([rule("a.x.y", "fail") | {"check": 5}], "must be strings"),
    ([rule("a.x.y", "fail") | {"description": "\ud800"}], "unpaired surrogate"),
]


@pytest.mark.parametrize("data, word", WRONG, ids=range(len(WRONG)))
def test_R_160_wrong_rules_are_refused(kit: Kit, data: Any, word: str) -> None:
    """A sentence with the file, the rule and what is wrong; nothing was started."""
    kit.ws.write("rs.json", json.dumps(data))
    ran = kit.new()
    assert (ran.code, word in ran.err, "rs.json" in ran.err) == (2, True, True), ran.both
    assert not kit.home.exists() and "Traceback" not in ran.err


def test_R_020_R_021_explicit_flags_confirm(kit: Kit) -> None:
    """Typed options are a confirmation, each of its own question; another number than the one in force is none."""
    script(kit, "T1")
    both = ("--confirm-criteria", "--confirm-max-iterations", "4")
    ran = kit.new(4, *both, stdin=b"")
    assert ran.code == 0 and "[y/N" not in ran.out
    assert kit.new(4, "--confirm-criteria", "--alias", "one", stdin=b"").code == 3
    assert kit.new(4, "--confirm-max-iterations", "4", "--alias", "two", stdin=b"").code == 3
    assert kit.new(3, *both, "--alias", "three", stdin=b"").code == 3
    assert kit.new(4, "--confirm-criteria", "--alias", "four", stdin=b"y\n").code == 0
    environment = {"ROODA_REFLEX_NEW_CONFIRM_CRITERIA": "1", "ROODA_REFLEX_CONFIRM_CRITERIA": "true"}
    ran = kit.ws.rooda(*kit.arguments(4, "--alias", "five"), stdin=b"", env=environment)
    assert ran.code == 3


def test_R_031_an_agent_drafts(kit: Kit) -> None:
    """--draft: one call, whose rules are only a draft until they are confirmed."""
    draft = {"ideal_result": "A fine page", "rules": [rule(ENDPOINTS, "fail")]}
    kit.answer("DRAFT.1", json.dumps(draft))
    kit.give_rules([rule(ENDPOINTS, "fail")])
    said = ["reflex", "new", TASK, "--draft"]
    ran = kit.ws.rooda(*said, stdin=b"n\n")
    assert ran.code == 3 and ENDPOINTS in ran.out and not kit.home.exists()
    assert kit.ws.rooda(*said, stdin=b"y\ny\n").code == 0
    assert kit.run["task"] == {"prompt": TASK, "ideal_result": "A fine page"}
    assert kit.counts()["DRAFT"] == 2
    kit.answer("DRAFT.1", "no json")
    ran = kit.ws.rooda(*said, "--alias", "other", stdin=b"y\ny\n")
    assert ran.code == 1 and "draft" in ran.err


def own(kit: Kit, **more: str) -> str:
    """What an agent answers that makes the checks of the docs template specific."""
    rules = from_template("docs").criteria.rules
    return json.dumps({"ideal_result": "A tour", "checks": {each.id: f"Own {each.id}" for each in rules} | more})


def test_L_11_a_templates_checks_are_made_for_the_task(kit: Kit) -> None:
    """One call before the confirmation; ids, severities and thresholds stay, the checks are shown and stored."""
    kit.answer("DRAFT.1", f"Sure!\n```json\n{own(kit)}\n```\n")
    kit.answer("PLAN.1", "not json")
    said = ["reflex", "new", TASK, "--template", "docs"]
    ran = kit.ws.rooda(*said, stdin=b"n\n")
    assert ran.code == 3 and "check: Own a.correctness.accuracy" in ran.out and not kit.home.exists()
    assert (
        kit.counts() == {"DRAFT": 1} and TASK in kit.prompt("DRAFT") and "a.correctness.accuracy" in kit.prompt("DRAFT")
    )
    assert kit.ws.rooda(*said, stdin=b"y\ny\n").code == 1
    rules = from_template("docs").criteria.rules
    assert kit.run["criteria"]["rules"] == [{**each._asdict(), "check": f"Own {each.id}"} for each in rules]
    assert kit.run["task"]["ideal_result"] == "A tour" and kit.run["criteria"]["phase"]["A"]["threshold"] == 0.75


def test_L_11_generic_keeps_them(kit: Kit) -> None:
    """No call; with rules of one's own it is refused."""
    ran = kit.ws.rooda("reflex", "new", TASK, "--template", "docs", "--generic", stdin=b"n\n")
    assert ran.code == 3 and not kit.log_lines() and "No statement contradicts the task" in ran.out
    assert kit.new(4, "--generic").code == 2


def test_L_11_an_answer_that_can_not_be_used(kit: Kit) -> None:
    """It is asked for once more with the reason; then --generic is named, and nothing was started."""
    kit.answer("DRAFT.1", own(kit, **{"a.completeness.sections": ""}))
    kit.answer("DRAFT.2", own(kit))
    said = ["reflex", "new", TASK, "--template", "docs"]
    assert kit.ws.rooda(*said, stdin=b"n\n").code == 3
    assert "'a.completeness.sections' must be a non-empty string" in kit.prompt("DRAFT", 2)
    kit.answer("DRAFT.3", "no json")
    ran = kit.ws.rooda(*said, stdin=b"y\ny\n")
    assert ran.code == 1 and "--generic" in ran.err and not kit.home.exists()


def test_L_03_a_draft_whose_call_fails(kit: Kit) -> None:
    """It is repeated too."""
    kit.config(table="retry_wait = 0")
    kit.answer("DRAFT.1", "", "exit 1")
    kit.answer("DRAFT.3", own(kit))
    assert kit.ws.rooda("reflex", "new", TASK, "--template", "docs", stdin=b"n\n").code == 3
    assert kit.counts() == {"DRAFT": 3}


def test_R_061_names(kit: Kit) -> None:
    """A loop never takes an older one's name; one that can't be a folder's name is refused."""
    for alias in ("write-the-courses-api", "write-the-courses-api-2", "write-the-courses-api-3"):
        assert kit.new().code == 0
        assert (kit.home / alias / "run.json").exists()
    for alias in ("../x", "a", "UPPER", "a--b", "-ab", "ab-", "a" * 65, "a.b"):
        assert kit.new(4, "--alias", alias).code == 2, alias
    assert sorted(os.listdir(kit.home)) == [f"write-the-courses-api{end}" for end in ("", "-2", "-3")]


@pytest.mark.parametrize("longest", ["z" * 64, "z" * 61 + "-zz"])
def test_RQ_24_the_longest_name_twice(kit: Kit, longest: str) -> None:
    """With its number too it is a name that every command knows."""
    for alias in (longest, f"{longest[:62].rstrip('-')}-2"):
        assert kit.new(4, "--alias", longest).code == 0
        assert kit.reflex("status", alias).out.startswith(f"{alias}: completed")
    assert kit.reflex("clean", "--all", "--yes").code == 0 and not kit.home.exists()


def test_R_023_a_second_loop_is_refused(kit: Kit) -> None:
    """While one is active neither `new` nor the resume of another starts; the active one is named."""
    kit.kill_in("PLAN.1", "x", 4, "--alias", "first-loop")
    ran = kit.new(4, "--alias", "second-loop")
    assert ran.code == 3 and "first-loop" in ran.err and "resume" in ran.err and "stop" in ran.err
    assert not (kit.home / "second-loop").exists()


def test_R_160_a_key_that_occurs_twice(kit: Kit) -> None:
    """A rules file with a repeated key is refused; a JSON parser would silently keep the last one."""
    kit.ws.write("rs.json", '[{"id": "a.x.y", "severity": "fail", "severity": "warn", "description": "d"}]')
    ran = kit.new()
    assert (ran.code, "same key twice" in ran.err) == (2, True), ran.both


def test_R_029_an_unknown_key_is_reported(kit: Kit) -> None:
    """A misspelt key would change the score unseen; the loop starts without it."""
    kit.ws.write("rs.json", json.dumps([rule(ENDPOINTS, "fail") | {"wieght": 5}]))
    kit.answer("PREPARE.1", checks_of([rule(ENDPOINTS, "fail")], "B"))
    kit.forget("PREPARE.A.1", "PREPARE.B.1")
    ran = kit.new()
    assert ran.code == 0 and "ignored: wieght" in ran.err
    assert [*kit.run["criteria"]["rules"][0]] == ["id", "description", "severity", "weight", "phase", "check"]


@pytest.mark.parametrize("said, limit", [(b"y\n4\n", 4), (b"y\n7\ny\ny\n", 7), (b"y\r\ny\r\n", 4), (b"YES\nYes", 4)])
def test_R_025_R_026_ways_to_say_yes(kit: Kit, said: bytes, limit: int) -> None:
    """The number in force, typed, confirms it; another number is asked for again."""
    ran = kit.new(4, stdin=said)
    assert ran.code == 0, ran.both
    assert kit.run["max_iterations"] == limit


NO_YES = [b"y\n0\n", b"y\n-3\n", b"y\n4.0\n", b"y\n7\n", b"y\n7\ny\n", b"\xff\ny\n", b"\ny\ny\n", b"e\n"]
NO_YES += [b"y\n" + b"9" * 5000 + b"\ny\ny\n"]


@pytest.mark.parametrize("said", NO_YES)
def test_R_023_R_024_answers_that_are_not_yes(kit: Kit, said: bytes) -> None:
    """Anything else leaves nothing behind."""
    ran = kit.new(stdin=said)
    assert (ran.code, kit.log_lines(), kit.home.exists()) == (3, [], False), ran.both


@pytest.mark.parametrize("option", ["--threshold-a", "--threshold-b", "--check-timeout"])
def test_R_028_nan_is_rejected(kit: Kit, option: str) -> None:
    """It would be above and below every score."""
    ran = kit.new(4, option, "nan")
    assert (ran.code, kit.home.exists()) == (2, False), ran.both


@pytest.mark.parametrize("editor", ["false", "no-such-editor-here"])
def test_R_025_an_editor_that_fails(kit: Kit, editor: str) -> None:
    """Nothing was started, and what to do is said."""
    ran = kit.ws.rooda(*kit.arguments(), stdin=b"e\n", env={"EDITOR": editor, "VISUAL": ""})
    assert (ran.code, "EDITOR" in ran.err, kit.home.exists()) == (3, True, False), ran.both


def test_R_023_interrupted_while_an_agent_drafts(kit: Kit) -> None:
    """A sentence, no trace of a loop, no process left."""
    kit.answer("DRAFT.1", "{}", "sleep 30")
    running = kit.ws.start("reflex", "new", TASK, "--draft")
    until(lambda: kit.started("DRAFT"))
    running.process.send_signal(signal.SIGINT)
    assert running.finish() == 130
    assert "Nothing was started" in running.err and "Traceback" not in running.err
    assert not kit.home.exists() and not kit.ws.leftovers()
