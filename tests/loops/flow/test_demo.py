"""The flow demo: a failing test suite that two loops repair, without an account; and flows among the other loops."""

import json
import subprocess
import sys
from pathlib import Path

from rooda.loops.flow import kind
from tests.kit.flow import Flow, front_matter
from tests.kit.workspace import Workspace


def test_the_demo_repairs_its_project(bare: Workspace) -> None:
    """The demo is created and runs to completion: the suite passes, and three commits have three fixes."""
    made = bare.rooda("flow", "setup", "--demo", "demo")
    assert made.code == 0, made.both
    bare.path = bare.file("demo")
    ran = bare.rooda("flow", "run", "make every test pass", timeout=90)
    assert ran.code == 0, ran.both
    suite = subprocess.run([sys.executable, "-m", "unittest", "-q"], cwd=bare.path, env=bare.env, capture_output=True)
    assert suite.returncode == 0
    log = bare.git("log", "--reverse", "--format=%s", "main..HEAD").splitlines()
    assert len(log) == 14
    assert sum("— Repaired " in subject for subject in log) == 3
    assert bare.git("status", "--porcelain") == ""


def test_the_demo_needs_an_empty_folder(bare: Workspace) -> None:
    """A folder with something in it is refused, exit 2, and left alone."""
    bare.write("there/file.txt", "x")
    ran = bare.rooda("flow", "setup", "--demo", "there")
    assert ran.code == 2 and "not an empty folder" in ran.err


def test_elsewhere_the_demo_agent_does_nothing(bare: Workspace) -> None:
    """The scripted agent fails with a message outside of its project, or for another prompt."""
    command = [sys.executable, "-m", "rooda.demo.flow"]
    done = subprocess.run(command, cwd=bare.path, env=bare.env, input=b"x", capture_output=True)
    assert done.returncode == 1 and b"only a script" in done.stdout


def test_the_status_row_of_a_flow(flow: Flow) -> None:
    """The functions behind `rooda status`, `resume` and `stop` for every kind of loop."""
    from tests.kit.flow_kills import kill_at

    assert kind.locks(flow.ws.path) == {} and kind.resumable(flow.ws.path) == []
    assert kind.facts(flow.ws.path, None) == [] and kind.resumable("/") == []
    flow.scenario("S1")
    kill_at(flow, "controller-main.1")
    assert kind.resumable(flow.ws.path) == [flow.run_id]
    facts = kind.facts(flow.ws.path, None)
    assert [(each["run_id"], each["running"], each["pid"]) for each in facts] == [(flow.run_id, False, None)]
    assert any("resume with: rooda flow resume" in row for row in kind.lines(facts[0]))
    json.dumps(facts, default=str)


def test_a_running_flow_can_be_stopped_by_its_lock(flow: Flow) -> None:
    """The lock of a running flow has its name and PID; SIGTERM to the PID ends it with 143 and keeps the run open."""
    import os
    import signal

    from tests.kit.flow_kills import held
    from tests.kit.workspace import until

    flow.scenario("S1")
    held(flow, "actuator-main.1")
    running = flow.ws.start("flow", "run", "do it")
    until(lambda: Path(flow.ws.fake, "reached").exists(), 30)
    (name, path), *rest = kind.locks(flow.ws.path).items()
    assert (name, rest) == (flow.run_id, []) and path.endswith("flow.lock")
    facts = kind.facts(flow.ws.path, name)
    assert facts[0]["running"] and facts[0]["pid"] == running.pid
    assert json.loads(flow.ws.rooda("flow", "status", "--json").out)[0]["running"] is True
    os.kill(facts[0]["pid"], signal.SIGTERM)
    assert running.finish() == 143
    assert front_matter(flow.ws.read(flow.rd("run-state.md")))["status"] == "running"
