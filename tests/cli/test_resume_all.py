"""`rooda resume --all`: what was cut off continues, once, as it was started; what the user stopped does not."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from tests.kit.background import HOLD, KINDS, began, begin, calls, detached, kill_all, let_go, outcome, prepare, rows
from tests.kit.workspace import Terminal, Workspace, until

NONE = "No run was cut off; there is nothing to resume.\n"


def session_of(pid: int) -> set[int]:
    """Every process of its session."""
    shown = subprocess.run(["ps", "-e", "-o", "pid=,sess="], capture_output=True, text=True).stdout.splitlines()
    return {int(row.split()[0]) for row in shown if row.split()[1] == str(pid)}


@pytest.mark.parametrize("kind", KINDS)
def test_terminal_and_session_killed(ws: Workspace, kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The loop survives its terminal; killed with everything else it is resumed, and ends as an undisturbed one does.

    Nothing is lost, and of all calls only the one in progress is made twice.
    """
    calm = Workspace(str(tmp_path_factory.mktemp("calm")))
    calm.procedure()
    assert calm.rooda(*prepare(calm, kind, "true")).code == 0
    words = " ".join(f"'{word}'" for word in ws.command(*prepare(ws, kind), "--detach"))
    shell = Terminal(["/bin/sh"], ws.env | {"TERM": "xterm"}, ws.path, 24, 200)
    ws.running.append(shell)
    shell.type(f"{words}\n")
    began(ws)
    until(lambda: "Started in the background" in shell.out, what="the starter")
    for number in (signal.SIGHUP, signal.SIGKILL):
        for pid in session_of(shell.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
    shell.finish()
    (row,) = rows(ws)
    assert row["running"] and ws.rooda("resume", "--all").out == NONE
    kill_all(ws)
    before = calls(ws, kind)
    let_go(ws)
    ran = ws.rooda("resume", "--all")
    assert (ran.code, ran.out) == (0, f"Resumed {row['name']} in {os.path.realpath(ws.path)}\n"), ran.both
    until(lambda: not ws.leftovers(), 20, "the end of the loop")
    assert outcome(ws, kind) == outcome(calm, kind)
    assert [*before[:-1], *calls(ws, kind)[len(before) :]] == calls(calm, kind)
    assert calls(ws, kind)[len(before)] == before[-1]
    assert ws.rooda("resume", "--all").out == NONE
    calm.close()


def order(ws: Workspace, run: str) -> None:
    """What `rooda stop` writes before it sends its signal."""
    code = "import sys; from rooda.run.folder import leave_order; sys.exit(not leave_order(sys.argv[1], 'stop'))"
    path = ws.file(f".rooda/runs/{run}")
    subprocess.run([sys.executable, "-c", code, path], env=ws.env, check=True)


LONG = [pytest.param(kind, marks=pytest.mark.long) for kind in ("reflex", "goal")]


@pytest.mark.parametrize("kind", ["ooda", "flow", *LONG])
def test_shut_down_and_stopped(ws: Workspace, kind: str) -> None:
    """SIGTERM, as at a shutdown, cuts a loop off. After `rooda stop` it waits for the user."""
    begin(ws, kind)
    (row,) = rows(ws)
    os.kill(row["pid"], signal.SIGTERM)
    until(lambda: not ws.leftovers(), what="the end")
    ran = ws.rooda("resume", "--all")
    assert (ran.code, ran.out) == (0, f"Resumed {row['name']} in {os.path.realpath(ws.path)}\n"), ran.both
    assert ws.rooda("resume", "--all").out == NONE
    (again,) = rows(ws)
    assert again["running"] and again["run"] != row["run"]
    assert ws.rooda("stop", row["name"]).code == 0
    assert (ws.rooda("resume", "--all").code, ws.rooda("resume", "--all").out) == (0, NONE)


@pytest.mark.parametrize("how", ["ctrl-c", "aborted", "limit", "paused", "stop and kill"])
def test_runs_that_need_the_user_are_not_resumed(ws: Workspace, how: str) -> None:
    """Ctrl+C, an abort, a limit, a pause, and a stop that a KILL overtook: none of these is an accident."""
    if how == "ctrl-c":
        ws.signal_at(1)
        assert ws.rooda("build").code == 130
    elif how == "aborted":
        ws.exits(1, 1, 1)
        assert ws.rooda("build").code == 1
    elif how == "limit":
        assert ws.rooda("build", "--max-duration", "0.01").code == 4
    else:
        detached(ws)
        if how == "paused":
            assert ws.rooda("pause").code == 0
        else:
            order(ws, rows(ws)[0]["run"])
        kill_all(ws)
    assert rows(ws) and ws.rooda("resume", "--all").out == NONE


def test_continued_and_killed(ws: Workspace) -> None:
    """A pause that is over is forgotten."""
    detached(ws)
    assert (ws.rooda("pause").code, ws.rooda("continue").code) == (0, 0)
    kill_all(ws)
    assert ws.rooda("resume", "--all").out.startswith("Resumed build")
    assert ws.rooda("stop").code == 0


def test_a_run_is_resumed_with_its_options(ws: Workspace) -> None:
    """With the agent, the context and the settings file that were typed; also after a second accident."""
    ws.write("mine.toml", '[loop]\nai_cmd = "false"\n')
    ws.write("agent.sh", f"cat > prompt; {HOLD}\n")
    words = ("--ai-cmd", "sh agent.sh", "--context", "--agent is a word", "--config", "mine.toml", "-n", "2")
    assert ws.rooda("build", *words, "--detach").code == 0
    for _ in range(2):
        began(ws)
        kill_all(ws)
        os.remove(f"{ws.fake}/began")
        os.remove(ws.file("prompt"))
        ran = ws.rooda("resume", "--all", cwd=ws.home)
        assert (ran.code, ran.err) == (0, ""), ran.both
    began(ws)
    assert "--agent is a word" in ws.read("prompt")
    assert rows(ws)[0]["max_iterations"] == 2
    assert ws.rooda("stop").code == 0


def test_a_project_with_modules_of_known_names(ws: Workspace) -> None:
    """What continues is rooda, whatever Python files lie in the workspace."""
    detached(ws)
    kill_all(ws)
    for name in ("signal", "click", "secrets"):
        ws.write(f"{name}.py", f"raise SystemExit('the project: {name}')\n")
    ran = ws.rooda("resume", "--all", cwd=ws.home)
    assert (ran.code, ran.err) == (0, "") and ran.out.startswith("Resumed build"), ran.both
    assert ws.rooda("stop", "-C", ws.path, cwd=ws.home).code == 0


def test_a_run_that_cannot_be_resumed(ws: Workspace) -> None:
    """It has a line with the reason, exit 1, and the others continue."""
    ws.procedure("review")
    ws.write("agent.sh", "true\n", 0o755)
    detached(ws)
    assert ws.rooda("review", "--ai-cmd", f"{ws.file('gone.sh')}", "-n", "1").code == 2
    ws.write("gone.sh", f"#!/bin/sh\n{HOLD}\n", 0o755)
    assert ws.rooda("review", "--ai-cmd", ws.file("gone.sh"), "-n", "1", "--detach").code == 0
    until(lambda: len(rows(ws)) == 2 and all(row["phase"] == "agent" for row in rows(ws)), what="both")
    kill_all(ws)
    os.remove(ws.file("gone.sh"))
    ran = ws.rooda("resume", "--all")
    assert ran.code == 1 and "Resumed build in" in ran.out
    assert f"Not resumed: review in {os.path.realpath(ws.path)}: Error: AI command binary not found" in ran.err
    assert [row["name"] for row in rows(ws) if row["running"]] == ["build"]
    assert ws.rooda("stop").code == 0


def test_an_inner_run_is_left_to_its_outer_loop(ws: Workspace) -> None:
    """A run that an agent of a loop started is not resumed separately from that loop."""
    ws.procedure("inner")
    inner = " ".join(ws.command("inner", "-n", "1"))
    ws.side(1, inner)
    ws.side(2, HOLD)
    assert ws.rooda("build", "-n", "1", "--detach").code == 0
    began(ws)
    kill_all(ws)
    assert {row["name"]: row["state"] for row in rows(ws)} == {"build": "interrupted", "inner": "interrupted"}
    ws.side(3, "true")
    assert ws.rooda("resume", "--all").lines == [f"Resumed build in {os.path.realpath(ws.path)}"]
    until(lambda: not ws.leftovers(), what="the end")


@pytest.mark.parametrize("words", [("build", "--all"), ("--all", "--agent", "demo"), ("--wait",)], ids=" ".join)
def test_options_that_all_excludes(ws: Workspace, words: tuple[str, ...]) -> None:
    """A name or an option of a run together with --all is a usage error, exit 2."""
    ran = ws.rooda("resume", *words)
    assert ran.code == 2 and "--all" in ran.err
