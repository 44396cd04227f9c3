"""The live status line of a terminal: what it shows, and that it leaves no trace."""

import re

import pytest

from rooda.base.text import width
from tests.kit.workspace import Workspace, masked, until

ERASED = b"\r\x1b[K"
STATUS = re.compile(rb"Iteration \d+(?:/\d+)? \xc2\xb7 [0-9hms]+")


def hold(ws: Workspace, *numbers: int) -> None:
    """These calls wait until the test calls `release`."""
    for n in numbers:
        ws.side(n, f'until [ -e "$FAKE/go-{n}" ]; do sleep 0.02; done')


def release(ws: Workspace, n: int) -> None:
    with open(f"{ws.fake}/go-{n}", "w", encoding="utf-8"):
        pass


AGENT = """\
echo '{"type":"assistant","message":{"id":"m1","usage":{"input_tokens":1000,"output_tokens":234},"content":'\
'[{"type":"tool_use","name":"Edit","input":{"file_path":"src/app.py"}}]}}'
until [ -e "$FAKE/go-$ROODA_ITERATION" ]; do sleep 0.02; done
echo '{"type":"result","subtype":"success","is_error":false,"result":"x","total_cost_usd":0.25,'\
'"usage":{"input_tokens":2000,"output_tokens":500}}'
"""


def test_what_the_status_line_shows(ws: Workspace) -> None:
    """While an agent works the last line says which iteration, and for how long."""
    hold(ws, 1)
    terminal = ws.terminal("build", "-n", "2")
    until(lambda: re.fullmatch(r"Iteration 1/2 · \d+s", terminal.screen[-1]), what="the status")
    until(lambda: terminal.screen[-1].endswith(" · 1s"), what="the status to tick")
    release(ws, 1)
    assert terminal.finish() == 0


def test_E_40_cost_tokens_and_the_last_tool(ws: Workspace) -> None:
    """Tokens and the tool are those of the running call, from its transcript; the cost is that of the ended calls."""
    ws.config('[loop]\nagent = "mine"\n[agents.mine]\ncommand = "sh agent.sh"\noutput = "claude"\n')
    ws.write("agent.sh", AGENT)
    terminal = ws.terminal("build", "-n", "2")
    first, second = (
        rf"Iteration {n}/2 · \d+s · {used} · Edit src/app\.py"
        for n, used in ((1, "1,234 tokens"), (2, r"\$0\.25 · 3,734 tokens"))
    )
    until(lambda: re.fullmatch(first, terminal.screen[-1]), what="the first call")
    release(ws, 1)
    until(lambda: re.fullmatch(second, terminal.screen[-1]), what="the second call")
    release(ws, 2)
    assert terminal.finish() == 0


def test_E_40_cost_and_tokens_of_earlier_sessions(ws: Workspace) -> None:
    """After a resume the line goes on with what the run has used."""
    ws.config('[loop]\nagent = "mine"\n[agents.mine]\ncommand = "sh agent.sh"\noutput = "claude"\n')
    ws.write("agent.sh", AGENT)
    release(ws, 1)
    assert ws.rooda("build", "-n", "2", "--max-cost", "0.1").code == 4
    terminal = ws.terminal("resume", "build", "--max-cost", "9")
    shown = r"Iteration 2/2 · \d+s · \$0\.25 · 3,734 tokens · Edit src/app\.py"
    until(lambda: re.fullmatch(shown, terminal.screen[-1]), what="the second call")
    release(ws, 2)
    assert terminal.finish() == 0


def test_no_trace_is_left(ws: Workspace) -> None:
    """When all is over the terminal holds exactly the lines that a pipe would hold, stamped, and an empty line."""
    terminal = ws.terminal("build", "-n", "2")
    assert terminal.finish() == 0
    ran = ws.rooda("build", "-n", "2")
    assert masked(terminal.screen) == [*masked(ran.lines), *masked(ran.err.splitlines()), ""]


