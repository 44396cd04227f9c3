"""Starts rooda's processes, each in its own session with files for stdin and output, and waits for their end."""

import errno
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from rooda.base import clock, files
from rooda.processes import ending, guardian, table
from rooda.processes.signals import Signals, SignalSource

# Limits of one process: wall time, idle time, output size, and the time between its final message and its exit.
LOOKS = 4  # checks of output and CPU use per idle timeout
BUSY = 0.04  # share of a CPU that counts as work; CLIs that only wait use up to 0.02
LEAST = 0.05  # least CPU seconds that count: shorter ones are below the clock's resolution
CAP_LOOK = 1.0  # seconds between checks of a file with a size limit
RESOURCE_LOOK = 2.0  # seconds between checks of what a process and its descendants use


class Most(NamedTuple):
    """The resources that a process and its descendants may use; 0 = no limit."""

    memory: int = 0  # bytes
    processes: int = 0
    output: int = 0  # bytes of stdout and stderr


class Limits:
    """Tracks the limits of one process. The wait loop calls `due()`; without limits it never has to wake up."""

    def __init__(
        self,
        output: int,
        timeout: float,
        idle: float,
        cap: int,
        exit_grace: float,
        finished: Callable[[], bool] | None,
        most: Most | None = None,
        pid: int = 0,
    ) -> None:
        self._output, self._idle, self._cap = output, idle, cap
        self._most, self._pid, self.exceeded = most, pid, ""
        self._finished, self._exit_grace = finished, exit_grace if finished else 0.0
        now = clock.monotonic()
        self._end = now + timeout if timeout else None
        self._grown = self._worked = self._looked = now
        self._measured = now
        self._size, self._cpu, self._dropped = 0, 0.0, 0
        self.slept = 0.0

    def due(self) -> tuple[str, float | None]:
        """Return the limit that was reached, or "", and the seconds until the next check (None: no limits set)."""
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
        if self._most:
            if self._exceeds(self._most, now):
                return "resources", None
            looks.append(RESOURCE_LOOK)
        if self._end is not None:
            looks.append(self._end - now)
        return "", min(looks, default=None)

    def _exceeds(self, most: Most, now: float) -> bool:
        """True if the process and its descendants exceed a resource limit; `exceeded` then describes it."""
        if now - self._measured < RESOURCE_LOOK:
            return False
        self._measured = now
        pids = [self._pid, *table.descendants(self._pid, ending.spared)]
        used = Most(table.memory(pids) if most.memory else 0, len(pids), self.size())
        for name, limit, value in zip(Most._fields, most, used, strict=True):
            if limit and value > limit:
                shown = f"{value:,} of at most {limit:,}"
                self.exceeded = f"{shown} {name}" if name == "processes" else f"{shown} bytes of {name}"
        return bool(self.exceeded)

    def shift(self, seconds: float) -> None:
        """Extend the limits by the time for which the process was suspended."""
        self.slept += seconds
        self._end = None if self._end is None else self._end + seconds
        self._grown += seconds
        self._worked += seconds
        self._looked += seconds

    def size(self) -> int:
        """Return the bytes of output so far, including those dropped."""
        return os.fstat(self._output).st_size + self._dropped

    def _look(self, now: float) -> None:
        """Check for new output and CPU use."""
        size = self.size()
        if size != self._size:
            self._size, self._grown = size, now
            self._drop()
        if self._idle:
            cpu = table.cpu_seconds(table.descendants(os.getpid(), ending.spared))  # without the CPU time of hooks
            passed = max(now - self._looked, 0.01)
            if cpu - self._cpu > max(BUSY * passed, min(LEAST, passed / 20)):
                self._worked = now
            self._cpu = cpu
        self._looked = now

    def _drop(self) -> None:
        """Empty the output file if it exceeds its limit: the end of an output matters more than its beginning."""
        if self._cap and self._size - self._dropped > self._cap:
            self._dropped = self._size
            files.clear(self._output)


