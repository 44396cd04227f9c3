"""`rooda status`: the table of all runs, watched or not, here and everywhere."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tests.kit.background import HOLD, began, begin, detached, kill_all, let_go, prepare, rows
from tests.kit.endings import never_holds
from tests.kit.flow import Flow
from tests.kit.loops import Loops
from tests.kit.workspace import Terminal, Workspace, until


def test_the_row_of_a_run(ws: Workspace) -> None:
    """Name, kind, iteration, phase, failures, pid; its calls and times are those of the present run alone."""
    ws.rooda("build", "-n", "2")
    ws.exits(0, 0, 1)
    detached(ws, "4", 4)
    (row,) = rows(ws, "--all")
    assert (row["loop"], row["name"], row["running"], row["phase"]) == ("ooda", "build", True, "agent")
    assert (row["iteration"], row["display"], row["max_iterations"], row["failures"]) == (1, 2, 4, "1/3")
    assert row["workspace"] == os.path.realpath(ws.path) and os.path.isdir(f"/proc/{row['pid']}")
    assert (row["calls"], row["tokens"], row["cost"], row["waits_for"]) == (2, 0, None, "")
    line = ws.rooda("status", "--all").lines[2].split()
    assert (
        line[:4] == ["build", "procedure", "2/4", "running"]
        and line[9:] == ["agent"]
        and line[5:9] == ["1/3", "0", "unknown", str(row["pid"])]
    )
    let_go(ws)
    until(lambda: ws.state() is None, what="the end")
    assert ws.rooda("status", "--all").out == "Nothing is running here, and nothing can be resumed.\n"


def test_all_sessions_of_a_run_count(ws: Workspace) -> None:
    """What was used before a resume belongs to the run, what an earlier run used does not; the time likewise."""
    spent = '{"type":"result","subtype":"success","is_error":false,"result":"x","total_cost_usd":0.5,' + (
        '"usage":{"input_tokens":10,"output_tokens":5}}\n'
    )
    ws.config('[agents.mine]\ncommand = "sh agent.sh"\noutput = "claude"\n')
    ws.write("spent", spent)
    ws.write("agent.sh", "cat spent\n")
    assert ws.rooda("build", "--agent", "mine", "-n", "1").code == 0
    ws.write("agent.sh", "cat spent\n[ ! -e kill ] || { rm kill; kill -TERM $PPID; sleep 30; }\n")
    ws.write("kill", "")
    assert ws.rooda("build", "--agent", "mine", "-n", "3").code == 143
    (idle,) = rows(ws)
    assert (idle["calls"], idle["tokens"], idle["cost"], idle["running"]) == (1, 15, 0.5, False)
    ws.write("agent.sh", "cat spent\n[ -e once ] || { touch once; exit; }\ntouch began; sleep 60\n")
    running = ws.start("resume", "build", "--agent", "mine")
    until(lambda: ws.exists("began"), what="the third call")
    (row,) = rows(ws)
    assert (row["calls"], row["tokens"], row["cost"], row["calls_of_unknown_cost"]) == (3, 30, 1.0, 1)
    assert row["elapsed"] >= idle["elapsed"]
    running.signal(signal.SIGTERM)
    assert running.finish() == 143


def test_every_workspace(ws: Workspace) -> None:
    """--all lists loops of other workspaces; a workspace that vanished is forgotten; none is listed twice."""
    other = os.path.join(ws.root, "other")
    os.makedirs(other)
    assert ws.rooda("build", "-n", "2", "--ai-cmd", "sh -c 'kill -TERM $PPID; sleep 30 & wait'", cwd=other).code == 143
    detached(ws, "1", 1)
    found = {row["workspace"]: row["state"] for row in rows(ws, "--all")}
    assert found == {os.path.realpath(ws.path): "running", os.path.realpath(other): "interrupted"}
    assert [row["name"] for row in rows(ws)] == ["build"]
    shutil.rmtree(other)
    assert [row["workspace"] for row in rows(ws, "--all")] == [os.path.realpath(ws.path)]
    assert len(os.listdir(f"{ws.home}/.state/rooda/workspaces")) == 1
    assert ws.rooda("stop").code == 0


def test_an_unwritable_list_does_not_stop_a_loop(ws: Workspace) -> None:
    """With a file in place of its folder the loop runs as usual, and status shows this workspace."""
    ws.write("state", "a file")
    env = {"ROODA_STATE_HOME": ws.file("state")}
    ran = ws.rooda("build", "-n", "1", env=env)
    assert ran.code == 0 and "No lock outside of the workspace" in ran.err and "Traceback" not in ran.err
    assert ws.rooda("status", "--all", env=env).out == "Nothing is running here, and nothing can be resumed.\n"


def test_waiting_for_a_usage_limit_is_counted_down(ws: Workspace) -> None:
    """Whose limit, and how long still."""
    ws.config('[agents.mine]\ncommand = "sh agent.sh"\noutput = "claude"\n')
    ws.write("agent.sh", "echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,"
             "\"result\":\"Claude AI usage limit reached|'$(($(date +%s) + 3000))'\"}'; exit 1\n")  # fmt: skip
    running = ws.start("build", "--agent", "mine", "-n", "1")
    until(lambda: rows(ws) and rows(ws)[0]["phase"] == "waiting", what="the wait")
    (row,) = rows(ws, "--all")
    assert row["waits_for"].startswith("usage limit of mine") and 2900 < row["seconds_left"] < 3100
    assert re.search(r"usage limit of mine, (49|50)m\d+s left", ws.rooda("status", "--all").out)
    assert "waits for usage limit of mine" in ws.rooda("status").out
    running.signal(signal.SIGTERM)
    running.finish()


def test_a_paused_and_a_cut_off_run(ws: Workspace) -> None:
    """A paused run shows how to continue it, a killed one that it was interrupted."""
    detached(ws)
    assert ws.rooda("pause").code == 0
    until(lambda: rows(ws)[0]["suspended"], what="the pause")
    assert " paused " in ws.rooda("status", "--all").out and "rooda continue" in ws.rooda("status", "--all").out
    kill_all(ws)
    (row,) = rows(ws, "--all")
    assert (row["state"], row["waits_for"], row["pid"]) == ("interrupted", "rooda resume build", None)


def test_watching_on_a_pipe(ws: Workspace) -> None:
    """A snapshot after the other; as JSON each is one line with one array. An end by a signal has its code."""
    detached(ws)
    plain, programs = ws.start("status", "--watch"), ws.start("status", "--watch", "--json")
    until(lambda: plain.out.count("NAME ") > 1 and len(programs.lines) > 1, what="two looks")
    assert plain.lines[:3:2] == [plain.lines[3], ""] and "build" in plain.lines[1]
    assert [row["name"] for row in json.loads(programs.lines[0])] == ["build"]
    assert "\x1b" not in plain.out
    plain.signal(signal.SIGINT)
    programs.signal(signal.SIGTERM)
    assert (plain.finish(), programs.finish()) == (0, 143)
    assert ws.rooda("stop").code == 0


def test_a_watch_looks_once_a_second(ws: Workspace) -> None:
    """A child of its own that ends, as git does at a look, brings no look forward; Ctrl+Z on a pipe is obeyed."""
    detached(ws)
    watch = ws.start("status", "--watch", "--json")
    for looks in (1, 2):
        until(lambda: len(watch.lines) >= looks, what="a look")  # noqa: B023
        watch.signal(signal.SIGCHLD)
    ages = [json.loads(line)[0]["elapsed"] for line in watch.lines]
    assert all(later - earlier > 0.9 for earlier, later in pairwise(ages)), ages
    watch.signal(signal.SIGTSTP)
    until(lambda: _stands_still(watch.pid), what="the sleep")
    watch.signal(signal.SIGCONT)
    watch.signal(signal.SIGINT)
    assert watch.finish() == 0
    assert ws.rooda("stop").code == 0


def _stands_still(pid: int) -> bool:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


def test_a_flow_s_row_is_that_of_its_top_node(ws: Workspace) -> None:
    """Iteration and limit in each form, while an inner node counts for itself, and after a resume in its middle."""
    flow = Flow(ws).scenario("S2")
    flow.say("actuator-impl", f"!sh {HOLD}\n!edit src.txt one\n## What Was Done\n\none\n")
    assert ws.rooda("flow", "run", "do it", "--detach").code == 0
    began(ws)
    for _ in range(2):
        found = [row for words in ((), ("--all",), (flow.run_id,)) for row in rows(ws, *words)]
        told = {(row["iteration"], row["display"], row["max_iterations"]) for row in found}
        assert len(found) == 3 and told == {(1, 1, 3)}
        assert ws.rooda("status", "--all").lines[2].split()[:3] == [flow.run_id, "flow", "1/3"]
        assert ws.rooda("stop", flow.run_id).code == 0
        os.remove(f"{ws.fake}/began")
        assert ws.rooda("resume", flow.run_id, "--detach").code == 0
        began(ws)
    let_go(ws)
    until(lambda: not rows(ws), what="the end")
    for verb in ("stop", "pause", "continue", "attach"):
        assert ws.rooda(verb, flow.run_id).out == f"Flow '{flow.run_id}' is not running.\n"


def _pictures(terminal: Terminal) -> list[str]:
    return terminal.raw.decode().split("\x1b[H")[1:]


def test_watching_on_a_terminal(ws: Workspace) -> None:
    """Each picture replaces the one before, fits the window, and Ctrl+C gives cursor and screen back."""
    for place in range(9):
        ws.put_state(f"procedure-with-a-long-name-{place}")
    detached(ws)
    terminal = ws.terminal("status", "--watch", rows=7, columns=50)
    until(lambda: len(_pictures(terminal)) > 1, what="two pictures")
    assert terminal.raw.startswith(b"\x1b[?1049h\x1b[?25l")
    lines = re.sub(r"\x1b\[[KJ]", "", _pictures(terminal)[0]).replace("\r", "").split("\n")
    assert len(lines) == 7 and all(len(line) <= 50 for line in lines)
    assert lines[0].startswith("NAME") and lines[1].startswith("build ") and lines[-1] == "… 5 more lines"
    assert "\x1b[2J" not in terminal.out and not any("\n" in line for line in lines)
    terminal.resize(30, 160)
    until(lambda: "procedure-with-a-long-name-8" in _pictures(terminal)[-1], what="the larger picture")
    let_go(ws)
    until(lambda: not ws.state(), what="the end of the run")
    until(lambda: "build" not in _pictures(terminal)[-1], what="a look after the end")
    terminal.type("\x03")
    assert terminal.finish() == 0
    rest = terminal.raw.partition(b"\x1b[?25h\x1b[?1049l")[2].decode()
    assert rest.startswith("NAME") and "\x1b" not in rest


def test_a_watch_that_is_ended_gives_the_screen_back(ws: Workspace) -> None:
    """SIGTERM too."""
    terminal = ws.terminal("status", "--watch")
    until(lambda: _pictures(terminal), what="a picture")
    terminal.signal(signal.SIGTERM)
    assert terminal.finish() == 143 and b"\x1b[?25h\x1b[?1049l" in terminal.raw


def test_watching_one_in_detail(ws: Workspace) -> None:
    """With a name it is the detailed state that is painted again."""
    detached(ws)
    terminal = ws.terminal("status", "build", "--watch")
    until(lambda: "agent for" in terminal.out and "failures in a row" in terminal.out, what="the details")
    terminal.type("\x03")
    assert terminal.finish() == 0
    assert ws.rooda("stop").code == 0


def test_many_on_a_terminal_are_a_table(ws: Workspace) -> None:
    """Few loops are shown in detail, many as a table; on a pipe always in detail."""
    for place in range(4):
        ws.put_state(f"p{place}")
    terminal = ws.terminal("status")
    assert terminal.finish() == 0 and "NAME" in terminal.out and "To see details: rooda status NAME" in terminal.out
    assert "p3: interrupted, 3/10 iterations completed" in ws.rooda("status").out


def test_a_look_reads_only_what_is_new(ws: Workspace) -> None:
    """Over a long journal the second look reads hardly anything: what it counts is right all the same."""
    ws.damages_events = True
    detached(ws, "0")
    run = rows(ws)[0]["run"]
    path = ws.file(f".rooda/runs/{run}/events.jsonl")
    started = next(line for line in ws.read(path).splitlines(True) if '"agent.started"' in line)
    ended = started.replace("agent.started", "agent.ended").replace('"call"', '"seconds": 1, "cost": 0.25, "call"')
    with open(path, "a") as journal:
        for number in range(2000):
            journal.write("".join(line.replace("iteration.out", f"{number}.out") for line in (started, ended)))
    watch = ws.start("status", "--watch", "--json")
    until(lambda: watch.lines, what="the first look")
    assert json.loads(watch.lines[0])[0]["cost"] == 500.0
    before = _read(watch.pid)
    until(lambda: len(watch.lines) > 1, what="the second look")
    assert _read(watch.pid) - before < 200_000 < os.path.getsize(path)
    watch.signal(signal.SIGINT)
    watch.finish()
    assert ws.rooda("stop").code == 0


def _read(pid: int) -> int:
    with open(f"/proc/{pid}/io") as file:
        return int(file.readline().split()[1])


def test_an_unknown_name_gets_a_suggestion(ws: Workspace) -> None:
    """A sentence with the nearest name, exit 2; a procedure that has not run yet is known."""
    ws.procedure("review")
    for verb in ("status", "logs", "events", "why"):
        ran = ws.rooda(verb, "reveiw")
        assert ran.code == 2 and "No runs of 'reveiw' recorded here" in ran.err and "'review'" in ran.err, verb
        assert ws.rooda(verb, "review").code == 0
    assert ws.rooda("status", "--json", "reveiw").code == 2
    assert ws.rooda("status", "build", "--all").code == 2


def test_usage_says_how_each_cost_is_known(ws: Workspace) -> None:
    """Reported, computed or unknown, for each procedure in the table; a mistyped name is an error, exit 2."""
    lines = [
        '[agents.told]\ncommand = "cat told"\noutput = "claude"\n[agents.priced]\ncommand = "cat priced"\n',
        'output = "claude"\nmodel = "m-1"\n[prices."m-1"]\ninput = 1000000\noutput = 0\n',
    ]
    ws.config(ws.read("rooda.toml") + "".join(lines))
    said = '{"type":"result","subtype":"success","is_error":false,"result":"x"%s,"usage":{"input_tokens":2}}\n'
    ws.write("told", said % ',"total_cost_usd":0.5')
    ws.write("priced", said % "")
    for agent in ("told", "priced"):
        assert ws.rooda("build", "-n", "1", "--agent", agent).code == 0
    assert ws.rooda("build", "-n", "1").code == 0
    table = ws.rooda("usage", "--by", "procedure")
    assert table.lines[0].split() == ["procedure", "calls", "time", "input", "cached", "output", "cost", "known", "by"]
    assert table.lines[1].split()[:2] == ["build", "3"]
    assert table.lines[1].endswith("$2.50  computed $2.00, reported $0.50, 1 call unknown")
    assert ws.rooda("usage", "biuld").code == 2 and ws.rooda("usage", "--by", "run").lines[-1].startswith("total")


def last_rule(ws: Workspace) -> str:
    """Behind the words of the run's end."""
    found = json.loads(ws.rooda("why", "--json").out)[-1]["rule"]
    return str(found).rpartition("; ")[2]


