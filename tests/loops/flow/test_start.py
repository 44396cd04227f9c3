"""Rows F-001 to F-025: the task, what is checked before anything starts, and a run that is still open."""

import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from rooda.errors import ConfigProblem
from rooda.loops.flow.topology import load
from tests.kit.flow import AGENTS, FL2, Flow, topology
from tests.kit.flow_kills import held
from tests.kit.workspace import Workspace

FLOW_FILE = ".ai-loop/flow.yaml"


def trace(flow: Flow) -> tuple[str, ...]:
    """Return the state that a failed check must not change."""
    git = flow.ws.git
    return git("branch", "-a"), git("status", "--porcelain", "--ignored=no"), git("rev-parse", "HEAD"), listing(flow)


def listing(flow: Flow) -> str:
    import os

    return " ".join(sorted(os.listdir(flow.ws.file(".ai-loop"))))


def refused(flow: Flow, *said: str) -> str:
    """The run is refused with exit 2, with these words, and without a trace."""
    before = trace(flow)
    ran = flow.run()
    assert ran.code == 2, ran.both
    assert not [text for text in said if text not in ran.err], ran.err
    assert trace(flow) == before
    assert flow.calls == []
    return ran.err


def test_F_001_F_045_the_argument_is_the_task(ran: Callable[[str], Any]) -> None:
    """The task is in run-state.md and in the root's setpoint; the root measures at label 0."""
    flow, _ = ran("S1")
    assert flow.state["task"] == "do it"
    assert flow.ws.read(flow.ap("main", "orchestrator-output.md")).endswith("\n# Task (setpoint)\n\ndo it\n")
    assert flow.log()[0].fields["sensors"] == "unit: fail"
    assert flow.labels()[0] == "0"


def test_F_001_several_words_are_one_task(flow: Flow) -> None:
    """Quotes around the task may be left out."""
    flow.scenario("S1")
    assert flow.run("fix", "all", "of", "it").code == 0
    assert flow.state["task"] == "fix all of it"


def test_F_002_without_an_argument_the_task_is_asked_for(flow: Flow) -> None:
    """The first line of stdin is the task."""
    flow.scenario("S1")
    ran = flow.ws.rooda("flow", "run", stdin=b"do x\n", timeout=60)
    assert ran.code == 0, ran.err
    assert flow.state["task"] == "do x"


@pytest.mark.parametrize("stdin", [b"", b"\n", b"  \n", None])
@pytest.mark.parametrize("words", [(), ("  ",)])
def test_F_002_no_task_no_run(flow: Flow, stdin: bytes | None, words: tuple[str, ...]) -> None:
    """End of input, an empty line or a blank task: a message, and nothing starts."""
    before = trace(flow)
    ran = flow.ws.rooda("flow", "run", *words, stdin=stdin, timeout=60)
    assert ran.code == 2
    assert "task" in ran.err
    assert trace(flow) == before and flow.calls == []


def test_F_003_without_a_flow_file_setup_is_named(bare: Any) -> None:
    """The message names the command that makes one; exit 2; no branch, no run, no call."""
    flow = Flow(bare)
    flow.ws.git("rm", "-q", FLOW_FILE)
    flow.ws.git("commit", "-qm", "gone")
    ran = flow.run()
    assert ran.code == 2
    assert "rooda flow setup" in ran.err and FLOW_FILE in ran.err
    assert flow.ws.git("branch", "--format=%(refname:short)").split() == ["main"]
    assert not flow.ws.exists(".ai-loop/runs") and flow.calls == []


def test_F_003_without_git_setup_is_named_too(bare: Any) -> None:
    """In a folder without flow and git the missing flow is reported first."""
    ran = bare.rooda("flow", "run", "do it")
    assert ran.code == 2
    assert "rooda flow setup" in ran.err and FLOW_FILE in ran.err
    assert not bare.exists(".ai-loop")


