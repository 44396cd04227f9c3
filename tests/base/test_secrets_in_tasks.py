"""A secret in a flow's task or a goal's specification reaches the agents, after a resume too, and nothing else."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.kit.background import began, let_go, prepare, rows
from tests.kit.workspace import FAKE_AI, Workspace, until

KEY = "tok-ABCDEF-999888777"
TASK = f"use {KEY} for it"


@pytest.fixture
def kept(bare: Workspace) -> Workspace:
    """A workspace with the secret in its environment."""
    bare.procedure()
    bare.env["API_TOKEN"] = KEY
    return bare


def begun(ws: Workspace, kind: str) -> None:
    """A detached loop with the secret in its task, whose agent is running."""
    words = prepare(ws, kind)
    ran = ws.rooda(*(TASK if word in ("do it", "Make it") else word for word in words), "--detach")
    assert ran.code == 0, ran.both
    began(ws)


def ended(ws: Workspace, number: signal.Signals) -> None:
    os.kill(rows(ws)[0]["pid"], number)
    until(lambda: not ws.leftovers(), what="the end")


def leaks(ws: Workspace) -> list[str]:
    """Files that contain the secret in any case, without prompts and the fake agent's notes."""
    found = [path for path in Path(ws.path).rglob("*") if path.is_file() and not path.name.endswith("-prompt.md")]
    return [str(path) for path in found if KEY.lower().encode() in path.read_bytes().lower()]


def shown(ws: Workspace, kind: str) -> str:
    words = ["status", "status --json", "logs -v", "events", "why", f"{kind} status", f"{kind} status --json"]
    words += ["logs", "flow log"] if kind == "flow" else []
    return "".join(ran.both for ran in ws.each(*words))


def prompts(ws: Workspace, kind: str) -> str:
    """The newest prompt with the task."""
    name = "*controller*-prompt.md" if kind == "flow" else "*step*-prompt.md"
    return sorted(Path(ws.path, ".rooda/runs").glob(f"*/{name}"))[-1].read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["ended", "killed"])
@pytest.mark.parametrize("kind", ["flow", "goal"])
def test_only_the_agent_sees_the_secret(kept: Workspace, kind: str, number: signal.Signals) -> None:
    """Files, commits, branches and output never contain the secret, before and after a resume; prompts do."""
    begun(kept, kind)
    assert KEY in prompts(kept, kind)
    assert leaks(kept) == [] and KEY.lower() not in shown(kept, kind).lower()
    ended(kept, number)
    assert leaks(kept) == []
    let_go(kept)
    before = len(list(Path(kept.path, ".rooda/runs").iterdir()))
    ran = kept.rooda("resume")
    assert ran.code == 0 and KEY not in ran.both, ran.both
    assert len(list(Path(kept.path, ".rooda/runs").iterdir())) == before + 1 and TASK in prompts(kept, kind)
    assert leaks(kept) == [] and KEY.lower() not in shown(kept, kind).lower()
    if kind == "flow":
        log = kept.git("log", "--all", "-p", "--format=%D %B")
        assert KEY.lower() not in log.lower() and "use ***" in log and "ai-loop/use-for-it" in log


@pytest.mark.parametrize("kind", ["flow", "goal"])
def test_a_key_that_is_gone(kept: Workspace, kind: str) -> None:
    """A resume without the variable names it and exits with 2; nothing starts on another task."""
    begun(kept, kind)
    ended(kept, signal.SIGTERM)
    let_go(kept)
    del kept.env["API_TOKEN"]
    ran = kept.rooda("resume")
    assert ran.code == 2 and "contains the value of API_TOKEN, which is not set now" in ran.err, ran.both
    kept.env["API_TOKEN"] = KEY
    assert kept.rooda("resume").code == 0


def test_a_clone_of_the_branch(kept: Workspace) -> None:
    """Where the secret is unknown, rooda warns, and agents get the stars."""
    begun(kept, "flow")
    ended(kept, signal.SIGTERM)
    let_go(kept)
    shutil.rmtree(kept.file(".rooda"))
    ran = kept.rooda("flow", "resume")
    assert ran.code == 0 and "may have contained a secret where it shows" in ran.err, ran.both
    assert leaks(kept) == []


def test_a_task_that_contains_stars_itself(bare: Workspace) -> None:
    """A task that contains stars itself is resumed without a warning."""
    bare.procedure()
    words = prepare(bare, "flow")
    ran = bare.rooda(*("make ***it*** bold" if word == "do it" else word for word in words), "--detach")
    assert ran.code == 0, ran.both
    began(bare)
    ended(bare, signal.SIGTERM)
    let_go(bare)
    ran = bare.rooda("resume")
    assert ran.code == 0 and "key" not in ran.err, ran.both


def test_a_goal_without_a_plan(kept: Workspace) -> None:
    """What rooda derives from the specification contains no secret."""
    kept.config(f"[goal]\nai_cmd = {json.dumps(FAKE_AI)}\n")
    words = ("--offline", "--headless", "--yes", "--criterion", "made=test -f made", "-n", "1", "--score", "2,2,2,2,2")
    words += ("--keep-state", "--evidence", "No library exists because this is a test.")
    ran = kept.rooda("goal", "run", f"Make a function in src/a.py that uses {KEY}. Done when tests pass.", *words)
    assert ran.code == 4, ran.both
    assert kept.exists(".loop/run.json") and leaks(kept) == [] and KEY not in shown(kept, "goal")
