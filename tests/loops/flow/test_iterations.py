"""Rows F-070 to F-124: the iteration loop, its controller, its actuator, and the measurement after it."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.flow import AGENTS, FL1, FL2, Flow, Level, front_matter, limited
from tests.kit.workspace import Workspace

Ran = Callable[[str], Any]


def test_F_072_F_077_F_104_the_limit_is_tested_before_the_controller(ran: Ran) -> None:
    """A limit of 3 means two cycles, then the third iteration stops the node."""
    flow, done = ran("S3")
    assert done.code == 4
    cycle = ["sensor", "controller", "actuator"]
    assert [row.split()[0] for row in flow.roles()] == [*cycle, *cycle, "sensor"]
    assert flow.labels() == ["0", "1", "2", "3"]


@pytest.mark.parametrize(("most", "cycles"), [(1, 0), (2, 1), (3, 2), (6, 5)])
def test_F_072_counts_under_the_limit(flow: Flow, most: int, cycles: int) -> None:
    """With a limit of N there are N-1 controllers and actuators, N measurements, N+1 commits."""
    flow.scenario("S3")
    flow.put(limited(FL1, most))
    flow.commit("limit")
    assert flow.run().code == 4
    roles = [row.split()[0] for row in flow.roles()]
    counts = (roles.count("controller"), roles.count("actuator"), roles.count("sensor"), len(flow.labels()))
    assert counts == (cycles, cycles, cycles + 1, most + 1)
    assert flow.labels()[-1] == str(most)


def test_F_073_F_074_F_075_files_and_commit_at_the_limit(ran: Ran) -> None:
    """The node's file, its result and the last commit have the status of the limit."""
    flow, _ = ran("S3")
    own = flow.fm(flow.ap("main", "orchestrator-output.md"))
    assert (own["status"], own["iteration"]) == ("max-iterations-reached", 3)
    assert flow.ws.exists(flow.ap("main", "result-output.md"))
    last = flow.log()[-1]
    assert (last.fields["status"], last.fields["target-met"]) == ("max-iterations-reached", "false")
    assert last.label == "3"


def test_F_076_F_121_a_child_at_its_limit_is_measured_by_its_parent(ran: Ran) -> None:
    """After `1.3` the root's sensors are called, and the root continues to its own limit."""
    flow, done = ran("S4")
    assert done.code == 4
    assert flow.labels() == ["0", "1.0", "1.1", "1.2", "1.3", "1", "2"]
    assert flow.roles()[-1] == "sensor full+cover haiku"
    assert front_matter(flow.calls[-1]["texts"][flow.rd("run-state.md")])["active-node-path"] == "delivery"


def test_F_078_F_079_F_080_F_081_which_model_a_controller_gets(ran: Ran) -> None:
    """opus by default, also while a sensor is pending; haiku when all pass."""
    one = [row for row in ran("S1")[0].roles() if row.startswith("controller")]
    assert one == ["controller main opus", "controller main haiku"]
    two = [row for row in ran("S2")[0].roles() if row.startswith("controller")]
    assert two == [f"controller {name}" for name in ("delivery opus", "impl opus", "impl haiku", "delivery haiku")]


def test_F_080_the_model_of_the_file(flow: Flow) -> None:
    """The controller's own `model:` is used unless all sensors pass."""
    flow.scenario("S1")
    text = flow.ws.read(f"{AGENTS}/loop-controller-main.md").replace("---\n", "---\nmodel: sonnet\n", 1)
    flow.ws.write(f"{AGENTS}/loop-controller-main.md", text)
    assert flow.run("--commit-setup", "do it").code == 0
    assert [row for row in flow.roles() if row.startswith("controller")] == [
        "controller main sonnet",
        "controller main haiku",
    ]


