"""An agent that reports what it used, and what rooda adds up from its reports."""

import json
from pathlib import Path

from .workspace import Workspace

RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "done",
    "session_id": "s",
    "total_cost_usd": 0.75,
    "num_turns": 1,
    "usage": {"input_tokens": 100, "output_tokens": 50, "cache_read_input_tokens": 1000},
}


def paid(ws: Workspace, after: str = "", **loop: object) -> None:
    """An agent that reports $0.75 and 1,150 tokens a call."""
    ws.write("agent.sh", f"cat <<'END'\n{json.dumps(RESULT)}\nEND\n{after}\n")
    ws.sections["agent"] = '\n[agents.mine]\ncommand = "sh agent.sh"\noutput = "claude"\n'
    ws.procedure(loop={"ai_cmd": None, "agent": "mine", **loop})


def usage(ws: Workspace, *words: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(ws.rooda("usage", "--json", *words).out)
    return found


def calls(ws: Workspace) -> int:
    logs = Path(ws.file(".rooda/runs")).glob("*/events.jsonl")
    return sum(log.read_text().count('"event": "agent.ended"') for log in logs)
