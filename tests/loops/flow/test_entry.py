"""Rows F-050 to F-064: how a node is entered, measured or stubbed."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.flow import AGENTS, Flow, front_matter

Ran = Callable[[str], Any]


@pytest.fixture
def s2(ran: Ran) -> Flow:
    return ran("S2")[0]


def call(flow: Flow, role: str, name: str, number: int = 1) -> dict[str, Any]:
    """Return the number-th call of a role for one name."""
    found = [each for each in flow.calls if each["role"] == role and [role, name] in each["served"]]
    return found[number - 1]


def seen(flow: Flow, made: dict[str, Any], path: str) -> str:
    """Return a file's text at the start of the call."""
    return str(made["texts"][path])


def test_F_050_artifacts_are_nested_by_node(s2: Flow) -> None:
    """The child's files are in a folder inside its parent's."""
    assert s2.ap("impl") == s2.rd("nodes/delivery/impl")
    for name in ("orchestrator-output.md", "controller-output.md", "result-output.md", "sensor-unit-output.md"):
        assert s2.ws.exists(s2.rd(f"nodes/delivery/impl/{name}"))


EXPECTED = {
    ("S1", "sensor", "unit", "main"): (0, 5, "main", "root"),
    ("S2", "sensor", "full", "delivery"): (0, 3, "delivery", "root"),
    ("S2", "controller", "impl", "delivery/impl"): (1, 4, "delivery/impl", "delivery"),
    ("S5", "controller", "c", "a/b/c"): (1, 2, "a/b/c", "a/b"),
}


@pytest.mark.parametrize("key", EXPECTED, ids=str)
def test_F_051_F_052_F_071_the_nodes_own_file(ran: Ran, key: tuple[str, str, str, str]) -> None:
    """The node's file has iteration, status, limit, path and parent, then the setpoint."""
    scenario, role, name, path = key
    flow, _ = ran(scenario)
    text = seen(flow, call(flow, role, name), flow.rd(f"nodes/{path}/orchestrator-output.md"))
    iteration, most, node, parent = EXPECTED[key]
    assert list(front_matter(text).items()) == [
        ("iteration", iteration),
        ("status", "running"),
        ("max-iterations", most),
        ("node-path", node),
        ("parent-node-path", parent),
    ]
    assert "\n---\n\n# Task (setpoint)\n\n" in text


def test_F_053_F_162_the_state_follows_the_active_node(ran: Ran) -> None:
    """Entering a child pushes it onto the execution stack, leaving it pops it."""
    for scenario in ("S2", "S5"):
        flow, _ = ran(scenario)
        paths = {"delivery": "delivery", "full": "delivery", "impl": "delivery/impl", "types": "delivery/impl"}
        paths |= {"a": "a", "sa": "a", "b": "a/b", "sb": "a/b", "c": "a/b/c", "sc": "a/b/c"}
        for each in flow.calls:
            state = front_matter(seen(flow, each, flow.rd("run-state.md")))
            path = paths[each["served"][0][1]]
            parts = path.split("/")
            assert state["active-node-path"] == path
            assert state["execution-stack"] == ["/".join(parts[: n + 1]) for n in range(len(parts))]
        assert flow.state["execution-stack"] == [flow.levels[0].id]


@pytest.mark.parametrize(("name", "labels"), [("S1", "0"), ("S2", "0 1.0"), ("S5", "0 1.0 1.1.0")])
def test_F_054_labels_of_entries(ran: Ran, name: str, labels: str) -> None:
    """The entry's label is `0` at the root, and the parent's label plus `.0` below."""
    found = [label for label in ran(name)[0].labels() if label.endswith("0")]
    assert found == labels.split()


def test_F_055_a_child_entry_starts_no_sensor(s2: Flow) -> None:
    """The child's first call is its controller's."""
    mine = [each["role"] for each in s2.calls if each["served"][0][1] in ("impl", "types", "unit")]
    assert mine[:2] == ["controller", "actuator"]


