"""Real CLIs in the sandbox: a whole build with a private HOME, and no network but the scripted server's port."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rooda.agentkit.server.server import ModelServer
from tests.kit.clis import build_cases, builds
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


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", pytest.param("aider", marks=pytest.mark.real)])
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
