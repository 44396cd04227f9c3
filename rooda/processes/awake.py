"""Keeps the machine awake while a run works, with `caffeinate` on macOS and `systemd-inhibit` elsewhere."""

import os
import sys
from collections.abc import Mapping

from rooda.processes import ending, supervise


def keep_awake(cwd: str, env: Mapping[str, str]) -> int:
    """Start a program that keeps the machine awake until rooda ends; return its PID, 0 if the system has none."""
    if not (argv := _command(env.get("PATH", os.defpath))):
        return 0
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        pid = supervise.start_background(supervise.Spec(argv, cwd, env, "", opened=null))  # closes `null`
    except (OSError, ValueError):
        return 0
    ending.spared.add(pid)  # a sweep after an agent call must not end it
    return pid


def _command(path: str) -> list[str]:
    name = "caffeinate" if sys.platform == "darwin" else "systemd-inhibit"
    program = next((each for folder in path.split(os.pathsep) if os.access(each := os.path.join(folder, name), 1)), "")
    if not program:
        return []
    if sys.platform == "darwin":
        return [program, "-i", "-w", str(os.getpid())]
    why = ["--what=sleep:idle", "--mode=block", "--who=rooda", "--why=a loop is running"]
    return [program, *why, "sleep", "infinity"]
