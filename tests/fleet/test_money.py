"""Money of accounts and batches: decided by one process, asked by many."""

import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from rooda.fleet import money
from rooda.fleet.money import Account
from rooda.fleet.port import Desk, Order
from tests.kit.hands import BEAT, DONE, Crew, Hand, number_of, wish, worker_below
from tests.kit.processes import until
from tests.kit.temporal import Server as Dev

DAY = "2026-01-01"


def asked(account: Account, *questions: Any, now: float = 0.0, day: str = DAY) -> tuple[Account, list[Any]]:
    answers = []
    for each in questions:
        account, said = money.answer(account, each, now, day)
        assert money.decode(money.encode(account)) == account  # it survives as JSON
        answers.append(said["cause"])
    return account, answers


def reserve(call: str, amount: float = 0.0, **more: Any) -> Any:
    return {"ask": "reserve", "call": call, "agent": "demo", "amount": amount, "leg": "w#1", **more}


def paid(call: str, cost: float | None, **more: Any) -> Any:
    return {"ask": "paid", "call": call, "agent": "demo", "cost": cost, **more}


def test_FL_04_calls_with_a_known_bound_never_pass_the_limit() -> None:
    """What is reserved counts as spent; what was not used is free again."""
    account, said = asked(Account("b", "batch", 1.0), *(reserve(str(n), 0.3) for n in range(4)))
    assert [bool(each) for each in said] == [False, False, False, True]
    assert (said[3]["budget"], said[3]["used"], said[3]["reserved"], said[3]["limit"]) == ("batch", 0.0, 0.9, 1.0)
    account, said = asked(account, paid("0", 0.1), reserve("4", 0.3), reserve("5", 0.3))
    assert [bool(each) for each in said] == [False, False, True]
    account, said = asked(account, {"ask": "release", "calls": ["4"]}, reserve("5", 0.3))
    assert said == [None, None]


def test_FL_04_questions_asked_twice_count_once() -> None:
    """A worker that got no answer asks again."""
    account, _ = asked(Account(limit=10.0), reserve("a", 1), reserve("a", 1), paid("a", 0.5), paid("a", 0.5))
    assert (account.total, account.open) == (0.5, {})


def test_FL_04_a_call_that_nobody_saw_end_counts_as_reserved() -> None:
    """Until its worker is heard of again: then what it cost replaces that."""
    account, _ = asked(Account(limit=10.0), reserve("a", 1), reserve("b", 2, leg="w#2"), {"ask": "lost", "leg": "w#1"})
    assert (account.total, [*account.open]) == (1.0, ["b"])
    account, _ = asked(account, {"ask": "lost", "leg": "w#1"}, paid("a", 0.25))
    assert account.total == 0.25
    account, _ = asked(account, paid("b", None))
    assert account.total == 2.25


def test_FL_04_the_cost_of_a_typical_call_is_learned() -> None:
    """Without a bound the first call is free to start; later ones reserve what most calls cost, and one may pass."""
    account, _ = asked(Account(limit=1.0), reserve("a"), paid("a", 0.4), reserve("b"))
    assert account.open["b"][0] == 0.4
    account, said = asked(account, reserve("c"))
    assert said[0]["reserved"] == 0.4
    account, said = asked(account, paid("b", 0.4), reserve("c"))
    assert said == [None, None]
    account, said = asked(account, paid("c", 0.4), reserve("d"))
    assert said[1]["used"] == 1.2


def test_FL_04_a_day_limit_begins_anew_each_day() -> None:
    """The total of the account goes on."""
    account, said = asked(Account("max"), reserve("a", 1, day=1), paid("a", 1), reserve("b", 1, day=1))
    assert said[2]["budget"] == "agent" and said[2]["account"] == "max"
    account, said = asked(account, reserve("b", 1, day=1), day="2026-01-02")
    assert said == [None] and account.total == 1


def test_FL_04_a_usage_limit_holds_every_call_until_its_end() -> None:
    """An earlier end that is told later changes nothing."""
    limited = {"ask": "limited", "until": "noon", "until_at": 100.0}
    account, said = asked(Account("max"), limited, {**limited, "until_at": 50.0}, reserve("a"), now=10)
    assert (said[2]["kind"], said[2]["until"], said[2]["account"]) == ("account", "noon", "max")
    _, said = asked(account, reserve("a"), now=101)
    assert said == [None]


def test_FL_04_twenty_processes_never_pass_a_limit(server: Dev, engine: Any, key: str) -> None:
    """Each reserves, and pays less than it reserved; what all have paid stays below, and nearly reaches it."""
    from rooda.fleet import names

    workflow = names.batch_workflow(key, "b")
    with Hand(server.address, key, lambda order, desk: DONE):
        engine.money(workflow, {"ask": "limit", "limit": 1.0, "name": "b"})
        words = [sys.executable, "-c", ASKING, server.address, workflow, str(BEAT)]
        askers = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=100, check=True)
        found = engine.money(workflow, {"ask": "look"})
    totals = [float(each) for each in askers.stdout.split()]
    assert len(totals) == 20
    assert round(sum(totals), 6) == round(found["total"], 6)
    assert 0.9 < found["total"] <= 1.0


