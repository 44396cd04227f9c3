"""Decides a task's next state in the fleet after a leg, a turn, or an order from the user. Pure and deterministic.

A leg is one stay of a task on a worker, from the claim to the end of the task's loop there. A turn is an iteration of
that loop.

The engine keeps the State of each task, and calls these functions; nothing else changes it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from rooda.base import json
from rooda.base.json import Json
from rooda.errors import FAILED, Cause
from rooda.fleet.port import PROTOCOL
from rooda.tasks import model, outcome
from rooda.tasks.model import Task
from rooda.tasks.outcome import Ended, Facts

STOP, PAUSE, HOLD, TAKE, CANCEL = "stop", "pause", "hold", "take", "cancel"
HOLDS = {STOP: "stopped", PAUSE: "paused", HOLD: "held back", TAKE: "taken home"}  # with the reason when parked
KEPT = ("say", "answer", "set")  # orders for the loop, which are kept after a leg until a turn has received them
LONGEST_WAIT = 60.0  # seconds between two attempts of a task that every worker refuses
AWAY = 10.0  # seconds until the next attempt of a task whose repository did not answer
EDITABLE = ("title", "text", "gates", "priority", "limits", "agent", "options", "kind", "name", "target", "after")


class State(NamedTuple):
    """The complete state of a task's workflow."""

    task: Task
    ticket: Any = None
    key: str = ""
    repository: str = ""
    ref: str = ""
    pool: str = "default"
    batch: str = ""
    heartbeat: float = 60.0
    retries: int = 1
    after: tuple[str, ...] = ()  # workflows that it still waits for
    watchers: tuple[str, ...] = ()  # workflows that wait for this one
    leg: int = 0  # number of the newest leg
    going: bool = False  # this leg is queued or runs
    worker: str = ""  # the worker that runs it; "" while it is queued
    queue: str = ""  # of that worker alone
    turn: int = 0
    first: bool = False  # the next leg starts before other tasks, because one was lost or handed back
    refused: int = 0  # times in a row
    refusals: Any = None  # reason of each worker, keyed by name
    wake: float = 0.0  # no leg begins before this time
    hold: str = ""  # the user's order that takes effect when the leg has ended
    why: str = ""
    recall: bool = False  # the queued leg must be taken back
    notes: tuple[Any, ...] = ()  # orders for the loop, each with an id
    note: int = 0  # newest id
    passed: int = 0  # newest id that the leg has received
    spends: tuple[str, ...] = ()  # money workflows that this leg asked
    anew: bool = False  # the user continued the task, so that claims lost before don't count


class Step(NamedTuple):
    """The workflow's next step: start a leg if `leg` is true, else wait `seconds` (None: until a signal arrives)."""

    leg: bool = False
    seconds: float | None = None


ALL_PAUSED: Json = {"order": PAUSE, "why": "all tasks are paused"}


def begin(wish: Mapping[str, Any], heartbeat: float, wake: float = 0.0, paused: bool = False) -> Json:
    """Return a task's first state as JSON. `paused`: all tasks of its repository are paused, so this one is parked."""
    kept = {key: wish[key] for key in ("ticket", "key", "repository", "ref", "pool", "batch", "retries") if key in wish}
    task = model.decode(wish["task"])
    state = State(task, after=tuple(wish.get("after", ())), heartbeat=heartbeat, wake=wake, **kept)
    if paused:
        state = ordered(state, ALL_PAUSED, task.created_at)
    return encode(state, wish.get("v", PROTOCOL))


def encode(state: State, v: int = PROTOCOL) -> Json:
    return {**json.encode(state), "task": model.encode(state.task), "v": v}


def decode(data: Json) -> State:
    return json.decode(State, data)


def memo(state: State) -> dict[str, Json | str]:
    """Return the data for the board. The task's text has its own key, so that it is written only when it changes."""
    fleet = {
        key: getattr(state, key) for key in ("key", "repository", "ref", "pool", "batch", "worker", "turn", "hold")
    }
    fleet |= {"legs": state.leg, "queued": state.going and not state.worker, "refusals": state.refusals or {}}
    fleet |= {"after": [*state.after], "retries": state.retries}
    return {"task": model.encode(state.task._replace(text="")), "text": state.task.text, "fleet": fleet}


def landed(done: list[Json]) -> Json:
    """Return the result for all commands that joined a landing: the output of each pass, and the highest exit code."""
    text = "\n".join(filter(None, (str(each.get("text") or each.get("why") or "").strip() for each in done)))
    return {**done[-1], "text": text, "code": max(int(each.get("code", FAILED)) for each in done)}


def step(state: State, now: float) -> Step:
    if state.task.state != model.WAITING or state.after:
        return Step()
    return Step(seconds=state.wake - now) if state.wake > now else Step(leg=True)


# A leg


def queued(state: State) -> State:
    """Return the state after the task's next leg was put into the queue."""
    notes = tuple(each for each in state.notes if each["order"] in KEPT)
    state = state._replace(leg=state.leg + 1, going=True, recall=False, notes=notes, passed=state.note, spends=())
    return state._replace(worker="", queue="")