def test_F_011_no_branch_where_no_run_can_be_made(flow: Flow) -> None:
    """A file instead of the runs' folder is an error, and no branch is created."""
    flow.scenario("S1")
    flow.ws.write(".ai-loop/runs", "a file")
    ran = flow.run()
    assert ran.code == 1 and "Traceback" not in ran.both
    assert flow.ws.git("branch", "--format=%(refname:short)").split() == ["main"]


BROKEN = {
    "no YAML": ("a: [1\nb: }", 2),
    "a tab": ("flow:\n\tid: x", 2),
    "no flow": ("version: 1\n", 1),
    "a list": ("- flow\n- version\n", 1),
    "a list of nodes": ("version: 1\nflow:\n- id: a\n", 2),
    "a text": ("just words\n", 1),
    "nothing": ("", 1),
    "a key twice": ("version: 1\nversion: 1\nflow: {}\n", 2),
    "itself": ("version: 1\nflow: &a\n  id: x\n  actuator: *a\n", 2),
    "another version": ("version: 2\nflow: {}\n", 1),
}


@pytest.mark.parametrize("name", BROKEN)
def test_F_004_F_011_a_broken_file_is_an_error_with_its_place(bare: Workspace, name: str) -> None:
    """A faulty flow file: the error names file and line."""
    text, line = BROKEN[name]
    bare.write(FLOW_FILE, text)
    with pytest.raises(ConfigProblem, match=rf"{FLOW_FILE}:{line}: "):
        load(bare.path)


@pytest.mark.parametrize("name", ["no YAML", "nothing"])
def test_F_004_F_011_a_broken_file_is_refused(flow: Flow, name: str) -> None:
    """By the run, and nothing is created."""
    text, line = BROKEN[name]
    flow.ws.write(FLOW_FILE, text)
    flow.commit("broken")
    refused(flow, f"{FLOW_FILE}:{line}: ")


GONE = {
    "test_F_005 root": ("controller-delivery", "delivery: controller", FL2),
    "test_F_005 child": ("controller-impl", "delivery/impl: controller", FL2),
    "test_F_006": ("actuator-impl", "delivery/impl: actuator.agent", FL2),
    "test_F_007": ("sensor-types", "delivery/impl: sensor", FL2),
}


@pytest.mark.parametrize("name", GONE)
def test_F_005_F_006_F_007_every_agent_file_must_exist(flow: Flow, name: str) -> None:
    """A controller, an actuator or a sensor that is missing: the error names the node, the key and the path."""
    file, where, levels = GONE[name]
    flow.put(levels)
    flow.commit("flow")
    path = f"{AGENTS}/loop-{file}.md"
    flow.ws.git("rm", "-q", path)
    flow.ws.git("commit", "-qm", "gone")
    refused(flow, where, path)


