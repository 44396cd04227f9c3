"""Rows C-098 to C-106: announcements, completion, the verdict box; and what else an end leaves."""

import json

import pytest

from rooda.base.text import width
from tests.kit.goal import SPEC, A, B, Goals, blocks, plan
from tests.kit.needed import needs
from tests.kit.workspace import FAKE_AI

COMPLETE = ["<loop-complete>", "All success criteria satisfied:", f"- {A}: ✓", f"- {B}: ✓", "</loop-complete>"]


def box_of(out: str) -> list[str]:
    """The lines of the last box."""
    lines = out.splitlines()
    start = max(n for n, line in enumerate(lines) if line.startswith("╭─"))
    return lines[start : next(n for n in range(start, len(lines)) if lines[n].startswith("╰")) + 1]


def test_C_009_C_099_C_100_C_101_C_103_C_104_the_end_of_a_good_run(g: Goals) -> None:
    """Every line of it, exactly; the box stands directly behind the completion."""
    g.succeeds()
    ran = g.run()
    assert "[LOOP] Starting | Shape: Tool (9/10) | Workflow: A | Steps: 3 | Budget: $25" in ran.lines
    assert "[LOOP] ✓ step1 complete | Progress: 1/3 | Next: step2" in ran.lines
    assert "[LOOP] ✓ step3 complete | Progress: 3/3 | Next: none" in ran.lines
    at = ran.lines.index("<loop-complete>")
    assert ran.lines[at : at + 5] == COMPLETE and ran.lines[at - 1] == "---END_STATUS---"
    assert ran.lines[at + 5 :] == [
        "╭─ 🟢 SHIP ──────────────────────────╮",
        "│ Verified: execution output         │",
        "│ Checklist: 2/2 criteria verified   │",
        "│ Subjective: n/a · Type 2A · n/a    │",
        "├────────────────────────────────────┤",
        "│ ↳ Alt: n/a                         │",
        "│ ↳ Risk: n/a                        │",
        "╰────────────────────────────────────╯",
    ]
    saved = [event["event"] for event in g.events() if event["event"] in ("state.saved", "run.ended")]
    assert saved[-2:] == ["state.saved", "run.ended"]


def test_C_099_a_step_that_was_not_accepted(g: Goals) -> None:
    """✗, the same progress, the same step next."""
    ran = g.run("-n", "1")
    assert "[LOOP] ✗ step1 not complete | Progress: 0/3 | Next: step1" in ran.lines


@pytest.mark.parametrize(
    "criteria, mark",
    [
        ([{"name": "x", "command": "echo 3", "expect": "< 9"}], "🟢 SHIP"),
        ([{"name": "x", "verification": "code review"}], "🟡 MONITOR"),
        ([{"name": "x", "verification": "assumption"}], "🔴 RESEARCH"),
        ([{"name": "x", "command": "true"}, {"name": "y", "verification": "code review"}], "🟡 MONITOR"),
    ],
)
def test_C_105_the_verdict_follows_the_evidence(g: Goals, criteria: list[dict[str, str]], mark: str) -> None:
    """The weakest decides; a judge's quotation must occur in the change."""
    g.git("init", "-q")
    g.planned(criteria=criteria, steps=[{"name": "step1", "criteria": []}])
    g.side("step", "echo the new line >new.txt")
    g.claims(True)
    g.out("judge", '{"met": true, "quote": "the new line"}')
    ran = g.run("--budget", "100", "-n", "2")
    assert box_of(ran.out)[0].startswith(f"╭─ {mark} ─") and ran.code == (4 if "RESEARCH" in mark else 0), ran.both


def test_answers_are_judged_unmasked(g: Goals) -> None:
    """A word that is a key stays in plan, command and quotation; what is reported them has stars in its place."""
    g.env |= {"DB_PASSWORD": "Postgres-dev-1"}
    g.git("init", "-q")
    criteria = [
        {"name": "file", "command": "test -f Postgres-dev-1"},
        {"name": "read", "verification": "code review"},
    ]
    g.planned(criteria=criteria, steps=[{"name": "step1", "criteria": []}])
    g.side("step", "echo uses Postgres-dev-1 >Postgres-dev-1")
    g.claims(True, RISK="Postgres-dev-1 is small")
    g.out("judge", '{"met": true, "quote": "uses Postgres-dev-1"}')
    ran = g.run("--budget", "100", "-n", "2")
    assert ran.code == 0, ran.both
    assert "Postgres-dev-1" not in ran.both + g.read(".loop/summary.md") and "*** is small" in ran.both


