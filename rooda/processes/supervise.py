"""The only starter of processes. Each gets its own session, files for stdin and output, and an end."""

import os
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from rooda.base import clock, files
from rooda.processes import ending, guardian, table
from rooda.processes.signals import SignalSource

# The limits of one process: wall time, idle time, a cap on its output, and a last word that is no exit.
LOOKS = 4  # per idle timeout: how often growth and CPU use are looked at
BUSY = 0.02  # share of a processor that counts as work
LEAST = 0.05  # seconds of it; below that a short look tells nothing
CAP_LOOK = 1.0  # seconds between looks at a capped file


class Limits:
    """Asked by the wait: which limit has passed, and when to ask again. Without limits it never asks to be woken."""

    def __init__(
        self,
        output: str,
        timeout: float,
        idle: float,
        cap: int,
        exit_grace: float,
        finished: Callable[[], bool] | None,
    ) -> None:
        self._output, self._idle, self._cap = output, idle, cap
        self._finished, self._exit_grace = finished, exit_grace if finished else 0.0
        now = clock.monotonic()
        self._end = now + timeout if timeout else None
        self._grown = self._worked = self._looked = now
        self._size, self._cpu, self._dropped = 0, 0.0, 0
        self.slept = 0.0

    def due(self) -> tuple[str, float | None]:
        """The limit that has passed, if any, and how long to wait before asking again."""
        now = clock.monotonic()
        if self._end is not None and now >= self._end:
            return "timeout", None
        looks = [look for look in (self._idle / LOOKS, self._exit_grace, self._cap and CAP_LOOK) if look]
        if looks:
            self._look(now)
            if self._idle and now - max(self._grown, self._worked) >= self._idle:
                return "idle", None
            if self._exit_grace and now - self._grown >= self._exit_grace and self._finished and self._finished():
                return "finished", None
        if self._end is not None:
            looks.append(self._end - now)
        return "", min(looks, default=None)

    def shift(self, seconds: float) -> None:
        """Time that did not count: we were suspended."""
        self.slept += seconds
        self._end = None if self._end is None else self._end + seconds
        self._grown += seconds
        self._worked += seconds
        self._looked += seconds

    def size(self) -> int:
        """Bytes written so far, dropped ones included."""
        try:
            return os.stat(self._output).st_size + self._dropped
        except OSError:
            return self._dropped

    def _look(self, now: float) -> None:
        """Has it written, has it computed?"""
        size = self.size()
        if size != self._size:
            self._size, self._grown = size, now
            self._drop()
        if self._idle:
            cpu = table.cpu_seconds(table.descendants(os.getpid(), ending.spared))  # a hook's work is not its own
            passed = max(now - self._looked, 0.01)
            if cpu - self._cpu > max(BUSY * passed, min(LEAST, passed / 20)):
                self._worked = now
            self._cpu = cpu
        self._looked = now

    def _drop(self) -> None:
        """Over the cap the file starts anew: the end of an output says more than its beginning."""
        if self._cap and self._size - self._dropped > self._cap:
            self._dropped = self._size
            files.clear(self._output)


NOT_FOUND, NOT_RUNNABLE = 127, 126
_AFTER = (signal.SIGTERM, signal.SIGKILL)  # the rungs after a process's own stop signal
NOT_DEAD = 1 << 16  # no exit code
SETTLED = 0.003  # seconds; who works longer can be left alone for the time of a disk's