def test_F_080_models_are_translated_by_the_settings(flow: Flow) -> None:
    """[models] maps the model words; ROODA_MODEL has the result."""
    flow.scenario("S1")
    flow.ws.config(flow.ws.read("rooda.toml") + '[models]\nhaiku = "small-1"\nopus = "big-4"\n')
    flow.commit("models")
    assert flow.run().code == 0
    assert [call["env"]["ROODA_MODEL"] for call in flow.calls] == ["small-1", "big-4", "sonnet", "small-1", "small-1"]
    assert [call["argv"][-1] for call in flow.calls] == ["small-1", "big-4", "sonnet", "small-1", "small-1"]


def test_F_082_a_sensor_file_without_status_does_not_pass(flow: Flow) -> None:
    """An unreadable status causes one more call, then an error; the controller never sees it as a pass."""
    flow.scenario("S1")
    flow.say("sensor-unit", "no front matter\n", "---\nsensor: unit\nstatus: maybe\n---\n")
    assert flow.run().code == 1
    assert flow.roles() == ["sensor unit haiku"] * 2


def test_F_082_without_sensors_nothing_has_passed(flow: Flow) -> None:
    """A node without sensors has no sensor call, `none` in its commits, and the controller's own model."""
    flow.scenario("S1")
    flow.put((Level("main", (), 5),))
    flow.commit("no sensors")
    assert flow.run().code == 0
    assert flow.roles() == ["controller main opus", "actuator main sonnet", "controller main opus"]
    assert {commit.fields["sensors"] for commit in flow.log()} == {"none"}


def test_F_083_F_084_F_085_F_086_the_controllers_prompt(ran: Ran) -> None:
    """The whole file with every placeholder filled: paths, sensors with their targets, the child."""
    flow, _ = ran("S2")
    root = next(call for call in flow.calls if call["served"][0] == ["controller", "delivery"])["prompt"]
    leaf = next(call for call in flow.calls if call["served"][0] == ["controller", "impl"])["prompt"]
    for prompt, path in ((root, "delivery"), (leaf, "delivery/impl")):
        assert "{artifacts-path}" not in prompt and "{node-path}" not in prompt and "{sensors-section}" not in prompt
        assert flow.rd(f"nodes/{path}/controller-output.md") in prompt
        assert f"Node {path}\n" in prompt
    for name in ("full", "cover"):
        assert f". {name}\n- **Output file:** {flow.ap('delivery', f'sensor-{name}-output.md')}\n- **Target:** " in root
    assert "name: loop-controller-delivery" in root
    assert "Child: impl\n" in root
    assert "Child:" not in leaf and "{child-node-id}" not in leaf


def test_F_085_the_target_of_the_sensors_file(flow: Flow) -> None:
    """The section has the `target:` of a sensor's front matter, or "status is pass" without one."""
    flow.scenario("S2")
    flow.agent("sensor-full", "FAKE: sensor full -> {output-path}\n", front='target: "less than 3 warnings"\n')
    assert flow.run("--commit-setup", "do it").code == 0
    prompt = next(call["prompt"] for call in flow.calls if call["role"] == "controller")
    assert "- **Target:** less than 3 warnings" in prompt
    assert "- **Target:** status is `pass`" in prompt


def test_F_086_paths_of_older_agent_files_lead_to_the_child(flow: Flow) -> None:
    """`{artifacts-path}/../{child-node-id}` is replaced by the child's real folder."""
    flow.scenario("S2")
    flow.agent(
        "controller-delivery",
        "FAKE: controller delivery -> {artifacts-path}/controller-output.md\n"
        "Result: {artifacts-path}/../{child-node-id}/result-output.md\n",
    )
    assert flow.run("--commit-setup", "do it").code == 0
    prompt = next(call["prompt"] for call in flow.calls if call["role"] == "controller")
    assert f"Result: {flow.rd('nodes/delivery/impl/result-output.md')}\n" in prompt


@pytest.mark.parametrize("name", ["S2", "S5"])
def test_F_087_never_two_calls_at_once(ran: Ran, name: str) -> None:
    """Each call ends before the next begins."""
    flow, _ = ran(name)
    numbers = [call["n"] for call in flow.calls]
    assert numbers == [*range(1, len(numbers) + 1)]
    moments = [flow.ws.recorded(n, kind).stat().st_mtime_ns for n in numbers for kind in ("in", "end")]
    assert moments == sorted(moments)


