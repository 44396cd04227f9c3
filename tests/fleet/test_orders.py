"""Orders of the desk: they reach a leg that runs, one that is queued, and a task that waits."""

import threading
import time
from typing import Any

from rooda.fleet.port import Desk, Order
from tests.kit.hands import DONE, Hand, number_of, wish
from tests.kit.processes import until
from tests.kit.temporal import Server as Dev


class Patient:
    """A leg that works until it hears an order to end; keeps all orders and when each came."""

    def __init__(self) -> None:
        self.heard, self.legs = list[tuple[float, Any]](), list[Order]()

    def __call__(self, order: Order, desk: Desk) -> Any:
        self.legs.append(order)
        desk.record({"turn": order.leg})
        while True:
            for each in desk.orders(30):
                self.heard.append((time.monotonic(), each))
                if each["order"] in ("say", "set", "answer"):
                    desk.record({"heard": each["id"]})
                else:
                    return {"kind": "handed-back", "why": each.get("why", ""), "facts": {"session": "s", "cost": 0.5}}

    @property
    def words(self) -> list[str]:
        return [each["order"] for _, each in self.heard]


def task_of(engine: Any, key: str, number: int = 1) -> Any:
    return engine.show(wish(key, number).workflow)["task"]


def await_state(engine: Any, key: str, state: str, number: int = 1) -> Any:
    until(lambda: task_of(engine, key, number)["state"] == state, 30, f"{state}: {task_of(engine, key, number)}")
    return task_of(engine, key, number)


def test_FL_11_orders_reach_a_running_task(server: Dev, engine: Any, key: str) -> None:
    """say, set, stop, continue, pause, retry, cancel: each in order, each once, and the task shows what it did."""
    leg, name = Patient(), wish(key, 1).workflow
    engine.submit(wish(key, 1))
    with Hand(server.address, key, leg):
        await_state(engine, key, "running")
        sent = time.monotonic()
        engine.order(name, {"order": "say", "text": "look at the tests"})
        until(lambda: leg.words == ["say"], 20)
        assert leg.heard[0][0] - sent < 20
        engine.order(name, {"order": "set", "fields": {"text": "more", "gates": ["true"], "session": "forged"}})
        until(lambda: leg.words == ["say", "set"], 20)
        engine.order(name, {"order": "stop", "why": "for lunch"})
        stopped = await_state(engine, key, "parked")
        assert (stopped["parked_by"], stopped["reason"]) == ("stop", "stopped: for lunch")
        assert stopped["text"] == "more" and stopped["gates"] == ["true"] and stopped["session"] == "s"
        engine.order(name, {"order": "continue"})
        await_state(engine, key, "running")
        assert leg.legs[1].notes == () and leg.legs[1].task["text"] == "more"
        engine.order(name, {"order": "pause"})
        assert await_state(engine, key, "parked")["parked_by"] == "pause"
        engine.order(name, {"order": "say", "text": "kept until it goes on"})
        engine.order(name, {"order": "retry"})
        await_state(engine, key, "running")
        assert [each["text"] for each in leg.legs[2].notes] == ["kept until it goes on"]
        engine.order(name, {"order": "cancel"})
        await_state(engine, key, "cancelled")
        until(lambda: not engine.show(name)["open"], 20)
    assert leg.words == ["say", "set", "stop", "pause", "cancel"]
    assert len(leg.legs) == 3


def test_FL_11_a_note_that_no_turn_heard_is_given_to_the_next_leg(server: Dev, engine: Any, key: str) -> None:
    """A leg is told, and hands back without a turn that has it."""
    legs = list[Order]()

    def work(order: Order, desk: Desk) -> Any:
        legs.append(order)
        desk.record({})
        if order.leg == 1:
            desk.orders(30)
            return {"kind": "lost", "why": "git refused"}
        return DONE

    engine.submit(wish(key, 1))
    with Hand(server.address, key, work):
        await_state(engine, key, "running")
        engine.order(wish(key, 1).workflow, {"order": "say", "text": "once"})
        await_state(engine, key, "completed")
    assert [each["text"] for each in legs[1].notes] == ["once"]


