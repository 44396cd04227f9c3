"""Real processes for the harness: with files as output, or on a terminal; and conditions to wait for."""

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Makes its stdin the controlling terminal of a new session and becomes the command given to it.
ON_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
ESCAPES = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[^\[\]])"


def until(condition: Callable[[], Any], seconds: float = 10, what: str = "a condition") -> Any:
    """Wait for the condition to hold; gives its value back."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s for {what}")
        time.sleep(0.005)
    return value


def ended(process: subprocess.Popen[Any], seconds: float) -> bool:
    """Wait for the process to end, without the rests of `Popen.wait`, which looks every 50 ms; False if time is up."""
    if not hasattr(os, "pidfd_open"):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        return process.returncode is not None
    if process.poll() is not None:
        return True
    descriptor = os.pidfd_open(process.pid)
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def alive(pid: int) -> bool:
    """Is there such a process, and is it no zombie?"""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    if os.path.isdir("/proc/self"):
        try:
            return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1] not in (b"Z", b"X")
        except OSError:
            return False
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(shown) and not shown.startswith("Z")


def marked(mark: str) -> list[int]:
    """Live processes, zombies excepted, that have `mark` (`NAME=value`) in their environment."""
    if not os.path.isdir("/proc/self"):
        return _marked_elsewhere(*mark.split("=", 1))
    wanted, found = mark.encode(), []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and wanted in Path("/proc", entry, "environ").read_bytes().split(b"\0"):
                found.append(int(entry))
        except OSError:
            continue
    return found


def _marked_elsewhere(name: str, value: str) -> list[int]:
    import psutil

    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(name) == value and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


def switches(pid: int) -> int:
    """How often a process has gone to sleep of its own accord: as often as it was woken."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


class Output:
    """What a command has printed, on either stream."""

    out: str
    err: str

    @property
    def both(self) -> str:
        """stdout, then stderr."""
        return self.out + self.err

    @property
    def lines(self) -> list[str]:
        """The lines of stdout."""
        return self.out.splitlines()


class Running(Output):
    """A process in a session of its own; its output goes to files, so that nothing can hold it up."""

    def __init__(self, argv: list[str], env: dict[str, str], cwd: str, outputs: str, stdin: bytes | int | None) -> None:
        self._out, self._err = f"{outputs}.out", f"{outputs}.err"
        source = subprocess.PIPE if isinstance(stdin, bytes) else subprocess.DEVNULL if stdin is None else stdin
        with open(self._out, "wb") as out, open(self._err, "wb") as err:
            self.process = subprocess.Popen(
                argv, env=env, cwd=cwd, stdin=source, stdout=out, stderr=err, start_new_session=True
            )
        if isinstance(stdin, bytes):
            try:
                with self.process.stdin as pipe:
                    pipe.write(stdin)
            except BrokenPipeError:
                pass

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def out(self) -> str:
        return Path(self._out).read_bytes().decode("utf-8", "replace")

    @property
    def err(self) -> str:
        return Path(self._err).read_bytes().decode("utf-8", "replace")

    def wait_line(self, text: str, seconds: float = 10) -> str:
        """The first complete line of either output that holds `text`, as soon as there is one."""

        def found() -> str:
            lines = self.both.splitlines(keepends=True)
            return next((line for line in lines if text in line and line.endswith("\n")), "")

        try:
            return str(until(found, seconds, repr(text))).rstrip("\r\n")
        except AssertionError as error:
            raise AssertionError(f"{error}; so far:\n{self.both}") from None

    def signal(self, number: int) -> None:
        """Send a signal to the process."""
        os.kill(self.pid, number)

    def finish(self, timeout: float = 30) -> int:
        """The exit code, as soon as the process has ended (negative: the signal that killed it)."""
        if not ended(self.process, timeout):
            self.stop()
            raise AssertionError(f"not over after {timeout:g} s; output:\n{self.both}")
        return self.process.wait()

    def stop(self) -> None:
        """End the process if it still runs: TERM, then KILL after 10 s."""
        if self.process.poll() is None:
            self.process.terminate()
            if not ended(self.process, 10):
                os.killpg(self.pid, signal.SIGKILL)
            self.process.wait()


