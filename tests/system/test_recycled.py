"""The next start and the ledger: only processes that are proved to be of the earlier run are ended."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooda.processes import ledger as processes_ledger
from rooda.processes import table
from rooda.run.folder import is_id
from tests.kit.workspace import Workspace, alive, until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
RUN, OTHER = "20261118T101500Z-build-4711", "20261118T101501Z-build-4711"
WITNESS = "trap 'echo signalled; exit 1' TERM INT HUP CONT; echo ready; while :; do sleep 0.05; done"


@pytest.fixture
def stranger() -> Iterator["subprocess.Popen[bytes]"]:
    """A process with a session and a group of its own that ends when it gets any signal."""
    argv = ["sh", "-c", WITNESS]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


def ledger(pid: object, **changed: object) -> dict[str, Any]:
    """What a run leaves that was killed while this process was its agent."""
    start = table.start_of(pid) if isinstance(pid, int) else None
    return {
        "pid": 1,
        "start": 1,
        "boot": changed.pop("boot", table.boot()),
        "run": changed.pop("run", RUN),
        "calls": [{"pid": pid, "start": start, "command": "agent", **changed}],
    }


def started(ws: Workspace, content: str | bytes) -> None:
    """A start that finds this lock file completes, without a traceback."""
    ws.write(".rooda/state/build.lock", content)
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 0, ran.both
    assert "Traceback" not in ran.both
    assert "still alive" not in ran.both


def test_a_proved_survivor_is_ended_and_named(ws: Workspace, stranger: "subprocess.Popen[bytes]") -> None:
    """The counterpart of the tests below: with pid, start time and boot right, the same process is ended."""
    ws.write(".rooda/state/build.lock", json.dumps(ledger(stranger.pid)))
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 0
    assert f"Processes of the earlier run {RUN} (agent) were still alive: {stranger.pid}" in ran.err
    assert not alive(stranger.pid)


@pytest.mark.parametrize(
    "changed",
    [{"start": 1}, {"start": None}, {"start": "x"}, {"boot": "another"}, {"run": ""}, {"run": None}, {"run": "a"}],
    ids=str,
)
def test_a_recycled_pid_is_never_signalled(
    ws: Workspace, stranger: "subprocess.Popen[bytes]", changed: dict[str, object]
) -> None:
    """With another start time or boot, or without a run, the process with that PID is a foreign one."""
    started(ws, json.dumps(ledger(stranger.pid, **changed)))
    assert alive(stranger.pid)


def test_a_reused_pid_in_a_foreign_session_is_not_proof(ws: Workspace) -> None:
    """The recorded agent is dead and its PID has led a foreign session since: no process in that is signalled."""
    argv = ["sh", "-c", "sleep 1000 >&- & echo $!"]
    leader = subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True)
    assert leader.stdout is not None
    child = int(leader.stdout.readline())
    leader.wait()
    leader.stdout.close()
    try:
        started(ws, json.dumps(ledger(leader.pid, start=5)))
        started(ws, json.dumps(ledger(leader.pid)))
        assert alive(child)
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe\x00garbage",
        "[" * 100_000,
        "null",
        "[]",
        '"text"',
        json.dumps({"run": RUN, "boot": table.boot(), "calls": {}}),
        json.dumps({"run": "\ud800", "boot": table.boot(), "calls": []}),
        json.dumps({"run": 5, "boot": table.boot(), "calls": []}),
        json.dumps({"run": [RUN], "boot": [], "calls": [[], 1, None, {"pid": True}, {"pid": -1}, {"pid": 0}, {}]}),
        json.dumps(ledger(10**30, start=1)),
        json.dumps(ledger("1", start=1)),
        json.dumps(ledger(0, start=1)),
        json.dumps(ledger(-1, start=1)),
    ],
    ids=range(13),
)
def test_a_ledger_of_garbage_does_no_harm(ws: Workspace, content: str | bytes) -> None:
    """Bytes, JSON of any shape, absurd numbers: the run starts as if there were none."""
    started(ws, content)


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
anything = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
pids = anything | st.sampled_from([-1, 0, 1, os.getpid(), os.getppid()])
call = st.fixed_dictionaries({}, optional={"pid": pids, "start": anything, "command": anything})
runs, boots = anything | st.just(OTHER), anything | st.just(table.boot())


@settings(max_examples=40, deadline=None)
@given(calls=st.lists(call) | anything, run=runs, boot=boots)
def test_a_damaged_ledger_names_no_process(calls: object, run: object, boot: object) -> None:
    """A damaged ledger names no process."""
    assert processes_ledger.end_survivors({"run": run, "calls": calls, "boot": boot}, is_id) is None


def test_our_own_callers_are_spared(ws: Workspace) -> None:
    """A start from inside what an earlier run has left behind does not end itself or its parents."""
    here = "20261118T101502Z-build-4711"
    script = (
        "import json, os, subprocess, sys; from rooda.processes import table;"
        "os.makedirs('.rooda/state', exist_ok=True);"
        "call = {**table.identity_of(os.getpid()), 'command': 'x'};"
        f"facts = {{'run': {here!r}, 'boot': table.boot(), 'calls': [call]}};"
        "open('.rooda/state/build.lock', 'w').write(json.dumps(facts));"
        "sys.exit(subprocess.call([sys.executable, '-m', 'rooda', 'build', '-n', '1']) + 40)"
    )
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(table.__file__))))
    argv, env = [sys.executable, "-c", script], ws.env | {"ROODA_RUN": here, "PYTHONPATH": root}
    ran = subprocess.run(argv, cwd=ws.path, env=env, capture_output=True, text=True)
    assert ran.returncode == 40, ran.stderr
    assert len(ws.calls) == 1


def test_whole_tree_of_a_survivor_is_ended(ws: Workspace) -> None:
    """The leader, its session, and a child that moved to a session of its own."""
    command = "setsid sleep 1000 & sleep 1001 & sleep 0.1; echo ready; wait"
    leader = subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, start_new_session=True)
    assert leader.stdout is not None
    leader.stdout.readline()
    children = [int(pid) for pid in Path(f"/proc/{leader.pid}/task/{leader.pid}/children").read_text().split()]
    assert len(children) == 2
    ws.write(".rooda/state/build.lock", json.dumps(ledger(leader.pid)))
    assert ws.rooda("build", "-n", "1").code == 0
    until(lambda: not [pid for pid in (leader.pid, *children) if alive(pid)])
    leader.wait()
    leader.stdout.close()
