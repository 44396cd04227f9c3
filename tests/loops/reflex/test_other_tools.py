"""Row I-41: loops that another tool of the same specification wrote."""

import json
from typing import Any

import pytest

from tests.kit.workspace import Workspace

HOME = ".ai-factory/evolution"
RUN: dict[str, Any] = {  # as the specification's own tool writes it: `rules` may be empty, an evaluation brief
    **{"run_id": "api-20260218-120000", "task_alias": "api", "status": "completed", "iteration": 3},
    **{"max_iterations": 4, "phase": "B", "current_step": "EVALUATE", "task": {"prompt": "The API"}},
    "criteria": {"name": "loop_default_v1", "phase": {"A": {"threshold": 0.8}, "B": {"threshold": 0.9}}, "rules": []},
    **{"plan": [], "evaluation": {"score": 0.95, "passed": True}, "stop": {"passed": True, "reason": "passed"}},
    **{"last_score": 0.95, "stagnation_count": 0, "updated_at": "2026-02-18T12:00:00Z"},
}
EVENTS: list[dict[str, Any]] = [
    {"ts": "t1", "iteration": 1, "phase": "A", "step": "EVALUATE", "event": "evaluation_done", "payload": {"mark": 7}},
    {"ts": "t2", "event": "approved", "payload": {"by": "a reviewer"}},
    {"ts": "t3", "event": "note", "payload": "as text"},
]


def wrote(ws: Workspace, alias: str, run: str | None, events: list[dict[str, Any]] = EVENTS) -> None:
    if run is not None:
        ws.write(f"{HOME}/{alias}/run.json", run)
    ws.write(f"{HOME}/{alias}/history.jsonl", "".join(f"{json.dumps(event)}\n" for event in events))
    ws.write(f"{HOME}/{alias}/artifact.md", "# The API\n")


@pytest.mark.parametrize("left", ["criteria", "stop", "iteration", "evaluation", "created_at"])
def test_I_41_a_loop_that_is_over_has_its_own_status(ws: Workspace, left: str) -> None:
    """Also without a key that rooda needs; a start beside it changes none of its bytes."""
    wrote(ws, "api", json.dumps({key: value for key, value in RUN.items() if key != left}))
    assert ws.rooda("reflex", "list").lines[0].split()[:2] == ["api", "completed"]
    assert ws.rooda("reflex", "status", "api").lines[0] == "api: completed"
    (row,) = json.loads(ws.rooda("reflex", "status", "api", "--json").out)
    assert (row["state"], row["next"], row["max_iterations"]) == ("completed", None, 4)
    ran = ws.rooda("reflex", "resume", "api")
    assert ran.code == 3 and "has ended: completed" in ran.err


def test_I_41_unreadable_is_called_that(ws: Workspace) -> None:
    """Not failed: nothing says that it failed."""
    wrote(ws, "torn", '{"status": "comp')
    wrote(ws, "open", json.dumps({"status": "running"}))
    rows = {row["task_alias"]: row["status"] for row in json.loads(ws.rooda("reflex", "list", "--json").out)}
    assert rows == {"torn": "unreadable", "open": "unreadable"}
    assert ws.rooda("reflex", "list").out.count("unreadable") == 2
    assert ws.rooda("reflex", "status", "torn").out.startswith("torn: unreadable")


def test_I_41_history_shows_what_it_does_not_know(ws: Workspace) -> None:
    """Events and payloads of any form, in order; with --json as they are on disk."""
    wrote(ws, "api", json.dumps(RUN))
    lines = ws.rooda("reflex", "history", "api").lines
    assert ['{"mark": 7}' in lines[0], '{"by": "a reviewer"}' in lines[1], '"as text"' in lines[2]] == [True] * 3
    assert [json.loads(line) for line in ws.rooda("reflex", "history", "api", "--json").lines] == EVENTS
