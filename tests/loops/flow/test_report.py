"""Rows F-190 to F-203: the report of a run, the roles, and the companion commands of `run`."""

import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.flow import FL2, Flow, front_matter, limited
from tests.kit.workspace import Workspace

Ran = Callable[[str], Any]


def test_F_190_F_191_the_report_at_the_end(ran: Ran) -> None:
    """The report has branch, base, number of commits, and the four next steps with real names."""
    flow, done = ran("S1")
    for text in (
        *("Branch: ai-loop/do-it", "Base branch: main", "Commits: 3"),
        *("git merge ai-loop/do-it", "git rebase main", "git diff main...ai-loop/do-it", "Discard"),
    ):
        assert text in done.out
    assert flow.ws.git("diff", "--stat", "main...ai-loop/do-it") != ""


def test_a_target_that_only_the_controller_sees(flow: Flow) -> None:
    """The controller decides alone, so the end names each sensor that does not pass."""
    flow.scenario("S1").sensor("unit", "fail", "fail")
    done = flow.run()
    assert done.code == 0
    assert "WARNING: The controller says that the target is met, but not every sensor passes: unit: fail" in done.err
    assert "completed, target met, but unit: fail" in done.err
    assert "target met, but unit: fail" in flow.ws.rooda("runs").out


def test_F_192_progress_after_each_root_iteration(ran: Ran) -> None:
    """The progress line has the number, target-met, and the child's result."""
    _, done = ran("S2")
    rows = [row for row in done.lines if re.search(r"\] Iteration \d", row)]
    assert len(rows) == 3
    assert all(word in rows[1] for word in ("Iteration 1:", "false", "impl", "2 iterations", "complete"))
    assert "Iteration 2: target-met true" in rows[2]


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        ("S1", "complete", 0),
        ("S2", "complete", 0),
        ("S3", "max-iterations-reached", 4),
        ("S5", "max-iterations-reached", 4),
    ],
)
def test_F_193_F_196_the_state_at_the_end(ran: Ran, name: str, status: str, code: int) -> None:
    """An ended run is committed with its status, the tree is clean, and the exit code fits."""
    flow, done = ran(name)
    assert done.code == code
    assert flow.state["status"] == status
    assert flow.ws.git("show", f"HEAD:{flow.rd('run-state.md')}") == flow.ws.read(flow.rd("run-state.md"))
    assert flow.clean()


def test_F_194_rooda_measures_and_edits_nothing_itself(flow: Flow) -> None:
    """Agents that write nothing: no reading is invented, no file of the project changes."""
    flow.scenario("S1")
    flow.say("sensor-unit", "!nowrite\n", "!nowrite\n")
    assert flow.run().code == 1
    assert flow.ws.read("src.txt") == "zero\n"
    assert not flow.ws.exists(flow.ap("main", "sensor-unit-output.md"))
    assert flow.at("0").fields["sensors"] == "unit: pending"


@pytest.mark.parametrize("name", ["S1", "S2", "S3", "S4", "S5"])
def test_F_195_F_104_one_call_per_cycle(ran: Ran, name: str) -> None:
    """One cheap call measures all sensors of a node; the actuator runs once per full iteration of a direct node."""
    flow, _ = ran(name)
    full = [c for c in flow.log() if c.fields["status"] == "running" and not c.label.endswith("0")]
    direct = [c for c in full if c.fields["node-path"].count("/") == len(flow.levels) - 1]
    roles = flow.roles()
    assert sum(row.startswith("sensor") for row in roles) == len(full) + 1
    assert sum(row.startswith("actuator") for row in roles) == len(direct)
    assert all(row.endswith(" haiku") for row in roles if row.startswith("sensor"))
    assert all(row.endswith(" sonnet") for row in roles if row.startswith("actuator"))


