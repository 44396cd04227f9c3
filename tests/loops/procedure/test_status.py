"""The STATUS section: what it says, when it is there, and that it survives a crash."""

import os
import re
import signal
from pathlib import Path

import pytest

from rooda.loops.procedure import feedback
from rooda.run.records import Gate
from tests.kit.workspace import Workspace, until

BODY = "## OBSERVE\nOBS\n\n## ORIENT\nORI\n\n## DECIDE\nDEC\n\n## ACT\nACT\n"
HEAD = "Written by rooda, the program that runs this loop."
TESTS = "printf '\\033[31mred\\033[0m\\n'; seq 40; echo key=$MY_TOKEN; test -e good"
SECRET = "zq8Rw1Lx5Vt2Nb7Km4Pd"


def section(prompt: str) -> str:
    """The text of a prompt's STATUS section, "" if it has none."""
    found = re.match(r"# OODA Loop Iteration\n\n## STATUS\n(.*?)\n\n## (?:CONTEXT|OBSERVE)\n", prompt, re.S)
    return found[1] if found else ""


def sections(ws: Workspace) -> list[str]:
    return [section(call.text) for call in ws.calls]


def test_E_01_nothing_to_report_is_the_plain_form(ws: Workspace) -> None:
    """Without gates and failures the prompt is the specification's, byte for byte, also after a success."""
    assert ws.rooda("build", "-n", "2", "--max-cost", "5").code == 0
    assert [call.text for call in ws.calls] == [f"# OODA Loop Iteration\n\n{BODY}"] * 2


def test_E_01_E_02_gates_and_how_the_last_iteration_ended(ws: Workspace) -> None:
    """Gates with their results; a refused SUCCESS, a failed agent, a timeout, a FAILURE, and then a success."""
    ws.git("init", "-q")
    ws.write(".gitignore", "*\n!*.py\n")
    keys = "promise_signals = true\niteration_timeout = 2\nmax_duration = '2h'\nfailure_threshold = 9"
    ws.procedure(keys=keys, gates={"lint": "true", "tests": TESTS})
    ws.out(1, "All is well.\n<promise>SUCCESS</promise>\n")
    ws.err(2, "boom: no network\n")
    ws.exits(0, 3)
    ws.side(3, "echo x >late.py; echo still working; sleep 30 & wait")
    ws.out(4, "I tried.\n<promise>FAILURE</promise>\nThe staging key is missing.\n")
    ws.side(5, "touch good")
    assert ws.rooda("build", "-n", "6", "-c", "be brief", env={"MY_TOKEN": SECRET}).code == 0
    first, second, third, fourth, fifth, sixth = sections(ws)
    gates = "When you finish, rooda runs these quality gates. Each must exit with 0:"
    left = "Left for the whole run: 2h of 2h.\nLimit of this call: 2s."
    assert first == f"{HEAD}\n\nThis is iteration 1 of 6.\n{left}\n\n{gates}\n- lint: `true`\n- tests: `{TESTS}`"
    path = max(Path(ws.path, ".rooda", "runs").iterdir()).relative_to(ws.path)
    tail = "\n".join([*map(str, range(12, 41)), "key=***"])
    output = f"End of the output of tests (all of it: {path}/0001-gate-2.out):\n```\n{tail}\n```"
    reasons = [
        "Iteration 1 failed: quality gates failed: tests (exit 1).",
        "Failures in a row: 1. The run ends at 9.",
        "It claimed SUCCESS; that was refused, because a quality gate failed.",
        "Its last words:\n```\nAll is well.\n```",
    ]
    results = f"- lint: `true` (passed after iteration 1)\n- tests: `{TESTS}` (failed after iteration 1: exit 1)"
    assert second.split("\n\n", 2)[2] == "\n".join(reasons) + f"\n\n{gates}\n{results}\n\n{output}"
    assert "Iteration 2 failed: the agent exited with code 3.\n" in third and "boom: no network" in third
    assert results in third and output in third  # the gates did not run again
    assert "Iteration 3 failed: the agent was ended after 2s, the time limit of a call.\n" in fourth
    assert "Files with uncommitted changes now: late.py.\nIts last words:\n```\nstill working\n```" in fourth
    assert "Iteration 4 failed: the agent gave up with FAILURE; quality gates failed: tests (exit 1).\n" in fifth
    assert "Its last words:\n```\nThe staging key is missing.\n```" in fifth and "I tried" not in fifth
    green = f"- lint: `true` (passed after iteration 5)\n- tests: `{TESTS}` (passed after iteration 5)"
    assert sixth.split("\n\n", 2)[2] == f"Iteration 5 succeeded.\n\n{gates}\n{green}"
    assert all(SECRET not in call.text and "\x1b" not in call.text for call in ws.calls)


@pytest.mark.parametrize("table", ["[loop]", "[procedures.build]"])
def test_E_01_feedback_false_leaves_it_out(ws: Workspace, table: str) -> None:
    """Neither gates nor failures are reported then."""
    ws.procedure(gates={"red": "false"})
    ws.config(ws.read("rooda.toml").replace(table, f"{table}\nfeedback = false"))
    ws.rooda("build", "-n", "2")
    assert [call.text for call in ws.calls] == [f"# OODA Loop Iteration\n\n{BODY}"] * 2


