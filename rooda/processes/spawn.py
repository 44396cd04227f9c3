"""Makes a process in a session of its own: straight from the kernel where that can be had, else by `subprocess`."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence

_LINUX = sys.platform.startswith("linux")
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)  # by Python, and thus by whatever it starts
_guarded = False  # what we were given open stays with us


def spawn(argv: Sequence[str], cwd: str, env: Mapping[str, str], stdin: int, output: int, errors: int) -> int:
    """Its pid. OSError or ValueError if it can't be started."""
    if _LINUX and os.environ.get("PATH") == env.get("PATH") and _is_here(cwd):
        return _at_once(argv, env, (stdin, output, errors))
    import subprocess

    child = subprocess.Popen(argv, cwd=cwd, env=env, stdin=stdin, stdout=output, stderr=errors, start_new_session=True)
    child.returncode = 0  # for subprocess it has ended: it is buried by whoever waits for it
    return child.pid


def _is_here(cwd: str) -> bool:
    try:
        return os.getcwd() == cwd
    except OSError:  # it has been deleted
        return False


def _at_once(argv: Sequence[str], env: Mapping[str, str], streams: Sequence[int]) -> int:
    """Without loading subprocess, and a little quicker; an `exec` that fails is told as by it."""
    _keep_what_was_inherited()
    actions = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(streams)]
    try:
        return os.posix_spawnp(argv[0], [*argv], env, file_actions=actions, setsid=True, setsigdef=_IGNORED)
    except OSError as problem:
        raise OSError(problem.errno, problem.strerror, argv[0]) from None


def _keep_what_was_inherited() -> None:
    """Files that whoever started us had left open are no business of an agent's."""
    global _guarded  # noqa: PLW0603 - one per process, like the process itself
    if _guarded:
        return
    for name in os.listdir("/proc/self/fd"):
        if (descriptor := int(name)) > 2:
            try:
                os.set_inheritable(descriptor, False)
            except OSError:  # the one that the list was read from
                pass
    _guarded = True
