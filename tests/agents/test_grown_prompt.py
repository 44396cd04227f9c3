"""A prompt that outgrows its agent's limit while the loop runs."""

import json

import pytest

from tests.kit.workspace import FAKE_AI, Workspace

GROW = "head -c 300000 /dev/zero | tr '\\0' x >>prompts/act_build.md"
LIMITS = {
    "argument": ('prompt = "argument"', "and one command-line argument has at most"),
    "bytes": ("size_limit = 1000", "bytes, and mine takes at most 1,000"),
    "characters": ("character_limit = 1000", "characters, and mine takes at most 1,000"),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_grown_prompt_is_a_result(ws: Workspace, limit: str) -> None:
    """The second call is not made: its outcome is context_overflow, with a message, and the loop ends with exit 1."""
    key, says = LIMITS[limit]
    ws.procedure("build", loop={"ai_cmd": None, "agent": "mine"})
    ws.config(ws.read("rooda.toml") + f"\n[agents.mine]\ncommand = {json.dumps(FAKE_AI)}\n{key}\n")
    ws.side(1, GROW)
    ran = ws.rooda("build", "-n", "5")
    assert ran.code == 1 and len(ws.calls) == 1
    assert "ERROR: Aborting: context_overflow: the prompt has become too long: it has 300,0" in ran.out
    assert says in ran.out and "Argument list too long" not in ran.both
    (ended,) = (event for event in ws.events() if event["event"] == "agent.ended" and event["iteration"] == 1)
    assert (ended["ended"], ended["agent_outcome"], ended["exit_code"]) == ("not-started", "context_overflow", 126)
    assert (ended["cost"], ended["cost_source"]) == (None, "unknown")
    state = ws.state()
    assert state and (state["status"], state["iteration"], state["consecutive_failures"]) == ("aborted", 2, 1)
    assert ws.rooda("logs").code == 0 and ws.rooda("logs", "--agent").code == 0
