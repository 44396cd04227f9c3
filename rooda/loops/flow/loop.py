"""The flow loop: sensors, controller, actuator or child node, sensors again; one commit per turn, at any depth."""

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from rooda.base.text import counted
from rooda.errors import Interrupted
from rooda.loops.flow.boundaries import ACTION, ENTRY, MEASURED, SUMMARY, one_line, state_of_error
from rooda.loops.flow.events import NodeBoundary, NodeEnded, NodeEntered
from rooda.loops.flow.model import (
    COMPLETE,
    DIRECT,
    ERROR,
    LIMIT,
    NOT_ENTERED,
    PENDING,
    REASON_OF,
    RUNNING,
    Action,
    Decision,
    NodeEntry,
    NodeFailed,
    NodeState,
    label,
)
from rooda.loops.flow.world import FlowWorld
from rooda.loops.kernel import Run
from rooda.run.event_records import Problem

AT_LIMIT = "max iterations reached"

P = ParamSpec("P")
Value = TypeVar("Value")


def run_node(run: Run, entry: NodeEntry, world: FlowWorld) -> NodeState:
    """Run a node from its entry to its end, with one commit per turn that records its state; return the last state."""
    state: NodeState = run.carried(NodeState())
    while state.status == RUNNING:
        entry = world.limited(entry)
        try:
            state = run.carry(turn(run, entry, state, world))
        except NodeFailed as problem:
            state = run.carry(state_of_error(problem.why, state.iteration + 1, world.readings(entry)))
            world.emit(Problem(text=f"{entry.node.path}: {problem.why}{problem.detail and ': ' + problem.detail}"))
        world.emit(NodeBoundary(**entry_event(entry, state).facts))
    world.emit(NodeEnded(reason=REASON_OF[state.status], **entry_event(entry, state).facts))
    return state


def turn(run: Run, entry: NodeEntry, state: NodeState, world: FlowWorld) -> NodeState:
    """Run one turn of a node: its entry, an iteration or its end. Return the state to commit."""
    number = state.iteration + 1
    if state.iteration == NOT_ENTERED:
        return enter(run, entry, world)
    if number >= entry.node.max_iterations:  # the specification checks the limit before the controller
        return state._replace(iteration=number, status=LIMIT, summary=AT_LIMIT, action=AT_LIMIT)
    step(run, world, "OPEN", world.open, entry, number)
    decision = step(run, world, "CONTROL", world.control, entry, number)
    if decision.met:
        return state._replace(iteration=number, status=COMPLETE, summary="target met", action="target met")
    action = act(run, entry, number, decision, world)
    readings = step(run, world, "SENSORS", world.measure, entry, number)
    done = NodeState(number, RUNNING, readings, one_line(action.text, SUMMARY), one_line(action.text, ACTION))
    return judged(done, state, world.tree(), world.stuck_after())


def judged(done: NodeState, before: NodeState, tree: str, most: int) -> NodeState:
    """Count the iterations without progress; raise NodeFailed when `most` is reached, unless `most` is 0."""
    measured = {reading.status for reading in before.readings} != {PENDING}
    same = tree != "" and tree == before.tree and (done.readings == before.readings or not measured)
    done = done._replace(tree=tree, idle=before.idle + 1 if same else 0)
    if 0 < most <= done.idle:
        raise NodeFailed(
            f"no progress: {counted(done.idle, 'iteration')} changed no file and measured the same (stuck_after)"
        )
    return done


def enter(run: Run, entry: NodeEntry, world: FlowWorld) -> NodeState:
    """Enter a node as iteration 0: measure the top node, or write pending sensor files for an inner node."""
    world.emit(entry_event(entry, NodeState(0)))
    step(run, world, "ENTER", world.enter, entry)
    if entry.inner:
        readings = step(run, world, "MEASURE", world.stubs, entry)
        return NodeState(0, RUNNING, readings, ENTRY, ENTRY, tree=world.tree())
    readings = step(run, world, "MEASURE", world.measure, entry, 0)
    return NodeState(0, RUNNING, readings, MEASURED, MEASURED, tree=world.tree())


def act(run: Run, entry: NodeEntry, number: int, decision: Decision, world: FlowWorld) -> Action:
    """Run the actuator: an agent, another kind of loop, or the child node."""
    child = entry.node.child
    if child is None:
        name = "ACT" if entry.node.strategy == DIRECT else "LOOP"
        return step(run, world, name, world.act, entry, number, decision)
    step(run, world, "CHILD", lambda: None)
    inner = NodeEntry(child, decision.plan, label(entry.parent_label, number))
    ended = run_node(run.child(child.id), inner, world)
    if ended.status == ERROR:
        raise NodeFailed(f"{child.id}: {ended.error}")
    return world.result(inner)


def step(run: Run, world: FlowWorld, name: str, effect: Callable[P, Value], *args: P.args, **kwargs: P.kwargs) -> Value:
    """Run one recorded step and return its value. If a signal has arrived, raise Interrupted instead."""
    if number := world.signalled():
        raise Interrupted(number)
    return run.step(name, partial(effect, *args, **kwargs))


def executed(state: NodeState) -> int:
    """Return the number of iterations in which the controller ran: all but the last if the node ended at its limit."""
    return max(0, state.iteration - (state.status == LIMIT))


def entry_event(entry: NodeEntry, state: NodeState) -> NodeEntered:
    """Build the event for entering a node; the events for the node's commits and end have the same fields."""
    return NodeEntered(
        iteration=state.iteration - 1,
        node=entry.node.path,
        level=entry.node.depth,
        label=label(entry.parent_label, state.iteration),
        number=state.iteration,
        max_iterations=entry.node.max_iterations,
        status=state.status,
        target_met=state.status == COMPLETE,
        sensors={reading.sensor: reading.status for reading in state.readings},
        summary=state.summary,
        action=state.action,
        error=state.error,
        executed=executed(state),
    )