UNUSABLE = {
    "L_23 an empty controller": ("controller-impl", "", "delivery/impl: controller: "),
    "L_23 only front matter": ("actuator-impl", "---\nmodel: opus\n---\n\n", "delivery/impl: actuator.agent: "),
    "L_23 a sensor without its output": ("sensor-full", "Run the tests.\n", "delivery: sensor: "),
    "L_23 an actuator without its output": ("actuator-impl", "Edit.\n", "has no {output-path}"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_L_23_an_unusable_agent_file_fails_the_check(flow: Flow, name: str) -> None:
    """An agent file that is empty, or names no file to write: exit 2 from the check and from a start."""
    file, text, said = UNUSABLE[name]
    flow.put(FL2)
    flow.ws.write(f"{AGENTS}/loop-{file}.md", text)
    flow.commit("an unusable file")
    checked = flow.ws.rooda("flow", "check")
    assert checked.code == 2 and said in checked.err and f"loop-{file}.md" in checked.err, checked.both
    refused(flow, said)


def changed(flow: Flow, *path: Any, value: Any) -> None:
    """Set one value of the two-level flow file; None removes it."""
    flow.put(FL2)
    data = topology(FL2)
    place = data
    for part in path[:-1]:
        place = place[part]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    flow.ws.write(FLOW_FILE, yaml.safe_dump(data, sort_keys=False))


CHILD = ("flow", "actuator", "child")
WRONG = {
    "F_008 type of the root": (("flow", "type"), "task", "delivery: type"),
    "F_008 type of the child": ((*CHILD, "type"), "task", "delivery/impl: type"),
    "F_008 no type": ((*CHILD, "type"), None, "delivery/impl: type"),
    "strategy": ((*CHILD, "actuator", "strategy"), "both", "delivery/impl: actuator.strategy"),
    "no strategy": (("flow", "actuator", "strategy"), None, "delivery: actuator.strategy"),
    "no actuator": ((*CHILD, "actuator"), None, "delivery/impl: actuator"),
    "composite without child": (CHILD, None, "delivery: actuator.child"),
    "child is a path": (CHILD, "impl.yaml", "delivery: actuator.child"),
    "direct without agent": ((*CHILD, "actuator", "agent"), None, "delivery/impl: actuator.agent"),
    "no id": ((*CHILD, "id"), None, "id must be"),
    "id with a slash": (("flow", "id"), "a/b", "id must be"),
    "id with a blank": (("flow", "id"), "a b", "id must be"),
    "id with an arrow": (("flow", "id"), "a>b", "id must be"),
    "id with a bracket": (("flow", "id"), "a]b", "id must be"),
    "id of dots": (("flow", "id"), "..", "id must be"),
    "id a number": (("flow", "id"), 7, "id must be"),
    "id too long": (("flow", "id"), "a" * 65, "id must be"),
    "max 0": ((*CHILD, "termination", "max_iterations"), 0, "delivery/impl: termination.max_iterations"),
    "max a text": ((*CHILD, "termination", "max_iterations"), "4", "delivery/impl: termination.max_iterations"),
    "max true": (("flow", "termination", "max_iterations"), True, "delivery: termination.max_iterations"),
    "max a fraction": (("flow", "termination", "max_iterations"), 2.5, "delivery: termination.max_iterations"),
    "no max": (("flow", "termination"), None, "delivery: termination.max_iterations"),
    "sensors a map": (("flow", "sensors"), {"a": "b"}, "delivery: sensors"),
    "a sensor a number": (("flow", "sensors"), [3], "delivery: sensor"),
    "a sensor twice": (("flow", "sensors"), [f"{AGENTS}/loop-sensor-full.md"] * 2, "two sensors are called 'full'"),
    "outside": (("flow", "controller"), "../x.md", "is not inside the project"),
    "absolute": (("flow", "controller"), "/etc/hostname", "is not inside the project"),
    "strategy a list": (("flow", "actuator", "strategy"), ["composite"], "delivery: actuator.strategy"),
    "loop a list": (("flow", "actuator"), {"strategy": "loop", "loop": ["ooda"]}, "delivery: actuator.loop"),
    "L_23 a misspelt limit": (("flow", "termination"), {"max_iteration": 3}, "unknown key termination.max_iteration;"),
    "L_23 a misspelt default": (
        ("defaults", "termination"),
        {"max_iteration": 3},
        "defaults.termination.max_iteration;",
    ),
    "on_error": (("defaults", "termination", "on_error"), "go-on", "on_error must be fail-fast"),
}


@pytest.mark.parametrize("name", WRONG)
def test_F_008_F_010_each_fault_alone_is_an_error(bare: Workspace, name: str) -> None:
    """A fault in the topology: the error names the node and the expected value, the file and the line."""
    path, value, said = WRONG[name]
    changed(Flow(bare, git=False), *path, value=value)
    with pytest.raises(ConfigProblem) as caught:
        load(bare.path)
    assert said in caught.value.what and re.match(rf"{FLOW_FILE}:\d+: ", caught.value.what)


@pytest.mark.parametrize("name", ["F_008 type of the child", "max 0"])
def test_F_008_F_010_a_fault_is_refused(flow: Flow, name: str) -> None:
    """By the run, and nothing is created."""
    path, value, said = WRONG[name]
    changed(flow, *path, value=value)
    flow.commit("changed")
    assert re.search(rf"{FLOW_FILE}:\d+: ", refused(flow, said))


def test_F_009_all_faults_are_reported_at_once(flow: Flow) -> None:
    """Three faults, three lines, in the order of the file, each with its line."""
    flow.put(FL2)
    data = topology(FL2)
    data["flow"]["type"] = "task"
    data["flow"]["actuator"]["child"]["controller"] = "nowhere.md"
    data["flow"]["termination"]["max_iterations"] = -1
    flow.ws.write(FLOW_FILE, yaml.safe_dump(data, sort_keys=False))
    flow.commit("three faults")
    said = refused(flow)
    rows = [row for row in said.splitlines() if f"{FLOW_FILE}:" in row]
    assert len(rows) == 3
    numbers = [int(re.search(r":(\d+):", row)[1]) for row in rows]
    assert numbers == sorted(numbers)
    lines = flow.ws.read(FLOW_FILE).splitlines()
    assert [lines[number - 1].split(":")[0].strip() for number in numbers] == ["type", "controller", "max_iterations"]


def test_F_009_a_wrong_strategy_hides_nothing_below_it(flow: Flow) -> None:
    """The child of a faulty node is checked too, and a node with a wrong id is named as written."""
    flow.put(FL2)
    data = topology(FL2)
    data["flow"]["id"] = "the flow"
    data["flow"]["actuator"]["strategy"] = "both"
    data["flow"]["actuator"]["child"]["type"] = "task"
    flow.ws.write(FLOW_FILE, yaml.safe_dump(data, sort_keys=False))
    flow.commit("faults")
    refused(flow, "the flow: id must be", "the flow: actuator.strategy must be", "the flow/impl: type must be")


def test_F_010_the_limit_in_the_defaults(flow: Flow) -> None:
    """A node without its own limit has the one of `defaults`."""
    flow.scenario("S1")
    data = topology(flow.levels)
    del data["flow"]["termination"]
    data["defaults"]["termination"]["max_iterations"] = 4
    flow.ws.write(FLOW_FILE, yaml.safe_dump(data))
    assert flow.run("--commit-setup", "do it").code == 0
    assert flow.fm(flow.ap("main", "orchestrator-output.md"))["max-iterations"] == 4


def killed_in(flow: Flow, key: str) -> None:
    """Start S2 and kill everything while the agent `key` works."""
    text = flow.scripts[f"{key}.1"]
    held(flow, f"{key}.1")
    running = flow.ws.start("flow", "run", "do it")
    from tests.kit.workspace import until

    until(lambda: Path(flow.ws.fake, "reached").exists(), 30)
    running.signal(signal.SIGKILL)
    running.finish()
    until(lambda: not flow.ws.leftovers(), 10)
    flow.script(f"{key}.1", text)


KILLED_BEHIND_ITS_BRANCH = """#!/bin/sh
# git, whose parent is killed once it has made a branch.
%s "$@" || exit
case "$*" in *"checkout -q --no-track -b"*) kill -9 $PPID ;; esac
"""


def test_F_030_a_start_that_was_killed_behind_its_branch(flow: Flow) -> None:
    """The empty branch of a killed start is removed: the next run gets its name and the right base."""
    flow.scenario("S1")
    shim = Path(flow.ws.root, "bin", "git")
    shim.parent.mkdir()
    shim.write_text(KILLED_BEHIND_ITS_BRANCH % shutil.which("git"))
    shim.chmod(0o755)
    assert flow.run(env={"PATH": f"{shim.parent}:{flow.ws.env['PATH']}"}).code == -signal.SIGKILL
    assert flow.ws.git("branch", "--show-current").strip() == "ai-loop/do-it"
    assert flow.run().code == 0
    assert (flow.state["branch"], flow.state["base-branch"]) == ("ai-loop/do-it", "main")


def test_F_030_FQ_45_an_empty_branch_of_the_user_stays(flow: Flow) -> None:
    """A user's own empty `ai-loop/` branch stays and is the base."""
    flow.scenario("S1")
    flow.ws.git("checkout", "-q", "-b", "ai-loop/mine")
    assert flow.run().code == 0
    assert (flow.state["branch"], flow.state["base-branch"]) == ("ai-loop/do-it", "ai-loop/mine")
    assert "ai-loop/mine" in flow.ws.git("branch")


def test_F_030_a_branch_of_the_user_stays(flow: Flow) -> None:
    """A user's own `ai-loop/` branch with a commit stays and is the base."""
    flow.scenario("S1")
    flow.ws.git("checkout", "-q", "-b", "ai-loop/do-it")
    flow.ws.git("commit", "-q", "--allow-empty", "-m", "mine")
    assert flow.run().code == 0
    assert (flow.state["branch"], flow.state["base-branch"]) == ("ai-loop/do-it-2", "ai-loop/do-it")


def test_F_020_F_021_F_022_F_023_an_open_run_is_found_shown_and_resumed(flow: Flow) -> None:
    """Id, node, stack and branch of the open run are shown with a question; `r` resumes it to the same end."""
    flow.scenario("S2")
    killed_in(flow, "actuator-impl")
    name = flow.run_id
    ran = flow.ws.rooda("flow", "run", "other", stdin=b"r\n", timeout=60)
    assert ran.code == 0, ran.both
    for text in (name, "delivery/impl", "delivery, delivery/impl", "ai-loop/do-it", "Resume it"):
        assert text in ran.out
    assert flow.labels() == ["0", "1.0", "1.1", "1.2", "1", "2"]
    assert flow.run_id == name and flow.state["task"] == "do it"


def test_F_022_F_024_a_new_run_leaves_the_old_one_alone(flow: Flow) -> None:
    """`n` or --new: another id, another branch; the old run's file is untouched, and it can still be resumed."""
    flow.scenario("S2")
    killed_in(flow, "actuator-impl")
    old = flow.run_id
    before = flow.ws.read(f".ai-loop/runs/{old}/run-state.md")
    flow.scenario("S2")
    ran = flow.ws.rooda("flow", "run", "other", stdin=b"n\n", timeout=60)
    assert ran.code == 0, ran.both
    assert flow.run_id != old and flow.state["branch"] == "ai-loop/other"
    assert flow.ws.read(f".ai-loop/runs/{old}/run-state.md") == before
    assert flow.resume(old).code == 0
    assert flow.ws.git("rev-parse", "--abbrev-ref", "HEAD").strip() == "ai-loop/do-it"


def test_F_022_with_json_the_question_is_on_stderr(flow: Flow) -> None:
    """With --json the question is on stderr, and stdout has only events."""
    flow.scenario("S2")
    killed_in(flow, "actuator-impl")
    flow.scenario("S2")
    ran = flow.ws.rooda("flow", "run", "other", "--json", stdin=b"r\n", timeout=60)
    assert ran.code == 0, ran.err
    assert all(line.startswith("{") for line in ran.lines)
    assert "A previous run is still in progress" in ran.err


def test_F_022_a_question_at_end_of_input(flow: Flow) -> None:
    """End of input: exit 3, nothing started, both commands are named; the flags answer without a question."""
    flow.scenario("S2")
    killed_in(flow, "actuator-impl")
    calls = len(flow.calls)
    ran = flow.run("other")
    assert ran.code == 3
    assert "--resume" in ran.err and "--new" in ran.err and len(flow.calls) == calls
    assert flow.run("--resume").code == 0
    assert flow.state["status"] == "complete"


@pytest.mark.parametrize("name", ["S1", "S3"])
def test_F_025_a_run_that_ended_asks_nothing(flow: Flow, name: str) -> None:
    """After a complete run and after one at its limit the next one starts at once."""
    flow.scenario(name)
    first = flow.run()
    second = flow.run("again")
    assert first.code == second.code
    assert "Resume it" not in second.out
    assert flow.run_id.endswith("_002")
