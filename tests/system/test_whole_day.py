"""A user's day in a shell on a terminal of 80 columns: what is on the screen, and where its next command leads."""

import re
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.kit.processes import Terminal, drawn, until
from tests.kit.workspace import FAKE_AI, Workspace

TESTS = 6
CASES = "".join(f"    def test_{n}(self): self.assertEqual(calc.f{n}(), {n})\n" for n in range(1, TESTS + 1))
UNIT = f"import calc, unittest\nclass Calc(unittest.TestCase):\n{CASES}"
MAKEFILE = "test:\n\t@python3 -B -m unittest -q test_calc\n"
# Repairs the first function whose test is red in STATUS; commits and claims success once `make test` is green.
REPAIRS = r"""
red=$(sed -n '/^## STATUS/,/^## OBSERVE/s/^FAIL: test_\([0-9]\).*/\1/p' "$calls/$n.in" | head -n 1)
red=${red:-$(sed -n 's/^def f\([0-9]\)(): return 0$/\1/p' calc.py | head -n 1)}
sed -i.old "s/^def f$red(): return 0$/def f$red(): return $red/" calc.py && rm calc.py.old
echo "Repair f$red."
make test >/dev/null 2>&1 || exit 0
git commit -qam "calc: return the right numbers"
echo "<promise>SUCCESS</promise>"
"""


def code(red: int) -> str:
    """The functions under test; the first ones are wrong."""
    return "".join(f"def f{n}(): return {0 if n <= red else n}\n" for n in range(1, TESTS + 1))


class Seen(NamedTuple):
    """A command that was typed: its exit code, and the lines that it left on the screen."""

    code: int
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def command(self, pattern: str) -> str:
        """The only next command on the screen that matches."""
        (found,) = {found for line in self.lines for found in re.findall(pattern, line)}
        return str(found)


class Shell:
    """An interactive shell on a terminal of 80 columns, in a repository with six failing tests."""

    def __init__(self, ws: Workspace) -> None:
        self.ws = ws
        for name, text in {"calc.py": code(TESTS), "test_calc.py": UNIT, "Makefile": MAKEFILE}.items():
            ws.write(name, text)
        ws.git("init", "-q")
        ws.git("add", ".")
        ws.git("commit", "-qm", "calc: begin")
        folder = Path(ws.root, "bin")
        folder.mkdir()
        Path(folder, "rooda").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m rooda "$@"\n')
        Path(folder, "rooda").chmod(0o755)
        own = Path(ws.home, ".config", "rooda", "rooda.toml")
        own.parent.mkdir(parents=True)
        own.write_text(f'[loop]\nai_cmd = "{FAKE_AI}"\n[budget]\nunknown_call = 0.5\n')
        env = ws.env | {"PATH": f"{folder}:/usr/bin:/bin", "TERM": "xterm-256color", "PS1": "$ ", "ENV": ""}
        self.terminal = Terminal(["/bin/sh", "-i"], env, ws.path, 24, 80)
        ws.running.append(self.terminal)

    def start(self, command: str) -> int:
        """Type a command; the length of the output before it."""
        until(lambda: self.terminal.out.endswith("$ "), 10, "the shell's prompt")
        begin = len(self.terminal.raw)
        self.terminal.type(f'{command}; echo "[exit $?]"\n')
        return begin

    def so_far(self, begin: int) -> str:
        return "\n".join(drawn(self.terminal.raw[begin:].decode("utf-8", "replace")))

    def wait(self, begin: int, text: str, seconds: float = 20) -> None:
        until(lambda: text in self.so_far(begin), seconds, f"{text!r}; the screen:\n{self.so_far(begin)}")

    def end(self, begin: int, seconds: float = 60) -> Seen:
        """Wait for the end of a command."""

        def ended() -> re.Match[str] | None:
            return re.search(r"^\[exit (\d+)\]$", self.so_far(begin), re.M)

        try:
            code = int(until(ended, seconds, "the end of the command")[1])
        except AssertionError as error:
            raise AssertionError(f"{error}; the screen:\n{self.so_far(begin)}") from None
        lines = self.so_far(begin).splitlines()
        return Seen(code, lines[1 : lines.index(f"[exit {code}]")])  # without the line that was typed

    def run(self, command: str) -> Seen:
        return self.end(self.start(command))


@pytest.fixture
def shell(bare: Workspace) -> Iterator[Shell]:
    """A shell in a red repository in which `rooda init` wrote the settings."""
    shell = Shell(bare)
    begin = shell.start("rooda init")
    for question, answer in {"Dollars after which": "20", "Seconds after which": "600"}.items():
        shell.wait(begin, question)
        shell.terminal.type(f"{answer}\n")
    if shutil.which("bwrap"):
        shell.wait(begin, "Run the gates once")
        shell.terminal.type("n\n")
    made = shell.end(begin)
    assert made.code == 0 and "Quality gate: make test" in made.text
    assert "\nmax_cost = 20" in bare.read("rooda.toml") and "\niteration_timeout = 600" in bare.read("rooda.toml")
    yield shell
    shell.terminal.signal(signal.SIGHUP)  # an interactive shell ignores SIGTERM
    shell.terminal.finish()