@pytest.mark.parametrize("kind", ["ooda", "reflex", "flow", "goal"])
def test_a_run_paused_at_a_limit_is_not_cut_off(ws: Workspace, kind: str) -> None:
    """Table and detail say that it paused and at which limit, and `resume --all` leaves it alone."""
    words = prepare(ws, kind, "sleep 0.4")
    assert ws.rooda(*words, "--max-duration", "0.3").code == 4
    (row,) = rows(ws, "--all")
    assert row["state"] == "paused" and row["reason"].startswith("Time limit reached: "), row
    assert f"{row['reason']}: rooda " in row["waits_for"] and row["reason"].endswith("s of 0.3s")
    detail = ws.rooda("status").out
    assert f"paused: {row['reason']}\n" in detail and ": running" not in detail
    assert ws.rooda("resume", "--all").out.startswith("No run was cut off")
    assert last_rule(ws).endswith("over all sessions of a run, and tested before each call (exit 4)")


@pytest.mark.parametrize("kind", ["ooda", "reflex", "flow", "goal"])
def test_E_21_a_run_paused_at_a_limit_proposes_a_higher_one(ws: Workspace, kind: str) -> None:
    """The status has the command of the summary: for people, for programs, in the table, and in the kind's own."""
    words = prepare(ws, kind, "sleep 0.4")
    ended = ws.rooda(*words, "--max-duration", "0.3")
    command = next(line for line in ended.both.splitlines() if "  next  " in line).partition("next")[2].strip()
    assert ended.code == 4 and command.endswith(" --max-duration 1s") and "," not in command
    (row,) = rows(ws, "--all")
    assert row["next"] == command and row["waits_for"] == f"{row['reason']}: {command}"
    own = () if kind == "ooda" else (kind,)
    for look in (ws.rooda("status"), ws.rooda(*own, "status")):
        assert f"  resume with: {command}\n" in look.out
    assert ws.rooda(*command.split()[1:-1], "9s", *(("--yes",) if kind == "goal" else ())).code == 0


