"""The loop against a reference model: random chains of nodes, random answers, interruptions anywhere."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rooda.errors import Interrupted
from rooda.loops.flow.boundaries import STEP_OF, Boundary, NodeRecord, position
from rooda.loops.flow.loop import run_node
from rooda.loops.flow.model import Action, Decision, Node, NodeEntry, NodeFailed, Reading, Sensor, chain, label
from rooda.loops.flow.world import FlowWorld
from rooda.loops.kernel import Run, Saved, Scope
from rooda.run.event_records import Event
from tests.kit.examples import examples
from tests.kit.flow import Flow, Level
from tests.kit.workspace import Workspace


class Script(NamedTuple):
    """A chain from the outside in: limits, and what each controller says, call after call (then: false)."""

    limits: list[int]
    says: list[list[bool]]


def model(script: Script) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Boundaries (path, label, status) and calls, written from the specification and nothing else."""
    commits: list[tuple[str, str, str]] = []
    calls: list[str] = []
    said = [iter(answers) for answers in script.says]

    def execute(depth: int, path: str, parent: str) -> None:
        def name(number: int) -> str:
            return f"{parent}.{number}" if parent else str(number)

        if not parent:
            calls.append(f"sensors {path}")
        commits.append((path, name(0), "running"))
        iteration = 1
        while True:
            if iteration >= script.limits[depth]:
                commits.append((path, name(iteration), "max-iterations-reached"))
                return
            calls.append(f"controller {path}")
            if next(said[depth], False):
                commits.append((path, name(iteration), "complete"))
                return
            if depth + 1 < len(script.limits):
                execute(depth + 1, f"{path}/n{depth + 1}", name(iteration))
            else:
                calls.append(f"actuator {path}")
            calls.append(f"sensors {path}")
            commits.append((path, name(iteration), "running"))
            iteration += 1

    execute(0, "n0", "")
    return commits, calls


@st.composite
def scripts(draw: Any, deepest: int = 5, most: int = 5) -> Script:
    depth = draw(st.integers(1, deepest))
    limits = [draw(st.integers(1, most if depth < 4 else 3)) for _ in range(depth)]
    return Script(limits, [draw(st.lists(st.booleans(), max_size=8)) for _ in range(depth)])


def tree(script: Script) -> Node:
    inner = None
    for depth in reversed(range(len(script.limits))):
        path = "/".join(f"n{number}" for number in range(depth + 1))
        strategy = "composite" if inner else "direct"
        sensor = Sensor(f"s{depth}", f"s{depth}.md")
        inner = Node(
            f"n{depth}", path, "c.md", strategy, script.limits[depth], (sensor,), "" if inner else "a.md", inner
        )
    assert inner
    return inner


class Disk:
    """What survives a crash: boundaries, the nodes' files, and the noted step."""

    def __init__(self, root: Node) -> None:
        self.nodes = chain(root)
        self.boundaries: list[Boundary] = []
        self.standing: dict[str, tuple[int, str]] = {}
        self.files: dict[tuple[str, str], Any] = {}
        self.stack: list[str] = []
        self.step = ""
        self.calls: list[str] = []


class Store:
    """A store over this disk, which finds positions by the real rule."""

    def __init__(self, disk: Disk) -> None:
        self.disk, self.at = disk, [-1] * len(disk.nodes)

    def parent(self, scope: Scope) -> str:
        return label(self.parent(scope[:-1]), self.at[len(scope) - 1] + 1) if scope else ""

    def load(self, scope: Scope) -> Saved:
        disk, path = self.disk, self.disk.nodes[len(scope)].path
        iteration, status = disk.standing.get(path, (-1, ""))
        step = disk.step if disk.stack[-1:] == [path] else "child" if path in disk.stack else ""
        fresh = [name for name in ("CONTROL", "ACT", "SENSORS") if (path, name) in disk.files]
        mine = [each for each in disk.boundaries if each.path == path]
        found = position(NodeRecord(self.parent(scope), mine, iteration, status, path in disk.stack, step, fresh))
        self.at[len(scope)] = found.state.iteration if found.state else -1
        values = {"MEASURE": "SENSORS"}
        return Saved(found.state, {name: disk.files.get((path, values.get(name, name))) for name in found.done})

    def begin(self, scope: Scope, name: str) -> None:
        path = self.disk.nodes[len(scope)].path
        gone = {"OPEN": "CONTROL", "CONTROL": "CONTROL", "ACT": "ACT", "SENSORS": "SENSORS"}.get(name, "")
        self.disk.files.pop((path, gone), None)
        self.disk.stack = [each.path for each in self.disk.nodes[: len(scope) + 1]]
        self.disk.step = STEP_OF[name]

    def end(self, scope: Scope, name: str, value: Any) -> Any:
        return value

    def carry(self, scope: Scope, state: Any) -> Any:
        path = self.disk.nodes[len(scope)].path
        self.disk.standing[path] = (state.iteration, state.status)
        self.disk.step, self.disk.stack = "commit", [each.path for each in self.disk.nodes[: len(scope) + 1]]
        self.disk.boundaries.append(Boundary(path, label(self.parent(scope), state.iteration), state))
        self.at[len(scope)] = state.iteration
        return state