def digest(folder: str) -> dict[str, str]:
    """Return the content of every file below a folder, `.git` included."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            found[path] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return found


def test_F_200_F_201_setup_makes_a_flow_that_runs(bare: Workspace) -> None:
    """Setup with answers writes a flow that passes the checks; repeating it changes nothing."""
    bare.git("init", "-q", "-b", "main")
    bare.write("pyproject.toml", "[tool.pytest.ini_options]\n[tool.ruff]\n")
    answers = b"y\ny\nstyle=test -f style\n\n2\nouter\nwork\n"
    ran = bare.rooda("flow", "setup", stdin=answers)
    assert ran.code == 0, ran.both
    data = yaml.safe_load(bare.read(".ai-loop/flow.yaml"))
    root, child = data["flow"], data["flow"]["actuator"]["child"]
    assert (root["id"], root["termination"]["max_iterations"]) == ("outer", 5)
    assert (child["id"], child["termination"]["max_iterations"]) == ("work", 10)
    assert data["version"] == 1 and data["defaults"]["termination"]["on_error"] == "fail-fast"
    assert sorted(os.listdir(bare.file(".claude/agents"))) == [
        *("loop-actuator.md", "loop-controller-outer.md", "loop-controller-work.md"),
        *("loop-sensor-lint.md", "loop-sensor-style.md", "loop-sensor-tests.md"),
    ]
    assert bare.exists(".ai-loop/runs")
    keys = front_matter(bare.read(".claude/agents/loop-actuator.md"))
    assert "Bash" in keys["disallowedTools"] and keys["model"] == "sonnet"
    sensor = front_matter(bare.read(".claude/agents/loop-sensor-lint.md"))
    assert (sensor["model"], sensor["command"]) == ("haiku", "ruff check .")
    assert front_matter(bare.read(".claude/agents/loop-controller-work.md"))["model"] == "opus"
    before = digest(bare.path)
    again = bare.rooda("flow", "setup", stdin=answers)
    assert again.code == 0 and "nothing was changed" in again.out
    assert digest(bare.path) == before
    assert bare.rooda("flow", "check").code == 0


@pytest.mark.parametrize("words", [(), ("--yes",), ("--levels", "1"), ("--levels", "2", "--sensor", "t=true")])
def test_F_200_setup_without_answers(bare: Workspace, words: tuple[str, ...]) -> None:
    """Setup without answers uses the proposals, and the checks pass."""
    bare.write("pyproject.toml", "[tool.pytest.ini_options]\n")
    ran = bare.rooda("flow", "setup", *words)
    assert ran.code == 0, ran.both
    assert bare.rooda("flow", "check").code == 0
    assert bare.rooda("flow", "setup").code == 0


def test_F_200_an_interrupted_setup_is_repeated(bare: Workspace) -> None:
    """Existing agent files stay unchanged; flow.yaml is written last."""
    mine = bare.write(".claude/agents/loop-actuator.md", "mine\n")
    assert bare.rooda("flow", "setup", "--sensor", "t=true").code == 0
    assert Path(mine).read_text() == "mine\n"
    assert bare.exists(".ai-loop/flow.yaml")


@pytest.mark.parametrize("word", ["x", "=true", "a b=true", "x= "])
def test_F_200_a_wrong_sensor_is_refused(bare: Workspace, word: str) -> None:
    """A sensor that is not NAME=COMMAND: exit 2 and nothing written."""
    ran = bare.rooda("flow", "setup", "--sensor", word)
    assert ran.code == 2 and "NAME=COMMAND" in ran.err
    assert not bare.exists(".ai-loop")


def test_F_202_status_shows_everything_and_changes_nothing(ran: Ran) -> None:
    """Id, status, branch, base, task, node, stack, iterations, readings, decision, commits; no call; same bytes."""
    flow, _ = ran("S4")
    calls, before = len(flow.calls), digest(flow.ws.path)
    text = flow.ws.rooda("flow", "status").out
    for part in (
        *(flow.run_id, "paused", "ai-loop/do-it", "main", "do it"),
        *("active node: delivery", "execution stack: delivery", "delivery: iteration 2/2", "impl: iteration 3/3"),
        *("types: fail, unit: fail", "last decision: target not met", "iteration 1.3 — max iterations reached"),
    ):
        assert part in text, part
    (row,) = json.loads(flow.ws.rooda("flow", "status", flow.run_id, "--json").out)
    facts = row["details"]
    assert (row["state"], facts["file_status"]) == ("paused", "max-iterations-reached") and len(facts["commits"]) == 7
    assert [node["iteration"] for node in facts["nodes"]] == [2, 3]
    assert len(flow.calls) == calls and digest(flow.ws.path) == before


def test_F_202_the_last_twenty_commits(flow: Flow) -> None:
    """Only the newest commits of a long run are shown."""
    from tests.kit.flow import FL1

    flow.scenario("S3")
    flow.put(limited(FL1, 21))
    flow.ws.config(f"{flow.ws.read('rooda.toml')}[flow]\nstuck_after = 0\n")
    flow.commit("long")
    assert flow.run(timeout=120).code == 4
    facts = json.loads(flow.ws.rooda("flow", "status", "--json").out)[0]["details"]
    assert len(facts["commits"]) == 20 and "iteration 21 —" in facts["commits"][-1]["subject"]


def test_F_202_status_from_another_branch(flow: Flow) -> None:
    """Status on main finds an open or ended run on its branch."""
    flow.scenario("S1")
    assert flow.ws.rooda("flow", "status").out == "No flow has run here.\n"
    assert flow.run().code == 0
    name = flow.run_id
    flow.ws.git("checkout", "-q", "main")
    text = flow.ws.rooda("flow", "status").out
    assert name in text and "main: iteration 2/5, complete" in text


def test_F_203_check_prints_the_topology(flow: Flow) -> None:
    """A tree of nodes with sensors, controllers and actuators; --json for programs."""
    flow.put(FL2)
    ran = flow.ws.rooda("flow", "check")
    assert ran.code == 0
    for part in ("delivery", "  impl", "sensors: full, cover", "max_iterations 4", "loop-actuator-impl.md"):
        assert part in ran.out
    facts = json.loads(flow.ws.rooda("flow", "check", "--json").out)
    assert [node["path"] for node in facts["flow"]] == ["delivery", "delivery/impl"]
    assert "no option to deny tools" in ran.err


def test_F_203_check_prints_all_errors(flow: Flow) -> None:
    """`check` reports the same faults as a start."""
    flow.put(FL2)
    os.remove(flow.ws.file(".claude/agents/loop-actuator-impl.md"))
    os.remove(flow.ws.file(".claude/agents/loop-sensor-full.md"))
    ran = flow.ws.rooda("flow", "check")
    assert ran.code == 2
    assert len([row for row in ran.err.splitlines() if "flow.yaml:" in row]) == 2


def test_a_limit_of_one_is_warned_of(flow: Flow) -> None:
    """`check` warns of a limit of 1, an id at two depths, and an unknown key."""
    from tests.kit.flow import Level

    flow.put((Level("a", ("x",), 1), Level("b", (), 2), Level("a", (), 2)))
    text = flow.ws.read(".ai-loop/flow.yaml") + "extra: 1\n"
    flow.ws.write(".ai-loop/flow.yaml", text)
    ran = flow.ws.rooda("flow", "check")
    assert ran.code == 0
    for part in ("max_iterations is 1", "is used at two depths", "unknown key extra"):
        assert part in ran.err


def test_the_log_as_a_tree(ran: Ran) -> None:
    """The log has one row per boundary, with inner nodes indented."""
    flow, _ = ran("S2")
    rows = flow.ws.rooda("flow", "log").out.splitlines()
    assert rows[0] == f"{flow.run_id} on ai-loop/do-it: completed"
    assert [row.split(" — ")[0] for row in rows[1:]] == [
        *("  delivery 0", "    impl 1.0", "    impl 1.1", "    impl 1.2", "  delivery 1", "  delivery 2"),
    ]
    facts = json.loads(flow.ws.rooda("flow", "log", "--json").out)
    assert [each["iteration"] for each in facts] == flow.labels()


def test_events_as_json(flow: Flow) -> None:
    """With --json stdout has only events, one per line; boundaries have label, status and sensors."""
    flow.scenario("S2")
    ran = flow.run("do it", "--json")
    assert ran.code == 0
    events = [json.loads(row) for row in ran.lines]
    assert [each["label"] for each in events if each["event"] == "node.boundary"] == flow.labels()
    assert (events[0]["event"], events[-1]["event"]) == ("run.started", "run.ended")
    assert events[-1]["commits"] == 6 and events[-1]["status"] == "complete"


def test_a_live_tree_on_a_terminal(flow: Flow) -> None:
    """The live tree shows nodes, sensors and the active node during a call, and is erased afterwards."""
    from tests.kit.workspace import until

    flow.scenario("S2")
    flow.also("actuator-impl.1", f"!wait {flow.ws.fake}/gate")
    terminal = flow.ws.terminal("flow", "run", "do it")
    until(lambda: any("└ impl" in row and "actuator" in row for row in terminal.screen), 30, "the tree")
    rows = [row for row in terminal.screen if "full: fail, cover: fail" in row and "Iteration" not in row]
    assert rows and rows[-1].startswith("delivery")
    Path(flow.ws.fake, "gate").touch()
    assert terminal.finish() == 0
    assert not [row for row in terminal.screen if "└ impl" in row]