@pytest.mark.parametrize("kind", ["reflex", "flow"])
def test_E_21_a_run_at_its_iteration_limit_proposes_more(bare: Workspace, kind: str) -> None:
    """Another resume would end at once: the status names the -n of the summary."""
    ran = never_holds(bare) if kind == "reflex" else Loops(bare).flow("do it", scenario="S3")
    assert ran.code == 4, ran.both
    said = bare.rooda(kind, "status", *(("page",) if kind == "reflex" else ())).out
    (command,) = (line.partition(": ")[2] for line in said.splitlines() if "resume with" in line)
    assert re.fullmatch(rf"rooda {kind} resume \S+ -n \d+", command) and f"  next        {command}" in ran.err


@pytest.mark.parametrize("kind", ["ooda", "reflex", "flow"])
def test_a_note_is_for_people_only(ws: Workspace, kind: str) -> None:
    """A log with the same end in other words gives the same status and the same rule; a goal has a file for it.

    One without the cause, of an earlier rooda, shows its note, and is not resumed by itself.
    """
    words = prepare(ws, kind, "sleep 0.4")
    assert ws.rooda(*words, "--max-duration", "0.3").code == 4
    before, rule = rows(ws, "--all"), last_rule(ws)
    (log,) = Path(ws.path).glob(".rooda/runs/*/events.jsonl")
    *lines, end = log.read_text().splitlines(keepends=True)
    changed = json.loads(end) | {"note": "Usage limit of nobody. Time is up"}
    log.write_text("".join(lines) + json.dumps(changed) + "\n")
    assert rows(ws, "--all") == before and last_rule(ws) == rule
    del changed["cause"]
    log.write_text("".join(lines) + json.dumps(changed) + "\n")
    (row,) = rows(ws, "--all")
    assert (row["state"], row["reason"]) == ("paused", "Usage limit of nobody. Time is up")
    assert ws.rooda("resume", "--all").out.startswith("No run was cut off")


