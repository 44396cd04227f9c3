"""The summary at the end of a run, `rooda runs`, and one word per state."""

import json
import os
import re
import shutil

import pytest

from rooda.run.ended import STATES, of_end
from tests.kit.background import kill_all, rows
from tests.kit.kinds import KINDS
from tests.kit.loops import Loops
from tests.kit.workspace import Ran, Workspace, masked, until

AGENT = """\
echo "$ROODA_ITERATION" >>file; printf 'a\\nb\\n' >"new-$ROODA_ITERATION"
[ "$ROODA_ITERATION" = 2 ] || { git add file; git -c user.name=x -c user.email=x@example.invalid commit -qm more; }
echo '{"type":"result","subtype":"success","is_error":false,"result":"x","total_cost_usd":0.5,'\
'"usage":{"input_tokens":1000,"output_tokens":500}}'
[ ! -e stop ] || { rm stop; kill -INT $PPID; sleep 30; }
"""


@pytest.fixture
def repo(ws: Workspace) -> Workspace:
    """A repository with a commit, an uncommitted file, and an agent that reports its cost."""
    ws.config('[loop]\nagent = "mine"\n[agents.mine]\ncommand = "sh agent.sh"\noutput = "claude"\n')
    ws.write("agent.sh", AGENT)
    ws.write("old", "1\n")
    ws.git("init", "-q")
    ws.git("add", ".")
    ws.git("commit", "-qm", "first")
    ws.write("old", "2\n")
    return ws


def said(ran: Ran) -> list[str]:
    """The lines of stderr without their times."""
    return [line.partition("] ")[2] for line in masked(ran.err.splitlines())]


def test_E_21_the_summary_at_a_limit(repo: Workspace) -> None:
    """Only what this run changed, on stderr; the next command raises the limit that was reached."""
    ran = repo.rooda("build", "-n", "9", "--max-cost", "0.7")
    assert ran.code == 4
    assert said(ran) == [
        "build: paused, cost limit reached: $1.00 of $0.70",
        "  iterations  2 in D",
        "  changes     3 files, +6 -0, 1 commit",
        "  cost        $1.00, 3,000 tokens, 2 calls",
        "  next        rooda resume build --max-cost 2",
    ]
    assert len(ran.lines) == 6 and "Cost limit reached" in ran.lines[-1]


def test_E_22_E_44_runs_whose_logs_were_deleted(repo: Workspace) -> None:
    """Their calls and costs come from the user's ledger."""
    assert repo.rooda("build", "-n", "2").code == 0
    shutil.rmtree(repo.file(".rooda"))
    assert repo.rooda("build", "-n", "1").code == 0
    new, old = json.loads(repo.rooda("runs", "--json").out)
    assert (old["state"], old["iterations"], old["calls"], old["cost"], old["commits"]) == (None, 2, 2, 1.0, None)
    assert (new["state"], new["calls"], new["cost"]) == ("completed", 1, 0.5) and new.keys() == old.keys()
    assert re.split("  +", repo.rooda("runs", "build").lines[2])[1:] == [
        "build",
        "-",
        "2",
        "-",
        "$1.00",
        "its log was deleted",
    ]


def test_E_22_cost_and_cause_fit_into_a_narrow_terminal(ws: Workspace) -> None:
    """Of 80 columns, a long name leaves room for them; a wide terminal shows all."""
    name = "procedure-with-a-really-long-name"
    ws.procedure(name)
    assert ws.rooda(name, "-n", "1").code == 0
    narrow, wide = (ws.terminal("runs", columns=room) for room in (80, 120))
    assert narrow.finish() == 0 and wide.finish() == 0
    head, row = (line for line in narrow.screen if line)
    assert head.split() == ["WHEN", "WHAT", "STATE", "ITER", "COST", "CAUSE"] and len(row) <= 80
    assert re.search(r"  procedure-\S+…  completed  +1  unknown  after 1 of 1", row), row
    assert "COMMITS" in wide.out and f"  {name}  completed" in wide.out
    why = ws.terminal("why", columns=60)
    assert why.finish() == 0 and why.out.split() == ws.rooda("why").out.split()
    assert not [line for line in why.screen if len(line) > 60 and " " in line.strip()]  # broken between words


def test_E_21_E_22_a_run_with_a_resume_is_one_run(repo: Workspace) -> None:
    """The summary counts both sessions, the interrupted iteration too; `rooda runs` has one row for them."""
    repo.write("stop", "")
    first = repo.rooda("build", "-n", "3")
    assert first.code == 130 and said(first)[1:3] == [
        "build: interrupted, by Ctrl+C",
        "  iterations  1 (1 cut off) in D",
    ]
    assert said(first)[-1] == "  next        rooda resume build"
    ran = repo.rooda("resume", "build")
    assert said(ran) == [
        "build: completed, after 3 of 3 iterations",
        "  iterations  3 (1 cut off) in D",
        "  changes     4 files, +9 -0, 2 commits",
        "  cost        $1.50, 4,500 tokens, 3 calls",
    ]
    (run,) = json.loads(repo.rooda("runs", "--json").out)
    assert (run["v"], run["state"], run["sessions"], run["iterations"], run["commits"]) == (2, "completed", 2, 3, 2)
    assert (run["cost"], run["tokens"], run["cut_off"], run["exit_code"]) == (1.5, 4500, 1, 0)
    assert repo.rooda("build", "-n", "1", "--ai-cmd", "false").code in (0, 1)
    _, older = repo.rooda("runs", "build").lines[1:]
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d  build  completed  +3  +2  +\$1\.50  after 3 of 3 iterations$", older)
    shown = repo.rooda("status").lines
    assert shown[0].startswith("Nothing is running here") and shown[1].startswith("Last run: build, ")