def test_F_088_F_089_F_090_F_091_the_controllers_word_ends_a_node(ran: Ran) -> None:
    """`target-met: true`: complete in file, result and commit; no call after it."""
    flow, done = ran("S1")
    assert done.code == 0
    assert flow.fm(flow.ap("main", "orchestrator-output.md"))["status"] == "complete"
    last = flow.log()[-1]
    assert last.body[4:6] == ["[status] complete", "[target-met] true"]
    assert flow.roles()[-1].startswith("controller")


def test_F_092_sensors_do_not_decide(flow: Flow) -> None:
    """The controller alone decides: passing sensors don't end a node, failing ones don't keep it open."""
    flow.scenario("S1")
    flow.sensor("unit", "pass")
    flow.controller("main", False, False, True)
    flow.actuator("main", "one", "two")
    assert flow.run().code == 0
    assert flow.labels() == ["0", "1", "2", "3"]
    flow.sensor("unit", "fail", "fail", "fail", "fail")
    assert flow.run("again").code == 0
    assert flow.log("ai-loop/do-it")[-1].fields["status"] == "complete"
    assert flow.log("ai-loop/do-it")[-1].fields["sensors"] == "unit: fail"


def test_F_100_F_101_F_102_F_103_the_actuators_call(ran: Ran) -> None:
    """The file's whole text with its two paths, sonnet, and the reminder that no commands are run."""
    flow, _ = ran("S1")
    call = next(each for each in flow.calls if each["role"] == "actuator")
    assert call["argv"] == ["--model", "sonnet"]
    folder = flow.ap("main")
    assert f"FAKE: actuator main {folder}/controller-output.md -> {folder}/actuator-output.md" in call["prompt"]
    assert "name: loop-actuator-main" in call["prompt"]
    words = " ".join(call["prompt"].split())
    assert "do NOT run any commands (no Bash). Only modify files" in words


def test_F_103_a_shell_is_denied_by_the_agents_own_option(flow: Flow) -> None:
    """The actuator's command denies Bash and the tools in its file, if the agent has an option for that."""
    flow.scenario("S1")
    import json

    from tests.kit.flow import AGENT

    flow.ws.config(f'[agents.mine]\ncommand = {json.dumps(AGENT)}\ndeny = "--deny {{tools}}"\n[flow]\nagent = "mine"\n')
    flow.agent("sensor-unit", "FAKE: sensor unit -> {output-path}\n", "disallowedTools: Edit, NotebookEdit\n")
    flow.commit("settings")
    assert flow.run().code == 0
    denied = {call["role"]: call["argv"][2:] for call in flow.calls}
    assert denied == {"actuator": ["--deny", "Bash"], "sensor": ["--deny", "Edit,NotebookEdit"], "controller": []}


def test_F_103_a_fallback_has_no_shell_either(flow: Flow) -> None:
    """The command of the fallback agent denies Bash to the actuator as well."""
    flow.scenario("S1")
    import json

    from tests.kit.flow import AGENT

    limit = {"type": "result", "is_error": True, "api_error": "usage_limit_reached", "result": "limit"}
    script = flow.ws.write("limited.sh", f"cat <<'END'\n{json.dumps(limit)}\nEND\n")
    agents = f'[agents.first]\ncommand = "sh {script}"\noutput = "claude"\ndeny = "--deny {{tools}}"\n'
    agents += f'[agents.mine]\ncommand = {json.dumps(AGENT)}\ndeny = "--deny {{tools}}"\n'
    flow.ws.config(f'{agents}[flow]\nagent = "first"\non_limit = "switch"\nfallback = ["mine"]\n')
    flow.commit("settings")
    ran = flow.run()
    assert ran.code == 0, ran.both
    denied = {call["role"]: [word for word in call["argv"] if word == "Bash"] for call in flow.calls}
    assert denied == {"actuator": ["Bash"], "sensor": [], "controller": []}


