"""rooda as the first process of a container: nothing above it reaps orphans."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.kit.needed import LINUX, needs
from tests.kit.processes import alive
from tests.kit.workspace import Workspace, until

pytestmark = [LINUX, needs("unshare")]
CONTAINER = ["unshare", "-Urpf", "--mount-proc", "--kill-child"]


def test_sigterm_of_the_first_process_ends_the_agent_and_saves_the_state(ws: Workspace) -> None:
    """As `docker stop` sends it: exit 143, nothing left, and the run can be resumed; orphans are reaped meanwhile."""
    if subprocess.run([*CONTAINER, "true"], capture_output=True).returncode:
        pytest.skip("may not make namespaces")
    ws.procedure("build")
    ws.side(1, "(setsid sleep 60 & echo orphan)\nsleep 60")
    started = subprocess.Popen(
        [*CONTAINER, *ws.command("build", "-n", "2")],
        cwd=ws.path,
        env=ws.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    ws.wait_calls(1)
    (first,) = children(started.pid)
    os.kill(first, signal.SIGTERM)
    out, _ = started.communicate()
    assert started.returncode == 143 and "State saved. Resume with: rooda resume build" in out
    until(lambda: not alive(first), what="its end")
    assert ws.leftovers() == []
    assert ws.rooda("resume", "build").code == 0


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
