"""`rooda why`: the rule behind each decision, and the line of the file that shows it."""

import json
from typing import Any

from tests.kit.workspace import Workspace


def reasons(ws: Workspace, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ws.rooda("why", "--json", *words).out)
    return found


def test_each_decision_has_its_rule_and_its_line(ws: Workspace) -> None:
    """A red gate, a failed call and a good iteration, each with the place that shows it; then why the run ended."""
    ws.procedure(gates={"tests": 'echo compiling; echo; [ "$ROODA_ITERATION" != 1 ] || { echo 3 failed; exit 2; }'})
    ws.exits(0, 7, 0)
    ws.out(2, "first\nsecond: boom\n")
    assert ws.rooda("build", "-n", "3").code == 0
    found = reasons(ws)
    assert [(row["iteration"], row["decision"]) for row in found] == [
        (0, "began"), (1, "failed"), (2, "failed"), (3, "went on"), (0, "ended"),
    ]  # fmt: skip
    began, gate, call, good, ended = found
    assert began["rule"] == "at most 3 iterations; gates: tests; 0 were completed before"
    assert gate["rule"] == "gate tests: exit 2; failures in a row: 1 of 3"
    assert (gate["line"], gate["text"], gate["quote"]) == (3, "3 failed", "3 failed")
    assert gate["evidence"].endswith("/0001-gate-1.out")
    assert call["rule"] == "AI CLI failed (exit 7); failures in a row: 2 of 3"
    assert (call["line"], call["text"]) == (2, "second: boom")
    assert good["rule"] == "the agent exited with 0, and every gate passed"
    assert good["evidence"].endswith("/0003-gate-1.out") and good["quote"] == "compiling"
    assert ended["rule"].startswith("Reached max iterations: 3") and ended["rule"].endswith("(exit 0)")


def test_one_iteration_in_words(ws: Workspace) -> None:
    """`--iteration` leaves out the rest; the evidence is below its rule as FILE:LINE."""
    ws.exits(3)
    ws.out(1, "broken pipe\n")
    ws.rooda("build", "-n", "2")
    lines = ws.rooda("why", "build", "--iteration", "1").lines
    assert "Iteration 1 failed: AI CLI failed (exit 3); failures in a row: 1 of 3" in lines[0]
    assert lines[1].endswith("0001-iteration.out:1") and lines[2] == "    > broken pipe"
    assert len(lines) == 3


def test_each_red_gate_is_named_once(ws: Workspace) -> None:
    """With the telling line of its own output, which isn't always the last one."""
    ws.procedure(gates={"tests": "echo FAILED test_slug; echo; echo ------; exit 1", "lint": "echo bad name; exit 2"})
    ws.rooda("build", "-n", "1")
    lines = [line for line in ws.rooda("why", "--iteration", "1").lines if "-gate-" not in line]
    assert [line.partition("] ")[2] or line for line in lines] == [
        "Iteration 1 failed: gate tests: exit 1; failures in a row: 1 of 3",
        "    > FAILED test_slug",
        "Iteration 1 failed: gate lint: exit 2; failures in a row: 1 of 3",
        "    > bad name",
    ]


def test_the_evidence_is_for_people(ws: Workspace) -> None:
    """No raw JSON: an event is named by its place, since the rule says it; a record of an agent CLI is its text."""
    ws.sections["agent"] = '\n[agents.mine]\ncommand = "sh agent.sh"\noutput = "claude"\n'
    ended = {"type": "result", "subtype": "success", "is_error": False, "result": "so far"}
    ws.write("agent.sh", f"cat <<'END'\n{json.dumps(ended)}\nEND\n")
    ws.procedure(loop={"ai_cmd": None, "agent": "mine"})
    assert ws.rooda("build", "-n", "1").code == 0
    assert [row["quote"] for row in reasons(ws)] == ["", "so far", ""] and "{" not in ws.rooda("why").out
    ended["result"] = "All done.\n<promise>SUCCESS</promise>\n"
    ws.write("agent.sh", f"cat <<'END'\n{json.dumps(ended)}\nEND\n")
    assert ws.rooda("build", "-n", "1").code == 0
    assert reasons(ws)[1]["quote"] == "<promise>SUCCESS</promise>"


def test_a_signal(ws: Workspace) -> None:
    """Why an interrupted run ended, and that its failures did not change."""
    ws.signal_at(1, "TERM")
    assert ws.rooda("build", "-n", "2").code == 143
    rules = [row["rule"] for row in reasons(ws)]
    assert rules[1] == "a signal ended its agent; the call counts, failures in a row do not change"
    assert "a signal ends the loop; the state is kept (exit 143)" in rules[-1]


def test_all_sessions_of_a_run_and_the_gate_that_is_red_at_its_end(ws: Workspace) -> None:
    """A resume that ends at once, at its limit, fails by the red gate; the first session is shown, too."""
    ws.procedure(gates={"tests": "echo 3 failed; exit 2"})
    ws.signal_at(1, "TERM")
    assert ws.rooda("build", "-n", "1").err.endswith("  next        rooda resume build -n 2\n")
    status, rows = ws.each("status", "status --json")
    assert "resume with: rooda resume build -n 2" in status.out and json.loads(rows.out)[0]["next"].endswith(" -n 2")
    assert ws.rooda("resume", "build").code == 1
    found = reasons(ws)
    assert [row["decision"] for row in found] == ["began", "ended", "ended", "began", "ended"]
    assert "ended with red gates: tests (exit 2);" in found[-1]["rule"] and found[-1]["quote"] == "3 failed"
    assert len(reasons(ws, ws.events()[-1]["run"])) == 2


def test_a_refused_claim(ws: Workspace) -> None:
    """The agent's SUCCESS is named where a red gate refuses it."""
    ws.procedure(gates={"tests": "exit 2"}, loop={"promise_signals": True})
    ws.out(1, "<promise>SUCCESS</promise>\n")
    assert ws.rooda("build", "-n", "1").code == 1
    assert reasons(ws)[1]["rule"].endswith("; the agent's SUCCESS was refused, because gates are red")


def test_nothing_to_tell(bare: Workspace) -> None:
    """No run, no reasons."""
    ran = bare.rooda("why")
    assert (ran.code, ran.out, ran.err) == (0, "", "No runs recorded here.\n")
