"""Every kind of loop takes every verb, with the same options; what a kind can't do names what can be done."""

import json
import os

import pytest

from tests.kit.background import began, begin, let_go, prepare, rows
from tests.kit.loops import Loops
from tests.kit.processes import Terminal
from tests.kit.workspace import Workspace, until

GROUPS = ("reflex", "flow", "goal")
VERBS = ("run", "resume", "status", "stop", "cancel", "list", "log", "logs", "clean", "prune")


@pytest.mark.parametrize("kind", GROUPS)
def test_L_01_every_group_has_every_verb(bare: Workspace, kind: str) -> None:
    """Each verb has help, in 80 columns; TAB offers the synonyms too."""
    for ran in bare.each(*(f"{kind} {verb} --help" for verb in VERBS), f"{kind} --help"):
        assert ran.code == 0 and max(map(len, ran.lines)) <= 80, ran.both
    env = {"_ROODA_COMPLETE": "bash_complete", "COMP_WORDS": f"rooda {kind} ", "COMP_CWORD": "2"}
    offered = {line.partition(",")[2] for line in bare.rooda(env=env).lines}
    assert {*VERBS} - ({"clean", "prune"} if kind == "flow" else set()) <= offered


def test_L_01_every_verb_without_a_group(bare: Workspace) -> None:
    """For procedures the verbs are commands of rooda; none of them is the name of a procedure."""
    assert [ran.code for ran in bare.each(*(f"{verb} --help" for verb in VERBS))] == [0] * len(VERBS)
    bare.procedure("log")
    assert "log" in bare.rooda("log").err and bare.rooda("run", "log").code == 2


def test_L_01_a_loop_of_another_kind_is_named(ws: Workspace) -> None:
    """Exit 2, with the command that would do it; so does a flow that shall be deleted."""
    begin(ws, "reflex")
    ran = ws.rooda("flow", "cancel", "page")
    assert ran.code == 2 and "rooda cancel page" in ran.err
    ran = ws.rooda("flow", "clean")
    assert ran.code == 2 and "git branch -D" in ran.err
    assert "Nothing to stop here: goal." in ws.rooda("goal", "stop").out
    assert ws.rooda("reflex", "cancel", "--reason", "enough").code == 0
    state = ws.json(".ai-factory/evolution/page/run.json")
    assert (state["status"], state["stop"]["reason"]) == ("stopped", "enough")


def test_a_cancelled_run_is_over_in_every_view(ws: Workspace) -> None:
    """After Ctrl+C, `rooda cancel` ends the run: status, runs, logs and why agree, and none of them offers a resume."""
    ws.signal_at(1)
    assert ws.rooda("build", "-n", "2").code == 130
    assert ws.rooda("cancel", "--reason", "wrong task").code == 0
    status, runs, logs, why = ws.each("status", "runs --json", "logs", "why")
    row = json.loads(runs.out)[0]
    assert (row["state"], row["cause"]) == ("cancelled", "by rooda cancel: wrong task")
    assert "cancelled: by rooda cancel: wrong task" in status.out
    assert "build: cancelled, by rooda cancel: wrong task" in logs.out and "  next " not in logs.out
    assert "Run ended: the user cancelled the run for good (rooda cancel): wrong task" in why.out
    assert ws.rooda("build", "-n", "1").code == 0
    assert [row["state"] for row in json.loads(ws.rooda("runs", "--json").out)] == ["completed", "cancelled"]


def test_L_01_a_run_of_a_flow_is_cancelled_on_any_branch(bare: Workspace) -> None:
    """Its branch says so, a dirty work tree stays as it is, and neither resume nor a new start finds it again."""
    loops = Loops(bare)
    running = loops.start("flow")
    until(lambda: os.path.exists(f"{bare.fake}/here"))
    running.signal(15)
    assert running.finish() == 143
    (row,) = rows(bare)
    branch = bare.git("branch", "--show-current").strip()
    bare.git("checkout", "-q", "-f", "main")
    bare.write("mine.txt", "mine\n")
    before = bare.git("status", "--porcelain")
    ran = bare.rooda("cancel")
    assert ran.code == 0 and f"Cancelled flow '{row['name']}'" in ran.out and branch in ran.out, ran.both
    assert "status: cancelled" in bare.git("show", f"{branch}:.ai-loop/runs/{row['name']}/run-state.md")
    assert bare.git("status", "--porcelain") == before and "?? mine.txt\n" in before
    assert rows(bare) == [] and "cancelled" in bare.rooda("flow", "list").out
    refused = bare.rooda("flow", "resume", row["name"])
    assert refused.code == 2 and "cancelled" in refused.err