def leg_order(state: State, workflow: str) -> Json:
    task = model.encode(state.task)
    base = {"workflow": workflow, "leg": state.leg, "ticket": state.ticket, "task": task, "v": PROTOCOL}
    base |= {"key": state.key, "batch": state.batch}
    return {**base, "notes": [*state.notes], "anew": state.anew}


def rank(state: State) -> int:
    """Return the next leg's queue priority: 1 after a lost or handed-back leg, else 2 to 4 for high, normal and low."""
    return 1 if state.first else 2 + model.PRIORITIES.index(state.task.priority)


def turned(state: State, facts: Json, now: str) -> State:
    """Return the state after a report from a leg. A report from an earlier leg changes nothing."""
    if not state.going or facts.get("leg") != state.leg:
        return state
    state = state._replace(worker=facts.get("worker", state.worker), queue=facts.get("queue", state.queue))
    state = state._replace(
        spends=tuple(dict.fromkeys((*state.spends, *facts.get("spends", ())))), refusals=None, refused=0
    )
    state = state._replace(anew=state.anew and "fence" not in facts)
    task = state.task
    if task.state != model.RUNNING:
        task = task._replace(state=model.RUNNING, started_at=task.started_at or now, reason="", until="")
    if facts.get("turn", 0) >= state.turn:
        known = ("iteration", "cost", "tokens", "seconds", "session", "branch", "head", "loop_state")
        task = _with(task, {key: facts[key] for key in known if key in facts})
        state = state._replace(turn=facts.get("turn", state.turn))
    heard = facts.get("heard", 0)
    notes = tuple(each for each in state.notes if each["id"] > heard)
    return state._replace(task=task._replace(updated_at=now), notes=notes)


def to_pass(state: State) -> list[Json]:
    """Return the orders that the running leg has not received yet."""
    return [each for each in state.notes if each["id"] > state.passed] if state.going and state.queue else []


def passed(state: State, orders: list[Json]) -> State:
    return state._replace(passed=max([state.passed, *(each["id"] for each in orders)]))


def lost(state: State, stamp: str, why: str = "its worker was lost") -> State:
    """Return the state after the worker of a leg vanished. The task's next leg comes first in the queue."""
    task = state.task._replace(state=model.WAITING, reason=why, updated_at=stamp)
    return _held(_left(state)._replace(task=task, first=True))


def recalled(state: State, stamp: str) -> State:
    """Return the state after a queued leg was taken back before it began."""
    task = state.task._replace(updated_at=stamp)
    return _held(_left(state)._replace(leg=state.leg - 1, first=state.first, task=task))


def ended(state: State, said: Json, now: float, stamp: str, tomorrow: str) -> State:
    """Return the task's state after its leg has ended. `said`: the outcome that the worker reported."""
    kind, task, why = said.get("kind"), state.task, str(said.get("why") or said.get("reason") or "")
    facts = facts_of(said.get("facts"))
    if kind == "refused" or kind == "lost":
        return _refused(state, str(said.get("worker", "")) if kind == "refused" else "", why, now)
    if kind == "parked":
        task = outcome.with_facts(task, facts)._replace(
            state=model.PARKED, parked_by=str(said.get("by", "")), reason=why
        )
    elif kind == "handed-back":
        task = outcome.with_facts(task, facts)._replace(state=model.WAITING, reason=why)
    else:
        texts = {key: str(said.get(key) or "") for key in ("said", "head", "problem", "text")}
        end = Ended(int(said.get("code", -9)), facts, **texts)
        running = task._replace(state=model.RUNNING)
        task = outcome.settled(running, end, stamp, said.get("tomorrow", tomorrow), state.retries)
    task = _with(task, {key: said[key] for key in ("branch", "head") if said.get(key)})
    away = kind == "handed-back" and bool(said.get("away"))  # the repository did not answer
    kept = tuple(each for each in state.notes if away or each["id"] > state.passed)  # the loop has heard the others
    state = _left(state)._replace(task=task._replace(updated_at=stamp), first=kind == "handed-back", notes=kept)
    return _held(state._replace(refused=0, refusals=None, wake=now + AWAY if away else state.wake))


def facts_of(data: Json | None) -> Facts:
    """Return the facts in an outcome. Unknown keys are ignored."""
    if not data:
        return Facts()
    cause = data.get("cause")
    found = json.decode(Facts, {key: value for key, value in data.items() if key != "cause"})
    return found._replace(cause=json.decode(Cause, cause) if cause else None)


def _left(state: State) -> State:
    return state._replace(going=False, worker="", queue="", recall=False, first=False)


def _refused(state: State, worker: str, why: str, now: float) -> State:
    """Return the state of a task that a worker refused; the task waits a little longer after each refusal."""
    refusals = {**(state.refusals or {}), **({worker: why} if worker else {})}
    task = state.task._replace(state=model.WAITING, reason=why)
    wake = now + min(LONGEST_WAIT, 2.0 ** min(state.refused, 10))
    first = state.first and not worker
    return _held(_left(state)._replace(task=task, refused=state.refused + 1, refusals=refusals, wake=wake, first=first))