def test_flow_check_warns_of_a_fallback_that_keeps_its_shell(flow: Flow) -> None:
    """A warning names an agent, or a fallback, without an option to deny tools."""
    agents = '[agents.first]\ncommand = "true"\ndeny = "--deny {tools}"\n[agents.other]\ncommand = "true"\n'
    flow.ws.config(f'{agents}[flow]\nagent = "first"\non_limit = "switch"\nfallback = ["other"]\n')
    ran = flow.ws.rooda("flow", "check")
    assert ran.code == 0 and "WARNING: other has no option to deny tools" in ran.err, ran.both


def test_F_105_F_106_F_107_the_plan_is_the_childs_task(ran: Ran) -> None:
    """No actuator call between the root's controller and the child's entry."""
    flow, _ = ran("S2")
    assert [row.split()[:2] for row in flow.roles()[1:3]] == [["controller", "delivery"], ["controller", "impl"]]
    text = flow.shown("1.0", flow.ap("impl", "orchestrator-output.md"))
    assert text.partition("# Task (setpoint)\n\n")[2] == "outer plan\n"


PLANS = {
    "list": "1. one\n2. two\n   - inner\n",
    "fenced headings": "Do this:\n\n```md\n## x\n# y\n```\n\nand ~~~\n\n~~~~\n## z\n~~~\n~~~~\nend",
    "deeper headings": "### Criteria\n\n- all\n\n#### More\n\ntext",
    "umlauts": "Größe — „ändern“ 🙂\n\n\n\nblank lines above",
    "indented": "    code at first\n\ttab",
    "placeholders": "{artifacts-path} {child-node-id} {{x}} {sensors-section}",
    "rules": "---\nkey: value\n---\ntext",
    "trailing blanks": "a  \nb\t",
}


def test_F_107_verbatim(flow: Flow) -> None:
    """The child's setpoint is the plan, byte for byte; in each iteration another one."""
    flow.scenario("S2")
    flow.put(limited(FL2, len(PLANS) + 2, 2))
    flow.ws.config(f"{flow.ws.read('rooda.toml')}[flow]\nstuck_after = 0\n")
    flow.commit("limits")
    head = "---\ntarget-met: false\n---\n# Controller Output\n\n## Action Plan (setpoint for inner loop)\n\n\n"
    texts = [f"{head}{plan}\n\n## Stagnation Notes\n\nnone\n" for plan in PLANS.values()]
    flow.say("controller-delivery", *texts, "---\ntarget-met: true\n---\n")
    flow.controller("impl", True)
    ran = flow.run()
    assert ran.code == 0, ran.both
    for number, plan in enumerate(PLANS.values(), 1):
        text = flow.shown(f"{number}.0", flow.ap("impl", "orchestrator-output.md"))
        assert text.partition("# Task (setpoint)\n\n")[2] == plan.rstrip("\n") + "\n"


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("S1", "0 1 2"),
        ("S2", "0 1.0 1.1 1.2 1 2"),
        ("S3", "0 1 2 3"),
        ("S4", "0 1.0 1.1 1.2 1.3 1 2"),
        ("S5", "0 1.0 1.1.0 1.1.1 1.1.2 1.1 1.2 1 2"),
    ],
)
def test_F_108_F_110_F_160_F_161_labels_of_the_scenarios(ran: Ran, name: str, labels: str) -> None:
    """The labels are in order, each once."""
    assert ran(name)[0].labels() == labels.split()