class Spec(NamedTuple):
    """One process to run: what, where, with which files, and how long."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    output: str  # stdout and stderr go to this file
    opened: int = -1  # the file, if it is open for that already; the start closes it
    errors: int = -1  # an open file for stderr alone; the start closes it
    stdin: str = os.devnull
    timeout: float = 0.0
    idle_timeout: float = 0.0
    exit_grace: float = 0.0  # for one that has said its last word
    finished: Callable[[], bool] | None = None  # has it?
    grace: float = 5.0
    stop: int = signal.SIGTERM
    keep: bool = False  # what it leaves behind may live until the run ends
    cap: int = 0  # bytes of output kept, 0 = all
    note: Callable[[int], None] | None = None  # puts the pid on disk
    held: bool = True  # and until that is done it sleeps


class Done(NamedTuple):
    """How it ended. `code` is what a shell would say."""

    code: int
    seconds: float
    ended: str  # exit | finished | timeout | idle | interrupted | not-started
    size: int = 0
    note: str = ""
    swept: int = 0  # processes it left behind, ended by us
    errno: int = 0  # of what kept it from being started


class Periodic(NamedTuple):
    """Something to do every so often while a process runs. Without one there are no wake-ups at all."""

    every: float
    work: Callable[[], None]


def run(spec: Spec, signals: SignalSource, periodic: Periodic | None = None) -> Done:
    """Run to the end, whatever end that is. What it left behind is ended too."""
    return run_all((spec,), signals, periodic)[0]


def run_all(
    specs: Sequence[Spec],
    signals: SignalSource,
    periodic: Periodic | None = None,
    on_settled: Callable[[], None] | None = None,
) -> list[Done]:
    """Run all of them at once, each within its own limits, until the last has ended. What they left is ended then.

    `on_settled` is done when they have settled to work: never, if none lives that long.
    """
    tasks = [_Task(spec) for spec in specs]
    started = [task for task in tasks if task.pid]
    if on_settled and started and not ending.await_exits([task.pid for task in started], SETTLED, signals.wait):
        on_settled()
    _watch(started, signals, periodic)
    interrupted = bool(signals.count)  # one that comes later does not find them at work
    swept = _reap(started, signals)
    return [task.done(swept if len(started) == 1 else 0, interrupted) for task in tasks]


class _Task:
    """One process from its start to its end."""

    def __init__(self, spec: Spec) -> None:
        self.spec, self.ended, self.seconds = spec, "", 0.0
        self._reason, self._rungs, self._until = "", [int(spec.stop), *_AFTER], 0.0
        self.pid, self._code = 0, NOT_DEAD
        try:
            self.pid = _start(spec)
        except (OSError, ValueError) as problem:  # ValueError: a NUL among the words
            self._problem = problem
            return
        self._began = clock.monotonic()
        self.limits = Limits(spec.output, spec.timeout, spec.idle_timeout, spec.cap, spec.exit_grace, spec.finished)

    def end(self, reason: str) -> None:
        """Up the ladder: its own stop signal, TERM where that was another, KILL."""
        if not self._reason:
            self._reason = reason
            self._climb()

    def look(self, impatient: bool) -> float | None:
        """Do what is due; how long nobody need look again. Impatience skips the graces."""
        if not self._reason:
            reason, pause = self.limits.due()
            if not reason:
                return pause
            self.end(reason)
        elif impatient and self._rungs:
            self._rungs = [signal.SIGKILL]
            self._climb()
        elif clock.monotonic() >= self._until:
            self._climb() if self._rungs else self.close()
        return max(self._until - clock.monotonic(), 0.0)

    def _climb(self) -> None:
        number = self._rungs.pop(0)
        if self._rungs[:1] == [number]:
            self._rungs.pop(0)
        ending.signal_group(self.pid, number)
        self._until = clock.monotonic() + (self.spec.grace if self._rungs else ending.LAST_WAIT)

    def close(self) -> None:
        self.ended, self.seconds = self._reason or "exit", clock.monotonic() - self._began - self.limits.slept

    @property
    def reaped(self) -> bool:
        return self._code != NOT_DEAD

    def reap(self) -> None:
        """Once it is dead."""
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else NOT_DEAD
        except ChildProcessError:  # somebody made the kernel bury our dead
            self._code = 0

    def done(self, swept: int, interrupted: bool) -> Done:
        if not self.pid:
            return _not_started(self._problem, self.spec)
        code, note = (self._code, "") if self.reaped else (-signal.SIGKILL, f"process {self.pid} does not die")
        ended = "interrupted" if interrupted else self.ended
        return Done(code if code >= 0 else 128 - code, self.seconds, ended, self.limits.size(), note, swept)


def start_background(spec: Spec) -> int:
    """Start something that goes on beside us until `end_leftovers`; its pid."""
    return _start(spec)


def end_leftovers(signals: SignalSource, grace: float) -> int:
    """End whatever still descends from us: what calls with `keep` left. How many there were."""
    return _sweep((), grace, signals)


def _start(spec: Spec) -> int:
    """Its pid. OSError or ValueError if it can't be."""
    output = spec.opened if spec.opened >= 0 else files.create_output(spec.output)
    try:
        stdin = os.open(spec.stdin, os.O_RDONLY | os.O_CLOEXEC)
        try:
            errors = output if spec.errors < 0 else spec.errors
            pid = spawn(spec.argv, spec.cwd, spec.env, stdin, output, errors)
        finally:
            os.close(stdin)
    finally:
        for descriptor in {output, spec.errors} - {-1}:
            os.close(descriptor)
    if spec.note and spec.held:
        _stopped_until_noted(pid, spec.note)
    elif spec.note:
        spec.note(pid)
    return pid


def _stopped_until_noted(pid: int, note: Callable[[int], None]) -> None:
    """It sleeps, in the first moments of its loading, until its identity is on disk. Our death leaves it asleep.

    A stub that waits before its exec would do the same a little earlier, at twice the processor time per call.
    """
    ending.signal_all((pid,), signal.SIGSTOP)
    try:
        note(pid)
    finally:
        ending.signal_all((pid,), signal.SIGCONT)