NOT_FOUND, NOT_RUNNABLE = 127, 126
NOT_DEAD = 1 << 16  # marks a process that is not reaped yet; no exit code is that large
LEAST_GRACE = 0.25  # seconds between TERM and KILL for processes that have had no TERM yet
SETTLED = 0.003  # seconds; a process that runs longer leaves time for a disk flush


class Spec(NamedTuple):
    """One process to run: command line, folder, files and limits."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    output: str  # file for stdout and stderr
    opened: int = -1  # descriptor of that file if it is already open; its opener closes it
    errors: int = -1  # descriptor for stderr alone; closed after the start
    stdin: str = os.devnull
    timeout: float = 0.0
    idle_timeout: float = 0.0
    exit_grace: float = 0.0  # seconds from its final message to its exit
    finished: Callable[[], bool] | None = None  # True once it has written its final message
    grace: float = 5.0  # seconds from the first signal to KILL, for its whole tree
    stop: int = signal.SIGTERM
    is_agent: bool = False
    keep: bool = False  # its descendants may run until the run ends
    cap: int = 0  # bytes of output kept, 0 = all
    on_start: Callable[[int], None] | None = None  # records the PID on disk
    held: bool = True  # stopped until its PID is recorded
    walled: bool = False  # in a sandbox: its PID is that of bubblewrap
    program: str = ""  # the program in the sandbox, which must exist
    passed: Sequence[int] = ()  # descriptors that the process inherits; closed after the start
    admit: Callable[[], None] | None = None  # called after the start of a process that waits for it
    home: str = ""  # the folder that the process has as HOME, if it is another one than in its environment
    most: Most | None = None


class ProcessResult(NamedTuple):
    """The result of a process; `code` is the exit code as a shell reports it."""

    code: int
    seconds: float
    ended: str  # exit | finished | timeout | idle | resources | interrupted | not-started
    size: int = 0
    note: str = ""
    swept: int = 0  # descendants ended by rooda
    errno: int = 0  # the reason if it could not start


class Periodic(NamedTuple):
    """Work to do at intervals while a process runs. Without periodic work, rooda sleeps until something happens."""

    every: float
    work: Callable[[], None]


def run(spec: Spec, signals: SignalSource, periodic: Periodic | None = None) -> ProcessResult:
    """Run a process to its end, then end its descendants."""
    return run_all((spec,), signals, periodic)[0]


def run_all(
    specs: Sequence[Spec],
    signals: SignalSource,
    periodic: Periodic | None = None,
    on_settled: Callable[[], None] | None = None,
) -> list[ProcessResult]:
    """Run processes in parallel, each within its own limits, then end their descendants.

    `on_settled` is called after SETTLED seconds, unless all processes have exited by then.
    """
    tasks = [_Task(spec) for spec in specs]
    started = [task for task in tasks if task.pid]
    if on_settled and started and not ending.await_exits([task.pid for task in started], SETTLED, signals.wait):
        on_settled()
    _watch(started, signals, periodic)
    interrupted = bool(signals.count)  # later signals find none of them running
    swept = _reap(started, signals)
    return [task.done(swept if len(started) == 1 else 0, interrupted) for task in tasks]


class _Task:
    """One running process, from its start to its end."""

    def __init__(self, spec: Spec) -> None:
        self.spec, self.ended, self.seconds = spec, "", 0.0
        self._reason, self._until, self._kill_at = "", 0.0, 0.0
        self._next = self._send_term  # what to do at `_until`
        self.pid, self._code, self._output = 0, NOT_DEAD, spec.opened
        try:
            self._output = _output(spec)
            self.pid = _start(spec, self._output)
        except (OSError, ValueError) as problem:  # ValueError: an argument contains NUL
            self._problem = problem
            return
        self._began = clock.monotonic()
        times = (spec.timeout, spec.idle_timeout, spec.cap, spec.exit_grace)
        self.limits = Limits(self._output, *times, spec.finished, spec.most, self.pid)

    def end(self, reason: str) -> None:
        """Begin to end the process: its own stop signal now, TERM at half the grace, KILL at the end of the grace."""
        if not self._reason:
            self._reason, now = reason, clock.monotonic()
            ending.signal_group(self._group(), self.spec.stop)
            self._until, self._kill_at = now + self.spec.grace / 2, now + self.spec.grace

    def look(self, impatient: bool, everything: bool) -> float | None:
        """Enforce the limits and return the seconds until the next check.

        `impatient`: skip the grace. `everything`: true if all processes below rooda belong to tasks that are ending.
        """
        if not self._reason:
            reason, pause = self.limits.due()
            if not reason:
                return pause
            self.end(reason)
        if impatient and self._next != self._give_up:
            self._kill(everything)
        elif clock.monotonic() >= self._until:
            self._next(everything)
        return max(self._until - clock.monotonic(), 0.0)

    def _send_term(self, everything: bool) -> None:
        """Send TERM to the process and its descendants, except to a group that already got it as its stop signal.

        `everything`: send it to all processes below rooda, unless the process is in a sandbox.
        """
        group = self._group()
        below = table.descendants(os.getpid() if everything and not self.spec.walled else group, ending.spared)
        if self.spec.stop == signal.SIGTERM:
            below = [pid for pid in below if not ending.is_in_group(pid, group)]
        else:
            ending.signal_group(group, signal.SIGTERM)
        ending.signal_all(below, signal.SIGTERM)
        ending.signal_all(below, signal.SIGCONT)
        self._next, self._until = self._kill, self._kill_at

    def _group(self) -> int:
        """Return the group to signal: in a sandbox the program's own, since killing bubblewrap kills the program."""
        return table.first_inside(self.pid) if self.spec.walled else self.pid

    def _kill(self, everything: bool) -> None:
        ending.signal_group(self.pid, signal.SIGKILL)
        self._kill_at = min(self._kill_at, clock.monotonic())
        self._next, self._until = self._give_up, clock.monotonic() + ending.LAST_WAIT

    def _give_up(self, everything: bool) -> None:
        self.close()

    @property
    def grace_left(self) -> float:
        """The seconds that descendants have to end: the whole grace, or what is left if rooda ended the process."""
        return max(self._kill_at - clock.monotonic(), 0.0) if self._reason else self.spec.grace

    def close(self) -> None:
        self.ended, self.seconds = self._reason or "exit", clock.monotonic() - self._began - self.limits.slept

    @property
    def is_ending(self) -> bool:
        return bool(self._reason)

    @property
    def reaped(self) -> bool:
        return self._code != NOT_DEAD

    def reap(self) -> None:
        """Collect the exit status if the process has exited."""
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else NOT_DEAD
        except ChildProcessError:  # SIGCHLD is ignored, so the kernel has reaped it
            self._code = 0

    def done(self, swept: int, interrupted: bool) -> ProcessResult:
        size = self.limits.size() if self.pid else 0
        if self._output >= 0 and self._output != self.spec.opened:
            os.close(self._output)
        if not self.pid:
            return _not_started(self._problem, self.spec)
        code, note = self._code, self.limits.exceeded
        if not self.reaped:
            code, note = -signal.SIGKILL, f"process {self.pid} can't be killed"
        ended = "interrupted" if interrupted else self.ended
        return ProcessResult(code if code >= 0 else 128 - code, self.seconds, ended, size, note, swept)