def test_F_110_six_levels(flow: Flow) -> None:
    """At any depth the innermost node acts, and control returns to every parent."""
    levels = tuple(Level(f"n{depth}", (f"s{depth}",), 3) for depth in range(6))
    flow.put(levels)
    for depth in range(6):
        flow.sensor(f"s{depth}", "fail", "pass")
        flow.controller(f"n{depth}", False, True)
    flow.actuator("n5", "one")
    flow.commit("deep")
    assert flow.run(timeout=120).code == 0
    ones = [".".join("1" * depth) for depth in range(1, 7)]
    entries = ["0", *(f"{label}.0" for label in ones[:5])]
    back = [label for one in reversed(ones) for label in (one, f"{one[:-1]}2")]
    assert flow.labels() == entries + back
    assert flow.at("1.1.1.1.1.1").fields["level"] == "5"


def test_F_109_the_childs_result_is_read(flow: Flow) -> None:
    """A result that can't be read is an error of the parent."""
    flow.scenario("S2")
    result = ".ai-loop/runs/*/nodes/delivery/impl/result-output.md"
    hook = flow.ws.write(
        "spoil", f"#!/bin/sh\nfor f in {result}; do [ -f $f ] && echo broken > $f; done; true\n", 0o755
    )
    flow.commit("tool")
    flow.ws.git("config", "core.hooksPath", flow.ws.file("hooks"))
    flow.ws.write("hooks/post-commit", f"#!/bin/sh\n{hook}\n", 0o755)
    flow.commit("hook")
    ran = flow.run()
    assert ran.code == 1
    assert flow.state["status"] == "error"
    assert flow.log()[-1].fields["action"].startswith("error: the result of impl can't be read")


def test_F_111_each_level_sees_its_own_parents_plan(ran: Ran) -> None:
    """Three levels, three different setpoints."""
    flow, _ = ran("S5")
    tasks = [
        flow.ws.read(flow.rd(f"nodes/{path}/orchestrator-output.md")).partition("# Task (setpoint)\n\n")[2].strip()
        for path in ("a", "a/b", "a/b/c")
    ]
    assert tasks == ["do it", "plan of a", "plan of b"]


def test_F_120_each_node_measures_again_after_acting(ran: Ran) -> None:
    """The root's sensors are called twice, the child's once."""
    rows = [row.split()[1] for row in ran("S2")[0].roles() if row.startswith("sensor")]
    assert rows == ["full+cover", "types+unit", "full+cover"]


def test_F_122_an_iterations_commit_holds_everything(ran: Ran) -> None:
    """The commit has code and artifacts, and the work tree is clean afterwards."""
    flow, _ = ran("S2")
    names = flow.ws.git("show", "--name-only", "--format=", flow.at("1.1").sha).split()
    wanted = ["src.txt", *(flow.ap("impl", f"{name}-output.md") for name in ("actuator", "controller", "sensor-unit"))]
    assert set(wanted) <= set(names)
    assert flow.clean()


def test_F_123_the_commit_of_an_iteration(ran: Ran) -> None:
    """The commit's message has the actuator's action or the child's result."""
    flow, _ = ran("S2")
    inner, outer = flow.at("1.1"), flow.at("1")
    assert inner.subject == "ai-loop[delivery > impl]: iteration 1.1 — Wrote one into src.txt."
    assert inner.body[4:] == [
        "[status] running",
        "[target-met] false",
        "[sensors] types: pass, unit: pass",
        "[action] Wrote one into src.txt.",
    ]
    assert outer.subject == "ai-loop[delivery]: iteration 1 — impl: complete after 2 iterations"
    assert outer.body[4:] == [
        "[status] running",
        "[target-met] false",
        "[sensors] full: pass, cover: pass",
        "[action] impl: complete after 2 iterations",
    ]


def test_F_124_the_counter_increases_per_iteration(ran: Ran) -> None:
    """The node's file shows 1, 2, … at its controller's calls."""
    flow, _ = ran("S3")
    path = flow.ap("main", "orchestrator-output.md")
    calls = [call for call in flow.calls if call["role"] == "controller"]
    assert [front_matter(call["texts"][path])["iteration"] for call in calls] == [1, 2]


