"""The offer to resume: at a terminal, on a pipe, and decided beforehand."""

import os
import subprocess
import time

import pytest

from tests.kit.workspace import SAMPLE, Workspace, masked, until

FOUND = "Found an interrupted run of 'build': iteration 3 of 10 completed (2m16s)."
ASKED = "Resume? [Y/n]"


@pytest.fixture
def found(ws: Workspace) -> Workspace:
    """A workspace with the interrupted run of the specification's sample file."""
    ws.put_state()
    return ws


@pytest.mark.parametrize("answer", ["\n", "y\n", "Y\n", "yes\n", " YES \n"], ids=repr)
def test_O_048_OA_18_yes(found: Workspace, answer: str) -> None:
    """At a terminal Enter, y and yes resume, with all that the state held."""
    found.copy_state_at(1)
    found.signal_at(2)
    terminal = found.terminal("build")
    terminal.wait_line(FOUND)
    until(lambda: terminal.screen[-1].startswith(ASKED), what="the question")
    assert not found.calls
    assert "n starts over: this run can't be resumed then. Ctrl+C leaves it as it is.\nResume? " in terminal.out
    terminal.type(answer)
    assert terminal.finish() == 130
    lines = masked(terminal.screen)
    assert "[T] Resuming procedure: build from iteration 3 (max 10)" in lines
    assert "[T] Previous session: 3 iterations completed in D" in lines
    kept = ("started_at", "elapsed_per_iteration", "max_iterations", "iteration")
    assert {key: found.copies[1][key] for key in kept} == {key: SAMPLE[key] for key in kept}


@pytest.mark.parametrize("answer", ["n\n", "No\n"], ids=repr)
def test_OA_19_no(found: Workspace, answer: str) -> None:
    """n starts fresh: the old file is replaced."""
    found.copy_state_at(1)
    terminal = found.terminal("build", "-n", "2")
    until(lambda: terminal.screen[-1].startswith(ASKED), what="the question")
    terminal.type(answer)
    assert terminal.finish() == 0
    assert "[T] Starting procedure: build (max 2 iterations)" in masked(terminal.screen)
    assert found.copies[1]["iteration"] == 0 and found.copies[1]["started_at"] != SAMPLE["started_at"]


def test_OA_18_garbage_is_asked_again(found: Workspace) -> None:
    """Anything else, bytes that are no text included, brings the question again; nothing is started in the meantime."""
    terminal = found.terminal("build", "-n", "5", env={"PYTHONIOENCODING": "utf-8:strict"})
    for count, answer in enumerate((b"maybe\n", b"\xff\xfe\n", b"ny\n"), 1):
        until(lambda count=count: terminal.out.count(ASKED) == count, what="the question")
        terminal.type(answer)
    until(lambda: terminal.out.count(ASKED) == 4, what="the question")
    assert not found.calls and terminal.out.count(FOUND) == 1
    assert "Please answer y" in terminal.screen[-1]
    terminal.type("y\n")
    assert terminal.finish() == 0, terminal.out
    assert "Resuming procedure: build" in terminal.out


@pytest.mark.parametrize(("key", "code"), [("\x04", 3), ("\x03", 130)], ids=["Ctrl+D", "Ctrl+C"])
def test_OA_18_neither_yes_nor_no(found: Workspace, key: str, code: int) -> None:
    """Ctrl+D decides nothing (3), Ctrl+C leaves (130): no call, the file as it was, the lock free again."""
    before = found.read(".rooda/state/build.json")
    terminal = found.terminal("build")
    until(lambda: terminal.screen[-1].startswith(ASKED), what="the question")
    terminal.type(key)
    assert terminal.finish() == code
    assert "Traceback" not in terminal.out
    assert not found.calls and found.read(".rooda/state/build.json") == before
    assert found.rooda("status").out.startswith("build: interrupted")


def test_OA_18_the_question_holds_the_lock(found: Workspace) -> None:
    """While one person is asked, a second start of the same procedure is refused."""
    terminal = found.terminal("build")
    until(lambda: terminal.screen[-1].startswith(ASKED), what="the question")
    second = found.rooda("build", "--fresh")
    assert second.code == 3 and "is already running here" in second.err
    terminal.type("\x03")
    terminal.finish()


def test_OA_18_without_a_terminal_nothing_is_decided(found: Workspace) -> None:
    """Without a terminal: what was found, both commands, exit 3, the file untouched."""
    before = found.read(".rooda/state/build.json")
    ran = found.rooda("build")
    assert (ran.code, ran.out) == (3, "")
    assert FOUND in ran.err and "Nothing was started." in ran.err
    assert "rooda resume build" in ran.err and "rooda build --fresh" in ran.err
    assert not found.calls and found.read(".rooda/state/build.json") == before