def start_background(spec: Spec) -> int:
    """Start a process that runs until `end_leftovers`; return its PID."""
    output = _output(spec)
    try:
        return _start(spec, output)
    finally:
        os.close(output)


def end_leftovers(signals: Signals, grace: float) -> int:
    """End all remaining descendants, such as those left by calls with `keep`; return their number.

    After a signal, they get only the rest of the grace that began with the signal.
    """
    return _sweep((), max(grace - signals.seconds_since_first, min(grace, LEAST_GRACE)), signals)


def _output(spec: Spec) -> int:
    return spec.opened if spec.opened >= 0 else files.create_output(spec.output)


def _start(spec: Spec, output: int) -> int:
    """Start a process and return its PID. Raises OSError or ValueError if that fails."""
    try:
        if spec.program and not os.path.exists(spec.program):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), spec.program)
        stdin = _stdin(spec.stdin)
        try:
            errors = output if spec.errors < 0 else spec.errors
            pid = spawn(spec.argv, spec.cwd, spec.env, (stdin, output, errors), spec.passed)
        finally:
            os.close(stdin)
    finally:
        for descriptor in (*spec.passed, *((spec.errors,) if spec.errors >= 0 else ())):
            os.close(descriptor)
    if spec.on_start and spec.held:
        _stopped_until_recorded(pid, spec.on_start)
    elif spec.on_start:
        spec.on_start(pid)
    if spec.admit:
        spec.admit()
    return pid


