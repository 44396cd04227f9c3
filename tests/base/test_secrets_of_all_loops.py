"""Secrets of the environment and the settings are in nothing that any kind of loop writes or shows."""

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from tests.kit.kinds import RULE
from tests.kit.loops import Loops
from tests.kit.workspace import Ran, Workspace

KEY = 'sk+test/0123 "456789"=abcdef\\x'
GIVEN = "given-by-the-settings-0123456789"
FORMS = {
    "plain": KEY,
    "json": json.dumps(KEY)[1:-1],
    "address": quote(KEY, safe=""),
    "path": quote(KEY),
    "query": quote_plus(KEY),
    "settings": GIVEN,
    **{f"basic {user}": base64.b64encode(f"{user}:{KEY}".encode()).decode() for user in ("u", "us", "use")},
    "basic url": base64.urlsafe_b64encode(f"u:{KEY}\n".encode()).decode(),
}
NEEDLES = [KEY, FORMS["json"], FORMS["address"], FORMS["path"], FORMS["query"], GIVEN]
NEEDLES += [FORMS[name][6:-6] for name in FORMS if name.startswith("basic")]


@pytest.fixture
def spilled(bare: Workspace) -> Workspace:
    """A workspace with a file of all forms of two secrets, and a hook that stores its input."""
    bare.env |= {"SERVICE_API_KEY": KEY}
    Path(bare.fake, "spill").write_text("".join(f"{name}: {form}\n" for name, form in FORMS.items()))
    return bare


def loops(ws: Workspace) -> Loops:
    agent = json.loads(ws.loop["ai_cmd"])
    hooks = "".join(f"{name} = 'cat >>\"$FAKE/told\"'\n" for name in ("done", "failed", "paused", "stuck"))
    table = f"\n[agents.mine]\ncommand = {json.dumps(agent)}\nenv = {{ MY_TOKEN = {json.dumps(GIVEN)} }}\n"
    return Loops(ws, f"\n[hooks]\n{hooks}{table}", 'agent = "mine"')


def leaks(text: str) -> list[str]:
    return [needle for needle in NEEDLES if needle in text]


def files(ws: Workspace) -> dict[str, str]:
    """Every file that rooda wrote for readers, and the hooks' input; without the agent's output, work and prompts."""
    notes = [path for path in Path(ws.path).rglob("*") if path.is_file() and not {".git", "bin"} & {*path.parts}]
    public = [path for path in notes if ".rooda" not in path.parts or path.name.endswith((".jsonl", ".json"))]
    shown = [path for path in public if path.name not in ("rooda.toml", "plan.json", "artifact.md")]
    told = [path for path in (Path(ws.fake, "told"),) if path.exists()]
    return {str(path): path.read_text("utf-8", "replace") for path in (*shown, *told)}


def check(ws: Workspace, ran: Ran, *names: str) -> None:
    """No secret leaks, though the agent's own transcript contains it."""
    raw = "".join(path.read_text("utf-8", "replace") for path in Path(ws.path).glob(".rooda/runs/*/*.out"))
    assert leaks(raw)
    assert not leaks(ran.both), leaks(ran.both)
    assert {path: found for path, text in files(ws).items() if (found := leaks(text))} == {}
    assert "***" in "".join(files(ws).values())
    words = ("logs -v", "logs --agent", "why", "why --json", "events", "status", "status --json", "config show")
    for each in (*words, *names):
        said = ws.rooda(*each.split()).both
        assert not leaks(said), (each, leaks(said))


SPILL = 'cat "$FAKE/spill"'


def test_a_procedure(spilled: Workspace) -> None:
    """A failing agent and a failing gate print all forms."""
    made = loops(spilled)
    made.agent += "\nquality_gates = ['cat \"$FAKE/spill\"; false']"
    spilled.side(1, f"{SPILL}; exit 3")
    spilled.side(2, SPILL)
    check(spilled, made.ooda("-n", "2", "-v"))