def test_a_judge_without_a_true_quotation_is_not_believed(g: Goals) -> None:
    """The words must are in the diff."""
    g.git("init", "-q")
    g.planned(criteria=[{"name": "x", "verification": "code review"}], steps=["step1"])
    g.claims(True)
    g.out("judge", '{"met": true, "quote": "never written"}')
    ran = g.run("-n", "1")
    assert (
        ran.code == 4 and g.kinds == ["plan", "step", "judge", "judge"] and g.public["criteriaStatus"] == {"x": False}
    )


def test_type_1_is_at_best_to_be_monitored(g: Goals) -> None:
    """What is hard to take back is watched."""
    g.planned(reversibility="1")
    g.out("precheck", "- one\n- it must not be two\n- never three\n")
    g.succeeds()
    assert "🟡 MONITOR" in g.run().out


@pytest.mark.parametrize("reason", ["limit", "cancel"])
def test_the_box_is_printed_at_every_pause_and_cancel(g: Goals, reason: str) -> None:
    """Without a completion; summary.md has the same, and every heading."""
    ran = g.run("-n", "1")
    if reason == "cancel":
        ran = g.rooda("goal", "cancel")
    assert "🔴 RESEARCH" in ran.out and "Checklist: 0/2" in ran.out and "<loop-complete>" not in ran.out
    summary = g.read(".loop/summary.md")
    assert [line for line in summary.splitlines() if line.startswith("## ")] == [
        *("## Status", "## Iterations", "## Cost", "## Completed", "## Remaining", "## Criteria", "## Verdict")
    ]


def test_the_box_wraps_by_display_width(g: Goals) -> None:
    """Long and wide texts stay in the frame; points, alternative and risk come from plan and block."""
    g.planned(
        points=5,
        alt="use the other approach that takes much longer to explain 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字",
    )
    g.succeeds()
    g.claims(True, "step-3", CONFIDENCE="90%", RISK="the service stays as slow as it is today, and nobody looks")  # type: ignore[arg-type]
    box = box_of(g.run().out)
    assert {width(line) for line in box} == {38}
    assert "│ Subjective: ~90% · Type 2A · 5pt   │" in box and len(box) > 9


@pytest.mark.parametrize("how", [{"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii"}, {}])
def test_C_106_ascii_terminals_do_not_end_the_loop(g: Goals, how: dict[str, str]) -> None:
    """What can't be shown is replaced; --ascii has signs of its own."""
    g.succeeds()
    ran = g.run(*([] if how else ["--ascii"]), env=how)
    assert ran.code == 0 and "</loop-complete>" in ran.lines
    assert how or (ran.out.isascii() and "[LOOP] + step1 complete" in ran.out and "+- OK SHIP" in ran.out)


def test_C_108_the_words_are_in_the_help(g: Goals) -> None:
    """continue, cancel, status and the others."""
    shown = g.rooda("goal", "--help").out
    words = ("run", "continue", "status", "cancel", "score", "stop-check", "verify", "rollback")
    assert all(f"\n  {word} " in shown for word in words)


def test_status_is_a_table(g: Goals) -> None:
    """Criterion, type, met, evidence, since; as JSON too; without a goal a sentence. A long specification is cut."""
    assert g.rooda("goal", "status").out.startswith("There is no goal here.")
    g.side("step-1", "touch a.ok")
    g.run("-n", "2", spec=f"{SPEC} {SPEC}")
    lines = g.rooda("goal", "status").lines
    assert lines[1] == f"  Spec: {SPEC} {SPEC[:15]}…"
    assert lines[0] == "goal: paused: iteration limit: 2"
    at = next(n for n, line in enumerate(lines) if "Criterion" in line)
    assert lines[at].split() == ["Criterion", "Type", "Met", "Evidence", "Since"]
    assert f".loop/evidence/2-{A}.txt" in lines[at + 1] and lines[at + 1].endswith("iteration 1")
    assert json.loads(g.rooda("goal", "status", "--json").out)[0]["details"]["criteria"][0]["met"] is True


