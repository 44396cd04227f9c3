"""Events of every kind of loop: the stream of --json, the file, `rooda events`; and `rooda why` made of them."""

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from tests.kit.background import prepare
from tests.kit.endings import LIMITED, SHORT, never_holds, scripted, writes_nothing
from tests.kit.kinds import CLAIM
from tests.kit.loops import Loops
from tests.kit.workspace import Ran, Workspace, until

KINDS = pytest.mark.parametrize("kind", ["ooda", "reflex", "goal", "flow"])
WORDS = {"ooda": ("-n", "2"), "reflex": (), "goal": ("--yes",), "flow": ("do it",)}
NAMES = {"ooda": "build", "reflex": "page", "goal": "goal", "flow": ""}


def run(ws: Workspace, kind: str, *words: str, more: str = "", **how: Any) -> Ran:
    ran: Ran = getattr(Loops(ws, more), kind)(*WORDS[kind], *words, **how)
    return ran


def reasons(ws: Workspace, *words: str) -> list[dict[str, Any]]:
    """The reasons of `rooda why --json`; the place of each contains what it quotes."""
    found: list[dict[str, Any]] = json.loads(ws.rooda("why", "--json", *words).out)
    for row in found:
        assert os.path.isabs(row["evidence"]) and row["line"] > 0, row
        line = Path(row["evidence"]).read_bytes().splitlines()[row["line"] - 1].decode("utf-8", "replace")
        assert line.strip()[:200].startswith(row["text"][:190]), row
    return found


def places(ws: Workspace, *words: str) -> list[tuple[str, str, str]]:
    """Decision, rule and place of each reason, without what differs between runs."""
    return [(row["decision"], row["rule"], os.path.basename(row["evidence"])) for row in reasons(ws, *words)]


@KINDS
def test_the_stream_is_the_file(bare: Workspace, kind: str) -> None:
    """stdout of --json has the lines of events.jsonl in their order, and nothing else; so has `rooda events`."""
    ran = run(bare, kind, "--json")
    assert ran.code == 0, ran.err
    assert [json.loads(line) for line in ran.lines] == bare.events()
    name = NAMES[kind] or bare.events()[0]["name"]
    for words in (("events", name), ("events", "-f")):
        shown = bare.rooda(*words)
        assert [json.loads(line) for line in shown.lines] == bare.events() and not shown.err, words


def test_events_since(ws: Workspace) -> None:
    """`rooda events --since` has all runs, oldest first; NAME and iteration select; an invalid time is refused."""
    for _ in range(2):
        assert ws.rooda("build", "-n", "2").code == 0
    every = [json.loads(line) for line in ws.rooda("events", "--since", "2020-01-01").lines]
    assert [record["event"] for record in every].count("run.ended") == 2
    assert [(record["run"], record["seq"]) for record in every] == sorted((r["run"], r["seq"]) for r in every)
    second = ws.rooda("events", "build", "--since", "1h", "--iteration", "2").lines
    assert {json.loads(line)["display"] for line in second} == {2} and len(second) % 2 == 0
    assert ws.rooda("events", "other", "--since", "1h").out == ws.rooda("events", "--since", "2096-01-01").out == ""
    for words, said in ((("soon",), "not a time"), (("1h", "-f"), "mutually exclusive")):
        ran = ws.rooda("events", "--since", *words)
        assert ran.code == 2 and said in ran.err


def test_following_all_kinds(bare: Workspace) -> None:
    """`rooda events -f` gives what is there, waits for what comes, and ends with the run."""
    bare.side("step-1", 'until [ -e "$FAKE/go" ]; do sleep 0.02; done; touch made')
    running = Loops(bare).start("goal")
    until(lambda: "agent.started" in [event["event"] for event in bare.events()], what="the step")
    watching = bare.start("events", "-f")
    until(lambda: "agent.started" in watching.out, what="what is there")
    Path(bare.fake, "go").touch()
    assert running.finish() == 0 and watching.finish() == 0
    assert [json.loads(line) for line in watching.out.splitlines()] == bare.events()


def test_why_a_reflex_loop(bare: Workspace) -> None:
    """`rooda why` shows the start, the judgements with their rules, and the rule that ended the run."""
    assert never_holds(bare).code == 4
    found = places(bare)
    assert found[0] == (
        "began", "at most 2 iterations; 0 were completed before; at iteration 1, phase A, PLAN", "events.jsonl",
    )  # fmt: skip
    assert [row[:2] for row in found].count(("failed", "phase A: score 0.00; not met: a.correctness.one")) == 2
    assert "stopped, iteration_limit" in found[-1][1] and "the last iteration did not pass (exit 4)" in found[-1][1]


