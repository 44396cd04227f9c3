"""What agents used is counted over all sessions, failed and killed calls included, and limits hold."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.kit.spending import calls, paid, usage
from tests.kit.workspace import Workspace, masked, until


def every_event(ws: Workspace) -> list[dict[str, Any]]:
    """Costs of all sessions are listed in order."""
    logs = sorted(Path(ws.file(".rooda/runs")).glob("*/events.jsonl"))
    return [json.loads(line) for log in logs for line in log.read_text().splitlines()]


def test_a_cost_limit_stops_before_the_next_call(ws: Workspace) -> None:
    """Two calls stay below two dollars, the third passes them, a fourth is not made; exit 4, and the state waits."""
    paid(ws)
    ran = ws.rooda("build", "-n", "9", "--max-cost", "2")
    assert ran.code == 4 and calls(ws) == 3
    limit = "[T] WARNING: Cost limit reached: $2.25 of $2.00 (3 iterations completed, total: D)"
    assert masked(ran.lines)[-1] == limit
    assert ws.state()["status"] == "interrupted" and ran.notes == ""


def test_a_resume_keeps_the_limit_it_was_started_with(ws: Workspace) -> None:
    """A resume without a limit spends nothing more; one with a higher limit continues up to it."""
    paid(ws)
    assert ws.rooda("build", "-n", "9", "--max-cost", "2").code == 4
    assert ws.rooda("resume", "build").code == 4 and calls(ws) == 3
    assert ws.rooda("resume", "build", "--max-cost", "4").code == 4 and calls(ws) == 6
    assert ws.rooda("resume", "build").code == 4 and calls(ws) == 6
    assert ws.rooda("resume", "build", "--max-cost", "0").code == 0 and calls(ws) == 9


def test_a_token_limit_of_the_settings(ws: Workspace) -> None:
    """Tokens read and written count, those from a cache too."""
    paid(ws, max_tokens=2000)
    ran = ws.rooda("build", "-n", "9")
    assert ran.code == 4 and calls(ws) == 2
    assert "Token limit reached: 2,300 of 2,000" in ran.lines[-1]


def test_a_time_limit(ws: Workspace) -> None:
    """No call begins once the time is over; the duration may be written as 0m1s."""
    paid(ws, after="sleep 1.2")
    ran = ws.rooda("build", "-n", "9", "--max-duration", "0m1s")
    assert ran.code == 4 and calls(ws) == 1
    assert "Time limit reached" in ran.lines[-1]


def test_a_time_limit_counts_what_gates_took_before_a_resume(ws: Workspace) -> None:
    """A run at its time limit makes no further call when it is resumed under that limit, whatever its time went to."""
    paid(ws, quality_gates=["sleep 0.6"])
    assert ws.rooda("build", "-n", "9", "--max-duration", "0.5").code == 4
    made = calls(ws)
    again = ws.rooda("resume", "build")
    assert again.code == 4 and calls(ws) == made, again.both
    assert "Time limit reached" in again.lines[-1]
    ends = [event["ran"] for event in every_event(ws) if event["event"] == "run.ended"]
    assert ends[0] > 0.5 and ends[1] < ends[0]
    assert ws.rooda("resume", "build", "--max-duration", str(sum(ends) + 0.5)).code == 4 and calls(ws) == made + 1


def test_failed_calls_cost_too(ws: Workspace) -> None:
    """A call that ends with exit 1 is recorded and counts for the limit."""
    paid(ws, after="exit 1")
    ran = ws.rooda("build", "-n", "9", "--max-cost", "1.5", "--failure-threshold", "9")
    assert ran.code == 4 and calls(ws) == 2
    assert usage(ws)["total"]["cost"] == 1.5  # type: ignore[index]


def test_a_call_cut_off_by_a_crash_is_in_the_books(ws: Workspace) -> None:
    """The loop is killed while its agent works: the usage in the transcript so far is counted, and the call itself."""
    paid(ws, after="touch said; sleep 1000")
    running = ws.start("build", "-n", "2")
    until(lambda: ws.exists("said"), what="the agent to have said its cost")
    os.kill(running.pid, 9)
    running.finish()
    until(lambda: ws.leftovers() == [], what="everybody to be gone")
    total = usage(ws)["total"]
    assert (total["calls"], total["cost"], total["cached"]) == (1, 0.75, 1000)  # type: ignore[index]
    assert ws.rooda("resume", "build", "--max-cost", "0.75").code == 4


@pytest.mark.parametrize(
    ("line", "cost", "tokens"),
    [
        ("Tokens: 1.3k sent, 50 received. Cost: $0.0035 message, $0.0.1 session.", None, 1350),
        (f"Tokens: {'9' * 400} sent, 50 received. Cost: $0.0035 message, $0.5 session.", 0.5, 50),
        (f"Tokens: 1.2.3M sent, 50 received. Cost: $0.0035 message, ${'9' * 400} session.", None, 50),
    ],
)
def test_numbers_that_are_none(ws: Workspace, line: str, cost: float | None, tokens: int) -> None:
    """aider's line with numbers that can't be meant: they are unknown, the loop continues and `rooda usage` answers."""
    ws.write("agent.sh", f"cat <<'END'\n{line}\nEND\n")
    ws.sections["agent"] = '\n[agents.mine]\ncommand = "sh agent.sh"\noutput = "aider"\n'
    ws.procedure(loop={"ai_cmd": None, "agent": "mine"})
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 0 and ws.state() is None, ran.both
    ended = next(event for event in ws.events() if event["event"] == "agent.ended")
    assert ended.get("cost") == cost and sum(ended["usage"].values()) == tokens
    assert "Infinity" not in json.dumps(ws.events()) and usage(ws)["total"]["calls"] == 1


def test_a_raw_command_costs_an_unknown_amount(ws: Workspace) -> None:
    """An unknown cost is shown as unknown, not as 0; the calls are counted."""
    assert ws.rooda("build", "-n", "2").code == 0
    total = usage(ws)["total"]
    assert (total["calls"], total["cost"], total["calls_of_unknown_cost"]) == (2, None, 2)  # type: ignore[index]
    assert "unknown" in ws.rooda("usage").lines[-1]


@pytest.mark.parametrize(("by", "names"), [("loop", ["build", "other"]), ("agent", ["mine"]), ("iteration", None)])
def test_rows(ws: Workspace, by: str, names: list[str] | None) -> None:
    """Rows are grouped as requested, and add up to the total."""
    paid(ws)
    paid(ws)
    ws.procedure("other")
    for name in ("build", "other"):
        assert ws.rooda(name, "-n", "2").code == 0
    found = usage(ws, "--by", by)
    rows = found["rows"]
    assert isinstance(rows, list)
    assert names is None or [row["name"] for row in rows] == names
    assert sum(row["calls"] for row in rows) == found["total"]["calls"] == 4  # type: ignore[index]


def test_since(ws: Workspace) -> None:
    """Calls before the time are left out; an invalid time is refused."""
    paid(ws)
    assert ws.rooda("build", "-n", "1").code == 0
    assert usage(ws, "--since", "1h")["total"]["calls"] == 1  # type: ignore[index]
    assert usage(ws, "--since", "2199-01-01")["total"]["calls"] == 0  # type: ignore[index]
    ran = ws.rooda("usage", "--since", "yesterday")
    assert ran.code == 2 and "--since 'yesterday' is not a time." in ran.err


def test_books_with_holes(ws: Workspace) -> None:
    """Incomplete lines, foreign lines and an empty run folder are skipped."""
    paid(ws)
    assert ws.rooda("build", "-n", "1").code == 0
    folder = next(Path(ws.file(".rooda/runs")).iterdir())
    (folder.parent / "20260101T000000Z-build-1").mkdir()
    ws.damages_events = True
    with (folder / "events.jsonl").open("ab") as file:
        file.write(b'{"event": "agent.ended", "usage": 3}\n[]\n{"event": "agent.ended"')
    assert usage(ws)["total"]["cost"] == 0.75  # type: ignore[index]
