"""Rows L-03 and L-04 of a flow: calls that fail are retried and leave a run to resume; answers are unwrapped."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.flow import Flow
from tests.kit.flow_kills import outcome
from tests.kit.workspace import Ran

Scenarios = Callable[[str], tuple[Flow, Ran]]


@pytest.mark.parametrize("role", ["actuator-impl", "sensor-types", "controller-delivery"])
def test_L_03_three_tries_then_a_run_to_resume(flow: Flow, ran: Scenarios, role: str) -> None:
    """After three failed calls: exit 1, no commit of an error, and a resume that repeats the call to the same end."""
    flow.scenario("S2")
    good = {name: text for name, text in flow.scripts.items() if name.startswith(role)}
    flow.say(role, *(f"!exit 3\n{good[f'{role}.1']}" for _ in range(3)))
    done = flow.run()
    assert done.code == 1, done.both
    tries = [call for call in flow.calls if role.split("-", 1) in call["served"]]
    assert len(tries) == 3 and len({call["prompt"] for call in tries}) == 1
    assert f"State saved. Resume with: rooda flow resume {flow.run_id}" in done.out and "exit 3" in done.both
    assert flow.state["status"] == "running"
    assert not any(commit.fields["status"] == "error" for commit in flow.log())
    for number in (1, 2, 3):
        flow.forget(f"{role}.{number}")
    for name, text in good.items():
        flow.script(name, text)
    flow.forget_ended(role)
    before = len(flow.calls)
    done = flow.resume()
    assert done.code == 0, done.both
    assert role.split("-", 1) in flow.calls[before]["served"]
    assert outcome(flow)[0] == outcome(ran("S2")[0])[0]


def test_L_03_what_cannot_succeed_is_not_retried(flow: Flow) -> None:
    """A refused login ends the session after one call; the run can be resumed."""
    flow.scenario("S1")
    said = '{"type":"result","is_error":true,"api_error_status":401,"result":"Invalid API key"}'
    agent = Path(flow.ws.root, "refused")
    agent.write_text(f"#!/bin/sh\ncat >/dev/null\necho '{said}'\nexit 1\n")
    agent.chmod(0o755)
    table = f'[agents.refused]\ncommand = "{agent}"\noutput = "claude"\n'
    flow.ws.config(f'[loop]\nagent = "refused"\nretry_wait = 60\n{table}')
    flow.commit("an agent without a login")
    done = flow.run()
    assert done.code == 1 and "Invalid API key" in done.both, done.both
    assert done.both.count("retrying") == 0 and flow.state["status"] == "running"


WRAPPED = {
    "in a fence": "```markdown\n{text}```\n",
    "below words": "Sure! Here is the file:\n\n{text}",
    "in a fence among words": "Sure! Here is the file:\n\n```markdown\n{text}```\n\nTell me if you need more.\n",
}


@pytest.mark.parametrize("name", WRAPPED)
def test_L_04_an_answer_is_unwrapped(flow: Flow, name: str) -> None:
    """Fences and words around a file are taken off, whether it was written or printed; no second request."""
    flow.scenario("S1")
    for number, each in enumerate(("controller-main.1", "actuator-main.1", "sensor-unit.1", "controller-main.2")):
        rows = flow.scripts[each].splitlines(keepends=True)
        orders = "".join(row for row in rows if row.startswith("!")) + "!stdout\n" * (number % 2)
        text = "".join(row for row in rows if not row.startswith("!"))
        flow.script(each, orders + WRAPPED[name].format(text=text))
    done = flow.run()
    assert done.code == 0 and "retrying" not in done.both, done.both
    for label, node in (("1", "controller"), ("1", "actuator"), ("0", "sensor-unit"), ("2", "controller")):
        text = flow.shown(label, flow.ap("main", f"{node}-output.md"))
        assert text.startswith(("---\n", "# Actuator Output")) and "Sure" not in text and "```" not in text
