"""config/events.schema.json and docs/events.md: every event of every kind of loop, with every field."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.kit import event_schema
from tests.kit.pages import ROOT
from tests.kit.workspace import FAKE_AI, Workspace

Json = dict[str, Any]
Made = Callable[[Workspace], list[Json]]
LOOPS = ("ooda", "reflex", "flow", "goal")
DEFS: Json = event_schema.schema()["$defs"]
RARE = {"lost", "stopped_by", "stopped_because", "refused", "cause"}  # tests/run and tests/cli have runs that end so


def names() -> set[tuple[str, str]]:
    """Kind of loop and event, for each that the schema has; `any` for events of all kinds."""
    return {(kind, event) for kind, _, event in (key.partition(":") for key in DEFS) if event}


def described() -> dict[tuple[str, str], set[str]]:
    """The fields that the page lists for each event; those of one kind of loop are below `Kind: event`."""
    found = {}
    for section in re.split(r"^#+ ", (ROOT / "docs" / "events.md").read_text(), flags=re.MULTILINE):
        title, _, text = section.partition("\n")
        if name := re.fullmatch(r"(?:(\w+): )?`([\w.]+)`", title):
            found[(name[1] or "").lower(), name[2]] = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    return found


@pytest.mark.parametrize(("option", "path"), [("--print", "docs/events.md"), ("--schema", "config/events.schema.json")])
def test_the_page_and_the_schema_are_made_of_the_records(option: str, path: str) -> None:
    """Both are what tools/events.py makes of the records of events today."""
    made = subprocess.run([sys.executable, ROOT / "tools" / "events.py", option], capture_output=True, text=True)
    assert made.stdout == (ROOT / path).read_text(), f"make it again: python tools/events.py {made.stderr}"


def test_the_page_names_what_the_schema_names() -> None:
    """Both have the same events and fields."""
    page = {(kind if kind in LOOPS else "", event): fields for (kind, event), fields in described().items()}
    schema = {
        ("" if kind in ("any", "ooda") else kind, event): set(DEFS[f"{kind}:{event}"]["properties"])
        for kind, event in names()
    }
    assert page == schema


def test_rooda_events_schema(bare: Workspace) -> None:
    """`rooda events --schema` prints it in any folder; it is a valid schema, and each event of it is distinguished."""
    ran = bare.rooda("events", "--schema")
    assert (ran.code, ran.err) == (0, "")
    schema = json.loads(ran.out)
    assert schema == event_schema.schema() and schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema)
    found = {rule["then"]["$ref"] for rule in schema["allOf"] if "$ref" in rule.get("then", {})}
    assert found == {f"#/$defs/{key}" for key in DEFS if key != "turn"}


def emitted(path: Path) -> Iterator[str]:
    """The names of the classes that a module uses."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Name | ast.Attribute):
            yield node.id if isinstance(node, ast.Name) else node.attr


def test_every_event_of_the_code_is_described() -> None:
    """The program emits each event that has a record."""
    modules = [path for path in (ROOT / "rooda").rglob("*.py") if not path.name.endswith("event_records.py")]
    found = {name for path in modules for name in emitted(path)}
    for _, event in names():
        assert "".join(map(str.capitalize, event.split("."))) in found, event


def of_goals(ws: Workspace) -> list[dict[str, Any]]:
    """The events of goals in which the user is asked, work is hard to take back, and what is interrupted continues."""
    ws.config(f"[goal]\nai_cmd = {json.dumps(FAKE_AI)}\n")
    plan = {
        "scores": dict.fromkeys(("outcome", "scope", "constraints", "success", "done"), 1),
        "reversibility": "1",
        "workflow_gate": {"kind": "library_search", "evidence": "this or that"},
        "criteria": [{"name": "made", "command": "test -f made"}],
        "steps": [{"name": "make", "criteria": ["made"]}],
    }
    ws.write("plan.json", json.dumps(plan))
    ws.out("precheck", "- one\n- it must not be two\n- never three\n")
    ws.side("step-1", "touch made; mkdir -p .loop; rm .loop/state.json")
    ws.out("step", "---LOOP_STATUS---\nEXIT_SIGNAL: true\n---END_STATUS---\n")
    first = ws.rooda("goal", "run", "Make it", "--plan", "plan.json", "--json")
    second = ws.rooda("goal", "continue", "--json", stdin=b"y\ny\n")
    ws.out("step-1", "<question>Which?</question>\n")
    third = ws.rooda("goal", "run", "--fresh", "Make it", "--plan", "plan.json", "--no-gates", "--json")
    assert (first.code, second.code, third.code) == (4, 0, 4), first.err + second.err + third.err
    return [json.loads(line) for line in first.lines + second.lines + third.lines]


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
    from tests.kit.flow import Flow

    flow = Flow(ws).scenario("S2")
    parent = "$(ps -o ppid= -p $PPID)"
    report = "## What Was Done\n\none\n"
    flow.say("actuator-impl", f'!sh mkdir "$FAKE/once" && kill -INT {parent} && sleep 60\n!edit src.txt one\n{report}')
    first = flow.run("--json", "do it")
    second = flow.resume("--json")
    assert (first.code, second.code) == (130, 0), first.err + second.err
    return [json.loads(line) for line in first.lines + second.lines]


