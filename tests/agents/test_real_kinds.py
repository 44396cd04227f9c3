"""The other kinds of loops with an installed CLI: their prompts reach the model, and its answers are read for form."""

import json
from collections.abc import Callable

import pytest

from rooda.agentkit.server.server import ModelServer
from tests.kit import goal, kinds, loops
from tests.kit.clis import builds
from tests.kit.workspace import Workspace

CRITERION = {"name": "made", "verification": "execution output", "command": "test -f made.txt"}
PLAN = goal.plan(criteria=[CRITERION], steps=[{"name": "make it", "criteria": ["made"]}])


@pytest.mark.parametrize("name", ["codex"])
def test_L_04_L_32_a_goal_with_a_real_cli(
    bare: Workspace, cli: Callable[[str], str], server: ModelServer, name: str
) -> None:
    """The plan is found in chatter and a fence; the step makes the file; rooda verifies, and the goal is complete."""
    cli(name)
    env = builds.prepare(bare, name, server.url, builds.Case([], "ok"))
    written = {"write": {"path": bare.file("made.txt"), "content": "made\n"}}
    chatter = f"Sure! Here is the plan:\n\n```json\n{json.dumps(PLAN)}\n```\n"
    server.play({"turns": [{"text": chatter}, written, {"text": goal.claim(True, "Made it.")}]})
    ran = bare.rooda("goal", "run", goal.SPEC, "--agent", name, "--headless", env=env, timeout=builds.PATIENCE)
    assert ran.code == 0, ran.both
    prompts = [json.dumps(request.get("body")) for request in server.requests if request.get("tools")]
    assert "Outcome two" in prompts[0] and "test -f made.txt" in prompts[-1]


@pytest.mark.parametrize("name", ["codex"])
def test_L_04_L_10_a_reflex_loop_with_a_real_cli(
    bare: Workspace, cli: Callable[[str], str], server: ModelServer, name: str
) -> None:
    """PLAN is answered in chatter and a fence, PRODUCE in a fence; the artifact has none of it.

    PREPARE runs at the same time as PRODUCE and gets the artifact, too: that breaks its contract, so the loop ends.
    """
    cli(name)
    env = builds.prepare(bare, name, server.url, builds.Case([], "ok"))
    bare.config(bare.read("rooda.toml") + f'\n[reflex]\nagent = "{name}"\n')
    bare.write("rules.json", kinds.rules())
    plan = f"Here it is:\n\n```json\n{json.dumps(kinds.STEPS)}\n```\n"
    server.play({"turns": [{"text": plan}], "after": {"text": f"```markdown\n{loops.PAGE}```\n"}})
    ran = bare.rooda(*kinds.reflex(1), env=env, timeout=builds.PATIENCE)
    assert ran.code == 1 and "PREPARE broke its contract" in ran.both, ran.both
    assert bare.read(".ai-factory/evolution/page/artifact.md") == loops.PAGE