def test_L_21_the_actuator_sees_what_failed(flow: Flow) -> None:
    """Its prompt has the output of failing sensors, not of passing ones; all prompts ask for files without a fence."""
    flow.put((Level("main", ("unit", "types"), 5),))
    flow.sensor("unit", "fail", more="\n## Output\n\n```\nAssertionError: 3 != 4\n```\n")
    flow.sensor("types", "pass", more="\n## Output\n\nno issues\n")
    flow.controller("main", False, True)
    flow.actuator("main", "one")
    flow.commit("one fails")
    assert flow.run().code == 0
    prompt = next(call["prompt"] for call in flow.calls if call["role"] == "actuator")
    assert "### unit" in prompt and "> AssertionError: 3 != 4" in prompt and "no issues" not in prompt
    assert all("without a code fence around it" in " ".join(call["prompt"].split()) for call in flow.calls)


def test_L_21_an_inner_node_may_leave_what_lies_outside(bare: Workspace) -> None:
    """The inner controller that setup writes may say that its target is met if the rest lies outside its setpoint."""
    assert bare.rooda("flow", "setup", "--levels", "2", "--sensor", "t=true").code == 0
    text = " ".join(bare.read(".claude/agents/loop-controller-implement.md").split())
    assert "also if all that is left lies outside of the setpoint" in text


@pytest.mark.parametrize(("k", "label"), [(5, "5"), (2, "2")])
def test_L_22_a_node_without_progress_ends(flow: Flow, k: int, label: str) -> None:
    """After k iterations that change no file and measure the same, the node ends with an error: no progress."""
    flow.put(limited(FL1, 9))
    flow.sensor("unit", "fail")
    flow.controller("main", False)
    flow.say("actuator-main", "# Actuator Output\n\n## What Was Done\n\nNothing.\n")
    if k != 5:
        flow.ws.config(f"{flow.ws.read('rooda.toml')}[flow]\nstuck_after = {k}\n")
    flow.commit("nothing is done")
    ran = flow.run()
    assert ran.code == 1 and "no progress" in ran.out, ran.both
    assert flow.labels()[-1] == label
    keys = flow.fm(flow.ap("main", "result-output.md"))
    assert (keys["status"], keys["termination-reason"], keys["iterations-executed"]) == ("error", "error", k)


def test_L_22_a_change_or_a_new_reading_is_progress(flow: Flow) -> None:
    """A node that changes a file in each iteration, or a parent whose child does, runs to its limit."""
    flow.scenario("S4")
    flow.ws.config(f"{flow.ws.read('rooda.toml')}[flow]\nstuck_after = 1\n")
    flow.commit("one is enough")
    assert flow.run().code == 4, flow.labels()


def test_F_071_the_counter_is_there_before_the_controller(ran: Ran) -> None:
    """At each call of the child's controller its file has the number, and the state names the child."""
    flow, _ = ran("S4")
    calls = [call for call in flow.calls if call["served"][0] == ["controller", "impl"]]
    path = flow.ap("impl", "orchestrator-output.md")
    assert [front_matter(call["texts"][path])["iteration"] for call in calls] == [1, 2]
    assert {front_matter(call["texts"][flow.rd("run-state.md")])["active-node-path"] for call in calls} == {
        "delivery/impl"
    }


def test_variables_name_the_place_of_a_call(ran: Ran) -> None:
    """ROODA_CALL, ROODA_ITERATION, ROODA_LOOP, ROODA_NODE and ROODA_LABEL."""
    flow, _ = ran("S2")
    keys = ("ROODA_CALL", "ROODA_ITERATION", "ROODA_LOOP", "ROODA_NODE", "ROODA_LABEL")
    told = [tuple(call["env"][key] for key in keys) for call in flow.calls[:4]]
    assert told == [
        ("sensor", "0", "flow", "delivery", "0"),
        ("controller", "1", "flow", "delivery", "1"),
        ("controller", "1", "flow", "delivery/impl", "1.1"),
        ("actuator", "1", "flow", "delivery/impl", "1.1"),
    ]


def test_levels_of_the_kit() -> None:
    """What the scenarios are made of."""
    assert [level.most for level in FL2] == [3, 4]
