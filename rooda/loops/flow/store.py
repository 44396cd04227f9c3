"""Stores a flow's progress in its files and commits, and derives the finished steps from them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rooda.base import files
from rooda.git.repository import Repo
from rooda.loops.flow import artifacts, commits, effects
from rooda.loops.flow.artifacts import (
    ACTUATOR,
    CONTROLLER,
    LIMIT_KEY,
    RESULT,
    STEP,
    ActuatorFile,
    ControllerFile,
    RunFiles,
    SensorFiles,
)
from rooda.loops.flow.boundaries import ACTION, COMMIT, STEP_OF, Boundary, NodeRecord, message, one_line, position
from rooda.loops.flow.commits import Committer
from rooda.loops.flow.contract import Broken
from rooda.loops.flow.guard import Guard
from rooda.loops.flow.loop import executed
from rooda.loops.flow.model import (
    COMPLETE,
    ERROR,
    REASON_OF,
    RUNNING,
    Node,
    NodeFailed,
    NodeState,
    chain,
    label,
    limited,
    own_iteration,
    run_folder,
    sensor_file,
)
from rooda.loops.flow.prompts import Ended, body
from rooda.loops.kernel import Saved, Scope

WRITES = {"OPEN": CONTROLLER, "CONTROL": CONTROLLER, "ACT": ACTUATOR, "LOOP": ACTUATOR, "SENSORS": "sensors"}
OUTPUTS = (("CONTROL", CONTROLLER), ("ACT", ACTUATOR))


class StorePlace(NamedTuple):
    """The repository, files, top node and committer of one run."""

    repo: Repo
    files: RunFiles
    root: Node
    committer: Committer


class FlowStore:
    """Finds where to resume each node of a run, and commits its state after each turn."""

    def __init__(
        self,
        place: StorePlace,
        state: dict[str, Any],
        boundaries: Sequence[Boundary],
        guard: Guard,
        new_limits: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        """`new_limits`: returns the limits that the user has changed while the flow runs."""
        self._place, self._files, self._new_limits = place, place.files, new_limits
        self._state = state  # run-state.md
        self._boundaries = list(boundaries)
        self._guard = guard  # knows the changed paths
        self._nodes = chain(place.root)
        self._at: list[NodeState] = [NodeState()] * len(self._nodes)

    def load(self, scope: Scope) -> Saved:
        found = position(self._record(scope))
        self._at[len(scope)] = found.state or NodeState()
        done: dict[str, Any] = {}
        for name in found.done:
            try:
                done[name] = self._value(self._nodes[len(scope)], name)
            except (Broken, NodeFailed):  # the step's file is missing or invalid: repeat this step and all later ones
                break
        return Saved(found.state, done)

    def begin(self, scope: Scope, name: str) -> None:
        """Delete the step's old outputs, then record the node and step in `run-state.md`."""
        artifacts.discard(self._files, self._nodes[len(scope)], WRITES.get(name, ""))
        self._note(scope, STEP_OF[name])

    def end(self, scope: Scope, name: str, value: Any) -> Any:
        return value

    def carry(self, scope: Scope, state: Any) -> Any:
        """Commit everything that changed, with the node's state as the commit message."""
        limit = int(self._new_limits().get("iterations", 0))
        self._nodes[0] = limited(self._nodes[0], limit)
        self._state |= {LIMIT_KEY: limit} if limit else {}
        node = self._nodes[len(scope)]
        boundary = Boundary(node.path, self._label(scope, state.iteration), state)
        if state.status != RUNNING:
            self._end_node(scope, node, state)
        self._note(scope, COMMIT, RUNNING if scope else state.status)
        self._commit(boundary)
        self._boundaries.append(boundary)
        self._at[len(scope)] = state
        return state

    def _commit(self, boundary: Boundary) -> None:
        try:
            self._place.committer.commit(message(boundary), self._guard.changed())
        except NodeFailed:
            if boundary.state.status != ERROR:
                raise
            self._place.committer.commit_own(message(boundary))
        self._guard.committed()

    def _note(self, scope: Scope, step: str, status: str = RUNNING) -> None:
        stack = [node.path for node in self._nodes[: len(scope) + 1]]
        where = {"active-node-path": stack[-1], "execution-stack": stack, STEP: step}
        new = {**self._state, "status": status, **where}
        if new != self._state or artifacts.text(self._files.state) is None:
            artifacts.write_state(self._files, new)
            self._state = new

    def _label(self, scope: Scope, iteration: int) -> str:
        return label(self._parent_label(scope), iteration)

    def _parent_label(self, scope: Scope) -> str:
        return self._label(scope[:-1], self._at[len(scope) - 1].iteration + 1) if scope else ""

    def _record(self, scope: Scope) -> NodeRecord:
        node, depth = self._nodes[len(scope)], len(scope)
        iteration, status = artifacts.progress(self._files, node)
        stack = self._state.get("execution-stack")
        stack = [str(each) for each in stack] if isinstance(stack, list) else [self._place.root.path]
        step = str(self._state.get(STEP, "")) if stack[-1:] == [node.path] else "child" if node.path in stack else ""
        own = [each for each in self._boundaries if each.path == node.path]
        return NodeRecord(
            parent_label=self._parent_label(scope),
            boundaries=own,
            iteration=iteration,
            status=status,
            on_stack=node.path in stack or depth == 0,
            step=step,
            fresh=self._fresh(node, step, own),
        )

    def _fresh(self, node: Node, step: str, own: Sequence[Boundary]) -> list[str]:
        """Return the steps whose files exist and belong to this iteration."""
        found = [
            name
            for name, file in OUTPUTS
            if artifacts.text(self._files.of_node(node.path, file)) is not None
            and (step or self._is_new(node, file, own))
        ]
        return found + ([] if None in artifacts.readings(self._files, node) else ["SENSORS"])

    def _is_new(self, node: Node, name: str, own: Sequence[Boundary]) -> bool:
        """True if the file differs from its version in the node's last commit, so that this iteration wrote it."""
        now = artifacts.text(self._files.of_node(node.path, name))
        if not own or own[-1].state.iteration < 1:
            return True
        run, repo = self._files, self._place.repo
        path = f"{run_folder(run.run)}/nodes/{node.path}/{name}"
        for logged in reversed(commits.history(repo, self._place.root.path, run.run)):
            if logged.boundary and (logged.boundary.path, logged.boundary.label) == (node.path, own[-1].label):
                before = commits.committed(repo, logged.commit, path)
                return before is None or files.to_text(before) != now
        return True

    def _value(self, node: Node, name: str) -> Any:
        """Return the value of a finished step, read from its file."""
        if name == "CONTROL":
            return ControllerFile(self._files, node).read()
        if name == "SENSORS" or (name == "MEASURE" and node is self._place.root):
            return SensorFiles(self._files, node).read()
        if name in ("ACT", "LOOP") and not node.child:
            return ActuatorFile(self._files, node).read()
        return None

    def _end_node(self, scope: Scope, node: Node, state: NodeState) -> None:
        """Write the node's end to its orchestrator file and its result file."""
        artifacts.update(self._files, node, state.iteration, state.status, "")
        keys = {
            "status": state.status,
            "target-met": state.status == COMPLETE,
            "termination-reason": REASON_OF[state.status],
            "run-id": self._files.run,
            "node-id": node.id,
            "node-path": node.path,
            "parent-node-path": node.parent,
            "iterations-executed": executed(state),
        }
        text = artifacts.header(keys) + body(self._ended(scope, node, state))
        artifacts.write(self._files.of_node(node.path, RESULT), text)

    def _ended(self, scope: Scope, node: Node, state: NodeState) -> Ended:
        parent = self._parent_label(scope)
        own = [each for each in self._boundaries if each.path == node.path]
        entry = [each for each in own if own_iteration(parent, each.label) is not None]
        outputs = {sensor.name: self._text(node, sensor_file(sensor.name)) for sensor in node.sensors}
        worked = [each.state.action for each in entry if each.state.iteration > 0]
        first = entry[0].state.readings if entry else ()
        controller = self._text(node, CONTROLLER) if executed(state) else ""
        last = (self._last_action(node) if state.status == ERROR else "") or (worked[-1] if worked else "")
        return Ended(node.id, node.max_iterations, executed(state), state, first, last, controller, outputs)

    def _last_action(self, node: Node) -> str:
        """Return the action that finished before the failure; "" if none did."""
        try:
            done = effects.result(self._files, node.child) if node.child else self._value(node, "ACT")
        except (Broken, NodeFailed):
            return ""
        return one_line(done.text, ACTION)

    def _text(self, node: Node, name: str) -> str:
        return artifacts.text(self._files.of_node(node.path, name)) or ""