@pytest.mark.parametrize("kind", ["reflex", "flow"])
def test_a_run_stopped_by_the_user_is_not_cut_off(ws: Workspace, kind: str) -> None:
    """Its files say that it continues; the table and the detail say that it was stopped."""
    begin(ws, kind)
    assert ws.rooda("stop").code == 0
    (row,) = rows(ws, "--all")
    assert (row["state"], row["running"]) == ("stopped", False)
    assert ws.rooda("status").lines[0] == f"{row['name']}: stopped"


def test_a_cost_that_is_known_in_part(ws: Workspace) -> None:
    """The detail has the `+` of the table: the cost of some calls is unknown."""
    ws.config('[agents.mine]\ncommand = "sh agent.sh"\noutput = "claude"\n')
    told = '{"type":"result","is_error":false,"result":"x","total_cost_usd":0.5,"usage":{"input_tokens":1}}'
    ws.write("agent.sh", f"[ -e once ] && {{ touch began; sleep 60; }}\ntouch once\necho '{told}'\n")
    running = ws.start("build", "--agent", "mine", "-n", "2")
    until(lambda: ws.exists("began"), what="the second call")
    assert "2 calls, 1 tokens, $0.50+" in ws.rooda("status").out
    running.signal(signal.SIGTERM)
    running.finish()