def test_quiet_reports_the_end_only(g: Goals) -> None:
    """The lines are in the log; the completion and its box are still said."""
    g.succeeds()
    ran = g.run("--quiet")
    assert "[LOOP]" not in ran.out and "</loop-complete>" in ran.lines and "🟢 SHIP" in ran.out
    assert [event["event"] for event in g.events()].count("iteration.ended") == 3


def test_a_holdout_is_verified_and_never_shown(g: Goals) -> None:
    """Neither its name nor its command is in any prompt, also when it alone is open; rooda verifies it."""
    hidden = {"name": "secret name", "command": "test -f c.ok # hidden words", "holdout": True}
    g.planned(criteria=[*plan()["criteria"], hidden])
    g.succeeds()
    g.claims(True)
    g.side("step-5", "touch c.ok")
    ran = g.run()
    assert ran.code == 0, ran.both
    prompts = [call.prompt.decode() for call in g.calls[1:]]
    assert not any("secret" in prompt or "hidden" in prompt for prompt in prompts)
    assert "Something that the specification asks for does not hold yet" in prompts[3]
    assert g.public["criteriaStatus"]["secret name"] is True and "4-secret name.txt" in " ".join(g.evidence())


def test_criteria_met_before_any_work_are_reported(g: Goals) -> None:
    """And the file begins with true for them; a mustNot that holds already prevents the start."""
    g.write("b.ok", "")
    g.keeps_copies()
    ran = g.run("-n", "1")
    assert f"already true before any work: {B}" in ran.lines and g.copies[1]["criteriaStatus"] == {A: False, B: True}
    g.planned(mustNot=[{"text": "no b", "violated_if": "test -f b.ok"}])
    refused = g.run("--fresh")
    assert refused.code == 3 and "no b" in refused.err


def test_L_30_what_held_at_the_start_is_verified_in_every_sweep(g: Goals) -> None:
    """It is unmet only in the iterations in which it fails, and the next prompt names the regression."""
    g.write("b.ok", "")
    g.side("step-1", "touch a.ok")
    g.side("step-2", "rm b.ok")
    g.side("step-3", "touch b.ok")
    ran = g.run("-n", "3")
    assert [met for _, met, _, _ in blocks(ran.out)] == [{A: True, B: held} for held in (True, False, True)], ran.both
    prompts = [call.prompt.decode() for call in g.calls]
    assert [f"do not hold now: {B}" in prompt for prompt in prompts] == [False, False, False, True]
    assert f"[x] {B}" in prompts[1] and f"[ ] {B}" in prompts[3]


def test_an_observation_needs_the_user(g: Goals) -> None:
    """A claim without a terminal pauses; goal verify records the observation, and continue completes without a call."""
    g.write(".loop/shape/SHAPE.md", "criteria:\n- UI renders\nverification:\n  UI renders: observation\n")
    g.succeeds()
    ran = g.run()
    assert ran.code == 4 and "[LOOP] ⏸ Paused: needs observation: UI renders" in ran.lines
    assert g.go_on().code == 4 and len(g.calls) == 4
    assert g.rooda("goal", "verify", "UI renders", "--observed", "seen in the browser").code == 0
    assert "seen in the browser" in g.read(".loop/evidence/3-UI renders.txt")
    done = g.go_on()
    assert done.code == 0 and len(g.calls) == 4 and "observation" in "".join(box_of(done.out)[:3])
    assert g.public["criteriaStatus"]["UI renders"] == {"met": True, "verification": "observation"}


def test_verify_gives_a_criterion_a_command(g: Goals) -> None:
    """One way out of an assumption; unknown names and mixed ways are refused."""
    g.planned(criteria=[*plan()["criteria"], {"name": "good", "verification": "assumption"}])
    g.succeeds()
    assert "needs observation: good" in g.run().out
    assert g.rooda("goal", "verify", "nothing", "--judge").code == 2
    assert g.rooda("goal", "verify", "good", "--judge", "--command", "true").code == 2
    for way in ("--command", "--observed"):
        assert g.rooda("goal", "verify", "good", way, " ").code == 2
    assert g.rooda("goal", "verify", "good", "--observed", "").code == 2
    shown = g.rooda("goal", "verify", "good", "--command", "echo 5", "--expect", "< 9")
    assert shown.code == 0 and "measurement" in shown.out
    assert g.go_on().code == 0 and len(g.calls) == 4