def test_FL_15_orders_to_tasks_that_no_worker_has_begun(server: Dev, engine: Any, key: str) -> None:
    """Without any worker: stop, take and cancel are true at once for a queued task, and no leg of it ever begins."""
    legs = list[int]()

    def work(order: Order, desk: Desk) -> Any:
        legs.append(number_of(order))
        return DONE

    with Hand(server.address, f"{key}-other", work):  # decides, but takes no leg of this pool
        for number, word in enumerate(("stop", "take", "cancel", "hold"), 1):
            engine.submit(wish(key, number))
            until(lambda n=number: engine.show(wish(key, n).workflow)["fleet"]["queued"], 20)
            engine.order(wish(key, number).workflow, {"order": word})
        for number, state in enumerate(("parked", "parked", "cancelled", "parked"), 1):
            await_state(engine, key, state, number)
        with Hand(server.address, key, work):
            engine.submit(wish(key, 5))
            await_state(engine, key, "completed", 5)
            assert legs == [5]
            engine.order(wish(key, 1).workflow, {"order": "continue"})
            await_state(engine, key, "completed", 1)
    assert legs == [5, 1]


def test_FL_15_tasks_that_wait_for_others_begin_when_these_have_landed(server: Dev, engine: Any, key: str) -> None:
    """One waits for a task that lands later, for one that had landed before, and no longer for a removed one."""
    legs = list[int]()

    def work(order: Order, desk: Desk) -> Any:
        legs.append(number_of(order))
        return DONE

    landed = {"order": "change", "when": ["completed"], "fields": {"state": "landed"}}
    first, second, third = (wish(key, number).workflow for number in (1, 2, 3))
    with Hand(server.address, key, work):
        engine.submit(wish(key, 1))
        await_state(engine, key, "completed", 1)
        engine.order(first, landed)
        await_state(engine, key, "landed", 1)
        engine.submit(wish(key, 2))
        engine.submit(wish(key, 3, after=(first, second)))
        await_state(engine, key, "completed", 2)
        assert engine.show(third)["fleet"]["after"][-1:] == [second] and task_of(engine, key, 3)["state"] == "waiting"
        engine.order(second, landed)
        await_state(engine, key, "completed", 3)
        engine.submit(wish(key, 4, after=("rooda-task/none/none",)))
        engine.order(wish(key, 4).workflow, {"order": "set", "fields": {}, "workflows": []})
        await_state(engine, key, "completed", 4)
    assert legs == [1, 2, 3, 4]


def test_FL_15_pausing_a_repository_holds_what_comes_later(server: Dev, engine: Any, key: str) -> None:
    """A task that runs and one that is added afterwards are parked until the repository goes on."""
    leg = Patient()
    engine.submit(wish(key, 1))
    with Hand(server.address, key, leg):
        await_state(engine, key, "running")
        engine.hold(key, {"order": "pause", "why": "release day"})
        assert "release day" in await_state(engine, key, "parked")["reason"]
        engine.submit(wish(key, 2))
        await_state(engine, key, "parked", 2)
        engine.hold(key, {"order": "continue"})
        await_state(engine, key, "running", 1)
        await_state(engine, key, "running", 2)
        engine.submit(wish(key, 3))
        await_state(engine, key, "running", 3)


