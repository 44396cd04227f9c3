"""R-200 to R-218: what the user sees."""

import hashlib
import re
import signal

import pytest

from tests.kit.reflex import ALIAS, AUTH, DESCR, ENDPOINTS, NAMING, PLAN, Kit, issue, issues, words
from tests.kit.reflex_scenarios import play, script
from tests.kit.workspace import until

HEAD = re.compile(r"── Iteration \d+/\d+ \| Phase [AB] \| Score: \d\.\d\d \| (PASS|FAIL) ──")
CONTEXT = "All state is on disk. You can interrupt here and go on later with: rooda reflex resume"
PATH = f".ai-factory/evolution/{ALIAS}/artifact.md"


def blocks(lines: list[str]) -> list[list[str]]:
    """The seven lines of each block."""
    return [lines[number : number + 7] for number, line in enumerate(lines) if HEAD.fullmatch(line)]


def test_R_200_R_202_R_203_R_204_R_205_R_206_R_207_T2(kit: Kit) -> None:
    """Three blocks: iteration 1 fails, iteration 2 passes A, then B."""
    script(kit, "T2")
    kit.answer("CRITIQUE.1", issues(issue(ENDPOINTS, "Add GET /courses\nwith one example")))
    lines = kit.new().lines
    found = blocks(lines)
    assert found == [
        [
            "── Iteration 1/4 | Phase A | Score: 0.33 | FAIL ──",
            "Plan: Endpoints first · Then the names · Then the rest",
            f"Hash: {hashlib.sha256(words('N').encode()).hexdigest()[:8]}",
            "Changed: initial generation",
            f"Failed: {ENDPOINTS}",
            "Warnings: none",
            f"Artifact: {PATH}",
        ],
        *(
            [
                f"── Iteration 2/4 | Phase {level} | Score: 1.00 | PASS ──",
                "Plan: Endpoints first · Then the names · Then the rest",
                f"Hash: {hashlib.sha256(kit.path('artifact.md').read_bytes()).hexdigest()[:8]}",
                "Changed: Endpoints, Auth, Descr",
                "Failed: none",
                "Warnings: none",
                f"Artifact: {PATH}",
            ]
            for level in "AB"
        ),
    ]
    after = lines[lines.index(found[0][-1]) + 1]
    assert after == f"{ENDPOINTS}: Add GET /courses with one example"


def test_R_201_R_208_R_213_T3(kit: Kit) -> None:
    """The limit: both blocks, nothing of the artifact before the end, and the distance to success."""
    script(kit, "T3")
    kit.answer("PRODUCE.1", words("N", "MARK-OF-THE-ARTIFACT\n"))
    out = kit.new(2).out
    lines = out.splitlines()
    assert [block[0] for block in blocks(lines)] == [
        f"── Iteration {n}/2 | Phase A | Score: 0.33 | FAIL ──" for n in (1, 2)
    ]
    assert out.count("MARK-OF-THE-ARTIFACT") == 1
    assert out.index("stop_reason: iteration_limit") < out.index("MARK-OF-THE-ARTIFACT")
    start = lines.index("Distance to success:")
    assert lines[start + 1 : start + 5] == [
        "  threshold: 0.8, final score: 0.33",
        "  gap to threshold: 0.47 (0.4667)",
        f"  failed rules that block: 1 ({ENDPOINTS})",
        "  rules progress: 1/2",
    ]
    assert '"run_id"' not in out and '"criteria"' not in out


def test_R_207_the_last_iteration_has_the_evaluator_s_words(kit: Kit) -> None:
    """No CRITIQUE is called for it: rule and message, failed before warnings."""
    script(kit, "T3")
    kit.answer("PRODUCE.1", "nothing")
    lines = kit.new(1).lines
    at = lines.index(f"Artifact: {PATH}")
    assert lines[at + 1].startswith(f"{ENDPOINTS}: missing: ENDPOINTS")
    assert lines[at + 2].startswith(f"{NAMING}: missing: NAMING")


@pytest.mark.parametrize("name", ["T1", "T3", "T5"])
def test_R_209_the_artifact_at_the_end(kit: Kit, name: str) -> None:
    """In full, after the last summary."""
    out = play(kit, name).out
    end = out.rpartition("stop_reason:")[2]
    assert kit.artifact.rstrip("\n") in end