def test_verify_ends_a_command_that_takes_too_long(g: Goals) -> None:
    """The limit of the loop's own verification holds here too; of a long output the end is looked at."""
    words = "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo 5"
    commands = {"hangs": "sleep 1000 & sleep 1001", "floods": words}
    more = [{"name": name, "verification": "execution output", "command": each} for name, each in commands.items()]
    g.planned(criteria=[*plan()["criteria"], *more])
    g.config(f"[goal]\nai_cmd = {json.dumps(FAKE_AI)}\nverify_timeout = 0.3\nkill_grace = 0.2\n")
    assert g.run("-n", "1").code == 4
    rows = json.loads(g.rooda("goal", "verify", "hangs", "--json").out)
    assert [(row["met"], row["evidence"]) for row in rows] == [(False, "now: timeout")]
    g.config(f"[goal]\nai_cmd = {json.dumps(FAKE_AI)}\nmax_output_buffer = 4096\n")
    shown = g.rooda("goal", "verify", "floods", "--command", words, "--expect", "== 5", "--json")
    assert json.loads(shown.out)[0]["met"] is True
    assert not g.leftovers()


def test_rollback_restores_a_checkpoint(g: Goals) -> None:
    """Files as before iteration 2, each present kept as one more checkpoint; branch and index stay."""
    g.git("init", "-q")
    g.write("text", "0\n")
    g.git("add", "text")
    g.git("commit", "-qm", "first")
    g.planned(reversibility="2B")
    g.side("step", 'echo "$ROODA_ITERATION" >text; touch "new-$ROODA_ITERATION"')
    g.run("-n", "3")
    head = g.git("rev-parse", "HEAD") + g.git("ls-files", "-s")
    assert g.rooda("goal", "rollback").lines[1].startswith("1  ")
    ran = g.rooda("goal", "rollback", "2")
    assert ran.code == 0 and g.read("text") == "1\n" and g.exists("new-1") and not g.exists("new-2")
    assert g.git("rev-parse", "HEAD") + g.git("ls-files", "-s") == head
    g.write("text", "by hand\n")
    assert "kept as checkpoint before-rollback-to-2-2." in g.rooda("goal", "rollback", "2").out
    assert g.rooda("goal", "rollback", "before-rollback-to-2").code == 0 and g.read("text") == "3\n"
    assert g.rooda("goal", "rollback", "before-rollback-to-2-2").code == 0 and g.read("text") == "by hand\n"
    assert g.rooda("goal", "rollback", "9").code == 2


def test_C_104_a_claim_is_not_verification(g: Goals) -> None:
    """The agent's word alone: no count in the box, no mark of a success in status, summary and cancel."""
    g.planned(criteria=[{"name": "x", "verification": "assumption"}, {"name": "y", "command": "true"}], steps=["step1"])
    g.claims(True)
    ran = g.run()
    assert ran.code == 4 and "│ Checklist: 1/2 criteria verified   │" in ran.lines, ran.both
    assert "│ Verified: execution output         │" in ran.lines
    assert "- ✗ x (assumption, claimed)" in g.read(".loop/summary.md").splitlines()
    assert "claimed" in next(line for line in g.rooda("goal", "status").lines if "assumption" in line)
    cancelled = g.rooda("goal", "cancel").lines
    assert "  ✗ x (claimed, not verified)" in cancelled and "  ✓ y" in cancelled


@needs("bwrap")
def test_S_21_a_verification_run_by_hand_changes_no_guarded_file(g: Goals) -> None:
    """`goal verify` runs the command in the sandbox, puts back what it wrote, and says so."""
    command = "rm .envrc; echo evil >.envrc; touch proof"
    g.planned(criteria=[*plan()["criteria"], {"name": "w", "verification": "execution output", "command": command}])
    g.write(".envrc", "")
    assert g.run("-n", "1").code == 4
    g.write(".envrc", "mine\n")
    g.config(f'[goal]\nai_cmd = {json.dumps(FAKE_AI)}\nsandbox = "workspace"\n')
    ran = g.rooda("goal", "verify", "w", "--json")
    assert json.loads(ran.out)[0]["met"] is True and g.exists("proof"), ran.both
    assert g.read(".envrc") == "mine\n" and "Restored guarded files: .envrc; changed versions: " in ran.err
