"""-v: the agent's output between its two markers, on a pipe and on a terminal."""

import os

import pytest

from tests.kit.workspace import Workspace, masked, until

START, END = "--- AI CLI Output Start ---", "--- AI CLI Output End ---"


def streamed(text: str) -> list[str]:
    """What is between the markers, call by call."""
    return [part.partition(END + "\n")[0] for part in text.split(START + "\n")[1:]]


def test_OU_22_between_the_markers(ws: Workspace) -> None:
    """Both streams of each call are between two markers, inside the iteration's own lines."""
    ws.out(1, "one\ntwo\n")
    ws.err(2, "oops\n")
    ran = ws.rooda("build", "-n", "2", "-v")
    assert streamed(ran.out) == ["one\ntwo\n", "oops\n"]
    shown = [line for line in masked(ran.lines) if "Prompt:" not in line]
    assert shown[1:6] == ["[T] Iteration 1/2 starting...", START, "one", "two", END]
    assert shown[6] == "[T] Iteration 1/2 completed in D"


def test_OU_22_nothing_without_it(ws: Workspace) -> None:
    """Without -v nothing of the agent is shown; show_ai_output alone shows it, without details."""
    ws.out(1, "secret\n")
    assert "secret" not in ws.rooda("build", "-n", "1").both
    ws.procedure("build", loop={"show_ai_output": True})
    ws.out(2, "shown\n")
    ran = ws.rooda("build", "-n", "1")
    assert streamed(ran.out) == ["shown\n"] and "Prompt:" not in ran.out


def test_OU_22_output_appears_at_once(ws: Workspace) -> None:
    """The output appears while the agent still works."""
    ws.side(1, 'echo "halfway"; until [ -e go ]; do sleep 0.02; done; echo "done"')
    started = ws.start("build", "-n", "1", "-v")
    started.wait_line("halfway")
    assert END not in started.out
    ws.write("go", "")
    assert started.finish() == 0
    assert streamed(started.out) == ["halfway\ndone\n"]


def test_OU_22_a_missing_last_line_feed(ws: Workspace) -> None:
    """The end marker always is at the beginning of a line, and nothing is invented for a silent agent."""
    ws.side(1, "printf 'no end'")
    ws.side(3, "printf 'half a character \\303'")
    ran = ws.rooda("build", "-n", "3", "-v")
    assert streamed(ran.out) == ["no end\n", "", "half a character \ufffd\n"]


def test_OU_22_a_character_that_comes_in_two_pieces(ws: Workspace) -> None:
    """A UTF-8 character cut between two reads is shown whole."""
    ws.side(1, r"""printf 'a \342'; until [ -e go ]; do sleep 0.02; done; printf '\202\254 b\n'""")
    started = ws.start("build", "-n", "1", "-v")
    until(lambda: "a " in started.out.partition(START)[2], what="the first half")
    ws.write("go", "")
    assert started.finish() == 0
    assert streamed(started.out) == ["a € b\n"]


def test_OU_22_a_character_across_a_large_block(ws: Workspace) -> None:
    """So is one that lies across the blocks in which a large output is read."""
    text = "x" + "€äあ" * 60_000 + "\n"
    ws.out(1, text)
    ran = ws.rooda("build", "-n", "1", "-v")
    assert streamed(ran.out) == [text]


def test_OU_22_five_megabytes(ws: Workspace) -> None:
    """A large output passes whole, and bytes that are no text do no harm."""
    lines = "".join(f"line {n}\n" for n in range(450_000))
    ws.out(1, lines)
    ws.side(2, "head -c 100000 /dev/urandom")
    ran = ws.rooda("build", "-n", "2", "-v")
    assert ran.code == 0
    assert len(lines) > 5_000_000 and streamed(ran.out)[0] == lines
    assert "Reached max iterations: 2" in ran.out


def test_OU_22_on_a_terminal_nothing_is_lost(ws: Workspace) -> None:
    """A line that the agent has begun and not ended stays on the screen, and continues where it was."""
    ws.side(1, "printf 'working '; until [ -e go ]; do sleep 0.02; done; echo 'done'")
    terminal = ws.terminal("build", "-n", "1", "-v")
    until(lambda: terminal.screen[-1] == "working", what="the half line")
    size = len(terminal.raw)
    ws.write("go", "")
    assert terminal.finish() == 0
    assert "working done" in terminal.screen
    assert b"\x1b[K" not in terminal.raw[size : size + 4]
    shown = [line for line in terminal.screen if line and "·" not in line and not line.startswith("\x1b")]
    assert shown[shown.index(START) : shown.index(END) + 1] == [START, "working done", END]


def test_OU_22_the_status_follows_whole_lines(ws: Workspace) -> None:
    """After a whole line of the agent the status is below it, and is erased before the next line."""
    ws.side(1, "echo one; until [ -e go ]; do sleep 0.02; done; echo two")
    terminal = ws.terminal("build", "-n", "1", "-v")
    until(lambda: terminal.screen[-2:-1] == ["one"] and "Iteration 1/1 ·" in terminal.screen[-1], what="the status")
    ws.write("go", "")
    assert terminal.finish() == 0
    begin = terminal.screen.index(START)
    assert terminal.screen[begin : begin + 4] == [START, "one", "two", END]


def test_an_interrupted_stream_is_closed(ws: Workspace) -> None:
    """Ctrl+C amid the agent's half line: the end marker, and M10 on a line of its own."""
    ws.side(1, "printf 'half a line '; sleep 30 & wait")
    terminal = ws.terminal("build", "-n", "1", "-v")
    until(lambda: terminal.screen[-1].startswith("half"), what="the half line")
    terminal.type("\x03")
    assert terminal.finish() == 130
    lines = [line for line in masked(terminal.screen) if line]
    place = lines.index(END)
    assert lines[place - 1].startswith("half")
    assert lines[place + 1] == "[T] Interrupted. State saved. Resume with: rooda resume build"


@pytest.mark.parametrize("words", [("-v",), ("-v", "--json")], ids=" ".join)
def test_a_transcript_that_vanishes(ws: Workspace, words: tuple[str, ...]) -> None:
    """An agent that deletes .rooda takes its own transcript along; the loop continues and says no wrong word."""
    ws.damages_events = True
    ws.side(1, "echo before; rm -rf .rooda")
    ran = ws.rooda("build", "-n", "2", *words)
    assert ran.code == 0 and "Traceback" not in ran.both
    assert len(ws.calls) == 2 and os.path.isdir(ws.file(".rooda/runs"))