@pytest.mark.parametrize(
    ("typed", "first"), [(b"y\n", "Resuming"), (b"\n", "Resuming"), (b"n\n", "Starting"), (b"n", "Starting")], ids=repr
)
def test_OA_18_an_answer_on_a_pipe(found: Workspace, typed: bytes, first: str) -> None:
    """An answer that waits on a piped stdin is honoured."""
    ran = found.rooda("build", "-n", "4", stdin=typed)
    assert ran.code == 0 and f"{first} procedure: build" in ran.lines[0]


@pytest.mark.parametrize("typed", [b"", b"what?\n"], ids=repr)
def test_OA_18_no_answer_on_a_pipe(found: Workspace, typed: bytes) -> None:
    """An empty pipe, or nonsense on it, is no answer."""
    assert found.rooda("build", "-n", "4", stdin=typed).code == 3
    assert not found.calls


def test_OA_18_an_open_pipe_without_a_word(found: Workspace) -> None:
    """A pipe that stays open and silent, as in a pipeline of CI, does not hang the start."""
    read, write = os.pipe()
    try:
        assert found.rooda("build", stdin=read, timeout=10).code == 3
    finally:
        os.close(read)
        os.close(write)


def test_OA_18_closed_stdin(found: Workspace) -> None:
    """A closed stdin can't be asked."""
    words = ["sh", "-c", 'exec "$@" <&-', "sh", *found.command("build")]
    ran = subprocess.run(words, cwd=found.path, env=found.env, capture_output=True, text=True, timeout=20)
    assert ran.returncode == 3 and FOUND in ran.stderr


@pytest.mark.parametrize(
    ("words", "setting", "first"),
    [
        (("--resume",), "ask", "Resuming"),
        (("--fresh",), "ask", "Starting"),
        ((), "resume", "Resuming"),
        ((), "fresh", "Starting"),
        (("--fresh",), "resume", "Starting"),
        (("--resume",), "fresh", "Resuming"),
    ],
)
def test_OA_18_decided_beforehand(found: Workspace, words: tuple[str, ...], setting: str, first: str) -> None:
    """--resume and --fresh decide, and before them on_interrupted; at a terminal the user is not asked then."""
    found.procedure("build", loop={"on_interrupted": setting})
    terminal = found.terminal("build", "-n", "4", *words)
    assert terminal.finish() == 0
    assert ASKED not in terminal.out and f"{first} procedure: build" in terminal.screen[0]


def test_O_075_an_unlimited_run_is_offered_too(ws: Workspace) -> None:
    """Without a limit the offer names no bound; a paused file is offered like an interrupted one (OA-05)."""
    ws.put_state(max_iterations=0, status="paused")
    ran = ws.rooda("build")
    assert ran.code == 3
    assert "Found an interrupted run of 'build': iteration 3 completed (2m16s)." in ran.err


def test_the_question_with_output_piped(found: Workspace) -> None:
    """`rooda build | tee log` at a terminal: the question is on the screen, not in the pipe."""
    script = 'import os, sys; os.dup2(os.open("log", os.O_CREAT | os.O_WRONLY), 1); os.execv(sys.argv[1], sys.argv[1:])'
    from tests.kit.workspace import Terminal

    argv = [found.command()[0], "-c", script, *found.command("build", "-n", "4")]
    terminal = Terminal(argv, found.env | {"TERM": "xterm"}, found.path, 24, 80)
    found.running.append(terminal)
    until(lambda: terminal.screen[-1].startswith(ASKED), what="the question")
    terminal.type("n\n")
    assert terminal.finish() == 0
    assert ASKED not in found.read("log") and "Starting procedure: build" in found.read("log")
    assert "\x1b" not in found.read("log")


def test_a_process_that_asks_is_named_and_can_be_stopped(found: Workspace) -> None:
    """While the user is asked another start names the process that asks, at once, and `rooda stop` ends it."""
    assert found.rooda("build", "--fresh", "-n", "1").code == 0  # whose name the lock bears
    found.put_state()
    terminal = found.terminal("build")
    until(lambda: terminal.screen[-1].startswith(ASKED), what="the question")
    began = time.monotonic()
    ran = found.rooda("resume", "build")
    assert ran.code == 3 and f"'build' is already running here (pid {terminal.pid})" in ran.err, ran.both
    assert time.monotonic() - began < 10
    ran = found.rooda("stop")
    assert ran.code == 0 and "Stopped procedure 'build'" in ran.out, ran.both
    assert terminal.finish() == 143 and found.state() == SAMPLE and len(found.calls) == 1