def test_F_056_stubs_to_the_byte(s2: Flow) -> None:
    """The commit of a child's entry has a stub for each sensor."""
    for name in ("types", "unit"):
        assert s2.shown("1.0", s2.ap("impl", f"sensor-{name}-output.md")) == (
            f"---\nsensor: {name}\nstatus: pending\n---\n# Sensor Output: {name}\n"
            "No baseline measurement — first iteration after parent controller decision.\n"
        )


def test_F_057_the_commit_of_an_entry(s2: Flow) -> None:
    """The commit has exactly this message."""
    commit = s2.at("1.0")
    assert commit.subject == "ai-loop[delivery > impl]: iteration 1.0 — initial entry (sensors skipped)"
    assert commit.body == [
        "",
        "[node-path] delivery/impl",
        "[level] 1",
        "[iteration] 1.0",
        "[status] running",
        "[target-met] false",
        "[sensors] types: pending, unit: pending",
        "[action] initial entry (sensors skipped)",
    ]


def test_F_058_F_070_later_entries_start_over(flow: Flow) -> None:
    """In the second cycle the sensors are pending again, old outputs are gone, and the count begins at 1."""
    flow.scenario("S2")
    flow.controller("delivery", False, False, True)
    flow.controller("impl", False, True, False, True)
    flow.sensor("full", "fail", "fail", "pass")
    from tests.kit.flow import FL2, limited

    flow.put(limited(FL2, 5, 4))
    flow.commit("limits")
    assert flow.run().code == 0
    assert flow.labels() == ["0", "1.0", "1.1", "1.2", "1", "2.0", "2.1", "2.2", "2", "3"]
    assert flow.at("2.0").fields["sensors"] == "types: pending, unit: pending"
    files = flow.ws.git("ls-tree", "--name-only", f"{flow.at('2.0').sha}:{flow.ap('impl')}").split()
    assert files == ["orchestrator-output.md", "sensor-types-output.md", "sensor-unit-output.md"]


def test_F_059_F_060_one_cheap_call_measures_all(s2: Flow) -> None:
    """One call with the model haiku measures both sensors before commit `0`."""
    assert s2.roles()[0] == "sensor full+cover haiku"
    assert s2.roles()[1].startswith("controller")


def test_F_061_F_063_the_prompt_lists_each_sensor(s2: Flow) -> None:
    """The prompt has each sensor's name, its path, and its instructions with the path filled in."""
    prompt = s2.calls[0]["prompt"]
    assert "{output-path}" not in prompt
    for name in ("full", "cover"):
        path = s2.ap("delivery", f"sensor-{name}-output.md")
        text = s2.ws.read(f"{AGENTS}/loop-sensor-{name}.md").replace("{output-path}", path)
        assert text.strip() in prompt
        assert prompt.count(path) >= 2 and s2.ws.exists(path)


def test_F_062_the_prompt_of_sensors(s2: Flow) -> None:
    """The prompt demands one sensor after the other, every file, read-only, no judgement, and unchanged errors."""
    prompt = " ".join(s2.calls[0]["prompt"].split())
    for words in ("one after the other", "Write every output file", "read-only", "Do not judge", "errors as they are"):
        assert words in prompt


@pytest.mark.parametrize(("name", "sensors"), [("S1", "unit: fail"), ("S2", "full: fail, cover: fail")])
def test_F_064_the_commit_of_the_first_measurement(ran: Ran, name: str, sensors: str) -> None:
    """The commit has exactly this message."""
    flow, _ = ran(name)
    commit, root = flow.log()[0], flow.levels[0].id
    assert commit.subject == f"ai-loop[{root}]: iteration 0 — initial measurement"
    assert commit.body == [
        "",
        f"[node-path] {root}",
        "[level] 0",
        "[iteration] 0",
        "[status] running",
        "[target-met] false",
        f"[sensors] {sensors}",
        "[action] initial measurement",
    ]
