"""Rows F-024 and FQ-11: two open runs in one work tree do not affect each other."""

import json
from pathlib import Path
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


def files_of(flow: Flow, run: str) -> dict[str, bytes]:
    """Every file of a run in the work tree."""
    top = Path(flow.ws.file(f".ai-loop/runs/{run}"))
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def dirty(flow: Flow) -> set[str]:
    """The run folders that `git status` names, and each other path."""
    lines = flow.ws.git("status", "--porcelain", "--untracked-files=all").splitlines()
    return {"/".join(line[3:].split("/")[:3]) for line in lines}


CUTS = [("sensor-unit.1", "main")]  # from there on git does not leave the branch with what is not committed
CUTS += [(key, "its branch") for key in ("sensor-unit.1", "controller-main.1", "actuator-main.1")]


@pytest.mark.parametrize(("key", "where"), CUTS)
def test_F_024_F_173_a_new_run_leaves_the_open_one_unchanged(flow: Flow, key: str, where: str) -> None:
    """L-25: the new run commits no files of the old one, which are as they were; that one resumes at its step.

    Only the old run's own uncommitted files are left in the work tree.
    """
    flow.scenario("S1")
    kill_at(flow, key)
    old = flow.run_id
    if where == "main":
        flow.ws.git("checkout", "-q", "main")
    before, there = facts(flow, old), files_of(flow, old)
    forgotten(flow)
    ran = flow.run("--new", "other")
    assert ran.code == 0, ran.both
    assert (facts(flow, old), files_of(flow, old)) == (before, there)
    changed = flow.ws.git("log", "--name-only", "--format=", f"{flow.state['base-branch']}..HEAD")
    assert flow.run_id != old and f"/{old}/" not in changed and dirty(flow) <= {f".ai-loop/runs/{old}"}
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


def test_L_25_the_files_of_the_open_run_stay_through_more_runs(flow: Flow) -> None:
    """A third run, one that is refused, one that is interrupted and resumed, a merge: the files are as they were.

    No commit has them, and what the user changes in them counts when the run is resumed.
    """
    flow.scenario("S1")
    kill_at(flow, "controller-main.1")
    old = flow.run_id
    there = files_of(flow, old)
    for words in (("--new", "second"), ("--new", "third")):
        forgotten(flow)
        assert flow.run(*words).code == 0
        assert files_of(flow, old) == there
    assert flow.ws.rooda("flow", "run", "again").code == 3 and files_of(flow, old) == there
    forgotten(flow)
    kill_at(flow, "actuator-main.1", words=("--new", "fourth"))
    new = flow.run_id
    forgotten(flow)
    assert flow.resume(new).code == 0 and files_of(flow, old) == there
    ran = flow.ws.rooda("flow", "merge", new)
    assert ran.code == 0 and files_of(flow, old) == there, ran.both
    assert f"/{old}/" not in flow.ws.git("log", "--name-only", "--format=", "--all", "--not", "ai-loop/do-it")
    flow.ws.write(f".ai-loop/runs/{old}/note.md", "mine\n")
    forgotten(flow)
    assert flow.resume(old).code == 0 and files_of(flow, old)["note.md"] == b"mine\n"
    assert flow.state["status"] == "complete" and dirty(flow) == set()
