"""The OODA loop on a scripted world: its exact trace of effects, and its rules as tables."""

from collections.abc import Sequence
from typing import Any

import pytest

from rooda.agents.records import Agent, Call, Prompt, Reply
from rooda.errors import Cause, PromptProblem
from rooda.loops.kernel import Saved, Scope, Turns
from rooda.loops.procedure import loop, progress
from rooda.loops.procedure.model import Procedure
from rooda.loops.procedure.progress import NOTHING, Seen
from rooda.loops.procedure.state import OodaState, fresh, resumed_state
from rooda.loops.procedure.world import World
from rooda.run.event_records import Event
from rooda.run.records import Ending, Gate, GateResult, Gates
from rooda.run.setup import Setup

PROCEDURE = Procedure("ship", (), Setup(Agent("", "true")), max_iterations=3, gates=(Gate("tests", "make test"),))
PROMPT = Prompt("/p", "0", 1, 1, True, 0)
SPENT = Cause("cost", 2.25, 2.0)
RED = Gates((GateResult("tests", 0.1, "exit 1"),))
GREEN = Gates((GateResult("tests", 0.1, ""),))


class Script(World):
    """Effects and store that answer from lists and record every call."""

    def __init__(self, replies: Sequence[Reply], gates: Sequence[Gates] = ()) -> None:
        self.replies, self.answers = list(replies), list(gates)
        self.trace: list[str] = []
        self.states: list[OodaState] = []
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.signal = 0
        self.signal_after = ""
        self.poor = -1  # replies left when the money is spent

    def note(self, what: str) -> None:
        self.trace.append(what)
        if what == self.signal_after:
            self.signal = 2

    def now(self) -> str:
        return "2026-02-06T10:00:00Z"

    def elapsed(self) -> float:
        return 7.0

    def signalled(self) -> int:
        return self.signal

    def reached_limit(self) -> Cause | None:
        return SPENT if len(self.replies) == self.poor else None

    def emit(self, event: Event) -> None:
        self.told.append((event.NAME, event.facts))

    def wait(self, seconds: float) -> None:
        self.note(f"rest {seconds:g}")

    def compose(self, procedure: Procedure, iteration: int) -> Prompt:
        self.note(f"compose {iteration}")
        return PROMPT

    def ask(self, call: Call) -> Reply:
        self.note(f"ask {call.number}")
        return self.replies.pop(0)

    def check(self, gates: tuple[Gate, ...], iteration: int) -> Gates:
        self.note(f"check {iteration}")
        return self.answers.pop(0) if self.answers else GREEN

    # the store
    def load(self, scope: Scope) -> Saved:
        return Saved()

    def carry(self, scope: Scope, state: OodaState) -> OodaState:
        self.note(f"carry {state.iteration} {state.status}")
        self.states.append(state)
        return state


def good(seconds: float = 1.0, promise: str = "") -> Reply:
    return Reply(0, seconds, promise=promise)


def bad(code: int = 1) -> Reply:
    return Reply(code, 1.0)


def play(script: Script, procedure: Procedure = PROCEDURE, start: OodaState | None = None) -> Ending:
    begin = start or fresh(procedure, "2026-02-06T09:59:00Z")
    return loop.ooda(Turns(script), begin, procedure, script)


def test_the_exact_trace_of_effects() -> None:
    """Two iterations, one good and one whose agent fails: every effect, in order, and nothing else."""
    script = Script([good(), bad()])
    assert play(script, PROCEDURE._replace(max_iterations=2)) == Ending("max-iterations", 1)
    first = ["compose 0", "ask 1", "check 0", "carry 1 running"]
    second = ["compose 1", "ask 2", "carry 2 running"]
    assert script.trace == ["carry 0 running", *first, *second, "carry 2 completed"]
    assert [event for event, _ in script.told] == ["iteration.started", "iteration.ended"] * 2 + ["run.ended"]


def test_a_prompt_that_cannot_be_made_aborts() -> None:
    """OA-39: the state is kept as aborted, the agent is not called, the exit code is 1."""
    script = Script([])
    script.compose = lambda procedure, iteration: (_ for _ in ()).throw(PromptProblem("gone"))  # type: ignore
    assert play(script) == Ending("prompt", 1, note="gone")
    assert script.states[-1].status == "aborted" and not any("ask" in step for step in script.trace)


@pytest.mark.parametrize(
    "after, closed",
    [("carry 0 running", 0), ("compose 0", 0), ("carry 1 running", 1), ("check 0", 1)],
)
def test_a_signal_outside_the_call_closes_nothing(after: str, closed: int) -> None:
    """A signal before the agent starts leaves the counter; after it has ended the iteration counts normally."""
    script = Script([good(), good(), good()])
    script.signal_after = after
    assert play(script) == Ending("signal", 130, 2)
    assert (script.states[-1].iteration, script.states[-1].status) == (closed, "interrupted")


def test_a_signal_during_the_last_iteration_s_end_does_not_hide_completion() -> None:
    """When the limit is reached anyway the run is complete: there is nothing to resume."""
    script = Script([good()])
    script.signal_after = "check 0"
    assert play(script, PROCEDURE._replace(max_iterations=1)) == Ending("max-iterations", 0)


