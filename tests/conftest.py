"""Fixtures for every test folder: `ws`, a workspace with the procedure `build`, and `bare`, one without settings."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.kit.hermetic import isolate
from tests.kit.workspace import Workspace

pytest_plugins = ["tests.kit.clis.fixtures", "tests.kit.users"]

isolate()

settings.register_profile("rooda", deadline=None)  # how long an example takes is the machine's affair
settings.load_profile("rooda")

# Started in the background of a script or by nohup, everything that a test starts would ignore these signals.
USUAL = {signal.SIGINT: signal.default_int_handler, signal.SIGQUIT: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL}
for number, usual in USUAL.items():
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


@pytest.hookimpl(optionalhook=True)  # without xdist there is no such hook
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let a worker that has nothing left to do take tests from the other one: `--dist worksteal`."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Two workers for each core: half of a test's time is waiting for others."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None  # xdist obeys it
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores * 2


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Workspace]:
    """An empty workspace; nothing of it may be running when the test is over."""
    workspace = Workspace(str(tmp_path))
    yield workspace
    workspace.close()


@pytest.fixture
def ws(bare: Workspace) -> Workspace:
    """A workspace whose rooda.toml has the procedure `build` with OBS, ORI, DEC, ACT and the scripted agent."""
    bare.procedure("build")
    return bare
