"""Each kind of loop words a failed agent call in its own way; the cause is decided in one place."""

import pytest

from rooda.agents.outcome import in_words
from rooda.agents.records import Reply
from rooda.loops.flow import calls
from rooda.loops.goal import effects as goal_effects
from rooda.loops.procedure import view
from rooda.loops.reflex import effects

TIMEOUT = Reply(143, 9.0, "timeout", limit=300.0)
IDLE = Reply(143, 9.0, "idle", limit=0.5)
MISSING = Reply(127, 0.0, "not-started", note="no such file")
EXIT = Reply(7, 1.0)
AUTH = Reply(1, 1.0, outcome="auth", message="log in first\nhow: see the page")
DENIED = Reply(0, 1.0, outcome="permission_denied", message="every tool was denied: Write")
SENTENCES = {
    TIMEOUT: ("timeout 300s", "ended after 300 s", "the agent took longer than 300 s"),
    IDLE: ("timeout 0.5s", "ended after 0.5 s without output", "the agent took longer than 0.5 s without output"),
    MISSING: ("not started", "no such file", "the agent could not be started: no such file"),
    EXIT: ("exit 7", "exit 7", "the agent ended with exit code 7"),
    AUTH: (
        "auth, exit 1",
        "auth: log in first\nhow: see the page",
        "the agent ended with exit code 1: auth: log in first",
    ),
    DENIED: (
        "permission_denied, exit 0",
        "permission_denied: every tool was denied: Write",
        "the agent ended with exit code 0: permission_denied: every tool was denied: Write",
    ),
}
ON_SCREEN = {
    TIMEOUT: "AI CLI timed out after 300s",
    IDLE: "AI CLI timed out after 0.5s without output",
    MISSING: "AI CLI failed (exit 127)",
    EXIT: "AI CLI failed (exit 7)",
    AUTH: "AI CLI failed (exit 1)",
    DENIED: "AI CLI failed (exit 0, permission_denied)",
}


@pytest.mark.parametrize("reply", SENTENCES, ids=lambda reply: f"{reply.ended} {reply.exit_code}")
def test_a_failed_call_in_the_words_of_each_loop(reply: Reply) -> None:
    """From the reply: goal, flow, reflex."""
    words = (goal_effects.WORDS, calls.WORDS, effects.WORDS)
    assert tuple(in_words(reply, each) for each in words) == SENTENCES[reply]


@pytest.mark.parametrize("reply", ON_SCREEN, ids=lambda reply: f"{reply.ended} {reply.exit_code}")
def test_a_failed_call_on_the_screen(reply: Reply) -> None:
    """From the event, whose outcome has another key."""
    record = {**reply._asdict(), "agent_outcome": reply.outcome, "gates_failed": ""}
    assert [fault.text for fault in view.faults(record)] == [ON_SCREEN[reply]]


def test_a_call_that_went_well_has_no_fault() -> None:
    """With an outcome, without one, and for an event that has none."""
    for call in (Reply(0, 1.0), Reply(0, 1.0, outcome="ok"), {}):
        assert in_words(call, {"": "it failed"}) == ""