@pytest.mark.parametrize(
    "reply, gates, failures, status, outcome",
    [
        (good(), GREEN, 0, "running", "success"),
        (good(), Gates(), 0, "running", "success"),
        (good(), RED, 2, "running", "failure"),
        (bad(), Gates(), 2, "running", "failure"),
        (bad(137), Gates(), 2, "running", "failure"),
        (Reply(143, 9.0, "timeout"), Gates(), 2, "running", "failure"),
        (Reply(0, 9.0, "timeout", promise="SUCCESS"), Gates(), 2, "running", "failure"),
        (Reply(127, 0.0, "not-started"), Gates(), 2, "running", "failure"),
        (good(promise="SUCCESS"), GREEN, 0, "completed", "success"),
        (good(promise="SUCCESS"), Gates(), 0, "completed", "success"),
        (good(promise="SUCCESS"), RED, 2, "running", "failure"),
        (good(promise="FAILURE"), GREEN, 2, "running", "failure"),
        (Reply(1, 1.0, promise="SUCCESS"), Gates(), 2, "running", "failure"),
        (Reply(0, 1.0, "interrupted"), Gates(), 1, "interrupted", "interrupted"),
        (Reply(1, 1.0, "interrupted"), Gates(), 1, "interrupted", "interrupted"),
        (good(), Gates((), interrupted=True), 1, "interrupted", "interrupted"),
    ],
)
def test_settle(reply: Reply, gates: Gates, failures: int, status: str, outcome: str) -> None:
    """Whatever became of a started call, it is closed and counted; failures and status follow the rules."""
    before = fresh(PROCEDURE, "x")._replace(iteration=4, consecutive_failures=1, elapsed_per_iteration=("1.0s",))
    seen = Seen(reply, gates)
    turn = loop.Turn(seen, progress.failed(PROCEDURE, NOTHING, seen))
    after = loop.next_state(before, turn, "now")
    assert (after.iteration, after.last_iteration_at, len(after.elapsed_per_iteration)) == (5, "now", 2)
    assert (after.consecutive_failures, after.status) == (failures, status)
    assert loop.iteration_ended(before, after, turn).outcome == outcome


@pytest.mark.parametrize(
    "fields, signal, kind",
    [
        ({}, 0, None),
        ({}, 15, "signal"),
        ({"iteration": 3}, 0, "max-iterations"),
        ({"iteration": 9}, 0, "max-iterations"),
        ({"iteration": 9, "max_iterations": 0}, 0, None),
        ({"iteration": 3, "consecutive_failures": 3}, 0, "failures"),
        ({"consecutive_failures": 4}, 15, "failures"),
        ({"status": "completed"}, 0, "success-signal"),
        ({"status": "interrupted"}, 2, "signal"),
    ],
)
def test_why_stop(fields: dict[str, Any], signal: int, kind: str | None) -> None:
    """Failures come before the limit, the limit before a late signal."""
    ending = loop.why_stop(fresh(PROCEDURE, "x")._replace(**fields), signal)
    assert (ending and ending.kind) == kind


@pytest.mark.parametrize(
    "fields, typed, wanted",
    [
        ({"status": "interrupted", "consecutive_failures": 2}, (None, None), (3, 3, 2)),
        ({"status": "aborted", "consecutive_failures": 3}, (None, None), (3, 3, 0)),
        ({"status": "running", "consecutive_failures": 3}, (None, None), (3, 3, 0)),
        ({"status": "interrupted", "consecutive_failures": 2}, (0, 2), (0, 2, 0)),
        ({"status": "interrupted", "consecutive_failures": 2}, (9, 5), (9, 5, 2)),
    ],
)
def test_reopened(fields: dict[str, Any], typed: tuple[int | None, int | None], wanted: tuple[int, int, int]) -> None:
    """Resume keeps the saved limits unless new ones are given, and forgives failures that would end it at once."""
    state = resumed_state(fresh(PROCEDURE, "x")._replace(**fields), *typed)
    assert (state.max_iterations, state.failure_threshold, state.consecutive_failures) == wanted
    assert state.status == "running"


def test_a_usage_limit_is_neither_an_iteration_nor_a_failure() -> None:
    """A call that met one and was not made again (a signal ended the wait) leaves no trace in the state."""
    limited = Reply(1, 1.0, outcome="usage_limit", message="limit reached")
    script = Script([limited, good()])
    assert play(script, PROCEDURE._replace(max_iterations=1)) == Ending("max-iterations", 0)
    assert [step for step in script.trace if step.startswith("ask")] == ["ask 1", "ask 1"]
    assert script.states[-1].iteration == 1 and script.states[-1].consecutive_failures == 0


def test_a_limit_pauses_before_the_next_turn() -> None:
    """The turn that passed it is closed, no other is begun, and the state waits as interrupted."""
    script = Script([good(), good(), good()])
    script.poor = 1
    assert play(script) == Ending("limit", 4, note="Cost limit reached: $2.25 of $2.00", cause=SPENT)
    assert [step for step in script.trace if step.startswith("ask")] == ["ask 1", "ask 2"]
    assert (script.states[-1].status, script.states[-1].iteration) == ("interrupted", 2)
    event, facts = script.told[-1]
    assert event == "run.ended" and facts["cause"] == {"kind": "cost", "used": 2.25, "limit": 2.0}


@pytest.mark.parametrize("outcome", ["auth", "config", "context_overflow"])
def test_an_error_that_would_repeat_stops_at_once(outcome: str) -> None:
    """A fault that the next call would meet again ends the loop, with the CLI's reason."""
    script = Script([Reply(1, 1.0, outcome=outcome, message="log in first")])
    assert play(script) == Ending("agent", 1, note=f"{outcome}: log in first")
    assert (script.states[-1].status, script.states[-1].iteration) == ("aborted", 1)


def test_passing_faults_back_off() -> None:
    """A retryable failure counts, and the loop waits longer after each."""
    busy = Reply(1, 1.0, outcome="rate_limit", message="busy", retryable=True)
    script = Script([busy, busy, good()])
    play(script, PROCEDURE._replace(setup=Setup(Agent("", "true"), retry_wait=4.0)))
    assert [step for step in script.trace if step.startswith("rest")] == ["rest 4", "rest 8"]