ASKING = """
import os, sys
from rooda.fleet.engine import Engine
from rooda.fleet.port import parse_address
address, workflow, beat = sys.argv[1:]

def asker(number):
    engine, total = Engine(parse_address(address), float(beat)), 0.0
    for turn in range(4):
        call = f"{number}-{turn}"
        if engine.money(workflow, {"ask": "reserve", "call": call, "agent": "demo", "amount": 0.05})["cause"]:
            continue
        engine.money(workflow, {"ask": "paid", "call": call, "agent": "demo", "cost": 0.04})
        total += 0.04
    os.write(1, f"{total}\\n".encode())
    os._exit(0)

children = []
for number in range(20):
    if not (pid := os.fork()):
        asker(number)
    children.append(pid)
sys.exit(any([os.waitpid(pid, 0)[1] for pid in children]))
"""


def test_FL_04_an_account_at_its_limit_stops_every_workers_next_call(server: Dev, engine: Any, key: str) -> None:
    """One leg meets the usage limit; the next call of another worker does not start."""
    told, causes = threading.Event(), list[Any]()
    ask = {"ask": "reserve", "agent": "demo", "account": f"max-{key}"}

    def work(order: Order, desk: Desk) -> Any:
        call = f"{order.workflow}-{order.leg}"
        if number_of(order) == 1:
            assert desk.money({**ask, "call": call}) == {"cause": None}
            desk.money({"ask": "paid", "call": call, "account": ask["account"], "agent": "demo", "cost": 0.1})
            desk.money({**ask, "ask": "limited", "until": "tomorrow", "until_at": time.time() + 1000})
            told.set()
        else:
            assert told.wait(30)
            causes.append(desk.money({**ask, "call": call})["cause"])
        return DONE

    for number in (1, 2):
        engine.submit(wish(key, number))
    with Hand(server.address, key, work, slots=1), Hand(server.address, key, work, slots=1, name="other"):
        until(lambda: len(causes) == 1, 30)
    assert (causes[0]["kind"], causes[0]["until"]) == ("account", "tomorrow")


def test_FL_04_a_batch_limit_holds_over_all_its_tasks(server: Dev, engine: Any, key: str) -> None:
    """A refused call reserves nothing of its account, either."""
    causes = list[Any]()

    def work(order: Order, desk: Desk) -> Any:
        call, base = order.workflow, {"agent": "demo", "account": f"a-{key}"}
        causes.append(desk.money({**base, "ask": "reserve", "call": call, "amount": 0.6})["cause"])
        if causes[-1] is None:
            desk.money({**base, "ask": "paid", "call": call, "cost": 0.6})
        return DONE

    for number in range(3):
        engine.submit(wish(key, number, batch="night", batch_cost=1.0))
    with Hand(server.address, key, work, slots=1):
        until(lambda: len(causes) == 3, 30)
        from rooda.base import files
        from rooda.fleet import names

        digest = files.sha256(f"a-{key}".encode())[:12]
        account = engine.money(names.account_workflow(digest), {"ask": "look"})
    assert [each and each["budget"] for each in causes] == [None, "batch", "batch"]
    assert account["total"] == 0.6 and account["reserved"] == 0


def test_FL_04_a_lost_machine_silences_nobody_for_long(server: Dev, engine: Any, key: str, crew: Crew) -> None:
    """A worker is stopped with its guardian; another one's questions are answered, and its call is charged as lost."""
    from rooda.fleet import names

    workflow = names.batch_workflow(key, "b")
    blue = crew.start("blue")
    engine.submit(wish(key, 1, batch="b", ticket={"number": 1, "turns": 1, "seconds": -1, "amount": 0.7}))
    until(lambda: len(crew.of("call")) == 1, 30)
    with Hand(server.address, key, lambda order, desk: DONE, slots=1):
        worker = worker_below(blue.pid)
        for pid in (blue.pid, worker):
            os.kill(pid, signal.SIGSTOP)
        since = time.monotonic()
        assert engine.money(workflow, {"ask": "look"})["reserved"] == 0.7
        print(f"answered after {time.monotonic() - since:.1f} s of {BEAT / 2:g}")
        assert time.monotonic() - since < 10 * BEAT / 2
        until(lambda: engine.money(workflow, {"ask": "look"})["reserved"] == 0, 10 * BEAT)
        assert engine.money(workflow, {"ask": "look"})["total"] == 0.7


@pytest.mark.long
@pytest.mark.timeout(300)
def test_FL_04_an_account_answers_many_questions_without_a_long_history(server: Dev, engine: Any, key: str) -> None:
    """Hundreds of questions, from several desks, are all counted."""
    from rooda.fleet import names

    workflow = names.batch_workflow(key, "many")
    with Hand(server.address, key, lambda order, desk: DONE):
        for number in range(300):
            engine.money(workflow, {"ask": "reserve", "call": str(number), "agent": "demo", "amount": 0.01})
            engine.money(workflow, {"ask": "paid", "call": str(number), "agent": "demo", "cost": 0.01})
        assert round(engine.money(workflow, {"ask": "look"})["total"], 6) == 3.0