def test_why_a_contract_was_broken(bare: Workspace) -> None:
    """Each breach refers to the answer that violated the contract."""
    bare.out("plan", "first line\nno plan\n")
    assert run(bare, "reflex").code == 1
    one, two, end = reasons(bare)[1:]
    assert one["rule"].endswith("the phase is asked once more") and two["rule"].endswith("so the loop ends")
    assert [row["text"] for row in (one, two, end)] == ["no plan"] * 3
    assert [os.path.basename(row["evidence"]) for row in (one, two)] == ["0001-plan-a.out", "0001-plan-a-2.out"]


def test_why_a_goal(bare: Workspace) -> None:
    """The score, what held, what was accepted, and why it was complete; evidence is found from any folder."""
    assert run(bare, "goal").code == 0
    found = places(bare)
    assert ("went on", "the specification scores 5/10: Colleague", "events.jsonl") in found
    assert ("verified", "criterion made: met", "1-made.txt") in found
    assert found[-2][0] == "went on" and found[-2][1].startswith("step make accepted")
    assert "every criterion was verified by rooda" in found[-1][1] and found[-1][2] == "0001-step.out"
    away = json.loads(bare.rooda("-C", bare.path, "why", "--json", cwd=bare.home).out)
    assert away == reasons(bare)


def test_why_a_goal_is_stuck(bare: Workspace) -> None:
    """What was not met, with rooda's own run of the command; the breaker's rule at the end."""
    bare.side("step-1", "true")
    assert run(bare, "goal").code == 4
    found = reasons(bare)
    failed = [row for row in found if row["rule"] == "criterion made: not met"]
    assert failed and all(row["text"] == "result: exit 1" for row in failed)
    assert any("the agent claimed completion, which was not accepted" in row["rule"] for row in found)
    assert found[-1]["rule"].startswith("Paused: same ") and "criteria stayed unmet (exit 4)" in found[-1]["rule"]


def test_why_a_flow(bare: Workspace) -> None:
    """Node by node: what was measured, what the controller decided, in the words of the files as they were then."""
    ran = run(bare, "flow", scenario="S2")
    assert ran.code == 0, ran.err
    found = {rule.partition(":")[0]: (decision, rule, where) for decision, rule, where in places(bare)}
    assert found["delivery 1"][0] == "went on" and "impl: complete after 2 iterations" in found["delivery 1"][1]
    assert found["delivery 1"][2] == "0001-controller-1-controller-output.md"
    decision, rule, where = found["delivery/impl 1.2"]
    assert (decision, where) == ("ended", "0002-controller-1.2-controller-output.md")
    assert "complete: its controller said that the target is met; types: pass, unit: pass" in rule
    shown = {(row["evidence"].rpartition("/")[2], row["text"]) for row in reasons(bare)}
    assert ("0001-controller-1-controller-output.md", "target-met: false") in shown
    assert ("0000-sensor-0-sensor-full-output.md", "status: fail") in shown
    assert ("0002-controller-2-controller-output.md", "target-met: true") in shown


@pytest.mark.parametrize(
    ("end", "decision", "rule"),
    [
        (lambda ws: run(ws, "flow", scenario="S3"), "ended", "before its controller was asked; unit: fail"),
        (writes_nothing, "failed", "a step failed: "),
    ],
    ids=["limit", "error"],
)
def test_why_a_node_ended(bare: Workspace, end: Any, decision: str, rule: str) -> None:
    """At its limit, or by a call that came to nothing twice; the flow's own end says the same."""
    assert end(bare).code in (1, 4)
    *_, node, whole = places(bare)
    assert node[0] == decision and rule in node[1]
    assert re.search(r"\(exit [14]\)$", whole[1])


@KINDS
def test_why_a_budget_ended_it(bare: Workspace, kind: str) -> None:
    """A limit of time, tokens or money is named, with its rule."""
    assert run(bare, kind, *SHORT).code == 4
    assert "tested before each call (exit 4)" in places(bare)[-1][1]


