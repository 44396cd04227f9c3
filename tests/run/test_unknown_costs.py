"""A call whose transcript or events vanished has an unknown cost: with a limit of money or tokens that ends the run."""

import json
import shutil

import pytest

from rooda.errors import Cause
from rooda.run.setup import Budget
from rooda.run.spending import Spent, in_words, reached_limit
from tests.kit.spending import paid
from tests.kit.workspace import Workspace

ERASERS = {
    "runs": "rm -rf .rooda/runs",
    "transcript": "rm .rooda/runs/*/*.out",
    "events": "rm .rooda/runs/*/events.jsonl",
    "other-events": "cd .rooda/runs/*; cp events.jsonl x; mv x events.jsonl",
}
UNKNOWN = "the usage of a call is unknown, since the transcript or the event log disappeared"


def made(ws: Workspace) -> int:
    """The calls that were made, from a file that no eraser knows."""
    return len(ws.read("../made").split())


def erasing(ws: Workspace, eraser: str, **loop: object) -> None:
    """An agent that reports $4 a call and removes the traces of it."""
    paid(ws, after=f"echo x >>../made; {eraser}", **loop)
    ws.write("agent.sh", ws.read("agent.sh").replace("0.75", "4.0"))
    ws.damages_events = True


@pytest.mark.parametrize("eraser", ERASERS)
@pytest.mark.parametrize("limit", ["--max-cost=5", "--max-tokens=10000"])
def test_S_14_a_call_without_traces_ends_a_run_with_a_limit(ws: Workspace, eraser: str, limit: str) -> None:
    """12 calls of $4 went through under a limit of $5; now the first one ends the run, and a resume asks no agent."""
    erasing(ws, ERASERS[eraser])
    ran = ws.rooda("build", "-n", "12", limit)
    assert (ran.code, made(ws)) == (4, 1) and UNKNOWN in ran.both, ran.both
    option = limit.partition("=")[0]
    assert f"; resume with {option} 0 (no limit)" in ran.both
    assert f"  next        rooda resume build {option} 0" in ran.err
    again = ws.rooda("resume", "build", limit)
    assert made(ws) == 1 and again.code in (3, 4), again.both


def test_S_14_without_a_limit_it_goes_on(ws: Workspace) -> None:
    """Nothing is limited, so nothing is unknown to it."""
    erasing(ws, ERASERS["transcript"])
    assert ws.rooda("build", "-n", "2").code == 0 and made(ws) == 2


def test_S_14_a_call_of_unknown_cost_can_have_a_price(ws: Workspace) -> None:
    """`[budget] unknown_call` prices it: the limit holds, in a resume too, and the books say that it is assumed."""
    ws.procedure()
    ws.config(ws.read("rooda.toml") + "[budget]\nunknown_call = 0.50\n")
    ran = ws.rooda("build", "-n", "9", "--max-cost", "1")
    assert ran.code == 4 and len(ws.calls) == 2 and "Cost limit reached: $1.00 of $1.00" in ran.out
    ended = [event for event in ws.events() if event["event"] == "agent.ended"]
    assert {(event["cost"], event["cost_source"]) for event in ended} == {(0.5, "assumed")}
    assert ws.rooda("resume", "build", "--max-cost", "1.4").code == 4 and len(ws.calls) == 3
    assert json.loads(ws.rooda("usage", "--json").out)["total"]["cost"] == 1.5


def test_S_14_a_price_makes_a_vanished_call_countable(ws: Workspace) -> None:
    """With a price such a call doesn't end the run; a limit of tokens still does, because tokens have none."""
    erasing(ws, ERASERS["transcript"])
    ws.config(ws.read("rooda.toml") + "[budget]\nunknown_call = 0.50\n")
    assert ws.rooda("build", "-n", "2", "--max-cost", "50").code == 0 and made(ws) == 2
    assert ws.rooda("build", "-n", "9", "--max-tokens", "90000").code == 4 and made(ws) == 3


def test_S_14_a_raw_command_is_warned_of_once(ws: Workspace) -> None:
    """Its cost is never known, whatever vanishes."""
    ws.side(1, "rm .rooda/runs/*/*.out")
    ran = ws.rooda("build", "-n", "3", "--max-cost", "1")
    assert ran.code == 0 and ran.err.count("The cost of this call is unknown") == 1


def test_S_14_a_resume_whose_logs_are_gone(ws: Workspace) -> None:
    """What the earlier sessions used is unknown, which is not 0; without the limit it goes on."""
    paid(ws, after="echo x >>../made")
    assert ws.rooda("build", "-n", "9", "--max-cost", "1").code == 4
    ws.damages_events = True
    shutil.rmtree(ws.file(".rooda/runs"))
    ran = ws.rooda("resume", "build", "--max-cost", "9")
    assert ran.code == 4 and made(ws) == 2 and "price such calls with [budget] unknown_call" in ran.both
    assert ws.rooda("resume", "build", "--max-cost", "0").code == 0 and made(ws) == 9


def test_S_14_a_resume_that_reports_its_sandbox_first_has_lost_nothing(ws: Workspace) -> None:
    """With `sandbox = "auto"` the log of a session begins with the sandbox; the resume asks the agent again."""
    paid(ws, after="echo x >>made", sandbox="auto")
    assert ws.rooda("build", "-n", "9", "--max-cost", "1").code == 4
    assert ws.events()[0]["event"] == "sandbox.chosen"
    ran = ws.rooda("resume", "build", "--max-cost", "2")
    assert ran.code == 4 and UNKNOWN not in ran.both and "Cost limit reached: $2.25 of $2.00" in ran.out, ran.both


@pytest.mark.parametrize(
    ("budget", "spent", "expected"),
    [
        (Budget(5.0), Spent(lost=1), Cause("cost", 0.0, 5.0, 0, 1)),
        (Budget(5.0), Spent(1, 4.0, lost=2), Cause("cost", 4.0, 5.0, 0, 2)),
        (Budget(0.0, 10), Spent(lost=1), Cause("tokens", 0, 10, lost=1)),
        (Budget(0.0, 0, 3.0), Spent(lost=1), None),
        (Budget(), Spent(lost=1), None),
        (Budget(5.0, 10), Spent(1, 4.0), None),
    ],
)
def test_S_14_which_limit_it_is(budget: Budget, spent: Spent, expected: Cause | None) -> None:
    """A lost call could have used any amount of money and tokens, but not of time."""
    found = reached_limit(budget, spent, 1.0)
    assert found == expected
    if found:
        assert "disappeared" in in_words(found) and ("2 calls" in in_words(found)) == (spent.lost == 2)


def test_S_14_wrong_prices_are_refused(ws: Workspace) -> None:
    """With file and line."""
    ws.config("[budget]\nunknown_call = -1\nunknwon = 2\n")
    ran = ws.rooda("config", "show")
    assert "rooda.toml:2: budget.unknown_call: must be a number >= 0" in ran.err