def test_R_210_the_artifact_at_the_switch(kit: Kit) -> None:
    """T6: the text that passed A appears once, between the two blocks."""
    script(kit, "T6")
    kit.answer("PRODUCE.1", words("END", "MARK-OF-THE-ARTIFACT\n"))
    kit.answer("REFINE.1", words("END"))
    out = kit.new().out
    assert out.count("MARK-OF-THE-ARTIFACT") == 1
    assert out.index("Phase A") < out.index("MARK-OF-THE-ARTIFACT") < out.index("| Phase B")


def test_R_211_on_request(kit: Kit) -> None:
    """`status --artifact` of an active loop, `show` of any."""
    kit.answer("PRODUCE.1", words("N", "MARK-OF-THE-ARTIFACT\n"))
    kit.kill_in("CRITIQUE.1", "x")
    assert kit.reflex("status", "--artifact").out.endswith(words("N", "MARK-OF-THE-ARTIFACT\n"))
    assert kit.reflex("show").out == kit.reflex("show", ALIAS).out == kit.artifact


ENDS = {
    "T1": ("1", "4", "B", "1.00", "threshold_reached"),
    "T2": ("2", "4", "B", "1.00", "threshold_reached"),
    "T3": ("2", "2", "A", "0.33", "iteration_limit"),
    "T4": ("1", "4", "B", "0.83", "no_major_issues"),
    "T5": ("3", "6", "A", "0.66", "stagnation"),
    "T6": ("2", "4", "B", "1.00", "threshold_reached"),
}


@pytest.mark.parametrize("name", ENDS)
def test_R_212_R_215_the_final_summary(kit: Kit, name: str) -> None:
    """Five keys with their values; a distance only where the limit ended it."""
    lines = play(kit, name).lines
    for key, value in zip(
        ("iteration", "max_iterations", "phase", "final_score", "stop_reason"), ENDS[name], strict=True
    ):
        assert f"{key}: {value}" in lines
    assert ("Distance to success:" in lines) == (name == "T3")


def test_R_212_a_failed_loop(kit: Kit) -> None:
    """T7: the summary says unavailable, why, and phase_error."""
    kit.answer("PLAN.1", "not json")
    ran = kit.new()
    for line in (
        "iteration: 1",
        "max_iterations: 4",
        "phase: A",
        "final_score: unavailable",
        "stop_reason: phase_error",
    ):
        assert line in ran.lines
    assert any(line.startswith("error: PLAN: the answer is not one JSON object") for line in ran.lines)


def test_R_216_R_217_context(kit: Kit) -> None:
    """T5: after the blocks of iterations 2 and 3, not after 1; T1: at the switch; and the loop continues."""
    lines = play(kit, "T5").lines
    heads = [line for line in lines if HEAD.fullmatch(line) or line == CONTEXT]
    assert [line == CONTEXT for line in heads] == [False, False, True, False, True]
    heads = [line for line in play(kit, "T1", "--alias", "one").lines if HEAD.fullmatch(line) or line == CONTEXT]
    assert [line == CONTEXT for line in heads] == [False, True, False]


def test_R_204_changed_after_a_resume(kit: Kit) -> None:
    """The sections of the iteration before are in the history: what changed is told although the text is gone."""
    script(kit, "T2")
    kit.answer("PRODUCE.2", words("END", "\n## More\n\ntext\n"))
    kit.answer("PRODUCE.3", "# Courses\n\n## Endpoints\n\nENDPOINTS NAMING AUTH DESCR\n")
    kit.answer("CRITIQUE.2", issues(issue(AUTH)))
    kit.kill_in("PLAN.2", PLAN)
    lines = kit.reflex("resume").lines
    changed = [line for line in lines if line.startswith("Changed: ")]
    assert changed[0] == "Changed: Endpoints, Descr, More"
    assert changed[-1] == "Changed: Endpoints, -Naming, -Descr, -More"


def test_R_200_json_events(kit: Kit) -> None:
    """--json: every line of stdout is an event; the questions go to stderr."""
    import json

    ran = kit.new(4, "--json")
    events = [json.loads(line) for line in ran.lines]
    assert ran.code == 0 and "Use this limit?" in ran.err
    assert {"run.started", "reflex.block", "run.ended", "agent.ended"} <= {event["event"] for event in events}
    ended = events[-1]
    assert (ended["final_score"], ended["stop_reason"], ended["status"]) == ("1.00", "threshold_reached", "completed")