def test_it_is_erased_before_each_line(ws: Workspace) -> None:
    """Between a status and the next line there is always the erasing."""
    ws.exits(1)
    terminal = ws.terminal("build", "-n", "3")
    assert terminal.finish() == 0
    raw = terminal.raw
    found = list(STATUS.finditer(raw))
    assert len(found) >= 3
    for status in found:
        rest = raw[status.end() :]
        assert b"\n" not in rest[: rest.index(ERASED)]


def test_unlimited_and_gates_in_the_status(ws: Workspace) -> None:
    """Without a limit there is no `/M`; while a gate runs the status names it."""
    ws.procedure("build", gates={"slow one": "until [ -e go ]; do sleep 0.02; done; rm go"})
    terminal = ws.terminal("build", "-u")
    until(
        lambda: "gate slow one" in terminal.screen[-1] and terminal.screen[-1].startswith("Iteration 1 · "), what="it"
    )
    terminal.type("\x03")
    assert terminal.finish() == 130


def test_ctrl_c_leaves_a_clean_screen(ws: Workspace) -> None:
    """After Ctrl+C the last line is M10, without a status or half a line next to it."""
    hold(ws, 1)
    terminal = ws.terminal("build", "-n", "2")
    ws.wait_calls(1)
    terminal.type("\x03")
    assert terminal.finish() == 130
    lines = masked([line for line in terminal.screen if line])
    assert "[T] Interrupted. State saved. Resume with: rooda resume build" in lines
    assert lines[-1] == "[T]   next        rooda resume build"
    assert not any("·" in line for line in terminal.screen)


def test_ctrl_c_reaches_only_the_loop(ws: Workspace) -> None:
    """The agent does not get the terminal's Ctrl+C; the loop ends it with the signal of its own choice."""
    ws.side(1, "trap 'echo INT >> heard; exit 1' INT\ntrap 'echo TERM >> heard; exit 1' TERM\nsleep 30 & wait")
    terminal = ws.terminal("build", "-n", "2")
    ws.wait_calls(1)
    terminal.type("\x03")
    assert terminal.finish() == 130
    assert ws.read("heard") == "TERM\n"


def test_a_narrow_window(ws: Workspace) -> None:
    """The status is cut to the window, so that it can always be erased; after a change of size to the new one."""
    hold(ws, 1)
    terminal = ws.terminal("build", "-n", "2", columns=17)
    until(lambda: terminal.screen[-1].startswith("Iteration 1/2"), what="the status")
    assert max(len(line.decode()) for line in terminal.raw.split(ERASED) if line.startswith(b"Iteration")) <= 14
    terminal.resize(24, 100)
    until(lambda: re.fullmatch(r"Iteration 1/2 · \d+s", terminal.screen[-1]), what="the whole status")
    terminal.resize(24, 12)
    until(lambda: len(terminal.screen[-1]) <= 11, what="the status to be cut again")
    release(ws, 1)
    assert terminal.finish() == 0


def test_wide_letters_in_a_narrow_window(ws: Workspace) -> None:
    """What takes two columns counts two, else the end of the status would are on a line that no one erases."""
    ws.procedure("build", gates={"検" * 30: "until [ -e go ]; do sleep 0.02; done"})
    terminal = ws.terminal("build", "-n", "1", columns=40)
    until(lambda: "gate 検" in terminal.raw.decode(errors="ignore"), what="the gate")
    shown = [line.decode() for line in terminal.raw.split(ERASED) if b"gate" in line and STATUS.match(line)]
    assert shown and all(width(line) <= 39 and line.endswith("…") for line in shown)
    ws.write("go", "")
    assert terminal.finish() == 0


def test_quiet_on_a_terminal(ws: Workspace) -> None:
    """--quiet has no status and says nothing as long as all goes well, only why an iteration failed."""
    ws.exits(1, 0)
    terminal = ws.terminal("build", "-n", "2", "-q")
    assert terminal.finish() == 0
    agent, see, failed = [line for line in masked(terminal.screen) if line]
    assert agent == "[T]   agent: it gave no reason" and see.startswith("[T]     see .rooda/runs/")
    assert failed == "[T] WARNING: AI CLI failed (exit 1), consecutive failures: 1/3"
    assert b"\x1b[K" not in terminal.raw