@pytest.mark.parametrize("kind", ["ooda", "reflex", "goal"])
def test_why_a_usage_limit_ended_it(bare: Workspace, kind: str) -> None:
    """The transcript has the account's limit; the rule is on_limit."""
    loops = scripted(bare, LIMITED % 4_000_000_000)
    ran: Ran = getattr(loops, kind)(*WORDS[kind])
    assert ran.code == 4, ran.both
    last = reasons(bare)[-1]
    assert "Usage limit of mine" in last["rule"] and 'with on_limit = "stop", rooda does not wait' in last["rule"]


def test_why_another_agent_was_asked(bare: Workspace) -> None:
    """The switch is a decision: the agent, the agent it replaces, and the limit."""
    loops = scripted(bare, LIMITED % 4_000_000_000)
    bare.write("good.out", '{"type":"result","is_error":false,"result":"done"}\n')
    loops.more += '\n[agents.other]\ncommand = "cat good.out"\noutput = "claude"\n'
    loops.agent = 'agent = "mine"\non_limit = "switch"\nfallback = ["other"]'
    assert loops.ooda("-n", "1", "--fresh").code == 0
    (switched,) = (row for row in reasons(bare) if row["decision"] == "switched")
    assert switched["rule"].startswith("other is asked instead of mine") and "usage limit" in switched["rule"]
    assert "You have hit your limit" in switched["text"]


@KINDS
def test_why_it_was_stopped(bare: Workspace, kind: str) -> None:
    """`rooda stop --reason`: who, why, and by which signal it ended."""
    for call in ("iteration", "plan", "step-1"):
        bare.side(call, 'touch "$FAKE/here"; sleep 60')
    running = Loops(bare).start(kind)
    until(lambda: Path(bare.fake, "here").exists(), what="the agent")
    assert bare.rooda("stop", "--reason", "it costs too much").code == 0
    assert running.finish() == 143
    assert "the user ended it with rooda stop: it costs too much" in reasons(bare)[-1]["rule"]
    assert reasons(bare)[-1]["rule"].endswith("(exit 143)")


def test_why_it_was_cut_off(ws: Workspace) -> None:
    """A run that was killed has no end in its log, and `why` says so; not while it runs."""
    ws.side(1, "echo began; sleep 60")
    running = ws.start("build", "-n", "3")
    ws.wait_calls(1)
    assert "cut off" not in [row["decision"] for row in reasons(ws)]
    until(lambda: "began" in "".join(p.read_text() for p in Path(ws.path).glob(".rooda/runs/*/*.out")), what="a word")
    for pid in ws.leftovers():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
    running.process.wait()
    until(lambda: not ws.leftovers())
    last = reasons(ws)[-1]
    assert last["decision"] == "cut off" and "its log records no end" in last["rule"]
    assert last["text"] == "began"


def test_a_success_signal_is_shown(ws: Workspace) -> None:
    """The line of the transcript with the promise is the evidence, wherever it is."""
    ws.procedure("build", "promise_signals = true\n")
    ws.out(1, "working\n<promise>SUCCESS</promise>\n")
    assert ws.rooda("build", "-n", "5").code == 0
    assert [(row["decision"], row["line"]) for row in reasons(ws)[-2:]] == [("went on", 2), ("ended", 2)]


def test_a_fallback_is_read_in_its_own_format(bare: Workspace) -> None:
    """A fallback with another output format is read in its own format."""
    said = {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": CLAIM}}
    bare.write("other.out", json.dumps(said) + '\n{"type":"turn.completed","usage":{}}\n')
    bare.write("limited.out", LIMITED % 4_000_000_000)
    agents = {
        "limited": {"command": "cat limited.out", "output": "claude"},
        "other": {"command": "sh -c 'touch made; cat other.out'", "output": "codex"},
    }
    head = 'agent = "limited"\non_limit = "switch"\nfallback = ["other"]'
    ran = Loops(bare, "\n" + tomli_w.dumps({"agents": agents}), head).goal("--yes", "--headless")
    assert ran.code == 0 and "<loop-complete>" in ran.out, ran.both


@pytest.mark.parametrize("kind", ["ooda", "reflex", "flow"])
def test_a_cost_limit_with_unknown_costs(ws: Workspace, kind: str) -> None:
    """The first call of unknown cost causes one warning on stderr; stdout is the same as without a limit."""
    ran = ws.rooda(*prepare(ws, kind, "true"), "--max-cost", "0.01")
    assert ran.code == 0, ran.both
    assert ran.err.count("WARNING: The cost of this call is unknown") == 1 and "limit of $0.0100" in ran.err
    assert "unknown" not in ran.out
    assert [event["event"] for event in ws.events()].count("problem") == 1