class World(FlowWorld):
    """Answers by how often a role of a node has answered before; a crash may come before or after each effect."""

    def __init__(self, disk: Disk, script: Script, crashes: Iterator[int], fails: int = -1) -> None:
        self.disk, self.script, self.fails = disk, script, fails
        self.left = next(crashes, 1 << 30)

    def signalled(self) -> int:
        return 0

    def emit(self, event: Event) -> None:
        pass

    def limited(self, entry: NodeEntry) -> NodeEntry:
        return entry

    def enter(self, entry: NodeEntry) -> None:
        self.effect()
        for file in ("CONTROL", "ACT"):
            self.disk.files.pop((entry.node.path, file), None)
        self.disk.standing[entry.node.path] = (0, "running")
        self.effect()

    def stubs(self, entry: NodeEntry) -> tuple[Reading, ...]:
        self.effect()
        self.disk.files[(entry.node.path, "SENSORS")] = (Reading("s", "pending"),)
        return (Reading("s", "pending"),)

    def measure(self, entry: NodeEntry, number: int) -> tuple[Reading, ...]:
        return self.call("sensors", entry, "SENSORS", (Reading("s", "fail"),))

    def open(self, entry: NodeEntry, number: int) -> None:
        self.effect()
        self.disk.standing[entry.node.path] = (number, "running")
        self.effect()

    def control(self, entry: NodeEntry, number: int) -> Decision:
        earlier = self.disk.calls.count(f"controller {entry.node.path}")
        answers = self.script.says[entry.node.depth]
        decision = Decision(earlier < len(answers) and answers[earlier], "plan")
        return self.call("controller", entry, "CONTROL", decision)

    def act(self, entry: NodeEntry, number: int, decision: Decision) -> Action:
        return self.call("actuator", entry, "ACT", Action("did"))

    def readings(self, entry: NodeEntry) -> tuple[Reading, ...]:
        return self.disk.files.get((entry.node.path, "SENSORS"), (Reading("s", "pending"),))

    def tree(self) -> str:
        return ""

    def stuck_after(self) -> int:
        return 0

    def result(self, entry: NodeEntry) -> Action:
        return Action("ended")

    def effect(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Interrupted(9)

    def call(self, role: str, entry: NodeEntry, file: str, value: Any) -> Any:
        self.effect()
        self.disk.calls.append(f"{role} {entry.node.path}")
        if len(self.disk.calls) == self.fails:
            raise NodeFailed("it failed")
        self.disk.files[(entry.node.path, file)] = value
        self.effect()
        return value


def played(script: Script, crashes: list[int]) -> Disk:
    """Run the loop, interrupted after the given numbers of effects and resumed each time."""
    root = tree(script)
    disk, points = Disk(root), iter(crashes)
    for _ in range(len(crashes) + 1):
        try:
            run_node(Run(Store(disk)), NodeEntry(root, "task"), World(disk, script, points))
            break
        except Interrupted:
            continue
    return disk


def ended(disk: Disk) -> list[tuple[str, str, str]]:
    return [(each.path, each.label, each.state.status) for each in disk.boundaries]


@settings(max_examples=examples(600), deadline=None)
@given(scripts())
def test_F_197_F_072_F_110_boundaries_and_calls_are_the_models(script: Script) -> None:
    """Without interruption: the same commits and the same calls in the same order, within all limits."""
    disk = played(script, [])
    assert (ended(disk), disk.calls) == model(script)
    for path in {each.path for each in disk.boundaries}:
        most = script.limits[path.count("/")]
        assert max(each.state.iteration for each in disk.boundaries if each.path == path) <= most


@settings(max_examples=examples(600), deadline=None)
@given(scripts(3, 4), st.lists(st.integers(0, 30), max_size=6))
def test_F_177_F_139_interrupted_anywhere_it_ends_the_same(script: Script, crashes: list[int]) -> None:
    """Interrupted before or after any effect, however often: the same commits; no label twice; no call doubled."""
    disk = played(script, crashes)
    assert (ended(disk), disk.calls) == model(script)
    pairs = [(each.path, each.label) for each in disk.boundaries]
    assert len(pairs) == len(set(pairs))


@settings(max_examples=examples(500), deadline=None)
@given(scripts(4, 4), st.integers(1, 25))
def test_an_error_ends_every_node_above(script: Script, fails: int) -> None:
    """The call that fails ends its node and each parent with `error`, innermost first, and nothing comes after."""
    root = tree(script)
    disk = Disk(root)
    state = run_node(Run(Store(disk)), NodeEntry(root, "task"), World(disk, script, iter(()), fails))
    calls = model(script)[1]
    if fails > len(calls):
        assert state.status != "error"
        return
    path = calls[fails - 1].split()[1]
    tail = [each[0] for each in ended(disk) if each[2] == "error"]
    parts = path.split("/")
    assert tail == ["/".join(parts[: n + 1]) for n in reversed(range(len(parts)))]
    assert ended(disk)[-1][2] == "error" and len(disk.calls) == fails


def test_the_effects_of_one_turn_in_their_order() -> None:
    """The exact trace of a two-level run: what is noted before each step, and each carry."""
    script = Script([2, 2], [[], []])
    root = tree(script)
    disk, trace = Disk(root), []

    class Traced(Store):
        def begin(self, scope: Scope, name: str) -> None:
            trace.append(f"{'/'.join(scope) or '.'} {name}")
            super().begin(scope, name)

        def carry(self, scope: Scope, state: Any) -> Any:
            carried = super().carry(scope, state)
            trace.append(f"commit {self.disk.boundaries[-1].label}")
            return carried

    run_node(Run(Traced(disk)), NodeEntry(root, "task"), World(disk, script, iter(())))
    assert trace == [
        *(". ENTER", ". MEASURE", "commit 0", ". OPEN", ". CONTROL", ". CHILD"),
        *("n1 ENTER", "n1 MEASURE", "commit 1.0", "n1 OPEN", "n1 CONTROL", "n1 ACT", "n1 SENSORS", "commit 1.1"),
        *("commit 1.2", ". SENSORS", "commit 1", "commit 2"),
    ]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    flow = Flow(Workspace(str(tmp_path_factory.mktemp("model"))))
    yield flow
    flow.ws.close()


@settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(scripts(3, 3))
def test_F_197_the_real_command_against_the_model(shared: Flow, script: Script) -> None:
    """Random chains on the real command, with real git: commits, calls and exit code are the model's."""
    flow = shared
    for old in list(flow.scripts):
        flow.forget(old)
    flow.ws.forget_calls()
    flow.ws.git("checkout", "-q", "main")
    flow.put(tuple(Level(f"n{depth}", (f"s{depth}",), most) for depth, most in enumerate(script.limits)))
    for depth, says in enumerate(script.says):
        flow.sensor(f"s{depth}", "fail")
        flow.controller(f"n{depth}", *says, False, *[False] * (not says))
    flow.actuator(f"n{len(script.limits) - 1}", "one")
    flow.commit("a random flow")
    ran = flow.run()
    commits, calls = model(script)
    found = [(each.fields["node-path"], each.label, each.fields["status"]) for each in flow.log()]
    assert found == commits
    names = {"sensor": "sensors", "controller": "controller", "actuator": "actuator"}
    assert [names[call["role"]] for call in flow.calls] == [call.split()[0] for call in calls]
    assert ran.code == (0 if commits[-1][2] == "complete" else 4)
    assert json.dumps(flow.state["status"]) == json.dumps(commits[-1][2])
    assert flow.clean()
