"""Rows F-170 to F-179: a run is resumed from its files and commits, and ends as without an interruption."""

import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.kit.flow import Flow, front_matter
from tests.kit.flow_kills import held, kill_at, outcome
from tests.kit.workspace import Workspace, until

S2_CALLS = (
    *("sensor-full.1", "controller-delivery.1", "controller-impl.1", "actuator-impl.1"),
    *("sensor-types.1", "controller-impl.2", "sensor-full.2", "controller-delivery.2"),
)


@pytest.fixture(scope="session")
def whole_s2(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """S2 without an interruption."""
    flow = Flow(Workspace(str(tmp_path_factory.mktemp("whole")))).scenario("S2")
    assert flow.run().code == 0
    return outcome(flow)


@pytest.mark.parametrize("key", S2_CALLS)
def test_F_177_F_179_killed_at_each_call(flow: Flow, whole_s2: Any, key: str) -> None:
    """kill -9 while any of the eight agents works: after `resume` the log and the tree are those of a whole run."""
    flow.scenario("S2")
    kill_at(flow, key)
    name, state = flow.run_id, flow.state
    assert state["status"] == "running"
    ran = flow.resume()
    assert ran.code == 0, ran.both
    assert outcome(flow) == whole_s2
    assert (flow.run_id, flow.state["branch"], flow.state["task"]) == (name, state["branch"], state["task"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_F_177_a_signal_keeps_the_run_open(flow: Flow, whole_s2: Any, number: int) -> None:
    """A signal: exit 130 or 143, the command to resume, status running; the resumed run ends the same."""
    flow.scenario("S2")
    code = kill_at(flow, "actuator-impl.1", number)
    assert code == {signal.SIGINT: 130, signal.SIGTERM: 143}[number]
    assert f"rooda flow resume {flow.run_id}" in flow.ws.running[-1].out
    assert flow.state["status"] == "running"
    assert flow.resume(flow.run_id).code == 0
    assert outcome(flow) == whole_s2


def test_F_170_F_171_the_innermost_node_continues_first(flow: Flow) -> None:
    """Killed in the child's actuator of 1.1: the next call is the child's, the next commit 1.1."""
    flow.scenario("S2")
    kill_at(flow, "actuator-impl.1")
    before, labels = len(flow.calls), flow.labels()
    assert flow.resume().code == 0
    assert flow.calls[before]["served"] == [["actuator", "impl"]]
    assert flow.labels()[len(labels)] == "1.1"


def edited_state(flow: Flow, **keys: str | None) -> None:
    """Change keys of run-state.md by hand; None removes one."""
    path = flow.rd("run-state.md")
    text = flow.ws.read(path)
    for key, value in keys.items():
        line = "" if value is None else f"{key.replace('_', '-')}: {value}\n"
        text = re.sub(rf"^{key.replace('_', '-')}: .*\n", line, text, flags=re.MULTILINE)
    flow.ws.write(path, text)


def next_call(flow: Flow) -> str:
    """Resume, and return the first call."""
    before = len(flow.calls)
    ran = flow.resume()
    assert ran.code in (0, 4), ran.both
    return " ".join(flow.calls[before]["served"][0])


def test_F_172_sensors_and_no_decision(flow: Flow) -> None:
    """In a hand-made state with sensor files and without controller output the controller is called."""
    flow.scenario("S1")
    kill_at(flow, "controller-main.1")
    edited_state(flow, active_step=None)
    assert not flow.ws.exists(flow.ap("main", "controller-output.md"))
    assert next_call(flow) == "controller main"


@pytest.mark.parametrize("noted", [True, False])
def test_F_173_a_decision_and_no_action(flow: Flow, noted: bool) -> None:
    """The actuator is called, not the controller again."""
    flow.scenario("S1")
    kill_at(flow, "actuator-main.1")
    if not noted:
        edited_state(flow, active_step=None)
    assert next_call(flow) == "actuator main"


def test_F_173_in_a_later_iteration_too(flow: Flow) -> None:
    """Outputs of the previous iteration are not used for this one."""
    flow.scenario("S3")
    flow.controller("main", False, False)
    kill_at(flow, "actuator-main.2")
    edited_state(flow, active_step=None)
    assert flow.ws.exists(flow.ap("main", "controller-output.md"))
    assert next_call(flow) == "actuator main"
    assert flow.labels() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("noted", [True, False])
def test_F_172_stale_outputs_do_not_count(flow: Flow, noted: bool) -> None:
    """After a kill during the second controller call it is repeated; the first decision is not reused."""
    flow.scenario("S3")
    kill_at(flow, "controller-main.2")
    if not noted:
        edited_state(flow, active_step=None)
    assert next_call(flow) == "controller main"
    assert flow.labels() == ["0", "1", "2", "3"]


def test_F_174_a_running_child_continues(flow: Flow) -> None:
    """Composite with a child inside: the child's step, not the parent's."""
    flow.scenario("S2")
    kill_at(flow, "controller-impl.2")
    assert next_call(flow) == "controller impl"


@pytest.mark.parametrize("noted", [True, False])
def test_F_174_F_176_after_a_child_ended_the_parent_measures(flow: Flow, noted: bool) -> None:
    """Killed after commit 1.2: the next call is the root's sensors, the next commit `1`."""
    flow.scenario("S2")
    kill_at(flow, "sensor-full.2")
    if not noted:
        edited_state(flow, active_step=None)
    assert flow.labels()[-1] == "1.2"
    assert next_call(flow) == "sensor full"
    assert flow.labels()[4:] == ["1", "2"]


def test_L_25_F_171_a_child_of_an_earlier_iteration_is_entered_again(flow: Flow) -> None:
    """After a crash before the child's second entry its old files do not count: 2.0 and 2.1 are not skipped."""
    flow.scenario("S2")
    flow.sensor("full", "fail", "fail", "pass")
    flow.controller("delivery", False, False, True)
    flow.controller("impl", False, True, False, True)
    kill_at(flow, "controller-delivery.2")
    path = flow.rd("run-state.md")
    text = flow.ws.read(path).replace("active-step: controller", "active-step: child")
    flow.ws.write(path, text.replace("  - delivery\n", "  - delivery\n  - delivery/impl\n"))
    edited_state(flow, active_node_path="delivery/impl")
    flow.ws.write(flow.ap("delivery", "controller-output.md"), flow.scripts["controller-delivery.2"])
    flow.ws.write(
        flow.ap("delivery", "orchestrator-output.md"),
        re.sub("iteration: .*", "iteration: 2", flow.ws.read(flow.ap("delivery", "orchestrator-output.md")), count=1),
    )
    ran = flow.resume()
    assert ran.code == 4, ran.both
    assert flow.labels() == ["0", "1.0", "1.1", "1.2", "1", "2.0", "2.1", "2.2", "2", "3"]


@pytest.mark.parametrize("noted", [True, False])
def test_F_175_an_action_and_no_measurement(flow: Flow, noted: bool) -> None:
    """The sensors are called; the actuator is not called again."""
    flow.scenario("S1")
    kill_at(flow, "sensor-unit.2")
    if not noted:
        edited_state(flow, active_step=None)
    assert next_call(flow) == "sensor unit"
    assert [row.split()[0] for row in flow.roles()].count("actuator") == 1


def test_F_178_the_branch_is_checked_out_again(flow: Flow, whole_s2: Any) -> None:
    """A run is resumed on its branch from main, even with its own uncommitted files in the work tree."""
    flow.scenario("S2")
    kill_at(flow, "controller-impl.1")
    flow.ws.git("stash", "-q", "--include-untracked")
    flow.ws.git("checkout", "-q", "main")
    ran = flow.resume()
    assert ran.code == 0, ran.both
    assert flow.ws.git("rev-parse", "--abbrev-ref", "HEAD").strip() == "ai-loop/do-it"
    assert outcome(flow) == whole_s2


def test_F_178_F_020_cut_off_before_its_first_commit(flow: Flow, whole_s2: Any) -> None:
    """A run without a commit is found, shown and resumed on its branch from main."""
    flow.scenario("S2")
    kill_at(flow, "sensor-full.1")
    flow.ws.git("checkout", "-q", "main")
    assert ": interrupted" in flow.ws.rooda("flow", "status").out
    ran = flow.resume()
    assert ran.code == 0, ran.both
    assert outcome(flow) == whole_s2


def test_F_177_temporary_files_of_a_killed_writer_are_not_committed(flow: Flow, whole_s2: Any) -> None:
    """Temporary files of a killed writer in the run's folder are removed."""
    flow.scenario("S2")
    kill_at(flow, "controller-impl.1")
    flow.ws.write(flow.rd("run-state.md.123.tmp"), "half")
    flow.ws.write(flow.ap("impl", "result-output.md.123.tmp"), "half")
    assert flow.resume().code == 0
    assert outcome(flow) == whole_s2


def test_F_177_a_run_folder_that_was_deleted(flow: Flow, whole_s2: Any) -> None:
    """A deleted run folder is restored from the branch, and the run continues after its last commit."""
    flow.scenario("S2")
    kill_at(flow, "controller-impl.1")
    shutil.rmtree(flow.ws.file(".ai-loop/runs"))
    ran = flow.resume()
    assert ran.code == 0, ran.both
    assert outcome(flow) == whole_s2


def test_F_178_a_tag_with_the_name_of_the_runs_branch_hides_no_run(flow: Flow, whole_s2: Any) -> None:
    """A tag with the branch's name is ignored when a run is found, shown and resumed from the base branch."""
    flow.scenario("S2")
    flow.ws.git("tag", "ai-loop/do-it")
    kill_at(flow, "sensor-types.1")
    flow.ws.git("checkout", "-q", "-f", "main")
    shown = flow.ws.rooda("flow", "status")
    assert "iteration 1.0 — initial entry" in shown.out and "branch: ai-loop/do-it" in shown.out
    assert "impl 1.0 — initial entry" in flow.ws.rooda("flow", "log").out
    flow.forget_ended("controller-impl", "actuator-impl")
    ran = flow.resume()
    assert ran.code == 0, ran.both
    assert outcome(flow) == whole_s2


def test_F_177_F_190_a_hook_that_puts_its_words_before_the_subject(flow: Flow, whole_s2: Any) -> None:
    """Commits whose subject a hook prefixed still belong to the run: they are counted, shown and continued."""
    flow.scenario("S2")
    hook = '#!/bin/sh\n{ printf "JIRA-1 "; cat "$1"; echo "Change-Id: I1"; } >"$1.new" && mv "$1.new" "$1"\n'
    os.chmod(flow.ws.write(".git/hooks/commit-msg", hook), 0o755)
    kill_at(flow, "sensor-types.1")
    ran = flow.resume()
    assert ran.code == 0, ran.both
    assert [commit.subject for commit in flow.log()] == [f"JIRA-1 {row.partition(chr(10))[0]}" for row in whole_s2[0]]
    assert "Commits: 6" in ran.out
    assert flow.ws.rooda("flow", "status").out.count(" ai-loop[") == 6


def test_F_178_a_dirty_tree_is_refused_on_another_branch(flow: Flow) -> None:
    """A dirty tree on another branch is refused with exit 3, and nothing changes."""
    flow.scenario("S2")
    kill_at(flow, "controller-impl.1")
    flow.ws.git("stash", "-q", "--include-untracked")
    flow.ws.git("checkout", "-q", "main")
    flow.ws.write("src.txt", "mine\n")
    ran = flow.resume()
    assert ran.code == 3
    assert "src.txt" in ran.err
    assert flow.ws.git("rev-parse", "--abbrev-ref", "HEAD").strip() == "main"


def test_F_177_a_fresh_clone_of_the_branch_can_resume(flow: Flow, whole_s2: Any, tmp_path: Path) -> None:
    """A clone with only the branch can resume: the steps since the last commit are repeated."""
    flow.scenario("S2")
    kill_at(flow, "sensor-types.1")
    old = flow.ws.path
    os.rename(old, f"{old}-gone")
    import subprocess

    clone = ["git", "clone", "-q", "--single-branch", "--branch", "ai-loop/do-it", f"{old}-gone", old]
    subprocess.run(clone, env=flow.ws.env, check=True, cwd=flow.ws.root)
    flow.ws.git("update-ref", "refs/heads/main", subprocess.run(
        ["git", "rev-parse", "main"], cwd=f"{old}-gone", env=flow.ws.env, capture_output=True, text=True, check=True
    ).stdout.strip())  # fmt: skip
    flow.forget_ended("controller-impl", "actuator-impl")
    ran = flow.resume()
    assert ran.code == 0, ran.both
    assert outcome(flow) == whole_s2


def test_F_177_a_run_with_an_error_resumes_at_the_failed_step(flow: Flow, whole_s2: Any) -> None:
    """A named run that ended with an error is resumed where it failed; labels stay unique, the end is the same."""
    flow.scenario("S2")
    good = flow.scripts["actuator-impl.1"]
    flow.say("actuator-impl", "!nowrite\n")
    assert flow.run().code == 1
    flow.forget_ended("actuator-impl")
    flow.say("actuator-impl", good)
    assert flow.resume().code == 2  # not by itself
    before = len(flow.calls)
    ran = flow.resume(flow.run_id)
    assert ran.code == 0, ran.both
    assert flow.calls[before]["served"] == [["actuator", "impl"]]
    assert outcome(flow) == whole_s2


def test_nothing_to_resume(flow: Flow) -> None:
    """Without an open run, for an ended one and for an unknown one: exit 2 and the command to type."""
    assert flow.resume().code == 2
    flow.scenario("S1")
    assert flow.run().code == 0
    for words in ((), (flow.run_id,), ("run_19990101_001",)):
        ran = flow.resume(*words)
        assert ran.code == 2
        assert "rooda flow run" in ran.err or "Runs:" in ran.err


def test_a_second_flow_in_the_same_work_tree_is_refused(flow: Flow) -> None:
    """While a run works: exit 3, its PID and how to end it, no question."""
    flow.scenario("S1")
    held(flow, "actuator-main.1")
    running = flow.ws.start("flow", "run", "do it")
    until(lambda: Path(flow.ws.fake, "reached").exists(), 30)
    for words in (("run", "x"), ("resume",)):
        ran = flow.ws.rooda("flow", *words)
        assert ran.code == 3 and "already running here" in ran.err, ran.both
    Path(flow.ws.fake, "gate").touch()
    assert running.finish() == 0


def test_a_node_that_is_gone_is_refused(flow: Flow) -> None:
    """If flow.yaml no longer has the active node: exit 2; a smaller change causes a warning."""
    flow.scenario("S2")
    kill_at(flow, "controller-impl.1")
    text = flow.ws.read(".ai-loop/flow.yaml")
    flow.ws.write(".ai-loop/flow.yaml", text.replace("id: impl", "id: other"))
    ran = flow.resume()
    assert ran.code == 2 and "delivery/impl" in ran.err
    flow.ws.write(".ai-loop/flow.yaml", text + "# a note\n")
    ran = flow.resume()
    assert ran.code == 0 and "has changed since" in ran.err


def test_several_open_runs_are_listed(flow: Flow) -> None:
    """With several open runs `resume` needs a name: exit 3 and all names."""
    flow.scenario("S2")
    kill_at(flow, "controller-impl.1")
    flow.ws.git("stash", "-q", "--include-untracked")
    flow.ws.git("checkout", "-q", "main")
    held(flow, "sensor-full.2")
    running = flow.ws.start("flow", "run", "--new", "second")
    until(lambda: Path(flow.ws.fake, "reached").exists(), 30)
    running.signal(signal.SIGKILL)
    running.finish()
    ran = flow.resume()
    assert ran.code == 3
    assert len(re.findall(r"run_\d{8}_00\d", ran.err)) == 2
    assert front_matter(flow.ws.read(flow.rd("run-state.md")))["status"] == "running"


@pytest.mark.parametrize("how", ["committed", "not committed", "killed again"])
def test_a_run_at_its_limit_continues_under_a_higher_one(flow: Flow, how: str) -> None:
    """A run at its limit is refused until the limit is raised, then continues with the next cycle."""
    flow.scenario("S3")
    assert flow.run().code == 4
    name = flow.run_id
    refused = flow.resume(name)
    assert refused.code == 2 and "raise max_iterations of main" in refused.err and "still 3" in refused.err
    assert f"rooda flow resume {name}" in flow.resume().err
    flow.ws.write(".ai-loop/flow.yaml", flow.ws.read(".ai-loop/flow.yaml").replace("iterations: 3", "iterations: 5"))
    if how == "committed":
        flow.commit("more")
    if how == "killed again":
        held(flow, "controller-main.3")
        running = flow.ws.start("flow", "resume", name)
        until(lambda: Path(flow.ws.fake, "reached").exists(), 30)
        running.signal(signal.SIGKILL)
        running.finish()
        until(lambda: not flow.ws.leftovers(), 15)
        flow.forget("controller-main.3")
    before = len(flow.calls)
    ran = flow.resume(name)
    assert ran.code == 4, ran.both
    assert flow.calls[before]["role"] == "controller"
    assert "limit 5: 4 full cycles" in ran.out
    labels = [label for label in flow.labels() if label]
    assert labels == (["0", "1", "2", "3", "3", "4", "5"] if how == "committed" else ["0", "1", "2", "3", "4", "5"])
    assert flow.fm(flow.ap("main", "result-output.md"))["iterations-executed"] == 4 and flow.clean()
