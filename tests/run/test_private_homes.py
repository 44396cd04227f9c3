"""The HOMEs of agents in the sandbox: kept while their project exists, deleted by `rooda prune` afterwards."""

import os
import shutil
from pathlib import Path

from tests.kit.walled import BWRAP, wall, walled  # noqa: F401 - a fixture
from tests.kit.workspace import FAKE_AI, Workspace

pytestmark = BWRAP


def test_S_21_prune_deletes_the_homes_of_projects_that_are_gone(walled: Workspace) -> None:  # noqa: F811
    """Also read-only caches in them, and the record of commits; those of other projects stay."""
    walled.side("iteration", 'mkdir -p "$HOME/cache/x"; echo x >"$HOME/cache/x/y"; chmod 500 "$HOME/cache/x"')
    gone = walled.file("../gone project")
    shutil.copytree(walled.path, gone, symlinks=True)
    for folder in (walled.path, gone):
        assert walled.rooda("build", "-n", "1", cwd=folder).code == 0
    homes, commits = (Path(walled.env["XDG_STATE_HOME"], "rooda", kind) for kind in ("homes", "commits"))
    assert len(list(homes.iterdir())) == len(list(commits.iterdir())) == 2
    assert "home folders" not in walled.rooda("prune").out
    shutil.rmtree(gone)
    said = f"the agents' home folders for {os.path.realpath(gone)}, which no longer exists"
    assert f"Would delete {said}" in walled.rooda("prune", "--dry-run").out
    assert len(list(homes.iterdir())) == 2
    assert f"Deleted {said}" in walled.rooda("prune").out
    assert len(list(homes.iterdir())) == len(list(commits.iterdir())) == 1
    assert next(homes.glob("*/project")).read_text() == os.path.realpath(walled.path)


def test_S_22_what_an_agent_lacks_in_the_sandbox_is_said_at_the_start(ws: Workspace) -> None:
    """Unknown hosts, and keep_background, which has no effect; nothing of it with hosts, or without a sandbox."""
    agent = f'[agents.own]\ncommand = "{FAKE_AI}"\nkeep_background = true\n'
    for mode, keys in (("workspace", ""), ("workspace", 'hosts = ["example.org"]'), ("off", "")):
        wall(ws, mode, keys, loop={"agent": "own", "ai_cmd": None})
        ws.config(ws.read("rooda.toml") + agent)
        run = ws.rooda("build", "-n", "1", "--fresh")
        assert run.code == 0, run.err
        unknown = "rooda does not know which hosts the agent own needs"
        assert (unknown in run.err) is (mode == "workspace" and not keys), run.err
        assert ("keep_background of the agent own has no effect" in run.err) is (mode == "workspace"), run.err
