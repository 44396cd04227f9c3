"""Rows C-031, C-032, C-041 to C-051: gates and the disclosure, on a terminal and without one."""

import os

import pytest

from rooda.loops.goal.scoring import skips_gates
from tests.kit.goal import SPEC, A, B, Goals, blocks, claim
from tests.kit.processes import Terminal, until

KEEP = "Writing state to .loop/state.json. Delete after session? [Y/n]"


def asked(terminal: Terminal, words: str) -> None:
    until(lambda: words in terminal.out, 20, repr(words))


def colleague(g: Goals) -> None:
    """Six points, two steps, all well."""
    g.planned(6, steps=[{"name": "step1", "criteria": ["tests pass"]}, {"name": "step2", "criteria": ["lint clean"]}])
    g.side("step-1", "touch a.ok")
    g.side("step-2", "touch b.ok")
    g.claims(True)
    g.claims(False, *("step-1",))


def test_C_041_C_050_a_tool_on_a_terminal_is_asked_about_the_state_only(g: Goals) -> None:
    """One question, before the first iteration; then everything runs to the completion."""
    g.succeeds()
    terminal = g.on_terminal()
    asked(terminal, KEEP)
    assert "step" not in g.kinds
    terminal.type("n\n")
    assert terminal.finish() == 0
    assert terminal.out.count("[Y/n]") == 1 and "All success criteria satisfied:" in terminal.out


@pytest.mark.parametrize("question", [KEEP, "Proceed? [Y/n]"])
def test_a_closed_terminal_interrupts_a_goal_that_asks(g: Goals, question: str) -> None:
    """The goal is interrupted by SIGHUP, nothing is decided for the user, and it can be resumed."""
    colleague(g)
    terminal = g.on_terminal(*(() if question == KEEP else ("--keep-state",)))
    asked(terminal, question)
    terminal.hang_up()
    assert terminal.finish() == 143
    assert g.events()[-1]["reason"] == "interrupted" and g.kinds == ["plan"]
    shown = g.each("why", "status")
    assert "the signal was SIGHUP" in shown[0].out and "resume with: rooda goal continue" in shown[1].out


def test_L_06_a_terminal_shows_no_lines_for_programs(g: Goals) -> None:
    """The unmet criteria in words in place of the status block; --verbose shows the blocks as a pipe does."""
    protocol = ("---LOOP_STATUS---", "EXIT_SIGNAL:", "STUCK_COUNT:", "---END_STATUS---", "<loop-complete>")
    g.succeeds()
    terminal = g.on_terminal("--keep-state")
    assert terminal.finish() == 0 and not [word for word in protocol if word in terminal.out], terminal.out
    assert f"Unmet criteria: {B}\n" in terminal.out and "Unmet criteria: none\n" in terminal.out
    verbose = g.on_terminal("--keep-state", "--verbose", "--fresh")
    assert verbose.finish() == 0 and not [word for word in protocol if word not in verbose.out], verbose.out


def test_C_032_C_042_C_043_C_044_C_045_three_checkpoints_on_a_terminal(g: Goals) -> None:
    """G1 after the steps are known, G2 after the first of two iterations, G3 before anything is claimed."""
    colleague(g)
    terminal = g.on_terminal("--keep-state")
    asked(terminal, "Proceed? [Y/n]")
    assert "G1: Decomposed into 2 steps:\n1. step1\n2. step2\nProceed? [Y/n]" in terminal.out
    assert "step" not in g.kinds
    terminal.type("\n")
    asked(terminal, "Step step1 complete. Continue? [Y/n]")
    assert g.kinds == ["plan", "step"]
    terminal.type("yes\n")
    asked(terminal, "All criteria met. Confirm done? [Y/n]")
    assert g.public["exit_signal"] is False and "All success criteria satisfied:" not in terminal.out
    terminal.type("y\n")
    assert terminal.finish() == 0
    text = terminal.out
    assert [text.count(word) for word in ("Proceed?", "Continue?", "Confirm done?")] == [1, 1, 1]
    assert g.public["exit_signal"] is True and g.public["status"] == "completed"


def test_L_33_gates_show_the_work(g: Goals) -> None:
    """G2 and G3: changed files, the agent's words, the evidence; `d` shows the diff and asks again."""
    colleague(g)
    g.side("step-1", "echo first words >one.txt")
    g.side("step-2", "echo second words >two.txt")
    g.out("step-2", claim(True, "I wrote the second file."))
    ran = g.run(stdin=b"y\nd\ny\nd\ny\n")
    assert ran.code == 0, ran.both
    g2, _, g3 = ran.out.partition("Step step1 complete. Continue?")
    g3 = g3[: g3.index("All criteria met. Confirm done?")]
    assert (
        "one.txt | 1 +" in g2
        and f"  ✓ {A} (execution output): .loop/evidence/1-{A}.txt" in g2
        and "d shows the diff." in g2
    )
    assert "one.txt | 1 +" in g3 and "two.txt | 1 +" in g3 and "The agent says:\n  I wrote the second file.\n" in g3
    assert ran.out.count("+first words") == 2 and ran.out.count("+second words") == 1