def test_a_folder_with_a_line_end_in_its_name(ws: Workspace) -> None:
    """Snapshots are taken there and undone, and status --all shows it in one line."""
    odd = os.path.join(ws.path, "odd\nname")
    os.makedirs(odd)
    ws.git("init", "-q")
    ws.git("commit", "-q", "--allow-empty", "-m", "one")
    agent = ("--ai-cmd", "sh -c 'echo a >a; [ $ROODA_ITERATION = 1 ] || kill -TERM $PPID; sleep 1'")
    for folder in (odd, ws.path):
        assert ws.rooda("build", "-C", ".", "-n", "2", *agent, "--safety", "snapshot", cwd=folder).code == 143
    assert r"odd\nname" in ws.rooda("status", "--all").out and len(rows(ws, "--all")) == 2
    assert "1 file changed" in ws.rooda("snapshots", cwd=odd).out
    assert ws.rooda("undo", "1", "--yes", cwd=odd).code == 0 and not os.path.exists(f"{odd}/a")
    assert ws.rooda("goal", "status", cwd=odd).code == 0


def test_one_bad_workspace_hides_no_other(ws: Workspace) -> None:
    """Its row says what is wrong there."""
    other = os.path.join(ws.root, "other")
    os.makedirs(other)
    subprocess.run(["git", "init", "-q", other], env=ws.env, check=True)
    stopping = ("build", "-n", "2", "--ai-cmd", "sh -c 'kill -TERM $PPID; sleep 30 & wait'")
    assert ws.rooda(*stopping).code == 143 and ws.rooda(*stopping, cwd=other).code == 143
    with open(f"{other}/.git/packed-refs", "w") as file:
        file.write("nonsense\n")
    found = {row["workspace"]: row for row in rows(ws, "--all")}
    assert found[os.path.realpath(ws.path)]["state"] == "interrupted"
    assert found[other]["state"] == "unreadable" and "packed-refs" in found[other]["reason"]
    assert "unreadable" in ws.rooda("status", "--all").out