def test_T_15_a_question_parks_a_task_until_it_is_answered(server: Dev, engine: Any, key: str) -> None:
    """continue and retry do not go past the question; the answer is in the next leg's prompt."""
    legs = list[Order]()

    def work(order: Order, desk: Desk) -> Any:
        legs.append(order)
        if order.leg == 1:
            return {"kind": "ended", "code": 4, "facts": {"session": "s", "question": "Which port?"}}
        return DONE

    name = wish(key, 1).workflow
    engine.submit(wish(key, 1))
    with Hand(server.address, key, work):
        asked = await_state(engine, key, "parked")
        assert (asked["parked_by"], asked["question"]) == ("question", "Which port?")
        engine.order(name, {"order": "continue"})
        engine.order(name, {"order": "retry"})
        engine.order(name, {"order": "answer", "text": "8080"})
        await_state(engine, key, "completed")
    assert [each.leg for each in legs] == [1, 2]
    assert legs[1].task["prompt"] == "You asked: Which port?\nThe answer: 8080"


def test_FL_02_a_usage_limit_is_a_timer(server: Dev, engine: Any, key: str) -> None:
    """The task waits until the limit's end, no leg is begun before, and the account is shown."""
    legs, lock = list[float](), threading.Lock()

    def work(order: Order, desk: Desk) -> Any:
        from rooda.base import clock

        with lock:
            legs.append(time.time())
        if order.leg > 1:
            return DONE
        until = clock.rfc3339(time.time() + 3)
        cause = {"kind": "account", "account": "max", "until": until}
        return {"kind": "ended", "code": 4, "facts": {"session": "s", "cause": cause}}

    engine.submit(wish(key, 1))
    with Hand(server.address, key, work):
        until(lambda: task_of(engine, key)["account"] == "max", 20)
        assert task_of(engine, key)["state"] == "waiting"
        await_state(engine, key, "completed")
    assert legs[1] - legs[0] > 1.9


def test_FL_13_refused_by_every_worker_a_task_waits_with_their_reasons(server: Dev, engine: Any, key: str) -> None:
    """Each worker's reason is kept; one that allows it takes it at last."""

    def refusing(name: str) -> Hand:
        said = {"kind": "refused", "worker": name, "why": f"{name} does not allow this repository"}
        return Hand(server.address, key, lambda order, desk: said, name=name, slots=1)

    engine.submit(wish(key, 1))
    with refusing("blue"), refusing("red"):
        shown = lambda: engine.show(wish(key, 1).workflow)["fleet"]["refusals"]  # noqa: E731
        until(lambda: {*shown()} == {"blue", "red"}, 60)
        assert task_of(engine, key)["state"] == "waiting"
        assert shown()["red"] == "red does not allow this repository"
    with Hand(server.address, key, lambda order, desk: DONE):
        until(lambda: task_of(engine, key)["state"] == "completed", 60)


def test_FL_15_a_second_landing_joins_the_first(server: Dev, engine: Any, key: str) -> None:
    """One lander a target: requests that come while it runs make it look once more, and get the same answer."""
    from rooda.fleet.engine import Engine

    passes, go = list[Any](), threading.Event()

    def land(given: Any, desk: Desk) -> Any:
        passes.append(given)
        if len(passes) == 1:
            return {"kind": "refused", "why": "not here"}
        go.wait(30)
        return {"kind": "done", "code": 0, "text": "", "passes": len(passes)}

    answers, name = list[Any](), f"main-{key}"

    def ask() -> None:
        desk = Engine(engine.address, engine.heartbeat)
        answers.append(desk.land(key, name, {"pool": key, "target": name}))

    with Hand(server.address, key, Patient(), land=land):
        threads = [threading.Thread(target=ask) for _ in range(3)]
        threads[0].start()
        until(lambda: len(passes) == 2, 30)
        for each in threads[1:]:
            each.start()
        handle = engine.client.get_workflow_handle(f"rooda-land/{key}/{name}")
        until(lambda: signals_of(engine, handle) == 3, 30)
        go.set()
        for each in threads:
            each.join(60)
    assert answers == [{"kind": "done", "code": 0, "text": "", "passes": 3}] * 3


def signals_of(engine: Any, handle: Any) -> int:
    async def count() -> int:
        kind = "workflow_execution_signaled_event_attributes"
        return sum([each.HasField(kind) async for each in handle.fetch_history_events()])

    return int(engine._runner.run(count()))