def _not_started(problem: OSError | ValueError, spec: Spec) -> Done:
    code = NOT_FOUND if isinstance(problem, FileNotFoundError) else NOT_RUNNABLE
    why = problem.strerror or problem if isinstance(problem, OSError) else f"can't be started ({problem})"
    what = getattr(problem, "filename", None) or spec.argv[0]  # its prompt can be what is missing
    return Done(code, 0.0, "not-started", note=f"{what}: {why}", errno=getattr(problem, "errno", None) or 0)


def _watch(tasks: Sequence[_Task], signals: SignalSource, periodic: Periodic | None) -> None:
    """Wait for exits, a signal or a deadline, whichever comes first. A signal from just before the start counts."""
    while running := _still_running(tasks):
        for task in running if signals.count else ():
            task.end("interrupted")
        if signals.suspended:
            _suspend([task.limits for task in running], signals)
        pauses = [pause for task in running if (pause := task.look(signals.count > 1)) is not None]
        if periodic:
            periodic.work()
            pauses.append(periodic.every)
        signals.wait(min(pauses, default=None))
        ending.reap_while_waiting([task.pid for task in tasks])
    if periodic:
        periodic.work()


def _still_running(tasks: Iterable[_Task]) -> list[_Task]:
    """Notes who has exited."""
    for task in tasks:
        if not task.ended and ending.has_exited(task.pid):
            task.close()
    return [task for task in tasks if not task.ended]


def _suspend(all_limits: Iterable[Limits], signals: SignalSource) -> None:
    """Ctrl+Z: the agent sleeps with us, and time stands still for its limits."""
    began = clock.monotonic()
    below: set[int] = set()
    while new := set(table.descendants(os.getpid())) - below:  # until nobody is left awake who could start others
        ending.signal_all(new, signal.SIGSTOP)
        below |= new
    signals.stop_self()
    ending.signal_all(below, signal.SIGCONT)
    for limits in all_limits:
        limits.shift(clock.monotonic() - began)


def _reap(tasks: Sequence[_Task], signals: SignalSource) -> int:
    """Reap the leaders and end what they left. A group's number is not given away while anybody is in the group."""
    swept = 0
    keep = any(task.spec.keep for task in tasks)
    if tasks and not keep and not table.PROC:
        for task in tasks:
            ending.signal_group(task.pid, signal.SIGTERM)
    for task in tasks:
        task.reap()
    if tasks and not keep and not guardian.childless():
        undead = [task.pid for task in tasks if not task.reaped]
        swept = _sweep(undead, max(task.spec.grace for task in tasks), signals)
    return swept


def _sweep(ours: Collection[int], grace: float, signals: SignalSource) -> int:
    """End every descendant but the children in `ours`. Where orphans don't come to us, only what is still below us."""
    ended: set[int] = set()

    def living() -> list[int]:
        found = ending.living_below(ours)
        ended.update(found)
        return found

    ending.end_all(living, grace, signals.wait, lambda: signals.count > 1)
    return len(ended)


# Makes a process in a session of its own: straight from the kernel where that can be had, else by `subprocess`.
_LINUX = sys.platform.startswith("linux")
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)  # by Python, and thus by whatever it starts
_inherited_closed = False  # what we were given open stays with us


def spawn(argv: Sequence[str], cwd: str, env: Mapping[str, str], stdin: int, output: int, errors: int) -> int:
    """Its pid. OSError or ValueError if it can't be started."""
    if _LINUX and os.environ.get("PATH") == env.get("PATH") and _is_here(cwd):
        return _posix_spawn(argv, env, (stdin, output, errors))
    import subprocess

    child = subprocess.Popen(argv, cwd=cwd, env=env, stdin=stdin, stdout=output, stderr=errors, start_new_session=True)
    child.returncode = 0  # for subprocess it has ended: it is reaped by whoever waits for it
    return child.pid


def _is_here(cwd: str) -> bool:
    try:
        return os.getcwd() == cwd
    except OSError:  # it has been deleted
        return False


def _posix_spawn(argv: Sequence[str], env: Mapping[str, str], streams: Sequence[int]) -> int:
    """Without loading subprocess, and a little quicker; an `exec` that fails is told as by it."""
    _close_inherited_on_exec()
    actions = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(streams)]
    try:
        return os.posix_spawnp(argv[0], [*argv], env, file_actions=actions, setsid=True, setsigdef=_IGNORED)
    except OSError as problem:
        raise OSError(problem.errno, problem.strerror, argv[0]) from None


def _close_inherited_on_exec() -> None:
    """Files that whoever started us had left open are no business of an agent's."""
    global _inherited_closed  # noqa: PLW0603 - one per process, like the process itself
    if _inherited_closed:
        return
    for name in os.listdir("/proc/self/fd"):
        if (descriptor := int(name)) > 2:
            try:
                os.set_inheritable(descriptor, False)
            except OSError:  # the one that the list was read from
                pass
    _inherited_closed = True
