"""Loops of all kinds with hooks, and agents that bring them to each ending."""

import json

import tomli_w

from .loops import Loops
from .workspace import Ran, Workspace

MOMENTS = ("done", "failed", "paused", "stopped", "stuck", "limit", "budget", "needs_person")
LIMITED = (
    '{"type":"rate_limit_event","rate_limit_info":'
    '{"status":"rejected","resetsAt":%d,"rateLimitType":"five_hour"}}\n'
    '{"type":"result","is_error":true,"api_error_status":429,"result":"You have hit your limit"}\n'
)
DONE = '{"type":"result","is_error":false,"result":"Done."}\n'
CLI = 'output = "claude"\n'
SHORT = ("--max-duration", "0.001")


def hooked(ws: Workspace, agent: str = "", **hooks: object) -> Loops:
    """Every hook puts its event into a file outside the workspace."""
    table = hooks or dict.fromkeys(MOMENTS, 'cat >>"$FAKE/told"')
    return Loops(ws, "\n" + tomli_w.dumps({"hooks": table}), *([agent] if agent else []))


def scripted(ws: Workspace, said: str, **hooks: object) -> Loops:
    """An agent whose transcript is read, and which says always the same."""
    ws.write("said.out", said)
    loops = hooked(ws, 'agent = "mine"\non_limit = "stop"', **hooks)
    loops.more += '\n[agents.mine]\ncommand = "cat said.out"\n' + CLI
    return loops


def never_holds(ws: Workspace) -> Ran:
    ws.out("produce", "# Page\n")
    issue = dict.fromkeys(("problem", "fix_instruction", "expected_effect"), "x") | {"rule_id": "a.correctness.one"}
    ws.out("critique", json.dumps({"issues": [issue]}))
    ws.out("refine", "# Page\n")
    return hooked(ws).reflex()


def makes_nothing(ws: Workspace) -> Ran:
    ws.side("step-1", "true")
    return hooked(ws).goal("--yes")


def writes_nothing(ws: Workspace) -> Ran:
    flow = hooked(ws).flow_ready("S1")
    flow.say("sensor-unit", "no status\n", "no status\n")
    return flow.run("do it")
