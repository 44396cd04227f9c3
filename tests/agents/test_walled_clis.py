"""Real CLIs in the sandbox: a whole build with a private HOME, and no network but the scripted server's port."""

import json
import os
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from rooda.agentkit.server.server import ModelServer
from rooda.base import dirs, files
from tests.kit.clis import build_cases, builds
from tests.kit.clis import homes as clis
from tests.kit.walled import BWRAP, wall
from tests.kit.workspace import FAKE_AI, Workspace

pytestmark = BWRAP


@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
def test_S_23_a_whole_build_in_the_sandbox(
    bare: Workspace, cli: Callable[[str], str], server: ModelServer, name: str
) -> None:
    """The run ends as outside: success, its cost, one agent at a time, no process left."""
    cli(name)
    case = build_cases.cases(name, bare.path)["success"]
    case = case._replace(settings={**case.settings, "sandbox": "workspace"})
    host = server.url.removeprefix("http://")
    more = f'[sandbox]\nhosts = ["{host}"]\nenvironment = ["STUB_KEY", "IS_SANDBOX"]\n'
    built = builds.build(bare, name, server, case, more)
    builds.check(bare, name, case, built)
    assert any(event["event"] == "sandbox.chosen" and event["mode"] == "workspace" for event in built.events)


@pytest.mark.real
def test_S_23_a_whole_build_of_aider_in_the_sandbox(
    bare: Workspace, cli: Callable[[str], str], server: ModelServer
) -> None:
    """Two iterations: aider edits, the gate is red, then green."""
    cli("aider")
    answer = clis.BY_NAME["aider"]["answer"]
    done = "Done.\n\n<promise>SUCCESS</promise>"
    case = builds.Case([], "ok", settings={"sandbox": "workspace", "failure_threshold": 3})
    env = builds.prepare(bare, "aider", server.url, case)
    bare.config(f'{bare.read("rooda.toml")}[sandbox]\nhosts = ["{server.url.removeprefix("http://")}"]\n')
    turns = [{"text": "Nothing yet."}, {"text": f"{answer}\n{done}"}, {"text": "Make a file", "times": -1}]
    server.play({"turns": turns, "consume": "all"})
    ran = bare.rooda("build", "-n", "3", env=env, timeout=builds.PATIENCE)
    assert ran.code == 0 and "completed after 2 iterations" in ran.both, ran.both
    assert bare.read("made.txt") == "from the model\n"
    events = bare.events()
    ended = [event for event in events if event["event"] == "agent.ended"]
    assert [event["agent_outcome"] for event in ended] == ["ok", "ok"] and ended[0]["usage"]["input"], ended
    assert [event["verdict"] for event in events if event["event"] == "gate.ended"] == ["exit 2", "pass"]
    assert not bare.leftovers() and not [event for event in events if event["event"] == "problem"]


REAL = [pytest.param(name, marks=pytest.mark.real) for name in ("aider", "copilot", "qwen", "grok")]


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", *REAL])
def test_S_23_agents_test_in_the_sandbox(bare: Workspace, cli: Callable[[str], str], name: str) -> None:
    """`rooda agents test` passes every check, with ROODA_LOOP_SANDBOX=workspace."""
    path = os.pathsep.join((cli(name), bare.env["PATH"]))
    ran = bare.rooda("agents", "test", name, env={"PATH": path, "ROODA_LOOP_SANDBOX": "workspace"}, timeout=120)
    assert ran.code == 0, ran.both


def test_S_21_a_login_is_taken_along_and_a_renewed_one_comes_back(ws: Workspace) -> None:
    """The CLI finds its login and settings in HOME; what it renews is saved, what it breaks or adds is not."""
    own = Path(ws.home, ".own")
    own.mkdir()
    (own / "login.json").write_text('{"token": 1}')
    (own / "settings.json").write_text('{"mcp": []}')
    agent = f"command = {json.dumps(FAKE_AI)}\nhosts = []\n"
    agent += 'login = [".own/login.json"]\nown_files = [".own/settings.json"]\n'
    ws.side(1, 'cat "$HOME"/.own/* >"$FAKE/seen"; for f in "$HOME"/.own/*; do echo \'{"token": 2}\' >"$f"; done')
    ws.side(2, 'cat "$HOME"/.own/* >"$FAKE/seen2"; echo broken >"$HOME/.own/login.json"; echo x >"$HOME/.own/more"')
    wall(ws, loop={"agent": "own", "ai_cmd": None})
    ws.config(f"{ws.read('rooda.toml')}\n[agents.own]\n{agent}")
    run = ws.rooda("build", "-n", "2")
    assert run.code == 0, run.err
    assert Path(ws.fake, "seen").read_text() == '{"token": 1}{"mcp": []}'
    assert Path(ws.fake, "seen2").read_text() == '{"token": 2}\n{"mcp": []}'
    assert (own / "login.json").read_text() == '{"token": 2}\n' and (own / "settings.json").read_text() == '{"mcp": []}'
    assert sorted(path.name for path in own.iterdir()) == ["login.json", "settings.json"]


@pytest.mark.parametrize(("output", "file"), [("mini", ""), ("vibe", "/export.json")])
def test_S_24_a_cli_writes_its_report_in_the_sandbox(ws: Workspace, output: str, file: str) -> None:
    """The one path of .rooda that an agent with {report} may write: the call's own report, whose usage counts."""
    record = {"usage": {"input_tokens": 100, "cached_input_tokens": 0, "output_tokens": 7}, "cost_usd": 0.5}
    record |= {
        "info": {"model_stats": {"instance_cost": 0.5}, "exit_status": "Submitted"},
        "trajectory_format": "mini-swe-agent-1.1",
        "messages": [],
    }
    shell = f'cat >/dev/null; printf %s "$0" >"$1{file}" || exit 9; touch .rooda/runs/x 2>/dev/null && exit 8; exit 0'
    command = shlex.join(["sh", "-c", shell, json.dumps(record), "{report}"])
    wall(ws, loop={"agent": "own", "ai_cmd": None})
    ws.config(
        f'{ws.read("rooda.toml")}\n[agents.own]\ncommand = {json.dumps(command)}\noutput = "{output}"\nhosts = []\n'
    )
    run = ws.rooda("build", "-n", "1")
    assert run.code == 0, run.err
    (ended,) = [event for event in ws.events() if event["event"] == "agent.ended"]
    assert (ended["exit_code"], ended["cost"]) == (0, 0.5), ended


def test_S_22_the_documents_name_the_agents_whose_hosts_are_known() -> None:
    """docs/sandbox.md lists those with `hosts` in the shipped settings, in their order."""
    tables = tomllib.loads(files.text(dirs.shipped("config", "rooda.toml")))["agents"]
    known = ", ".join(f"`{name}`" for name, table in tables.items() if "hosts" in table)
    text = " ".join((Path(__file__).parents[2] / "docs/sandbox.md").read_text().split())
    assert f"rooda knows the hosts of {known}." in text