class Terminal(Running):
    """A process on a terminal of its own."""

    def __init__(self, argv: list[str], env: dict[str, str], cwd: str, rows: int, columns: int) -> None:
        self._master, slave = os.openpty()
        termios.tcsetwinsize(slave, (rows, columns))
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", ON_TERMINAL, *argv],
            env=env,
            cwd=cwd,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self._seen = bytearray()
        self._stop_reading, self._hung_up = os.pipe()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while self._stop_reading not in select.select([self._master, self._stop_reading], [], [])[0]:
            try:
                data = os.read(self._master, 65_536)
            except OSError:  # how a terminal says that nobody holds its other end
                return
            if not data:
                return
            self._seen += data

    def type(self, keys: str | bytes) -> None:
        """Type keys; `\\x03` is Ctrl+C."""
        os.write(self._master, keys.encode() if isinstance(keys, str) else keys)

    def hang_up(self) -> None:
        """Close the window."""
        os.write(self._hung_up, b"x")
        self._reader.join(2)
        os.close(self._master)
        self._master = -1

    def resize(self, rows: int, columns: int) -> None:
        """Change the size of the window."""
        termios.tcsetwinsize(self._master, (rows, columns))

    @property
    def raw(self) -> bytes:
        """Everything written to the terminal so far, escape sequences included."""
        return bytes(self._seen)

    @property
    def out(self) -> str:
        """Everything written so far, without escape sequences."""
        text = re.sub(ESCAPES, "", self.raw.decode("utf-8", "replace"))
        return text.replace("\r\n", "\n")

    @property
    def err(self) -> str:
        """Nothing: a terminal has one output."""
        return ""

    @property
    def screen(self) -> list[str]:
        """The lines as the user sees them: redrawn ones in their last state, trailing blanks cut."""
        return drawn(self.raw.decode("utf-8", "replace"))

    def finish(self, timeout: float = 30) -> int:
        """The exit code, as soon as the process has ended and its last words are read."""
        code = super().finish(timeout)
        self._reader.join(2)
        return code

    def stop(self) -> None:
        """End the process if it still runs, and close the terminal."""
        super().stop()
        self._reader.join(2)
        if self._master >= 0 and not self._reader.is_alive():
            os.close(self._master)
            self._master = -1
        if self._hung_up >= 0 and not self._reader.is_alive():
            os.close(self._hung_up)
            os.close(self._stop_reading)
            self._hung_up = -1


def drawn(text: str) -> list[str]:
    """The lines that this output leaves on a tall screen: returns, line feeds, erasing and moving are obeyed."""
    rows: list[list[str]] = [[]]
    row = column = 0
    for piece in re.findall(f"{ESCAPES}|.", text, re.S):
        amount = int(digits[0]) if (digits := re.findall(r"\d+", piece)) and piece.startswith("\x1b[") else 0
        if piece == "\r":
            column = 0
        elif piece == "\n":
            row += 1
            rows += [[]] * 0 if row < len(rows) else [[]]
        elif piece.startswith("\x1b[") and piece[-1] in "KJ":
            _erase(rows, row, column, amount, below=piece[-1] == "J")
        elif piece.startswith("\x1b[") and piece[-1] in "AF":
            row, column = max(0, row - max(amount, 1)), 0 if piece[-1] == "F" else column
        elif piece.startswith("\x1b[") and piece[-1] == "G":
            column = max(amount, 1) - 1
        elif piece >= " ":
            rows[row] += [" "] * (column - len(rows[row]) + 1)
            rows[row][column] = piece
            column += 1
    return ["".join(cells).rstrip() for cells in rows]


def _erase(rows: list[list[str]], row: int, column: int, amount: int, below: bool) -> None:
    if amount == 0 or below:
        del rows[row][column:]
    elif amount == 1:
        rows[row][:column] = [" "] * min(column, len(rows[row]))
    else:
        rows[row].clear()
    if below:
        del rows[row + 1 :]
