"""Implements `--detach`: the loop continues in its own session, and the command reports how it started."""

import json
import os
import sys
from collections.abc import Callable

from rooda.base import files
from rooda.processes import signals

_report_pipe = -1  # in the detached process: the pipe to the command that started it
_console = ""  # output file until the run has a folder
_relayed: list[str] = []  # lines for the terminal on which the command was typed


def detach(speak: Callable[[str, bool], object]) -> None:
    """Fork: the parent waits until the run starts or fails, reports that and exits; the child returns."""
    import tempfile

    global _report_pipe, _console
    descriptor, _console = tempfile.mkstemp(prefix="rooda-", suffix=".log")
    listen, _report_pipe = os.pipe()
    with signals.ForwardingChild() as child:
        child.pid = os.fork()
    if child.pid:
        os.close(_report_pipe)
        os._exit(_wait(child, listen, speak))
    os.close(listen)
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (descriptor, 1), (descriptor, 2)):
        os.dup2(source, target)
    for each in (null, descriptor):
        os.close(each)


def relay(text: str) -> None:
    """Repeat a line on the terminal of the `--detach` command once the run starts. Does nothing unless detached."""
    if _report_pipe >= 0:
        _relayed.append(text)


def report_started(run: str, folder: Callable[[], str], workspace: str) -> None:
    """Move the console output to the run's folder and report the start to the parent. Does nothing unless detached."""
    global _report_pipe  # noqa: PLW0603
    if _report_pipe < 0:
        return
    said = files.read(_console)
    files.remove(_console)
    path = os.path.join(folder(), "console.log")
    try:
        descriptor = files.open_append(path, 0o600)
    except OSError:
        descriptor, path = os.open(os.devnull, os.O_WRONLY), ""
    files.write_all(descriptor, said)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    try:
        files.write_all(
            _report_pipe,
            json.dumps({"run": run, "console": path, "workspace": workspace, "lines": _relayed}).encode() + b"\n",
        )
    except OSError:
        pass  # the parent is gone; the loop continues
    os.close(_report_pipe)
    _report_pipe = -1


def _wait(child: signals.ForwardingChild, listen: int, speak: Callable[[str, bool], object]) -> int:
    """Wait for the start and return the parent's exit code: 0, or the child's code after a failed start or a signal."""
    with os.fdopen(listen, "rb") as file:
        line = file.readline()
    if line:
        run, console, workspace, relayed = json.loads(line).values()
        for text in relayed:
            speak(text, True)
        lines = [f"Started in the background: {run}", f"Output: {console}", *access_hints(workspace)]
        speak("\n".join(lines), False)
        return child.wait() if child.signaled else 0
    code = child.wait()
    speak(files.text(_console).rstrip("\n"), True)
    files.remove(_console)
    return code


def access_hints(workspace: str) -> list[str]:
    """Return the commands that watch and end a run in a folder, such as a worktree, other than the current one."""
    import shlex

    if os.path.samefile(workspace, os.curdir):
        return []
    there = shlex.quote(workspace)
    return [f"Watch it: rooda status -C {there}", f"End it: rooda stop -C {there}"]


def rooda_command(module: str = "rooda") -> list[str]:
    """Return a command line that starts another rooda process; `-P` keeps it from importing the project's modules."""
    return [sys.executable, "-P", "-m", module]