def test_no_log_is_read_twice(ws: Workspace) -> None:
    """Two sessions of one run and one of another: each log is opened once, also if a loop is named."""
    killed = "kill -TERM $PPID; sleep 30 & wait"
    assert ws.rooda("build", "-n", "3", "--ai-cmd", f"sh -c {shlex.quote(killed)}").code == 143
    assert ws.rooda("resume", "build").code == 143
    ws.procedure("other")
    assert ws.rooda("other", "-n", "3", "--ai-cmd", f"sh -c {shlex.quote(killed)}").code == 143
    hook = (
        "import sys\n"
        "sys.addaudithook(lambda event, given: event == 'open' and str(given[0]).endswith('events.jsonl')"
        " and print('opened', given[0], file=sys.stderr))\n"
    )
    ws.write("hook/sitecustomize.py", hook)
    for words, logs in ((["status"], 3), (["status", "--json"], 3), (["status", "build"], 2), (["status", "--all"], 3)):
        ran = ws.rooda(*words, env={"PYTHONPATH": ws.file("hook")})
        opened = [line for line in ran.err.splitlines() if line.startswith("opened")]
        assert ran.code == 0 and len(opened) == len(set(opened)) == logs, ran.both


TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("v", "tokens", "calls", "calls_of_unknown_cost"), int),
    **dict.fromkeys(("iteration", "max_iterations", "pid", "display"), (int, type(None))),
    **dict.fromkeys(("loop", "name", "state", "workspace", "run", "phase", "since"), str),
    **dict.fromkeys(("started_at", "last", "next"), (str, type(None))),
    **dict.fromkeys(("failures", "waits_for", "reason"), str),
    **dict.fromkeys(("running", "suspended"), bool),
    **dict.fromkeys(("cost", "seconds_left"), (float, int, type(None))),
    **{"elapsed": (float, int), "details": dict},
}


@pytest.mark.parametrize("kind", ["ooda", "reflex", "flow", "goal"])
def test_L_05_one_shape_for_all_kinds(ws: Workspace, kind: str) -> None:
    """The same keys with the same types: running and stopped, here, everywhere, and in the kind's own status."""
    begin(ws, kind)
    own = () if kind == "ooda" else (kind,)
    for running in (True, False):
        looks = [ws.rooda(*words) for words in (("status", "--json"), ("status", "--all", "--json"))]
        looks.append(ws.rooda(*own, "status", "--json"))
        for (row,) in (json.loads(look.out) for look in looks):
            assert {key: isinstance(row[key], TYPES[key]) for key in row} == dict.fromkeys(TYPES, True), row
            assert (row["v"], row["loop"], row["running"]) == (2, kind, running)
            assert row["started_at"][:19] <= row["last"][:19] and row["started_at"].startswith("20")
            command = {"goal": "rooda goal continue"}.get(kind, f"rooda resume {row['name']}")
            assert row["next"] == (None if running else command)
        (row,) = json.loads(looks[0].out)
        assert "file_status" in row["details"] and not {*row["details"]} & {*TYPES} - {"phase"}
        if running:
            assert ws.rooda("stop").code == 0
    found = [json.loads(ws.rooda(*words, "--json").out) for words in (("runs",), ("usage",), ("forecast", row["name"]))]
    assert [found[0][0]["v"], found[1]["v"], found[2]["v"]] == [2, 2, 2]