def test_E_03_the_dry_run_and_the_kept_file_show_it(ws: Workspace) -> None:
    """The prompt of a dry run, of the agent and of the kept file are the same, and its tokens count."""
    ws.procedure(gates={"tests": f"echo {SECRET} | grep -c ."})
    env = {"MY_TOKEN": SECRET}
    shown = ws.rooda("build", "-n", "3", "--dry-run", env=env).out
    assert ws.rooda("build", "-n", "3", env=env).code == 0
    first = ws.calls[0].text
    assert shown.endswith(f"\n\n{first}") and "- tests: `echo *** | grep -c .`" in first
    kept = [record for record in ws.events() if record["event"] == "prompt.assembled"]
    assert [Path(record["path"]).read_text() for record in kept] == [call.text for call in ws.calls]
    assert f"Token count: {kept[0]['tokens']} / " in shown
    assert len({record["tokens"] for record in kept[1:]}) == 1


def test_E_03_it_survives_a_crash(ws: Workspace) -> None:
    """After SIGKILL a resume reports the cut-off iteration, its files, and the older results of the gates."""
    ws.git("init", "-q")
    ws.procedure(gates={"tests": "echo RED; test -e good"}, loop={"safety": "snapshot"})
    ws.side(2, 'echo x >half.py; : >"$FAKE/working"; sleep 30 & wait')
    running = ws.start("build", "-n", "4")
    until(lambda: os.path.exists(f"{ws.fake}/working"), what="the second agent")
    os.kill(ws.calls[1].ppid, signal.SIGKILL)
    running.finish(20)
    ws.side(3, "touch good")
    assert ws.rooda("resume", "build").code == 0
    third = sections(ws)[2]
    cut = "Iteration 2 was cut off: rooda was killed before the agent had finished. Its work may be incomplete.\n"
    assert "This is iteration 2 of 4." in third and f"{cut}Files that it changed: half.py." in third
    assert "(failed after iteration 1: exit 1)" in third and "\n```\nRED\n```" in third


def test_E_03_a_resume_after_a_signal_reports_it(ws: Workspace) -> None:
    """The iteration was closed by the signal; without a repository nothing is said about files."""
    ws.signal_at(1)
    assert ws.rooda("build", "-n", "3").code == 130
    assert ws.rooda("resume", "build").code == 0
    cut = "Iteration 1 was cut off: a signal ended the agent. Its work may be incomplete."
    assert sections(ws)[1:] == [
        f"{HEAD}\n\nThis is iteration 2 of 3.\n\n{cut}",
        f"{HEAD}\n\nThis is iteration 3 of 3.\n\nIteration 2 succeeded.",
    ]


def test_E_03_another_persons_log_is_not_quoted(ws: Workspace) -> None:
    """Events of a session that this user did not sign reach no agent."""
    ws.signal_at(1)
    ws.rooda("build", "-n", "2")
    start = next(Path(ws.path, ".rooda", "runs").glob("*/start"))
    start.write_bytes(re.sub(rb'"mac": "\w{4}', b'"mac": "0000', start.read_bytes()))
    ws.rooda("resume", "build")
    assert all(not each for each in sections(ws))


def test_E_02_a_green_iteration_starts_no_git(ws: Workspace) -> None:
    """What is reported about it is known already."""
    ws.git("init", "-q")
    ws.procedure(gates={"ok": "true"})
    ws.write("bin/git", f'#!/bin/sh\n[ "$1" = "" ] || echo "$@" >>{ws.fake}/git\nexec /usr/bin/git "$@"\n', 0o755)
    path = f"{ws.file('bin')}:{ws.env['PATH']}"
    ws.side("iteration", f'cp {ws.fake}/git "$FAKE/git-$n" 2>/dev/null || : >"$FAKE/git-$n"')
    assert ws.rooda("build", "-n", "3", env={"PATH": path}).code == 0
    assert ws.read("../fake/git-1") == ws.read("../fake/git-2") == ws.read("../fake/git-3")


def test_E_02_outputs_have_a_limit() -> None:
    """Thirty lines, 4,000 characters a gate and 12,000 in all; the middle is cut, with a mark."""
    lines = "".join(f"{n}\n" for n in range(100))
    assert feedback.excerpt(lines, 4000, str) == "\n".join(map(str, range(70, 100)))
    long = feedback.excerpt("a" * 9000 + "z", 4000, str)
    assert 3900 < len(long) <= 4000 and long.startswith("aaa") and long.endswith("az") and "characters left out" in long
    assert [feedback.room_for(count) for count in (1, 3, 4, 40)] == [4000, 4000, 3000, 300]


def test_E_02_text_can_not_leave_its_fence() -> None:
    """A fence is longer than any in the text, commands keep their backticks, and carriage returns overwrite."""
    assert feedback.fenced("a\n```\n## ACT") == "````\na\n```\n## ACT\n````"
    assert feedback.code("echo `date`") == "`` echo `date` ``"
    assert feedback.plain("10%\r100%\r\n\x1b]0;title\x07\x1b[1mok\x1b[0m\x08") == "100%\nok"


def test_E_45_notes_come_first() -> None:
    """Notes of the user are after the number of the iteration."""
    past, facts = feedback.Past(), feedback.Facts(notes=["leave the\nparser alone"])
    text = feedback.section(past, [Gate("a", "make\nmake test")], facts)
    first = "This is iteration 1 of an unlimited number."
    assert text.startswith(f"{HEAD}\n\n{first}\n\nNotes from the user:\n- leave the parser alone\n\n")
    assert text.endswith("- a:\n  ```\n  make\n  make test\n  ```")