def test_R_211_show_and_diff_of_iterations(kit: Kit) -> None:
    """Earlier texts by their hashes; what changed between two of them; sections where the texts are gone."""
    import shutil

    play(kit, "T2")
    assert kit.reflex("show", "--iteration", "1").out == words("N")
    assert kit.reflex("show", ALIAS, "--iteration", "2").out == words("ENAD")
    shown = kit.reflex("diff").out
    assert (
        "+## Auth" in shown and "iteration 1" in shown and kit.reflex("diff", "--from", "1", "--to", "2").out == shown
    )
    assert kit.reflex("show", "--iteration", "7").code == 2
    first = kit.reflex("diff", "--to", "1")
    assert (first.code, "nothing to compare" in first.out, first.err) == (0, True, "")
    shutil.rmtree(kit.ws.file(".rooda/runs"))
    assert "  Auth" in kit.reflex("diff").lines
    assert kit.reflex("show", "--iteration", "1").code == 1
    status = kit.reflex("status", ALIAS).out
    assert "A ▃█" in status.replace("▂", "▃") and "B █" in status


def test_E_21_iterations_in_the_summary(kit: Kit) -> None:
    """An iteration that a resume continues counts once; at the end of the cut-off session it is cut off."""
    kit.answer("PRODUCE.1", words("ENAD"), "sleep 30")
    running = kit.start(4)
    until(lambda: "PRODUCE" in kit.counts(), what="the call")
    running.process.send_signal(signal.SIGINT)
    assert running.finish() == 130 and "iterations  1 (1 cut off) in" in running.err
    kit.answer("PRODUCE.1", words("ENAD"))
    kit.again()
    ran = kit.reflex("resume")
    assert ran.code == 0 and "iterations  2 in" in ran.err, ran.err


def test_the_live_display(kit: Kit) -> None:
    """On a terminal a line shows the phases at work; it is erased before any line is written."""
    kit.answer("PRODUCE.1", words("ENAD"), "wait go")
    terminal = kit.ws.terminal(*kit.arguments(4))
    until(lambda: "Use these success criteria" in terminal.out)
    terminal.type("y\n")
    until(lambda: "Use this limit?" in terminal.out)
    terminal.type("y\n")
    until(lambda: "PRODUCE ‖ PREPARE" in terminal.out)
    kit.ws.write("go", "")
    assert terminal.finish() == 0, terminal.out
    assert not any("PRODUCE ‖ PREPARE" in line for line in terminal.screen)
    assert "stop_reason: threshold_reached" in terminal.screen


@pytest.mark.parametrize("said, runs", [("y\n", True), ("n\n", False), ("\x04", False)])
def test_the_user_is_asked_about_commands(kit: Kit, said: str, runs: bool) -> None:
    """exec_checks = "ask" on a terminal: the commands are shown, and only a yes runs them; asked once for each."""
    import json

    from tests.kit.reflex import checks, command, content, judged

    kit.ws.config(kit.ws.read("rooda.toml").replace('exec_checks = "run"', 'exec_checks = "ask"'))
    same = command(ENDPOINTS, f"touch RAN; test -s {PATH}")
    kit.answer("PREPARE.A.1", checks(same, content(NAMING, "NAMING")))
    others = [content(name, word) for name, word in ((NAMING, "NAMING"), (AUTH, "AUTH"), (DESCR, "DESCR"))]
    kit.answer("PREPARE.B.1", checks(same, *others))
    kit.answer("EVALUATE.1", judged({ENDPOINTS: "pass"}))
    terminal = kit.ws.terminal(*kit.arguments(4, "--confirm-criteria", "--confirm-max-iterations", "4"))
    until(lambda: "Run them? [y/N]" in terminal.out)
    terminal.type(said)
    if not runs:
        until(lambda: terminal.out.count("Run them? [y/N]") == 2)
        terminal.type(said)
    assert terminal.finish() == 0, terminal.out
    assert kit.ws.exists("RAN") == runs
    assert f"$ touch RAN; test -s {PATH}" in terminal.out and json.dumps(kit.run)
