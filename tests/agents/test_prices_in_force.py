"""Tokens cost their model's price, whichever agent made the call and however it ended."""

import json
import os
from typing import Any

import pytest

from tests.kit.limits import FAR, LIMITED
from tests.kit.spending import calls, paid, usage
from tests.kit.workspace import Workspace, until

DONE = """\
{"type":"thread.started","thread_id":"t"}
{"type":"item.completed","item":{"type":"agent_message","text":"done"}}
{"type":"turn.completed","usage":{"input_tokens":1000000,"cached_input_tokens":0,"output_tokens":100000}}
"""


def priced(ws: Workspace, after: str = "", output: str = "claude", **loop: object) -> None:
    """`tokens` reports usage of a model that costs $3 a call by [prices]; `limited` reaches its usage limit."""
    ws.write("limited.out", LIMITED % FAR)
    ws.write("tokens.out", DONE)
    ws.write("tokens.sh", f"cat tokens.out\n{after}\n")
    ws.sections["agents"] = (
        f'\n[agents.limited]\ncommand = "cat limited.out"\noutput = "{output}"\n'
        '\n[agents.tokens]\ncommand = "sh tokens.sh"\noutput = "codex"\nmodel = "house-1"\n'
        "\n[prices]\nhouse-1 = { input = 1, output = 20 }\n"
    )
    ws.procedure(loop={"ai_cmd": None, **loop})


def rows(ws: Workspace, by: str, *words: str) -> dict[str, Any]:
    found: Any = usage(ws, "--by", by, *words)["rows"]
    return {row["name"]: row for row in found}


GENERIC = ["--template", "code", "--generic"]
REFLEX = ["reflex", "new", "do it", *GENERIC, "--confirm-criteria", "--confirm-max-iterations", "4"]


@pytest.mark.parametrize("words", [["build", "-n", "9"], REFLEX], ids=["ooda", "reflex"])
def test_a_fallback_is_paid_for_too(ws: Workspace, words: list[str]) -> None:
    """After the switch a cost limit applies as for the first agent: one call of $3 reaches it."""
    priced(ws, agent="limited", on_limit="switch", fallback=["tokens"])
    ran = ws.rooda(*words, "--max-cost", "3")
    assert ran.code == 4, ran.both
    assert "Cost limit reached: $3.00 of $3.00" in ran.both
    spent = rows(ws, "agent")["tokens"]
    assert (spent["calls"], spent["cost_by_source"]) == (1, {"computed": 3.0})


def test_a_fallback_of_an_agent_that_is_not_read(ws: Workspace) -> None:
    """The first agent, at its limit, needs no price; the agent that does its work does."""
    priced(ws, agent="limited", on_limit="stop")
    assert ws.rooda("build").code == 4
    priced(ws, output="text", agent="limited", on_limit="switch", fallback=["tokens"])
    assert ws.rooda("build", "-n", "9", "--fresh", "--max-cost", "3").code == 4
    assert rows(ws, "agent")["tokens"]["cost"] == 3.0


def test_tokens_of_a_call_cut_off_by_a_crash_have_their_price(ws: Workspace) -> None:
    """After loop and guardian were killed while the agent hung, its tokens are counted in usage and at a resume."""
    priced(ws, after="touch said; sleep 1000", agent="tokens")
    running = ws.start("build", "-n", "2")
    until(lambda: ws.exists("said"), what="the agent to have said its tokens")
    os.killpg(running.pid, 9)
    running.finish()
    assert usage(ws)["total"]["cost_by_source"] == {"computed": 3.0}  # type: ignore[index]
    assert list(rows(ws, "agent")) == ["tokens"]
    (seen,) = json.loads(ws.rooda("status", "build", "--json").out)
    assert (seen["cost"], seen["calls_of_unknown_cost"]) == (3.0, 0)
    ran = ws.rooda("resume", "build", "--max-cost", "3")
    assert ran.code == 4 and calls(ws) == 0 and "Cost limit reached: $3.00 of $3.00" in ran.out
    ws.write("rooda.toml", "[")
    assert usage(ws)["total"]["calls_of_unknown_cost"] == 1  # type: ignore[index]


def test_a_run_with_all_its_resumes_is_one(ws: Workspace) -> None:
    """A resume adds to the rows of its run, and a repeated iteration to its own; --fresh starts new ones."""
    paid(ws, after="test -e enough || kill -9 $PPID")
    ws.rooda("build", "-n", "2", "--max-cost", "9")
    ws.write("enough", "")
    assert ws.rooda("resume", "build").code == 0
    first, runs = next(iter(rows(ws, "run"))), sorted(os.listdir(ws.file(".rooda/runs")))
    assert (first, len(runs)) == (runs[0], 2)
    assert {name: row["calls"] for name, row in rows(ws, "iteration").items()} == {f"{first} 1": 2, f"{first} 2": 1}
    assert ws.rooda("build", "-n", "1", "--fresh").code == 0
    assert [row["calls"] for row in rows(ws, "run").values()] == [3, 1]
