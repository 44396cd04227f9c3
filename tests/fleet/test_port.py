"""The port's conformance: what every engine behind it must do, against a real Temporal server."""

import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rooda.base import clock
from rooda.errors import UsageProblem
from rooda.fleet.port import Desk, Order
from tests.kit import temporal
from tests.kit.hands import BEAT, DONE, Crew, Hand, number_of, wish
from tests.kit.processes import until
from tests.kit.temporal import Server as Dev


def states(engine: Any, key: str) -> Counter[str]:
    return Counter(each["task"]["state"] for each in engine.board(key))


def done(order: Order, desk: Desk) -> Any:
    return DONE


def test_FL_18_a_task_submitted_twice_is_worked_on_once(server: Dev, engine: Any, key: str) -> None:
    """Before, during and after: the second submission is refused, and one leg runs."""
    begun, go, legs = threading.Event(), threading.Event(), list[Order]()

    def work(order: Order, desk: Desk) -> Any:
        legs.append(order)
        desk.record({"turn": 1, "iteration": 1})
        begun.set()
        go.wait(30)
        return DONE

    assert engine.submit(wish(key, 1))
    assert not engine.submit(wish(key, 1))
    with Hand(server.address, key, work):
        assert begun.wait(30)
        until(lambda: states(engine, key) == {"running": 1}, 20)
        assert not engine.submit(wish(key, 1))
        go.set()
        until(lambda: states(engine, key) == {"completed": 1}, 20)
        assert not engine.submit(wish(key, 1))
        engine.order(wish(key, 1).workflow, {"order": "change", "fields": {"state": "landed"}})
        until(lambda: not engine.show(wish(key, 1).workflow)["open"], 20)
        assert not engine.submit(wish(key, 1))
        with pytest.raises(UsageProblem, match="over"):
            engine.order(wish(key, 1).workflow, {"order": "pause"})
    assert len(legs) == 1
    assert legs[0].leg == 1 and legs[0].ticket["number"] == 1
    shown = engine.show(wish(key, 1).workflow)
    assert shown["task"]["text"] == "do 1" and shown["ticket"] == {"v": 1, "number": 1}
    assert engine.show(wish(key, 2).workflow) is None


def test_FL_02_a_start_time_is_kept_across_a_restart_of_the_server(tmp_path: Path, key: str) -> None:
    """A task with a time begins at that time, although the server was killed in between; no secret is stored."""
    from rooda.fleet.engine import Engine
    from rooda.fleet.port import parse_address

    first = temporal.start(database=str(tmp_path / "db"))
    second, crew, at = None, Crew(str(tmp_path), first.address, key), time.time() + 6
    try:
        engine = Engine(parse_address(first.address), BEAT)
        later = wish(key, 1)._replace(task={**wish(key, 1).task, "until": clock.rfc3339(at)})
        assert engine.submit(later)
        process = crew.start("blue", ANTHROPIC_API_KEY="sk-ant-planted-0123456789", GITHUB_TOKEN="ghp_planted")
        until(lambda: engine.show(later.workflow)["fleet"]["legs"] == 0 and bool(engine.workers()), 20)
        first.end()
        second = temporal.start(first.port, str(tmp_path / "db"))
        until(lambda: bool(crew.of("turn")), 40)
        assert time.time() >= int(at)
        assert [each["leg"] for each in crew.of("begin")] == [1]
        process.terminate()
        assert process.wait(30) == 143
        stored = b"".join(path.read_bytes() for path in tmp_path.glob("db*"))
        assert b"planted" not in stored and b"do 1" in stored
    finally:
        crew.end()
        for each in (first, *([second] if second else [])):
            each.end()


