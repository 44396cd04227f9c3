"""A kill, EIO and ENOSPC at the calls with which a loop writes its files, for every kind of loop."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from benchmarks.faults import steps
from benchmarks.faults.kinds import KINDS
from benchmarks.faults.site import Site
from benchmarks.faults.steps import EIO, ENOSPC, KILL, Steps
from tests.kit.needed import LINUX, needs

pytestmark = [LINUX, needs("cc")]
ROUNDS = int(os.environ.get("ROODA_ROUNDS", "0"))  # 0: all steps
TRACED = "openat,write,pwrite64,fsync,fdatasync,rename,unlink,mkdir,ftruncate,flock,rmdir,truncate"
SAME = {"openat": "open-to-write", "pwrite64": "pwrite"}
Made = Callable[[str], Steps]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The steps of a kind of loop, and the end that it should come to."""
    return cache(lambda loop: Steps(KINDS[loop], str(tmp_path_factory.mktemp(loop))))


def straced(lines: list[str], site: Site) -> list[tuple[str, str]]:
    """Name and path of every call with which the loop changes its files, as strace reports them."""
    folders, found = tuple(os.path.join(site.work, name) for name in (".rooda", *site.kind.public)), []
    loop = next(line.split()[0] for line in lines if folders[0] in line)
    for pid, call in (line.split(maxsplit=1) for line in lines):
        name, _, told = call.partition("(")
        if pid != loop or (name == "openat" and not re.search("O_WRONLY|O_RDWR|O_CREAT", told)):
            continue
        paths = re.findall(r'"/[^"]*"|<[^>]*>', re.sub(r"^AT_FDCWD<[^>]*>|\) = .*|<unfinished.*", "", told))
        path = paths[-1 if name == "rename" else 0][1:-1] if paths else ""
        if path.startswith(folders):
            found.append((SAME.get(name, name), os.path.relpath(path, site.work)))
    return found


@needs("strace")
@pytest.mark.parametrize("loop", ["ooda", "goal"])
def test_the_steps_are_those_that_strace_sees(made: Made, tmp_path: Path, loop: str) -> None:
    """In one and the same run: every call with which the loop changes its files, in the same order."""
    site, log = Site(KINDS[loop], str(tmp_path / "site")), tmp_path / "strace.log"
    env = site.env | made(loop).env(site, 0, KILL)
    strace = ["strace", "-f", "-qq", "-y", "-b", "execve", "-o", str(log), "-e", "signal=none", "-e", f"trace={TRACED}"]
    command = [*strace, sys.executable, "-m", "rooda", *site.kind.start]
    done = subprocess.run(command, cwd=site.work, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    mine = [(step.name, step.path) for step in steps.noted(site) if step.name not in steps.READING]
    assert len(mine) > 100
    assert straced(log.read_text().splitlines(), site) == mine


@pytest.mark.parametrize("fault", [KILL, EIO, ENOSPC])
@pytest.mark.parametrize("loop", KINDS)
def test_O_020_O_082_O_114_a_fault_at_a_step_loses_nothing(made: Made, loop: str, fault: str) -> None:
    """The loop is killed there, or continues or says why not; the next start continues to the end."""
    places = made(loop).places(fault)
    judge = made(loop).one(places[len(places) * (1 + [*KINDS].index(loop)) // 6], fault)
    assert judge.problems == []


@pytest.mark.long
@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("fault", [KILL, EIO, ENOSPC])
@pytest.mark.parametrize("loop", KINDS)
def test_a_fault_at_every_step_loses_nothing(tmp_path: Path, loop: str, fault: str) -> None:
    """All of them, or $ROODA_ROUNDS by chance."""
    found, problems = steps.run(loop, fault, str(tmp_path), most=ROUNDS)
    assert problems == []
    assert found["faults"] > 100 or ROUNDS