def _stdin(path: str) -> int:
    """Open the file for stdin, which must be regular: an earlier agent could have replaced a prompt with a pipe."""
    if path == os.devnull:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    descriptor = files.open_regular(path, os.O_RDONLY)
    os.set_blocking(descriptor, True)
    return descriptor


def _stopped_until_recorded(pid: int, record: Callable[[int], None]) -> None:
    """Keep a new process stopped until its PID is on disk; if rooda dies before that, the process stays stopped.

    A stub that waits before its exec would stop a little earlier, at twice the CPU time per call.
    """
    ending.signal_all((pid,), signal.SIGSTOP)
    try:
        record(pid)
    finally:
        ending.signal_all((pid,), signal.SIGCONT)


def _not_started(problem: OSError | ValueError, spec: Spec) -> ProcessResult:
    code = NOT_FOUND if isinstance(problem, FileNotFoundError) else NOT_RUNNABLE
    why = problem.strerror or problem if isinstance(problem, OSError) else f"can't be started ({problem})"
    what = getattr(problem, "filename", None) or spec.argv[0]  # the missing file, if known: maybe the prompt
    return ProcessResult(code, 0.0, "not-started", note=f"{what}: {why}", errno=getattr(problem, "errno", None) or 0)


def _watch(tasks: Sequence[_Task], signals: SignalSource, periodic: Periodic | None) -> None:
    """Wait until all tasks have ended: handle exits, signals and limits. Signals from before the start count too."""
    while running := _still_running(tasks):
        if signals.count:
            _begin_to_stop(running, signals)
        if signals.suspended:
            _suspend([task.limits for task in running], signals)
        everything = bool(signals.count) or (len(tasks) == 1 and not tasks[0].spec.keep)
        pauses = [pause for task in running if (pause := task.look(signals.count > 1, everything)) is not None]
        if periodic:
            periodic.work()
            pauses.append(periodic.every)
        signals.wait(min(pauses, default=None))
        ending.reap_while_waiting([task.pid for task in tasks])
    if periodic:
        periodic.work()


def _begin_to_stop(running: Sequence[_Task], signals: SignalSource) -> None:
    """End all tasks; report that once, with the longest grace of the tasks that were still working."""
    working = [task.spec for task in running if not task.is_ending]
    for task in running:
        task.end("interrupted")
    if working:
        signals.report_stopping(max(spec.grace for spec in working), any(spec.is_agent for spec in working))


def _still_running(tasks: Iterable[_Task]) -> list[_Task]:
    """Close the tasks whose process has exited; return those still running."""
    for task in tasks:
        if not task.ended and ending.has_exited(task.pid):
            task.close()
    return [task for task in tasks if not task.ended]


def _suspend(all_limits: Iterable[Limits], signals: SignalSource) -> None:
    """Suspend this process and its descendants after Ctrl+Z, and exclude that time from their limits."""
    began = clock.monotonic()
    below: set[int] = set()
    while new := set(table.descendants(os.getpid())) - below:  # repeated, since a running process could start others
        ending.signal_all(new, signal.SIGSTOP)
        below |= new
    signals.stop_self()
    ending.signal_all(below, signal.SIGCONT)
    for limits in all_limits:
        limits.shift(clock.monotonic() - began)