def _held(state: State) -> State:
    """Carry out the user's order, if any, that waited for the end of the leg."""
    hold, task = state.hold, state.task
    if not hold or state.going or task.is_over:
        return state
    if hold == CANCEL:
        task = task._replace(state=model.CANCELLED, reason=state.why, question="", until="")
    elif task.state == model.WAITING or (hold == TAKE and task.state != model.COMPLETED):
        reason = f"{HOLDS[hold]}: {state.why}" if state.why else HOLDS[hold]
        task = task._replace(state=model.PARKED, parked_by=hold, reason=reason)
    return state._replace(task=task, hold="", why="")


# Orders


def ordered(state: State, order: Json, stamp: str) -> State:
    """Return the state after an order from the user, a landing, or another task."""
    word = order.get("order", "")
    if word == "watch" and order["workflow"] not in state.watchers:
        return state._replace(watchers=(*state.watchers, order["workflow"]))
    if state.task.is_over or word not in _ORDERS:
        return state
    after = _ORDERS[word](state, order)
    if after.task is not state.task:
        task = after.task._replace(rev=state.task.rev + 1, updated_at=stamp)
        return after._replace(task=task._replace(asked_at=task.asked_at if task.question else ""))
    return after


def _hold(state: State, order: Json) -> State:
    word = order["order"]
    if state.hold == CANCEL:
        return state
    state = state._replace(hold=word, why=str(order.get("why", "")))
    return _told(state, {"order": word, "why": state.why}) if state.going else _held(state)


def _told(state: State, order: Json) -> State:
    """Add an order for the leg. If the order changes how a queued leg begins, mark the leg to be taken back."""
    recall = state.recall or (state.going and not state.queue and order["order"] not in ("say", "answer"))
    note = state.note + 1
    return state._replace(notes=(*state.notes, {**order, "id": note}), note=note, recall=recall)


def _continue(state: State, order: Json) -> State:
    if state.going:
        return state._replace(hold="" if state.hold != CANCEL else CANCEL, recall=False)
    if state.task.state == model.PARKED and not state.task.question:
        return _again(state, order)
    return state._replace(wake=0.0) if state.task.state == model.WAITING else state


def _again(state: State, _order: Json) -> State:
    """Retry a task that failed, is parked or waits, as `rooda tasks retry` does on one machine."""
    task = state.task
    if state.going or task.state not in (model.FAILED, model.PARKED, model.WAITING) or task.question:
        return state
    turnings = task.turnings._replace(tries=0, reopened=0, kills=0, killed_at=-1)
    if task.state == model.FAILED or task.parked_by == "landing":
        turnings = turnings._replace(loop=turnings.loop + 1, ended=task.session)
    task = task._replace(state=model.WAITING, reason="", until="", account="", parked_by="", turnings=turnings)
    return state._replace(task=task, wake=0.0, refused=0, anew=True)


def _answer(state: State, order: Json) -> State:
    text, task = str(order.get("text", "")), state.task
    if state.going or not task.question:
        return _told(state, {"order": "answer", "text": text}) if state.going else state
    said = f"You asked: {task.question}\nThe answer: {text}"
    task = task._replace(state=model.WAITING, question="", parked_by="", reason="", prompt=said)
    return state._replace(task=task)


def _set(state: State, order: Json) -> State:
    fields = {key: value for key, value in order.get("fields", {}).items() if key in EDITABLE}
    state = state._replace(task=_with(state.task, fields))
    state = state._replace(after=tuple(order["workflows"])) if "workflows" in order else state
    return _told(state, {**order, "fields": fields}) if state.going else state


def _priority(state: State, order: Json) -> State:
    return _set(state, {"order": "set", "fields": {"priority": order["priority"]}})


def _change(state: State, order: Json) -> State:
    """Set a task's fields from a landing's order, if the task is in one of the states that the order expects."""
    if state.going or state.task.state not in order.get("when", model.STATES):
        return state
    return state._replace(task=_with(state.task, order.get("fields", {})), wake=0.0)


def _over(state: State, order: Json) -> State:
    if order.get("state") != model.LANDED:
        return state
    return state._replace(after=tuple(each for each in state.after if each != order["workflow"]))


def _with(task: Task, fields: Mapping[str, Any]) -> Task:
    """Return the task with these fields from JSON. If a field has the wrong type, return the task unchanged."""
    try:
        return model.decode({**model.encode(task), **fields})
    except json.Mismatch:
        return task


_ORDERS = {
    **dict.fromkeys((*HOLDS, CANCEL), _hold),
    "continue": _continue,
    "retry": _again,
    "answer": _answer,
    "say": lambda state, order: _told(state, {"order": "say", "text": str(order.get("text", ""))}),
    "hand-back": lambda state, order: _told(state, dict(order)) if state.going and state.queue else state,
    "set": _set,
    "priority": _priority,
    "change": _change,
    "over": _over,
}