def test_E_21_a_success_without_gates_says_so(ws: Workspace) -> None:
    """The agent's claim that nothing checked is marked; with a gate it is not."""
    ws.procedure(loop={"promise_signals": True})
    ws.out(1, "<promise>SUCCESS</promise>\n")
    ws.out(2, "<promise>SUCCESS</promise>\n")
    assert "build: completed, the agent signaled SUCCESS (no gates)" in said(ws.rooda("build", "-n", "1"))
    ran = ws.rooda("build", "-n", "1", "--gate", "true")
    assert "build: completed, the agent signaled SUCCESS" in said(ran)


def test_E_21_a_long_gate_next_to_the_sandbox_is_counted(ws: Workspace) -> None:
    """With a row for the sandbox, gates share the row of the iterations; their results are never cut off."""
    ws.procedure(loop={"sandbox": "auto"})
    ran = ws.rooda("build", "-n", "1", "--gate", f"true {'x' * 60}")
    (row,) = [line for line in said(ran) if line.startswith("  iterations")]
    assert row == "  iterations  1 in D; gates: 1 green"


def test_E_21_gates_and_a_worktree(repo: Workspace) -> None:
    """Each gate with its last result; the next command names the worktree."""
    gates = '[[loop.quality_gates]]\nname = "tests"\ncommand = "exit 3"\n'
    gates += '[[loop.quality_gates]]\nname = "lint"\ncommand = "true"\n'
    repo.config(f"{repo.read('rooda.toml')}{gates}")
    repo.git("commit", "-qam", "gates")
    ran = repo.rooda("build", "-n", "9", "--worktree")
    assert ran.code == 1
    lines = said(ran)
    assert "  gates       tests red (exit 3), lint green" in lines
    (again,) = [line for line in lines if line.startswith("  next")]
    (tree,) = [line.split()[1] for line in lines if line.startswith("Worktree: ")]
    assert again.startswith(f"  next        rooda -C {tree} --config ") and again.endswith(" resume build")


@pytest.mark.parametrize("kind", [*KINDS])
def test_E_24_every_kind_uses_the_same_words(ws: Workspace, kind: str) -> None:
    """A loop that runs, one that `rooda stop` ended, and one that was killed: in status, its own status, and runs."""
    loops = Loops(ws)
    if kind != "flow":
        ws.side(1, 'touch "$FAKE/here"; sleep 60')
    running = loops.start(kind)
    until(lambda: os.path.exists(f"{ws.fake}/here"), 20, "the agent to work")
    (row,) = json.loads(ws.rooda("status", "--json").out)
    assert row["state"] == "running" and row["details"]["file_status"] in ("running", "in_progress", "planning")
    own = {"reflex": ("reflex",), "flow": ("flow",), "goal": ("goal",)}.get(kind)
    if own:
        assert json.loads(ws.rooda(*own, "status", "--json").out)[0]["state"] == "running"
    assert ws.rooda("stop").code == 0
    running.finish(20)
    gone = {"state": "stopped", "details": {}}  # a goal without a plan
    found = json.loads(ws.rooda("status", "--json").out) or [gone]
    assert [each["state"] for each in found] == ["stopped"]
    assert "stopped" in ws.rooda("status").out
    if own and found[0]["details"].get("file_status"):
        assert json.loads(ws.rooda(*own, "status", "--json").out)[0]["state"] == "stopped"
    assert json.loads(ws.rooda("runs", "--json").out)[0]["state"] == "stopped"


def test_E_24_a_killed_run_offers_to_resume(ws: Workspace) -> None:
    """On a terminal exactly as an interrupted one does; elsewhere it is refused, since it could still be alive."""
    ws.side(2, 'touch "$FAKE/here"; sleep 60')
    ws.start("build", "-n", "3")
    until(lambda: os.path.exists(f"{ws.fake}/here"), what="the second call")
    kill_all(ws)
    (row,) = rows(ws)
    assert (row["state"], row["details"]["file_status"]) == ("interrupted", "running")
    assert ws.rooda("status").lines[0].startswith("build: interrupted, 1/3 iterations completed")
    assert ws.rooda("build").code == 3
    terminal = ws.terminal("build")
    until(lambda: terminal.screen[-1].startswith("Resume? [Y/n]"), what="the question")
    assert any("Found an interrupted run of 'build': iteration 1 of 3 completed" in line for line in terminal.screen)
    terminal.type("y\n")
    assert terminal.finish() == 0
    assert "[T] Resuming procedure: build from iteration 1 (max 3)" in masked(terminal.screen)


@pytest.mark.parametrize(
    ("status", "reason", "code", "state"),
    [
        *(("completed", "max-iterations", 0, "completed"), ("completed", "max-iterations", 1, "failed")),
        *(("complete", "target-met", 0, "completed"), ("error", "error", 1, "failed")),
        *(("aborted", "failures", 1, "failed"), ("failed", "phase_error", 1, "failed")),
        *(("interrupted", "limit", 4, "paused"), ("interrupted", "signal", 143, "interrupted")),
        *(("running", "limit", 4, "paused"), ("running", "signal", 130, "interrupted")),
        *(("stopped", "iteration_limit", 4, "paused"), ("stopped", "stagnation", 4, "stopped")),
        *(("max-iterations-reached", "max-iterations", 4, "paused"), ("cancelled", "cancel", 4, "cancelled")),
        *(("paused", "budget", 4, "paused"), ("paused", "interrupted", 130, "interrupted")),
    ],
)
def test_E_24_the_words_of_all_files(status: str, reason: str, code: int, state: str) -> None:
    """Each word in a file of the four kinds, with how its session ended, is one word on the screen."""
    assert of_end({"status": status, "reason": reason, "exit_code": code}) == state
    assert state in STATES