def _reap(tasks: Sequence[_Task], signals: SignalSource) -> int:
    """Reap the processes and end their descendants; return the number of descendants ended.

    The ID of a process group is not reused while the group has members.
    """
    swept = 0
    keep = any(task.spec.keep for task in tasks)
    if tasks and not keep and not table.PROC:
        for task in tasks:
            ending.signal_group(task.pid, signal.SIGTERM)
    for task in tasks:
        task.reap()
    if tasks and all(task.spec.walled and task.reaped for task in tasks):
        if not keep:  # the kernel kills the processes in a sandbox that has ended
            ending.await_deaths(signals.wait)
        return 0
    if tasks and not keep and not guardian.childless():
        unreaped = [task.pid for task in tasks if not task.reaped]
        swept = _sweep(unreaped, max(task.grace_left for task in tasks), signals)
    return swept


def _sweep(ours: Collection[int], grace: float, signals: SignalSource) -> int:
    """End every descendant except the children in `ours`; return their number.

    Misses orphans on systems that don't re-parent them to this process.
    """
    ended: set[int] = set()

    def living() -> list[int]:
        found = ending.living_below(ours)
        ended.update(found)
        return found

    ending.end_all(living, grace, signals.wait, lambda: signals.count > 1)
    return len(ended)


# Start a process in its own session. On Linux posix_spawn does that without the cost of loading subprocess.
_LINUX = sys.platform.startswith("linux")
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)  # signals that Python ignores, reset for its children
_inherited_closed = False  # inherited descriptors are closed on exec


def spawn(
    argv: Sequence[str], cwd: str | None, env: Mapping[str, str], streams: Sequence[int], passed: Sequence[int] = ()
) -> int:
    """Start a process in its own session and return its PID. Raises OSError or ValueError if that fails.

    `cwd`: None means the current directory. `passed`: descriptors that the process keeps open.
    """
    if _LINUX and (os.path.isabs(argv[0]) or os.environ.get("PATH") == env.get("PATH")) and _is_here(cwd):
        return _posix_spawn(argv, env, streams, passed)
    import subprocess

    stdin, output, errors = streams
    child = subprocess.Popen(
        argv, cwd=cwd, env=env, stdin=stdin, stdout=output, stderr=errors, start_new_session=True, pass_fds=passed
    )
    child.returncode = 0  # so that subprocess does not reap it
    return child.pid


def _is_here(cwd: str | None) -> bool:
    try:
        return cwd is None or os.getcwd() == cwd
    except OSError:  # the folder was deleted
        return False


def _posix_spawn(argv: Sequence[str], env: Mapping[str, str], streams: Sequence[int], passed: Sequence[int]) -> int:
    """Start a process without loading subprocess, which is slower; a failed exec raises the same OSError."""
    _close_inherited_on_exec()
    for descriptor in passed:
        os.set_inheritable(descriptor, True)
    actions = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(streams)]
    try:
        return os.posix_spawnp(argv[0], [*argv], env, file_actions=actions, setsid=True, setsigdef=_IGNORED)
    except OSError as problem:
        raise OSError(problem.errno, problem.strerror, argv[0]) from None
    finally:
        for descriptor in passed:
            os.set_inheritable(descriptor, False)


def _close_inherited_on_exec() -> None:
    """Mark descriptors inherited from rooda's parent as close-on-exec, so that agents don't get them."""
    global _inherited_closed  # noqa: PLW0603 - one per process, like the process itself
    if _inherited_closed:
        return
    for name in os.listdir("/proc/self/fd"):
        if (descriptor := int(name)) > 2:
            try:
                os.set_inheritable(descriptor, False)
            except OSError:  # the descriptor of the listing itself
                pass
    _inherited_closed = True