def recorded(ws: Workspace) -> list[dict[str, Any]]:
    """The events of runs in which everything happens that can happen to one."""
    ws.procedure("build", "max_output_buffer = 1024\n", gates={"tests": 'test "$ROODA_ITERATION" != 2'})
    ws.exits(1)
    ws.side(1, "head -c 2000 /dev/zero")
    limits = "-n 9 --max-cost 99 --max-tokens 9999999 --max-duration 999"
    ws.side(1, f"unset ROODA_RUN; {sys.executable} -m rooda say Hello; {sys.executable} -m rooda set {limits}")
    ws.signal_at(3)
    ws.git("init", "-q")
    ws.write(".env", "KEY=1\n", 0o600)
    first = ws.rooda("build", "-n", "9", "--token-budget", "2", "--safety", "snapshot", "--json")
    ws.side(4, "rm -r .rooda/runs .rooda/state; echo > .rooda/runs; echo > .rooda/state")
    second = ws.rooda("resume", "build", "-n", "5", "--json")
    assert (first.code, second.code) == (130, 0), first.err + second.err
    third = limited(ws) + judged(ws)
    return [json.loads(line) for line in first.lines + second.lines + third]


def judged(ws: Workspace) -> list[str]:
    """Runs that end red, stuck, blocked and asking, one that undoes, commits and is refused, and one cut off."""
    shutil.rmtree(f"{ws.path}/.rooda", ignore_errors=True)
    ws.procedure("stuck", 'count_failures = "no-progress"\nstuck_after = 1\n', gates={"tests": "false"})
    ws.procedure("blocked", "promise_signals = true\nblocked_threshold = 1\n")
    keys = 'commit = "green"\non_red = "undo"\nsafety = "snapshot"\nbaseline = true\n'
    ws.procedure("mend", keys, gates={"tests": "test ! -e bad"})
    ws.write(".git/hooks/pre-commit", "#!/bin/sh\ntest -e tidy\n", 0o755)
    calls = len(ws.calls)
    ws.exits(*[0] * (calls + 5))
    ws.out(calls + 2, "<promise>FAILURE</promise>\nNo key.\n")
    ws.side(calls + 3, "touch bad")
    ws.side(calls + 4, "touch new")
    ws.side(calls + 5, "touch tidy")
    found = [ws.rooda(*words.split(), "--json") for words in ("stuck -n 3", "blocked -n 3", "mend -n 3", "stuck -n 1")]
    assert [ran.code for ran in found] == [1, 1, 0, 1], [ran.err for ran in found]
    red = ws.rooda("read", "-n", "1", "--json", "--ai-cmd", "false", "--sandbox", "auto")
    assert red.code == 1, red.err
    ws.procedure("cut", gates={"tests": "true"})
    ws.signal_at(len(ws.calls) + 1)
    cut = [ws.rooda("cut", "-n", "1", "--json"), ws.rooda("resume", "cut", "--json")]
    assert [ran.code for ran in cut] == [130, 0], cut[1].err
    ws.out(len(ws.calls) + 1, "<question>Which?</question>\n")
    asked = ws.rooda("blocked", "-n", "1", "--fresh", "--json")
    assert asked.code == 4, asked.err
    return [line for ran in (*found, red, *cut, asked) for line in ran.lines] + walled(ws)


