"""The workspace of a command: the folder of the nearest rooda.toml, unless -C or a setting says otherwise."""

import os

from tests.kit.workspace import Workspace


def below(ws: Workspace, folder: str = "src/deep") -> str:
    """A folder below the settings, in a repository."""
    if not ws.exists(".git"):
        ws.git("init", "-q")
    os.makedirs(ws.file(folder), exist_ok=True)
    return ws.file(folder)


def test_E_27_the_folder_of_the_nearest_settings(ws: Workspace) -> None:
    """A start, and a look at it, work there and say so in one line; in the folder itself nothing is said."""
    there = below(ws)
    said = f"Workspace: {ws.path}, the folder of the nearest rooda.toml\n"
    ran = ws.rooda("build", "-n", "1", cwd=there)
    assert ran.code == 0 and said in ran.err and ws.calls[0].cwd == ws.path
    assert ws.exists(".rooda/runs") and not os.path.exists(f"{there}/.rooda")
    for words in (("logs", "build"), ("config", "show"), ("reflex", "list"), ("status",)):
        ran = ws.rooda(*words, cwd=there)
        assert ran.code == 0 and ran.err.count(said) == 1, words
    assert said in ws.rooda("build", "-n", "1", "--detach", cwd=there).err
    assert "Workspace" not in ws.rooda("status").both


def test_E_27_what_keeps_the_current_directory(ws: Workspace) -> None:
    """-C, `workspace = "here"`, and a repository or an unfinished run of its own keep the current directory."""
    there, written = below(ws), ws.read("rooda.toml")
    assert ws.rooda("-C", ".", "build", "-n", "1", cwd=there).code == 0
    assert ws.rooda("build", "-C", ".", "-n", "1", cwd=there).code == 0
    ws.config(written.replace("[loop]\n", '[loop]\nworkspace = "here"\n'))
    assert "Workspace" not in ws.rooda("build", "-n", "1", cwd=there).err
    ws.config(written)
    assert ws.rooda("build", "-n", "1", cwd=there, env={"ROODA_LOOP_WORKSPACE": "here"}).code == 0
    ws.signal_at(5)
    ws.rooda("build", "-C", ".", "-n", "2", cwd=there)
    ran = ws.rooda("resume", cwd=there)
    assert ran.code == 0 and f"Workspace: {there}, which has an unfinished run" in ran.err
    assert {call.cwd for call in ws.calls} == {there} and len(ws.calls) == 6


def test_E_27_init_and_config(ws: Workspace) -> None:
    """`rooda init` writes into the current directory, and --config FILE does not move the workspace."""
    there = below(ws)
    ws.write("other/rooda.toml", ws.read("rooda.toml").replace('"prompts/', f'"{ws.path}/prompts/'))
    assert ws.rooda("build", "-n", "1", "--config", "other/rooda.toml").code == 0
    assert ws.calls[0].cwd == ws.path
    assert ws.rooda("init", cwd=there).code == 0 and os.path.exists(f"{there}/rooda.toml")
