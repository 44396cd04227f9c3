"""The flow loop: sensors, controller, actuator or a loop inside, sensors again; one boundary per turn, any depth."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from rooda.errors import Interrupted
from rooda.loops.flow.boundaries import ACTION, ENTRY, MEASURED, SUMMARY, of_error, one_line
from rooda.loops.flow.events import NodeBoundary, NodeEnded, NodeEntered
from rooda.loops.flow.model import (
    COMPLETE,
    DIRECT,
    ERROR,
    LIMIT,
    NOT_ENTERED,
    REASON_OF,
    RUNNING,
    Action,
    Decision,
    FlowWorld,
    Job,
    NodeFailed,
    NodeState,
    label,
)
from rooda.loops.kernel import Run
from rooda.run.event_records import Problem

AT_LIMIT = "max iterations reached"

Value = TypeVar("Value")


def node(run: Run, job: Job, world: FlowWorld) -> NodeState:
    """One entry into a node, to its end. Each turn closes with one commit; its state is what that commit says."""
    state: NodeState = run.carried(NodeState())
    while state.status == RUNNING:
        try:
            state = run.carry(turn(run, job, state, world))
        except NodeFailed as problem:
            state = run.carry(of_error(problem.why, state.iteration + 1, world.readings(job)))
            world.emit(Problem(text=f"{job.node.path}: {problem.why}{problem.detail and ': ' + problem.detail}"))
        world.emit(NodeBoundary(**entered(job, state).facts))
    world.emit(NodeEnded(reason=REASON_OF[state.status], **entered(job, state).facts))
    return state


def turn(run: Run, job: Job, state: NodeState, world: FlowWorld) -> NodeState:
    """The node's next boundary: its entry, a full iteration, or its end."""
    number = state.iteration + 1
    if state.iteration == NOT_ENTERED:
        return entry(run, job, world)
    if number >= job.node.max_iterations:  # before the controller: the limit is one on iterations that are entered
        return state._replace(iteration=number, status=LIMIT, summary=AT_LIMIT, action=AT_LIMIT)
    step(run, world, "OPEN", partial(world.open, job, number))
    decision = step(run, world, "CONTROL", partial(world.control, job, number))
    if decision.met:
        return state._replace(iteration=number, status=COMPLETE, summary="target met", action="target met")
    action = act(run, job, number, decision, world)
    readings = step(run, world, "SENSORS", partial(world.measure, job, number))
    return NodeState(number, RUNNING, readings, one_line(action.text, SUMMARY), one_line(action.text, ACTION))


def entry(run: Run, job: Job, world: FlowWorld) -> NodeState:
    """Iteration 0: the top node is measured, an inner one begins with stubs."""
    world.emit(entered(job, NodeState(0)))
    step(run, world, "ENTER", partial(world.enter, job))
    if job.inner:
        return NodeState(0, RUNNING, step(run, world, "MEASURE", partial(world.stubs, job)), ENTRY, ENTRY)
    return NodeState(0, RUNNING, step(run, world, "MEASURE", partial(world.measure, job, 0)), MEASURED, MEASURED)


def act(run: Run, job: Job, number: int, decision: Decision, world: FlowWorld) -> Action:
    """The actuator: an agent, another kind of loop, or the node inside."""
    child = job.node.child
    if child is None:
        return step(
            run, world, "ACT" if job.node.strategy == DIRECT else "LOOP", partial(world.act, job, number, decision)
        )
    step(run, world, "CHILD", lambda: None)
    inner = Job(child, decision.plan, label(job.parent_label, number))
    ended = node(run.child(child.id), inner, world)
    if ended.status == ERROR:
        raise NodeFailed(f"{child.id}: {ended.error}")
    return world.result(inner)


def step(run: Run, world: FlowWorld, name: str, work: Callable[[], Value]) -> Value:
    """No step begins after a signal."""
    if number := world.signalled():
        raise Interrupted(number)
    return run.step(name, work)


def executed(state: NodeState) -> int:
    """Iterations in which the controller was started; the limit stops before it."""
    return max(0, state.iteration - (state.status == LIMIT))


def entered(job: Job, state: NodeState) -> NodeEntered:
    """The node as it is now; the events of its boundaries and of its end have the same fields."""
    return NodeEntered(
        iteration=state.iteration - 1,
        node=job.node.path,
        level=job.node.depth,
        label=label(job.parent_label, state.iteration),
        number=state.iteration,
        max_iterations=job.node.max_iterations,
        status=state.status,
        target_met=state.status == COMPLETE,
        sensors={reading.sensor: reading.status for reading in state.readings},
        summary=state.summary,
        action=state.action,
        error=state.error,
        executed=executed(state),
    )