def test_a_reflex_loop(spilled: Workspace) -> None:
    """A breach and a check's output contain secrets; so does the artifact, which is shown."""
    made = loops(spilled)
    path = ".ai-factory/evolution/page/artifact.md"
    command = f'grep nothing {path}; cat "$FAKE/spill"; exit 1'
    check_ = {"rule_id": RULE["id"], "type": "executable", "command": command, "expected": "it is there"}
    spilled.side("plan", 'mkdir "$FAKE/once" && cat "$FAKE/spill" && exit')
    spilled.out("plan", json.dumps({"plan": ["a", "b", "c"]}))
    spilled.out("prepare", json.dumps({"checks": [check_]}))
    issue = {"rule_id": RULE["id"], "problem": "p", "fix_instruction": "f", "expected_effect": "e"}
    spilled.out("critique", json.dumps({"issues": [issue]}))
    page = f"# Page\n\n{GIVEN}\n"
    spilled.out("produce", page)
    spilled.out("refine", page)
    ran = made.reflex("--exec-checks", "run", "-v")
    assert ran.code == 4, ran.both
    assert spilled.read(".ai-factory/evolution/page/artifact.md") == page
    check(spilled, ran, "reflex status page", "reflex history page")


def test_a_goal(spilled: Workspace) -> None:
    """A criterion's command and a step print all forms, and a claim repeats a secret."""
    made = loops(spilled)
    spilled.side("step-1", "true")
    words = made.goal_words("--yes", "-v")
    plan: dict[str, Any] = spilled.json("plan.json")
    plan["criteria"][0]["command"] = 'cat "$FAKE/spill"; echo "Error: $SERVICE_API_KEY"; false'
    spilled.write("plan.json", json.dumps(plan))
    block = f"---LOOP_STATUS---\nEXIT_SIGNAL: false\nNEXT: {GIVEN}\n---END_STATUS---\n"
    spilled.out("step", f"{''.join(FORMS.values())}\n{block}")
    ran = spilled.rooda(*words)
    assert ran.code == 4, ran.both
    check(spilled, ran, "goal status")


def test_a_command_that_holds_a_key(spilled: Workspace) -> None:
    """A plan stays as the user wrote it; what rooda reports about its commands has stars."""
    made = loops(spilled)
    words = made.goal_words("--yes", "-v")
    plan: dict[str, Any] = spilled.json("plan.json")
    plan["criteria"][0]["command"] = f"test -f made && echo {GIVEN}"
    spilled.write("plan.json", json.dumps(plan))
    ran = spilled.rooda(*words)
    assert ran.code == 0, ran.both
    evidence = spilled.read(".loop/evidence/1-made.txt")
    assert "command: test -f made && echo ***" in evidence
    for text in (evidence, ran.both, spilled.rooda("events").out, spilled.rooda("why").out):
        assert not leaks(text)


def test_a_flow(spilled: Workspace) -> None:
    """Secrets are hidden in a sensor's output, the actuator's report, and the commits made from them."""
    made = loops(spilled)
    flow = made.flow_ready("S1")
    flow.ws.config(flow.ws.read("rooda.toml") + '\n[flow]\nsensors = "native"\n')
    flow.agent("sensor-unit", "FAKE: sensor unit -> {output-path}\n", f"command: {SPILL}; false\n")
    flow.actuator("main", "one", said=f"Used {KEY} once.")
    flow.commit("a sensor that rooda runs itself")
    ran = flow.run("do it", "-v")
    assert ran.code == 0, ran.both
    messages = spilled.git("log", "--format=%B", "main..")
    sensor = spilled.read(flow.ap("main", "sensor-unit-output.md"))
    assert "Used *** once" in messages and "plain: ***" in sensor
    for text in (messages, sensor, ran.both, spilled.rooda("events").out):
        assert not {*leaks(text)} - {GIVEN}  # of an agent that this flow does not call