@pytest.mark.parametrize("kind", GROUPS)
def test_L_02_a_task_starts_without_run(ws: Workspace, kind: str) -> None:
    """A word with spaces is a task, also after an option, and the loop has its guardian."""
    words = prepare(ws, kind, "true")
    rest = words[2:] if kind == "goal" else ["A page of text", *words[3:]]
    ran = ws.rooda(kind, *rest, *(("-n", "4") if kind == "flow" else ()), timeout=60)
    assert ran.code == 0, ran.both
    assert "run.started" in [each["event"] for each in ws.events()]


def test_L_02_flow_takes_a_limit(bare: Workspace) -> None:
    """-n replaces max_iterations, a resume keeps it, and a higher one continues after the limit."""
    loops = Loops(bare)
    flow = loops.flow_ready("S3")
    assert flow.ws.rooda("flow", "run", "do it", "-n", "2").code == 4
    assert "max-iterations: 2" in state_of(bare) and flow.ws.rooda("flow", "resume", name_of(bare)).code == 2
    ran = bare.rooda("resume", name_of(bare), "-n", "3")
    assert ran.code == 4 and "max-iterations: 3" in state_of(bare), ran.both


def name_of(ws: Workspace) -> str:
    (name,) = os.listdir(ws.file(".ai-loop/runs"))
    return name


def state_of(ws: Workspace) -> str:
    return ws.read(f".ai-loop/runs/{name_of(ws)}/run-state.md")


@pytest.mark.parametrize("kind", ["reflex", "flow"])
def test_L_02_R_064_iterations_of_a_running_loop(ws: Workspace, kind: str) -> None:
    """`rooda set` reaches it, its files have the new limit, and a resume takes -n."""
    begin(ws, kind)
    (row,) = rows(ws)
    before = row["max_iterations"]
    assert f"{before + 2} iterations" in ws.rooda("set", "-n", "+2").out
    assert ws.rooda("set", "-n", "0").code == 2
    let_go(ws)
    until(lambda: not ws.leftovers(), 20, "the end of the loop")
    if kind == "flow":
        assert f"max-iterations: {before + 2}" in state_of(ws)
    else:
        assert ws.json(".ai-factory/evolution/page/run.json")["max_iterations"] == before + 2


def test_L_02_R_064_resume_raises_the_limit_of_a_reflex_loop(ws: Workspace) -> None:
    """`rooda resume ALIAS -n N`, and --fresh and --yes at a start."""
    begin(ws, "reflex")
    assert ws.rooda("stop").code == 0
    os.remove(f"{ws.fake}/began")
    running = ws.start("resume", "page", "-n", "9")
    began(ws)
    assert ws.json(".ai-factory/evolution/page/run.json")["max_iterations"] == 9
    running.signal(15)
    assert running.finish() == 143
    let_go(ws)
    words = ("A second page", "--rules", "rules.json", "--yes", "--alias", "second")
    assert ws.rooda("reflex", *words).code == 3
    assert ws.rooda("reflex", *words, "--fresh").code == 0
    assert ws.json(".ai-factory/evolution/page/run.json")["status"] == "stopped"


def test_L_02_totals_of_a_goal(ws: Workspace) -> None:
    """-n and --max-cost are totals at a resume, as in every kind; a limit that is used up is refused."""
    words = prepare(ws, "goal", "true")
    assert ws.rooda(*words, "-n", "1", "--max-cost", "30").code == 4 and ws.json(".loop/run.json")["budget"] == 30
    refused = ws.rooda("goal", "resume", "-n", "1")
    assert refused.code == 2 and "too low" in refused.err
    ran = ws.rooda("resume", "goal", "-n", "2", "--max-cost", "40")
    assert ran.code == 0 and ws.json(".loop/run.json")["max_iterations"] == 2, ran.both
    assert ws.json(".loop/run.json")["budget"] == 40


def test_L_06_logs_of_a_goal_on_a_terminal(ws: Workspace) -> None:
    """The block for programs is shown on a pipe and with --verbose; a terminal shows the unmet criteria."""
    assert ws.rooda(*prepare(ws, "goal", "true")).code == 0
    assert "---LOOP_STATUS---" in ws.rooda("logs", "goal").out
    seen = [_screen(ws.terminal("logs", "goal", *more)) for more in ((), ("-v",))]
    assert ["LOOP_STATUS" in each for each in seen] == ["loop-complete" in each for each in seen] == [False, True]
    assert "Unmet criteria: none" in seen[0]


def _screen(terminal: Terminal) -> str:
    assert terminal.finish() == 0
    return terminal.out
