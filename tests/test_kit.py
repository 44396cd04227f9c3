"""The harness itself: the scripted agent records what it saw, and what is left running is found."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.hermetic import clean
from tests.kit.processes import Terminal, drawn
from tests.kit.workspace import FAKE_AI, SAMPLE, Workspace, alive, masked, until

ROOT = Path(__file__).resolve().parents[1]


def imported(source: str) -> Iterator[str]:
    """The full names that a file imports; those of a relative import begin with a dot."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)


def test_the_kit_is_imported_by_one_name() -> None:
    """As `tests.kit.MODULE`: a module imported by two names would be loaded twice. No test module is imported."""
    wrong = []
    for path in sorted(each for folder in ("tests", "benchmarks", "tools") for each in (ROOT / folder).rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        forbidden = r"kit\b|tests\.(\w+\.)*test_"
        if place.startswith("tests/") and not place.startswith("tests/kit/"):
            forbidden += r"|\."
        wrong += [f"{place} imports {name}" for name in imported(path.read_text()) if re.match(forbidden, name)]
    assert not wrong, "\n".join(wrong)


def ask(ws: Workspace, prompt: bytes, **env: str) -> subprocess.CompletedProcess:
    """One call of the scripted agent, the way rooda makes it."""
    return subprocess.run(
        [FAKE_AI, "--flag", "two words"], input=prompt, cwd=ws.path, env=ws.env | env, capture_output=True
    )


def test_a_call_is_recorded_whole(ws: Workspace) -> None:
    """Prompt bytes, arguments, folder, pids and environment of a call can be read back."""
    ask(ws, b"line\n\xff no newline", ROODA_CALL="plan", ODD='it\'s\na "b" $c')
    (call,) = ws.calls
    assert call.prompt == b"line\n\xff no newline"
    assert call.argv == ["--flag", "two words"]
    assert (call.n, call.kind, call.cwd, call.ppid) == (1, "plan", ws.path, os.getpid())
    assert call.env["ODD"] == 'it\'s\na "b" $c'
    assert not alive(call.pid)


def test_calls_follow_their_script(ws: Workspace) -> None:
    """A call's number comes first, then its kind with its iteration, then its kind alone."""
    ws.exits(0, 7)
    ws.out(1, "first\n")
    ws.err("plan-2", "second\n")
    ws.side("plan", "echo side")
    ws.side(1, "echo one")
    ws.side(1, "echo two")
    runs = [ask(ws, b"", ROODA_CALL="plan", ROODA_ITERATION=str(n)) for n in (1, 2, 3)]
    assert [run.returncode for run in runs] == [0, 7, 0]
    assert [run.stdout for run in runs] == [b"one\ntwo\nfirst\n", b"side\n", b"side\n"]
    assert runs[1].stderr == b"second\n"


def test_parallel_calls_get_numbers_of_their_own(ws: Workspace) -> None:
    """Calls that start at the same moment never share a record."""
    started = [subprocess.Popen(FAKE_AI, cwd=ws.path, env=ws.env, stdin=subprocess.DEVNULL) for _ in range(8)]
    assert [process.wait() for process in started] == [0] * 8
    assert [call.n for call in ws.calls] == list(range(1, 9))
    assert len({call.pid for call in ws.calls}) == 8


def test_the_fake_folder_is_found_without_the_environment(ws: Workspace) -> None:
    """An agent whose environment was filtered still records its call."""
    subprocess.run([FAKE_AI], input=b"p", cwd=ws.path, env={"PATH": os.environ["PATH"]}, check=True)
    assert [call.prompt for call in ws.calls] == [b"p"]


def test_state_copies_are_collected(ws: Workspace) -> None:
    """The sample state file is written as asked, and the calls copy it."""
    ws.put_state(iteration=5)
    ws.copy_state_at(1, 2)
    ask(ws, b"")
    ask(ws, b"")
    assert ws.copies == {1: SAMPLE | {"iteration": 5}, 2: SAMPLE | {"iteration": 5}}
    assert ws.state("other") is None


def test_a_leftover_process_fails_the_test(bare: Workspace) -> None:
    """A process left behind is named, ended, and makes the closing of the workspace fail."""
    left = subprocess.Popen(["sleep", "60"], env=bare.env, start_new_session=True)
    until(lambda: bare.leftovers() == [left.pid], what="the process to show")
    with pytest.raises(AssertionError, match="sleep 60"):
        bare.close(0.2)
    assert left.wait() == -9


def test_a_repository_or_settings_above_the_temporary_folder_are_avoided(tmp_path: Path) -> None:
    """The first temporary folder is taken that is neither inside a repository nor below a rooda.toml."""
    for stray in ("repository/.git", "settings/rooda.toml", "neither/x"):
        (tmp_path / stray).parent.mkdir()
        (tmp_path / stray).touch()
    inside = [str(tmp_path / name) for name in ("nowhere", "repository", "settings", "neither")]
    assert clean(inside) == inside[-1]
    with pytest.raises(RuntimeError, match="set TMPDIR"):
        clean(inside[:-1])


def test_several_commands_answer_as_each_alone(ws: Workspace) -> None:
    """Exit code and both outputs are those of a start of its own, with an error and without."""
    commands = ("list", "build --dry-run", "status --json", "no-such-procedure", "logs nothing", "flow check")
    assert ws.each(*commands) == [ws.rooda(*command.split()) for command in commands]


def test_masking() -> None:
    """Clock stamps and durations are masked, nothing else."""
    lines = ["[10:00:45] Iteration 1/3 completed in 45.2s", "[10:02:16] Reached max iterations: 3 (total: 1h2m16s)"]
    assert masked(lines) == ["[T] Iteration 1/3 completed in D", "[T] Reached max iterations: 3 (total: D)"]


def test_a_terminal_is_a_real_one(bare: Workspace) -> None:
    """On the terminal a command sees a tty of the right size, reads keys, and Ctrl+C interrupts it."""
    program = (
        "import os; print(os.get_terminal_size(), os.isatty(0)); print('got', input());\n"
        "try: input()\nexcept KeyboardInterrupt: print('interrupted')"
    )
    terminal = Terminal([sys.executable, "-c", program], bare.env | {"TERM": "xterm"}, bare.path, 30, 90)
    terminal.wait_line("columns=90, lines=30) True")
    terminal.type("yes\n")
    terminal.wait_line("got yes")
    terminal.type("\x03")
    assert terminal.finish() == 0
    assert "interrupted" in terminal.screen[-2]
    terminal.stop()


def test_the_screen_shows_the_last_state_of_redrawn_lines() -> None:
    """Returns, erased lines and moves up are obeyed; colours vanish."""
    assert drawn("one\r\n\x1b[31mtwo\x1b[0m\rTW\r\n") == ["one", "TWo", ""]
    assert drawn("long status\r\x1b[Kdone\r\n") == ["done", ""]
    assert drawn("a\r\nb\r\n\x1b[2A\x1b[Jc") == ["c"]