@pytest.mark.parametrize("answers, calls, reason", [(b"n\n", 1, "gate G1"), (b"y\nn\n", 2, "gate G2")])
def test_C_046_no_pauses(g: Goals, answers: bytes, calls: int, reason: str) -> None:
    """An answer that waits on a pipe counts as well: n at G1 and G2 pauses before the thing asked for."""
    colleague(g)
    ran = g.run(stdin=answers)
    assert ran.code == 4 and len(g.calls) == calls and f"[LOOP] ⏸ Paused: {reason}" in ran.lines
    assert g.public["status"] == "paused"


def test_C_046_enter_means_yes(g: Goals) -> None:
    """Empty lines on a pipe take every gate."""
    colleague(g)
    ran = g.run(stdin=b"\n\n\n")
    assert ran.code == 0, ran.both
    assert ran.lines.count("Proceed? [Y/n]") == 1 and "Confirm done? [Y/n]" in ran.out


@pytest.mark.parametrize("way", ["answer", "spec", "flag"])
def test_C_047_proceed_without_confirmation(g: Goals, way: str) -> None:
    """As an answer, in the specification, or as an option: no more questions."""
    colleague(g)
    words = "proceed without confirmation"
    ran = g.run(
        *(["--no-gates"] if way == "flag" else []),
        spec=f"{SPEC} Proceed  without confirmation." if way == "spec" else SPEC,
        stdin=f"{words}\n".encode() if way == "answer" else None,
    )
    assert ran.code == 0 and "Continue?" not in ran.out and "Confirm done?" not in ran.out, ran.both


@pytest.mark.parametrize(
    "words",
    [
        "Do not proceed without confirmation.",
        "Never, ever,\nproceed without confirmation.",
        'Rename the button "proceed without confirmation".',
        "Let users proceed without confirmation.",
        "If all is green, proceed without confirmation.",
    ],
)
def test_C_047_CA_18_words_that_do_not_tell_us_to(words: str) -> None:
    """Forbidden, quoted, of somebody else or under a condition."""
    assert not skips_gates(f"{SPEC} {words}") and not skips_gates(words)


def test_C_047_CA_18_words_that_forbid_it(g: Goals) -> None:
    """The gates stay, and the first one pauses."""
    colleague(g)
    words = "Never, ever,\nproceed without confirmation."
    ran = g.run(spec=f"{SPEC} {words}", stdin=f"{words}\n".encode())
    assert ran.code == 4 and "Paused: gate G1" in ran.out and g.kinds == ["plan"], ran.both


@pytest.mark.parametrize("words", ["Please proceed without\nconfirmation!", "Well?\n- Proceed without confirmation\n"])
def test_C_047_CA_18_words_that_tell_us_to(words: str) -> None:
    """Wrapped, polite, or as an item of a list."""
    assert skips_gates(f"{SPEC} {words}")


def test_G1_without_a_terminal_pauses_and_yes_continues(g: Goals) -> None:
    """No terminal, no line: paused before the thing asked for; --yes takes the one gate that waits."""
    colleague(g)
    first = g.run()
    assert first.code == 4 and "Resume: rooda goal continue --yes" in first.lines
    assert "Proceed? [Y/n]" in first.lines and g.kinds == ["plan"]
    assert g.go_on().code == 4 and g.kinds == ["plan"], "nobody has answered"
    second = g.go_on("--yes")
    assert second.code == 4 and g.kinds == ["plan", "step"] and "Paused: gate G2" in second.out
    third = g.go_on("--yes")
    assert third.code == 4 and len(g.calls) == 3 and "Paused: gate G3" in third.out
    assert g.public["exit_signal"] is False and not [signal for signal, *_ in blocks(third.out) if signal]
    last = g.go_on("--yes")
    assert last.code == 0 and len(g.calls) == 3 and "<loop-complete>" in last.lines
    assert len(g.journal) == 3


def test_L_32_no_at_G3_continues_with_what_is_missing(g: Goals) -> None:
    """The user's words reach all later calls verbatim, as an instruction; nothing is claimed."""
    colleague(g)
    ran = g.run(stdin=b"y\ny\nn\nthe   third file\nn\nand a fourth\ny\n", env={})
    assert "<loop-complete>" not in ran.out or ran.code == 0
    asked = "Do it, as a part of the specification:\n\n- the   third file\n"
    assert asked in g.calls[3].prompt.decode() and f"{asked}- and a fourth\n" in g.calls[4].prompt.decode()


