"""Runs programs and says what they cost. Everything is compared within one round-robin, never across runs."""

import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


class Cost(NamedTuple):
    """What one run of a program took, its children included: seconds, and bytes at the peak of the largest of them.

    The kernel counts what the process was before it became the program: `rss` is never below our own; see `weighed`.
    """

    code: int
    wall: float
    cpu: float
    rss: int


class Spread(NamedTuple):
    """Median and quartiles of what was measured."""

    median: float
    low: float
    high: float
    rounds: int


class Failed(Exception):
    """A program that is measured did not do what it should."""


WEIGH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "weigh.py")
PLAIN = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)  # ignored where we run in the background
Series = dict[str, dict[str, Spread]]  # contender → metric → spread


def start(argv: list[str], env: Mapping[str, str], cwd: str) -> int:
    """The pid of the program, started in `cwd` without a terminal; what it says goes to `said` there."""
    said = os.open(os.path.join(cwd, "said"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    before = os.getcwd()
    os.chdir(cwd)  # posix_spawn has no cwd; it is the quickest and quietest way to start a program
    try:
        actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, said, 1), (os.POSIX_SPAWN_DUP2, said, 2)]
        return os.posix_spawn(argv[0], argv, dict(env), file_actions=actions, setpgroup=0, setsigdef=PLAIN)
    finally:
        os.chdir(before)
        os.close(said)
        os.close(null)


def finish(pid: int, began: float) -> Cost:
    """Wait for a program, and what it cost since `began`."""
    _, status, usage = os.wait4(pid, 0)
    wall = time.monotonic() - began
    return Cost(os.waitstatus_to_exitcode(status), wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _RSS_UNIT)


def once(argv: list[str], env: Mapping[str, str], cwd: str, expected: int = 0) -> Cost:
    """Run a program to its end; Failed when it does not end as expected."""
    began = time.monotonic()
    cost = finish(start(argv, env, cwd), began)
    if cost.code != expected:
        with open(os.path.join(cwd, "said"), encoding="utf-8", errors="replace") as said:
            raise Failed(f"{' '.join(argv)}: exit {cost.code} instead of {expected}\n{said.read()[-2000:]}")
    return cost


def weighed(argv: list[str], env: Mapping[str, str], cwd: str, expected: int = 0) -> Cost:
    """The same, but the peak memory is the program's own: not below 8 MB, whatever we have grown to."""
    told = os.path.join(cwd, "weighed")
    once([sys.executable, "-IS", WEIGH, told, *argv], env, cwd)
    with open(told, encoding="ascii") as file:
        code, wall, cpu, rss = file.read().split()
    if int(code) != expected:
        raise Failed(f"{' '.join(argv)}: exit {code} instead of {expected}")
    return Cost(int(code), float(wall), float(cpu), int(rss) * _RSS_UNIT)


def round_robin(contenders: Mapping[str, Callable[[], Mapping[str, float]]], rounds: int, warm: int = 1) -> Series:
    """Each contender in turn, `rounds` times over, after `warm` rounds that warm caches and are thrown away."""
    found: dict[str, list[Mapping[str, float]]] = {name: [] for name in contenders}
    for turn in range(-warm, rounds):
        for name, measure in contenders.items():
            metrics = measure()
            if turn >= 0:
                found[name].append(metrics)
    return {
        name: {metric: spread([one[metric] for one in taken]) for metric in taken[0]} for name, taken in found.items()
    }


def spread(values: Sequence[float]) -> Spread:
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [*values] * 3
    return Spread(middle, low, high, len(values))


def until(found: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + seconds
    while not found():
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not within {seconds:g} s")
        time.sleep(0.005)


_RSS_UNIT = 1 if os.uname().sysname == "Darwin" else 1024