def walled(ws: Workspace) -> list[str]:
    """A run in a sandbox whose agent changes a guarded file and asks for a host."""
    if not shutil.which("bwrap") and "CI_TOOLS" not in os.environ:
        return []
    ws.procedure("read", loop={"sandbox": "workspace"})
    ws.write("ask.sh", "echo >.envrc; python3 -c 'import urllib.request as r; r.urlopen(\"http://evil.test\")'; true\n")
    ran = ws.rooda("read", "-n", "1", "--json", "--ai-cmd", "sh ask.sh")
    assert ran.code == 0, ran.err
    return ran.lines


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


MADE = pytest.mark.parametrize(
    "kind, made", [("ooda", recorded), ("goal", of_goals), ("reflex", of_reflex_loops), ("flow", of_flows)]
)


@MADE
def test_every_field_comes(ws: Workspace, kind: str, made: Made) -> None:
    """Real runs emit each event of the kind with each of its fields: the schema promises nothing that never comes.

    That nothing else comes, and nothing is missing, is held against the schema when any test's workspace is closed.
    """
    seen: dict[str, set[str]] = defaultdict(set)
    validator = Draft202012Validator(event_schema.schema())
    for record in made(ws):
        seen[record["event"]] |= set(record)
        assert not event_schema.faults(record) and validator.is_valid(record), record
    own = {event for of, event in names() if of == kind or (of, kind) == ("any", "ooda")}
    own -= {"question.asked", "question.answered", "agent.silent"}  # the last comes after ten minutes
    own -= set() if shutil.which("bwrap") else {"files.restored", "network.refused"}
    for event in own:
        assert seen[event] == set(event_schema.definition(kind, event)["properties"]) - RARE, event
    assert kind != "goal" or {"question.asked", "question.answered"} <= set(seen)


def changed(**fields: Any) -> Json:
    """An event as it should be, with these fields changed; ... takes one away."""
    record: Json = {"v": 1, "ts": "2026-02-06T10:00:45.213Z", "run": "r", "loop": "ooda", "procedure": "p", "seq": 4}
    record |= {"event": "gate.ended", "iteration": 0, "display": 1, "gate": "tests", "elapsed": 1, "verdict": "pass"}
    record |= {"output": "/x", **fields}
    return {name: value for name, value in record.items() if value is not ...}


@pytest.mark.parametrize(
    "fields",
    [
        *({name: ...} for name in ("v", "ts", "run", "loop", "seq", "event", "procedure", "display", "gate")),
        *({"v": 2}, {"v": True}, {"ts": "2026-02-06"}, {"seq": "4"}, {"seq": 0}, {"seq": True}, {"elapsed": "1"}),
        *({"loop": "other"}, {"loop": "goal"}, {"gate": None}, {"display": -1}),
    ],
    ids=str,
)
def test_schema_violations_are_found(fields: Json) -> None:
    """A field that is missing or of another kind is a fault for readers of the schema and for our tests."""
    assert not event_schema.faults(changed())
    assert event_schema.faults(changed(**fields))
    if fields != {"loop": "goal", "procedure": "p"}:
        assert not Draft202012Validator(event_schema.schema()).is_valid(changed(**fields))


@pytest.mark.parametrize("fields", [{"colour": "red"}, {"event": "gate.painted"}], ids=str)
def test_only_tests_reject_unknown_fields(fields: Json) -> None:
    """Readers pass over fields and events that they do not know; our tests want them in the schema first."""
    assert Draft202012Validator(event_schema.schema()).is_valid(changed(**fields))
    assert event_schema.faults(changed(**fields))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"seq": 1}\n{"se', "no end"),
        (b'{"se\n{"seq": 1}\n', "no JSON"),
        (b'{"seq": 2}\n', "has the number 2 after 0"),
        (b'{"seq": 1}\n{"seq": 3}\n', "has the number 3 after 1"),
        (b'{"seq": 1, "run": "other"}\n', "is of the run other"),
    ],
)
def test_a_damaged_file_is_noticed(tmp_path: Path, data: bytes, said: str) -> None:
    """Torn lines, numbers that are missing, and events of another run."""
    folder = tmp_path / "work" / ".rooda" / "runs" / "this"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_bytes(data)
    assert any(said in fault for fault in event_schema.of_file(str(folder / "events.jsonl")))
    with pytest.raises(AssertionError, match="faults of events"):
        event_schema.check_all(str(tmp_path))