def test_yes_takes_every_gate_and_headless_has_none(g: Goals) -> None:
    """--yes answers; --headless and LOOP_HEADLESS make a tool of a colleague."""
    colleague(g)
    assert g.run("--yes").code == 0
    ran = g.run("--headless")
    assert ran.code == 0 and "Shape: Tool (6/10)" in ran.out and "Continue?" not in ran.out
    assert "Shape: Tool (6/10)" in g.run(env={"LOOP_HEADLESS": "true"}).out
    assert "Shape: Tool (6/10)" in g.run("--headless", "--shape", "colleague").out


@pytest.mark.parametrize(
    "criterion, words",
    [
        ({"name": "UI", "verification": "observation"}, "Paused: needs observation: UI"),
        ({"name": "UI", "command": "true"}, "Paused: tests changed: tests/t"),
    ],
)
def test_CU_16_CA_16_headless_asks_nothing_at_a_terminal(g: Goals, criterion: dict[str, str], words: str) -> None:
    """What only the user can answer pauses it, now and when it continues; a second start is refused."""
    g.write("tests/t", "1")
    g.planned(9, steps=["one"], criteria=[criterion])
    g.side("step-1", "echo 2 >tests/t")
    g.claims(True)
    terminal = g.on_terminal("--headless")
    assert terminal.finish() == 4 and words in terminal.out, terminal.out
    again = g.terminal("goal", "continue", columns=160)
    assert again.finish() == 4 and words in again.out, again.out
    assert g.on_terminal("--headless").finish() == 3 and len(g.calls) == 2


def test_CU_16_C_033_headless_has_no_intent_dialogue(g: Goals) -> None:
    """At a terminal, too, the template is written and nothing starts."""
    g.planned(4)
    terminal = g.on_terminal("--headless")
    assert terminal.finish() == 3 and g.exists(".loop/intent.md") and g.kinds == ["plan"]


@pytest.mark.parametrize("answer, kept", [("y", False), ("", False), ("n", True)])
def test_C_051_the_answer_about_the_state_is_honoured(g: Goals, answer: str, kept: bool) -> None:
    """Deleted at completion if the user agrees, kept if not."""
    g.succeeds()
    terminal = g.on_terminal()
    asked(terminal, KEEP)
    terminal.type(f"{answer}\n")
    assert terminal.finish() == 0
    assert g.exists(".loop/state.json") == kept and g.exists(".loop/summary.md")


def test_C_050_without_a_terminal_nothing_waits(g: Goals) -> None:
    """The sentence is on stdout; the state is kept, unless --delete-state; never deleted at a pause."""
    g.succeeds()
    ran = g.run()
    assert KEEP in ran.lines and g.public["status"] == "completed"
    assert g.run("--delete-state").code == 0 and not g.exists(".loop/state.json")
    assert g.run("--delete-state", "-n", "1").code == 4 and g.exists(".loop/state.json")


@pytest.mark.parametrize("flags", [[], ["--keep-state"]])
def test_C_052_C_108_cancel_deletes_the_state_unless_it_is_kept(g: Goals, flags: list[str]) -> None:
    """The report with everything that was and was not done; then the files go."""
    g.side("step-1", "touch a.ok")
    g.run("-n", "2")
    ran = g.rooda("goal", "cancel", *flags)
    assert ran.code == 0 and ran.lines[0] == "Loop cancelled." and "  ✓ tests pass" in ran.lines
    assert "Accomplished:" in ran.lines and "  - step1" in ran.lines and "<loop-complete>" not in ran.out
    assert g.exists(".loop/state.json") == bool(flags)
    if flags:
        assert g.public["status"] == "cancelled" and g.public["exit_signal"] is False
    assert g.go_on().code == 2


def test_cancel_lets_the_running_iteration_finish(g: Goals) -> None:
    """Asked from another terminal: the call ends by itself, then the goal is cancelled."""
    g.side("step-1", "until [ -e go ]; do sleep 0.02; done; touch a.ok")
    running = g.start("goal", "run", SPEC)
    g.wait_calls(2)
    cancel = g.start("goal", "cancel")
    cancel.wait_line("Cancel requested")
    until(lambda: g.exists(".rooda/goal.request"), what="the request")
    g.write("go", "")
    assert cancel.finish() == 0 and running.finish() == 4
    assert "rooda goal cancel ends it now" in running.lines and "Resume:" not in running.out
    assert "Loop cancelled." in cancel.out and "  ✓ tests pass" in cancel.out and g.kinds == ["plan", "step"]


