"""docs/events.md: every event, with every field."""

import ast
import json
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT

from harness import FAKE_AI, Workspace

Made = Callable[[Workspace], list[dict[str, Any]]]
KINDS = ("Goal", "Reflex", "Flow")  # kinds of loops with events of their own on the page


def described(kind: str = "") -> dict[str, set[str]]:
    """The fields that the page gives for each event; those that only a kind of loop tells stand below `Kind: event`."""
    found = {}
    for section in re.split(r"^#+ ", (ROOT / "docs" / "events.md").read_text(), flags=re.MULTILINE):
        title, _, text = section.partition("\n")
        if name := re.fullmatch(rf"{kind and kind + ': '}`([\w.]+)`", title):
            found[name[1]] = fields(text)
    return found


def fields(text: str) -> set[str]:
    return set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))


def common() -> tuple[set[str], set[str]]:
    """The fields of all events, and those that the events of an iteration have besides."""
    head = (ROOT / "docs" / "events.md").read_text().partition("## Every event")[2].partition("## Order")[0]
    always, turn = head.split("All events but")
    return fields(always), fields(turn)


def told(path: Path) -> Iterator[str]:
    """The names of events that a module tells."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        word = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if word in ("tell", "_tell", "note", "_note", "say", "_say"):
            name = node.args[0]
            for part in (name.body, name.orelse) if isinstance(name, ast.IfExp) else (name,):
                if isinstance(part, ast.Constant) and re.fullmatch(r"[a-z]+(\.[a-z]+)?", str(part.value)):
                    yield part.value


def test_every_event_of_the_code_is_described() -> None:
    """The names on the page are those that the program tells."""
    names = {name for path in (ROOT / "rooda").rglob("*.py") for name in told(path)}
    assert len(names) > 10
    assert {*described(), *(name for kind in KINDS for name in described(kind))} == names


def of_goals(ws: Workspace) -> list[dict[str, Any]]:
    """The events of goals in which a person is asked, work is hard to take back, and what is interrupted goes on."""
    ws.config(f"[goal]\nai_cmd = {json.dumps(FAKE_AI)}\n")
    plan = {
        "scores": dict.fromkeys(("outcome", "scope", "constraints", "success", "done"), 1),
        "reversibility": "1",
        "workflow_gate": {"kind": "library_search", "evidence": "this or that"},
        "criteria": [{"name": "made", "command": "test -f made"}],
        "steps": [{"name": "make", "criteria": ["made"]}],
    }
    ws.write("plan.json", json.dumps(plan))
    ws.out("precheck", "- one\n- two\n- three\n")
    ws.side("step-1", "touch made; mkdir -p .loop; rm .loop/state.json")
    ws.out("step", "---LOOP_STATUS---\nEXIT_SIGNAL: true\n---END_STATUS---\n")
    first = ws.rooda("goal", "run", "Make it", "--plan", "plan.json", "--json")
    second = ws.rooda("goal", "continue", "--json", stdin=b"y\ny\n")
    assert (first.code, second.code) == (4, 0), first.err + second.err
    return [json.loads(line) for line in first.lines + second.lines]


def of_reflex_loops(ws: Workspace) -> list[dict[str, Any]]:
    """The events of a loop that is interrupted, resumed and ends at its limit; and of one that fails."""
    ws.config(f'[reflex]\nai_cmd = {json.dumps(FAKE_AI)}\nexec_checks = "run"\n')
    rules = [{"id": f"a.correctness.{name}", "severity": "fail", "description": name} for name in ("one", "two")]
    ws.write("rules.json", json.dumps(rules))
    path = ".ai-factory/evolution/page/artifact.md"
    check = {"rule_id": rules[0]["id"], "type": "executable", "command": f"grep one {path}", "expected": "it is there"}
    issue = dict.fromkeys(("problem", "fix_instruction", "expected_effect"), "x") | {"rule_id": rules[0]["id"]}
    ws.signal_at(1)
    ws.out("plan", json.dumps({"plan": ["a", "b", "c"]}))
    ws.side("plan-2", 'mkdir "$FAKE/once" && echo "no plan" && exit')
    ws.out("produce", "# Page\n")
    ws.out("prepare", json.dumps({"checks": [check]}))
    ws.out("evaluate", json.dumps({"rule_results": [{"id": rules[1]["id"], "verdict": "pass", "details": "seen"}]}))
    ws.side("critique", f"echo more >> {path}")
    ws.out("critique", json.dumps({"issues": [issue]}))
    ws.out("refine", "# Page\n")
    new = ("reflex", "new", "A page", "--rules", "rules.json", "-n", "2", "--json", "--alias")
    first = ws.rooda(*new, "page", stdin=b"y\ny\n")
    second = ws.rooda("reflex", "resume", "--json")
    third = ws.rooda(*new, "other", stdin=b"y\ny\n")
    assert (first.code, second.code, third.code) == (130, 4, 1), first.err + second.err + third.err
    return [json.loads(line) for line in first.lines + second.lines + third.lines]


def of_flows(ws: Workspace) -> list[dict[str, Any]]:
    """The events of a flow of two nodes whose actuator is interrupted; it is resumed and ends at its target."""
    sys.path.append(str(ROOT / "tests" / "flow"))
    from flow_kit import Flow

    flow = Flow(ws).scenario("S2")
    parent = "$(ps -o ppid= -p $PPID)"
    report = "## What Was Done\n\none\n"
    flow.say("actuator-impl", f'!sh mkdir "$FAKE/once" && kill -INT {parent} && sleep 60\n!edit src.txt one\n{report}')
    first = flow.run("--json", "do it")
    second = flow.resume("--json")
    assert (first.code, second.code) == (130, 0), first.err + second.err
    return [json.loads(line) for line in first.lines + second.lines]


@pytest.mark.parametrize("kind, made", [("Goal", of_goals), ("Reflex", of_reflex_loops), ("Flow", of_flows)])
def test_every_field_of_a_kind_is_described(ws: Workspace, kind: str, made: Made) -> None:
    """Its own events have exactly the fields on the page; the shared ones have none that the shared sections lack."""
    always, turn = common()
    always = always - {"procedure"} | {"name"}
    own, shared, seen = described(kind), described(), defaultdict[str, set[str]](set)
    for record in made(ws):
        expected = always if record["event"].startswith("run.") else always | turn
        assert expected <= set(record), record
        seen[record["event"]] |= set(record) - expected
    assert {name: found for name, found in seen.items() if name in own} == own
    rest = {name: found for name, found in seen.items() if name not in own}
    assert {"agent.started", "agent.ended", "prompt.assembled"} <= set(rest)
    assert all(found <= shared[name] for name, found in rest.items()), rest


def recorded(ws: Workspace) -> list[dict[str, Any]]:
    """The events of runs in which everything happens that can happen to one."""
    ws.procedure("build", "max_output_buffer = 1024\n", gates={"tests": 'test "$ROODA_ITERATION" != 2'})
    ws.exits(1)
    ws.side(1, "head -c 2000 /dev/zero")
    ws.signal_at(3)
    first = ws.rooda("build", "-n", "9", "--token-budget", "2", "--json")
    ws.side(4, "rm -r .rooda/runs .rooda/state; echo > .rooda/runs; echo > .rooda/state")
    second = ws.rooda("resume", "build", "-n", "5", "--json")
    assert (first.code, second.code) == (130, 0), first.err + second.err
    third = limited(ws)
    return [json.loads(line) for line in first.lines + second.lines + third]


def limited(ws: Workspace) -> list[str]:
    """A run whose agent meets a passing limit of the service once."""
    busy = {"type": "result", "is_error": True, "result": "Too many requests", "api_error_status": 429}
    done = {"type": "result", "is_error": False, "result": "Done.", "total_cost_usd": 0.01}
    ws.procedure("read", 'agent = "scripted"\nretry_wait = 0.01\n')
    settings = f'[agents.scripted]\ncommand = "{FAKE_AI}"\noutput = "claude"\n'
    ws.config(f"{ws.read('rooda.toml')}\n{settings}")
    shutil.rmtree(f"{ws.path}/.rooda", ignore_errors=True)
    ws.exits(*[0] * len(ws.calls), 1, 0)
    ws.out(len(ws.calls) + 1, json.dumps(busy))
    ws.out(len(ws.calls) + 2, json.dumps(done))
    ran = ws.rooda("read", "-n", "2", "--json")
    assert ran.code == 0, ran.err
    return ran.lines


def test_every_field_is_described(ws: Workspace) -> None:
    """The events of real runs are those on the page, each with the fields on the page: no more, no fewer."""
    always, turn = common()
    seen: dict[str, set[str]] = defaultdict(set)
    for record in recorded(ws):
        expected = always if record["event"].startswith("run.") else always | turn
        assert expected <= set(record), record
        seen[record["event"]] |= set(record) - expected
    assert seen == described()