def test_FL_02_what_was_begun_goes_before_a_backlog_of_100(server: Dev, engine: Any, key: str) -> None:
    """A task that was handed back is next; then those with high priority; the first of equal rank are the oldest."""
    order_of_legs, first, back = list[int](), threading.Event(), threading.Event()

    def work(order: Order, desk: Desk) -> Any:
        desk.record({})
        if number_of(order) == 0 and order.leg == 1:
            first.set()
            desk.orders(60)
            return {"kind": "handed-back", "why": "to see who is next"}
        order_of_legs.append(number_of(order))
        back.wait(30)
        return DONE

    with Hand(server.address, key, work, slots=1):
        engine.submit(wish(key, 0))
        assert first.wait(30)
        for number in range(1, 101):
            engine.submit(wish(key, number))
        until(lambda: sum(each["fleet"]["queued"] for each in engine.board(key)) == 100, 60)
        engine.order(wish(key, 77).workflow, {"order": "priority", "priority": "high"})
        until(lambda: engine.show(wish(key, 77).workflow)["task"]["priority"] == "high", 20)
        until(lambda: engine.show(wish(key, 77).workflow)["fleet"]["queued"], 20)
        engine.order(wish(key, 0).workflow, {"order": "hand-back"})
        until(lambda: engine.show(wish(key, 0).workflow)["fleet"]["legs"] == 2, 20)
        back.set()
        until(lambda: len(order_of_legs) > 10, 60)
    assert order_of_legs.index(77) < 2
    assert order_of_legs.index(0) < 10  # legs that take no time pass until the queue has it again
    assert len([each for each in order_of_legs[:10] if each <= 10]) >= 8


def test_FL_02_never_more_legs_than_slots_and_each_exactly_once(server: Dev, engine: Any, key: str) -> None:
    """100 tasks on four workers with three slots each."""
    exactly_once(server, engine, key, 100)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_FL_02_a_thousand_legs_on_four_workers_each_exactly_once(server: Dev, engine: Any, key: str) -> None:
    """The same with 1,000 tasks."""
    exactly_once(server, engine, key, 1000)


def exactly_once(server: Dev, engine: Any, key: str, count: int) -> None:
    legs, now, most, lock = Counter[int](), Counter[str](), Counter[str](), threading.Lock()

    def worker(name: str) -> Hand:
        def work(order: Order, desk: Desk) -> Any:
            with lock:
                legs[number_of(order)] += 1
                now[name] += 1
                most[name] = max(most[name], now[name])
            desk.record({"turn": 1})
            time.sleep(0.02)
            with lock:
                now[name] -= 1
            return DONE

        return Hand(server.address, key, work, slots=3, name=name)

    for number in range(count):
        engine.submit(wish(key, number))
    with worker("a"), worker("b"), worker("c"), worker("d"):
        until(lambda: states(engine, key) == {"completed": count}, 300)
    assert legs == dict.fromkeys(range(count), 1)
    assert max(most.values()) == 3


def test_FL_02_a_report_that_comes_twice_or_late_changes_nothing(server: Dev, engine: Any, key: str) -> None:
    """The task shows the newest turn; after the end a report of that leg is refused."""
    desks = list[Desk]()

    def work(order: Order, desk: Desk) -> Any:
        desks.append(desk)
        for turn in (1, 2, 2, 1):
            desk.record({"turn": turn, "iteration": turn, "cost": turn / 10})
        return DONE | {"facts": {}}

    from rooda.fleet.port import Lost

    engine.submit(wish(key, 1))
    with Hand(server.address, key, work):
        until(lambda: states(engine, key) == {"completed": 1}, 30)
        with pytest.raises(Lost):
            desks[0].record({"turn": 3, "iteration": 3})
    shown = engine.show(wish(key, 1).workflow)
    assert (shown["fleet"]["turn"], shown["task"]["iteration"], shown["task"]["cost"]) == (2, 2, 0.2)


def test_FL_11_a_worker_gets_nothing_of_a_newer_protocol(server: Dev, engine: Any, key: str) -> None:
    """A task of protocol 2 stays where it is; one whose leg alone is newer is handed back with a sentence."""
    from rooda.fleet import names

    legs = list[int]()

    def work(order: Order, desk: Desk) -> Any:
        legs.append(number_of(order))
        return DONE

    engine.submit(wish(key, 2, v=2))
    engine.submit(wish(key, 1))
    with Hand(server.address, key, work) as hand:
        until(lambda: legs == [1], 30)
        given = {"workflow": "x", "leg": 1, "v": 2, "ticket": {}, "task": {}, "notes": []}
        handle = engine._runner.run(
            engine.client.start_activity(
                names.LEG, given, id=f"newer-{key}", task_queue=names.pool_queue(key), **_minute()
            )
        )
        said = engine._runner.run(handle.result())
        assert said["kind"] == "refused" and "protocol is 2, that of this worker 1" in said["why"]
        assert "Handed back x" in hand.said[-1]
    assert legs == [1]


def _minute() -> Any:
    from datetime import timedelta

    return {"start_to_close_timeout": timedelta(minutes=1)}
