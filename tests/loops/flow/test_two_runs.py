"""Rows F-024 and FQ-11: two open runs in one work tree do not affect each other."""

import json
from typing import Any

import pytest

from tests.kit.flow import Flow
from tests.kit.flow_kills import kill_at


def facts(flow: Flow, run: str) -> Any:
    return json.loads(flow.ws.rooda("flow", "status", run, "--json").out)


def forgotten(flow: Flow) -> None:
    """Reset the agent's scripted answers."""
    flow.ws.forget_calls()


def assert_whole(flow: Flow) -> None:
    """Complete, with each label once."""
    assert flow.state["status"] == "complete" and flow.clean()
    assert flow.labels() == [str(number) for number in range(len(flow.labels()))]


CUTS = [("sensor-unit.1", "main")]  # from there on git does not leave the branch with what is not committed
CUTS += [(key, "its branch") for key in ("sensor-unit.1", "controller-main.1", "actuator-main.1")]


@pytest.mark.parametrize(("key", "where"), CUTS)
def test_F_024_F_173_a_new_run_leaves_the_open_one_unchanged(flow: Flow, key: str, where: str) -> None:
    """The new run commits no files of the old one, whose status stays and which resumes at its step."""
    flow.scenario("S1")
    kill_at(flow, key)
    old = flow.run_id
    if where == "main":
        flow.ws.git("checkout", "-q", "main")
    before = facts(flow, old)
    forgotten(flow)
    ran = flow.run("--new", "other")
    assert ran.code == 0, ran.both
    assert facts(flow, old) == before
    changed = flow.ws.git("log", "--name-only", "--format=", f"{flow.state['base-branch']}..HEAD")
    assert flow.run_id != old and f"/{old}/" not in changed and flow.clean()
    forgotten(flow)
    ran = flow.resume(old)
    assert ran.code == 0, ran.both
    assert flow.calls[0]["role"] == key.partition("-")[0]
    assert_whole(flow)


def test_FQ_11_each_of_two_open_runs_continues(flow: Flow) -> None:
    """Parked files of a run don't disturb the other one, and are restored when it is resumed."""
    flow.scenario("S1")
    kill_at(flow, "actuator-main.1")
    old = flow.run_id
    flow.ws.git("stash", "-q", "--include-untracked")
    flow.ws.git("checkout", "-q", "main")
    flow.ws.git("stash", "drop", "-q")
    forgotten(flow)
    kill_at(flow, "controller-main.1", words=("--new", "second"))
    new = flow.run_id
    assert new != old
    forgotten(flow)
    ran = flow.resume(old)
    assert ran.code == 0, ran.both
    assert_whole(flow)
    forgotten(flow)
    ran = flow.resume(new)
    assert ran.code == 0, ran.both
    assert flow.calls[0]["role"] == "controller"
    assert_whole(flow)