def test_json_on_a_terminal(ws: Workspace) -> None:
    """--json has neither status nor colours, on a terminal too."""
    terminal = ws.terminal("build", "-n", "1", "--json", columns=1000)
    assert terminal.finish() == 0
    assert b"\x1b" not in terminal.raw
    assert all(line.startswith('{"v": 1, ') for line in terminal.out.splitlines())


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"TERM": ""}], ids=str)
def test_a_terminal_that_can_do_nothing(ws: Workspace, env: dict[str, str]) -> None:
    """On a dumb terminal, or one that does not say what it is, there are plain lines only."""
    ws.exits(1, 0)
    terminal = ws.terminal("build", "-n", "2", env=env)
    assert terminal.finish() == 0
    assert b"\x1b" not in terminal.raw and b"\r" not in terminal.raw.replace(b"\r\n", b"")
    assert len(terminal.out.splitlines()) == 12  # 7 of stdout, 2 with the reason, 3 of the summary


def test_colours(ws: Workspace) -> None:
    """Warnings and their reasons are yellow, errors red, and only they; with NO_COLOR nothing is."""
    ws.exits(1, 1, 1)
    terminal = ws.terminal("build", "-n", "9")
    assert terminal.finish() == 1
    coloured = re.findall(rb"\x1b\[(\d+)m(.*?)\x1b\[0m", terminal.raw)
    assert [code for code, text in coloured if b"WARNING" in text or b"ERROR" in text] == [b"33", b"33", b"33", b"31"]
    reasons = [(code, text) for code, text in coloured if b"WARNING" not in text and b"ERROR" not in text]
    assert all(code == b"33" and re.search(rb"\]   (agent: |  see )", text) for code, text in reasons)
    plain = ws.terminal("build", "-n", "1", env={"NO_COLOR": "1"})
    assert plain.finish() == 0
    assert re.findall(rb"\x1b\[\d*m", plain.raw) == [] and STATUS.search(plain.raw)


def test_an_abort_shows_what_to_do_next(ws: Workspace) -> None:
    """On a terminal and on a pipe an aborted run ends with how to continue."""
    terminal = ws.terminal("build", "-n", "9", env={"FAKE_EXIT": "1"})
    assert terminal.finish() == 1
    hint = "[T]   next        rooda resume build"
    assert [line for line in masked(terminal.screen) if line][-1] == hint
    ran = ws.rooda("build", "-n", "9", env={"FAKE_EXIT": "1"})
    assert ran.code == 1 and masked(ran.err.splitlines())[-1] == hint
    assert "ERROR: Aborting after 3 consecutive failures" in ran.lines[-1]


def test_a_hangup_ends_the_loop(ws: Workspace) -> None:
    """SIGHUP, what a closed terminal sends, ends the loop as SIGTERM does: 143, state saved, agent gone."""
    ws.side(1, "sleep 30 & wait")
    terminal = ws.terminal("build", "-n", "2")
    ws.wait_calls(1)
    terminal.signal(1)
    assert terminal.finish() == 143
    state = ws.state()
    assert state is not None and state["status"] == "interrupted"
    assert "Resume with: rooda resume build" in terminal.out


def test_a_screen_that_breaks_does_not_end_the_loop(ws: Workspace) -> None:
    """A terminal whose encoding has no middle dot and no umlaut is written to all the same."""
    ws.procedure("build", gates={"prüfung": "false"})
    terminal = ws.terminal("build", "-n", "2", "-v", env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert terminal.finish() == 1, terminal.out
    assert "Traceback" not in terminal.out
    assert "Reached max iterations: 2" in terminal.out
    assert ws.state() is None and len(ws.calls) == 2