def test_ctrl_c_ends_a_question(g: Goals) -> None:
    """The signal ends the wait for an answer: paused, exit 130, and the question waits for the next continue."""
    colleague(g)
    terminal = g.on_terminal("--keep-state")
    asked(terminal, "Proceed? [Y/n]")
    terminal.type("\x03")
    assert terminal.finish() == 130
    assert g.private["reason"] == "interrupted" and g.kinds == ["plan"]
    assert g.go_on("--yes").code == 4 and g.kinds == ["plan", "step"]


def test_C_095_C_097_after_a_breaker_the_user_may_continue_at_once(g: Goals) -> None:
    """Asked on a terminal, the pause already written; y grants as much again, Enter leaves it paused, exit 4."""
    terminal = g.on_terminal("--keep-state", "-n", "2")
    asked(terminal, "Continue for 2 more? [y/N]")
    assert (g.public["status"], g.private["reason"]) == ("paused", "iteration limit: 2") and len(g.calls) == 3
    terminal.type("y\n")
    until(lambda: terminal.out.count("Continue for 2 more?") == 2, what="the second question")
    assert len(g.calls) == 5 and g.private["max_iterations"] == 4
    terminal.type("\n")
    assert terminal.finish() == 4 and "[LOOP] ⏸ Paused: iteration limit: 4" in terminal.out
    again = g.terminal("goal", "continue", columns=160)
    asked(again, "Continue? [y/N]")
    assert "same criteria unmet 5x" in again.out
    again.type("\x03")
    assert again.finish() == 130 and g.private["reason"].startswith("same criteria unmet 5x")


def test_C_094_after_the_budget_the_user_may_extend_it(g: Goals) -> None:
    """The default allowance once more, as long as the sum needs no --force-limits; headless asks nothing."""
    g.config(f"{g.read('rooda.toml')}cost_per_call = 20\n")
    terminal = g.on_terminal("--keep-state", "--budget", "40")
    asked(terminal, "Add $40 and continue? [y/N]")
    terminal.type("y\n")
    assert terminal.finish() == 4 and "Paused: budget exceeded: $80.00/$80" in terminal.out
    assert terminal.out.count("and continue?") == 1
    headless = g.on_terminal("--headless", "--fresh", "-n", "1")
    assert headless.finish() == 4 and "[y/N]" not in headless.out


def test_intent_is_asked_on_a_terminal(g: Goals) -> None:
    """The five fields join the specification for a second scoring; the specification itself stays verbatim."""
    g.planned(4)
    g.out("2", g_plan(9))
    g.succeeds()
    terminal = g.on_terminal("--keep-state", "--iterations", "1")
    for field in ("TASK:", "CONTEXT:", "DONE LOOKS LIKE:", "STAKES IF WRONG:", "WHO REVIEWS:"):
        asked(terminal, field)
        terminal.type("answered\n")
    asked(terminal, "Continue for 1 more?")
    terminal.type("\n")
    assert terminal.finish() == 4
    how = "Too vague to start. Answer each question in one line (Enter skips it, Ctrl+C quits)."
    assert terminal.out.count(how) == 1 and terminal.out.index(how) < terminal.out.index("TASK:")
    assert g.kinds == ["plan", "plan", "step"] and g.public["spec"] == SPEC
    assert "DONE LOOKS LIKE: answered" in g.calls[1].prompt.decode()


def g_plan(total: int) -> str:
    import json

    from tests.kit.goal import plan

    return json.dumps(plan(total))


@pytest.mark.parametrize("answers, gate", [("", "G1"), ("y\n", "G2"), ("y\ny\n", "G3")])
def test_C_043_C_022_a_violated_must_not_comes_before_a_gate(g: Goals, answers: str, gate: str) -> None:
    """A continue that finds it true pauses for it; the next one asks the question that was open, before any call."""
    colleague(g)
    steps = [{"name": "one", "criteria": ["tests pass"]}, {"name": "two", "criteria": ["lint clean"]}]
    g.planned(6, steps=steps, mustNot=[{"text": "no bad", "violated_if": "test -f bad"}])
    assert f"Paused: gate {gate}" in g.run(stdin=answers.encode()).out
    calls = len(g.calls)
    g.write("bad", "")
    for _ in range(2):
        assert "[LOOP] ⏸ Paused: mustNot: no bad" in g.go_on("--yes").lines
    os.remove(g.file("bad"))
    assert f"[LOOP] ⏸ Paused: gate {gate}" in g.go_on().lines and len(g.calls) == calls
    assert f"Paused: gate {gate}" not in g.go_on("--yes").out