def leave_red(ws: Workspace, red: int) -> None:
    """Commit the repair of all tests but these."""
    ws.write("calc.py", code(red))
    ws.git("commit", "-qam", "calc: repair most of it")


def summary(seen: Seen) -> list[str]:
    """The lines from the one that says how the run ended."""
    begins = [number for number, line in enumerate(seen.lines) if re.search(r"build: (completed|failed|paused)", line)]
    assert begins, seen.text
    return seen.lines[begins[-1] :]


def test_E_11_E_21_a_red_repository_becomes_green(shell: Shell) -> None:
    """Six failing tests, one repaired by each call that reads in STATUS what is red: no abort, and exit 0."""
    ws = shell.ws
    preview = shell.run("rooda build --dry-run")
    assert preview.code == 0 and "## STATUS" in preview.text and "make test" in preview.text and not ws.calls
    ws.side("iteration", REPAIRS)
    built = shell.run("rooda build -n 9")
    assert built.code == 0, built.text
    assert (len(ws.calls), ws.read("calc.py")) == (TESTS, code(0))
    assert all(f"FAILED (failures={TESTS - done})" in call.text for done, call in enumerate(ws.calls))
    assert "$20.00" in ws.calls[0].text and "$17.50" in ws.calls[-1].text  # what is left of the limit
    assert "AI signaled SUCCESS: completed after 6 iterations" in built.text
    assert 1 <= len(summary(built)) <= 6 and max(map(len, summary(built))) <= 80, built.text
    live = re.findall(r"\r\x1b\[K(Iteration [^\r\n]+)", shell.terminal.raw.decode())
    assert any("gate make test" in line for line in live) and max(map(len, live)) < 80, live
    assert ws.git("log", "--format=%s", "-1") == "calc: return the right numbers\n"
    past = shell.run("rooda status")
    assert past.code == 0 and "completed" in past.text, past.text
    assert "build" in shell.run("rooda runs").text


def test_E_12_a_red_end_is_no_success(shell: Shell) -> None:
    """A limit that is reached with a red gate: exit 1, so that nothing is pushed, and the screen names the gate."""
    ws = shell.ws
    ws.git("init", "-q", "--bare", "../remote.git")
    ws.git("remote", "add", "origin", "../remote.git")
    ws.side("iteration", REPAIRS)
    built = shell.run("rooda build -n 2 && git push -q origin HEAD")
    assert built.code == 1, built.text
    assert len(ws.calls) == 2 and "make test" in "\n".join(summary(built))
    assert ws.git("ls-remote", "origin") == ""


def test_E_23_ctrl_c_and_the_resume_that_the_screen_offers(shell: Shell) -> None:
    """Ctrl+C is answered at once; the command on the screen continues, and STATUS says what was cut off."""
    ws = shell.ws
    leave_red(ws, 2)
    ws.side("iteration", f'[ "$n" -ne 2 ] || {{ touch "$FAKE/hangs"; sleep 60; }}\n{REPAIRS}')
    begin = shell.start("rooda build -n 9")
    until(Path(ws.fake, "hangs").exists, 20, "the second call")
    shell.terminal.type("\x03")
    shell.wait(begin, "Stopping: the agent has 5 s. Press Ctrl+C again to end it now.")
    stopped = shell.end(begin)
    assert stopped.code == 130 and "Interrupted. State saved." in stopped.text, stopped.text
    assert "interrupted" in shell.run("rooda status").text
    again = shell.run(stopped.command("rooda resume build"))
    assert (again.code, len(ws.calls), ws.read("calc.py")) == (0, 3, code(0)), again.text
    assert "Iteration 2 was cut off" in ws.calls[2].text


def test_E_14_E_20_a_blocked_agent_is_asked_twice(shell: Shell) -> None:
    """With what `rooda init` wrote, the same refusal is not paid a third time, and the screen says why it ended."""
    shell.ws.out("iteration", "I can't go on.\n<promise>FAILURE</promise>\nThe schema of the orders is missing.\n")
    built = shell.run("rooda build -n 9")
    assert (built.code, len(shell.ws.calls)) == (1, 2), built.text
    assert "ERROR: Aborting: blocked twice: The schema of the orders is missing." in built.text


def test_E_21_the_next_command_after_a_limit(shell: Shell) -> None:
    """At a limit of money the run pauses; the command on the screen has a higher limit and ends green."""
    ws = shell.ws
    leave_red(ws, 3)
    ws.side("iteration", REPAIRS)
    paused = shell.run("rooda build -n 9 --max-cost 1")
    assert (paused.code, len(ws.calls)) == (4, 2), paused.text
    assert len(summary(paused)) <= 6
    again = shell.run(paused.command(r"rooda resume build --max-cost [\d.]+"))
    assert (again.code, len(ws.calls), ws.read("calc.py")) == (0, 3, code(0)), again.text
