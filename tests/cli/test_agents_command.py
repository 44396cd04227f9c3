"""`rooda agents` and `rooda agents test NAME`."""

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from rooda.agentkit import check
from rooda.agentkit.server import clis as pointed
from tests.kit.workspace import Ran, Workspace

CLI = """\
#!/bin/sh
if [ "$1" = --version ]; then echo "codex-cli 1.2.3"; exit 0; fi
"""
USUAL = ("codex", "gemini")
OTHERS = [pytest.param(name, marks=pytest.mark.real) for name in check.testable() if name not in USUAL]
READERS = ("claude", "copilot", "qwen", "pi")  # have a command that only reads
CHECKS = [
    *("the prompt arrives whole", "a file is written", "a shell command runs", "its transcript is understood"),
    *("tokens are read", "its cost is read", "rooda's gate turns green"),
    *("TERM ends it in the middle of a command", "TERM leaves nothing running"),
]


def install(ws: Workspace, name: str, text: str = CLI) -> None:
    """A scripted CLI of this name, first on PATH."""
    ws.write(f"bin/{name}", text, mode=0o755)
    ws.env["PATH"] = ws.file("bin") + os.pathsep + ws.env["PATH"]


def verdicts(ran: Ran) -> dict[str, str]:
    """Each check's word: ok, FAIL, or -- where there is nothing to check."""
    return {line[6:].partition(" (")[0]: line[:4].strip() for line in ran.lines}


def facts(ws: Workspace, **env: str) -> dict[str, dict[str, Any]]:
    """What --json says, by name."""
    ran = ws.rooda("agents", "--json", env=env)
    assert (ran.code, ran.err) == (0, "")
    return {row["name"]: row for row in json.loads(ran.out)}


def test_the_list_of_agents(bare: Workspace) -> None:
    """A line for each agent: version, how it takes the prompt, its limit, what it reports; else how to install it."""
    install(bare, "codex")
    ran = bare.rooda("agents")
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in ran.lines}
    assert ran.code == 0 and set(lines) >= {*pointed.BY_NAME, "demo", "amp", "kiro-cli", "cursor-agent"}
    assert lines["codex"] == "1.2.3 prompt by stdin up to 1,048,576 characters; reports usage, limits"
    assert lines["gemini"] == "not installed npm install -g @google/gemini-cli"
    assert lines["demo"] == "installed prompt by stdin; reports nothing but text and exit code"


def test_no_foreign_package_is_suggested(bare: Workspace) -> None:
    """If a package index has a foreign package of the same name, rooda doesn't suggest installing it."""
    for name in ("kiro-cli", "cursor-agent"):
        assert not {"pip", "npm", "pipx"} & {facts(bare)[name]["install"].split(maxsplit=1)[0]}
        assert f"install {name}" not in facts(bare)[name]["install"]


def test_json_has_everything(bare: Workspace) -> None:
    """The program's path, who would be billed, and whether the maker's documents are all that is known."""
    install(bare, "kiro-cli", CLI.replace("codex-cli", "kiro-cli"))
    mine = '[agents.mine]\ncommand = "sh -c x"\nprompt = "argument"\nsummary = "ours"\n'
    bare.config(mine + '[ai_cmd_aliases]\nold = "true"\n')
    rows = facts(bare, KIRO_API_KEY="kiro-0123456789-wxyz")
    kiro = rows["kiro-cli"]
    assert (kiro["installed"], kiro["program"], kiro["version"]) == (True, bare.file("bin/kiro-cli"), "1.2.3")
    assert kiro["documented_only"] and kiro["billed"] == "the Kiro account of this key (KIRO_API_KEY …wxyz)"
    assert not rows["claude"]["installed"] and rows["claude"]["known"] == ["usage", "cost", "limits"]
    assert (rows["mine"]["summary"], rows["mine"]["prompt"]) == ("ours", "argument") and rows["old"]["installed"]


def test_an_untried_agent_is_marked(bare: Workspace) -> None:
    """What is only known from documents is said to be so."""
    install(bare, "amp")
    (line,) = (line for line in bare.rooda("agents").lines if line.startswith("amp "))
    assert line.endswith("; not tested, described from the vendor's documentation")


def test_every_agent_that_is_here_is_proposed(bare: Workspace) -> None:
    """Where no agent is chosen the message names those on PATH, each one that ships."""
    shipped = {name for name in facts(bare) if name != "demo"}
    for name in shipped:
        install(bare, name)
    bare.env["PATH"] = os.pathsep.join((bare.file("bin"), "/usr/bin", "/bin"))
    said = bare.rooda("build").err.splitlines()[-1]
    assert set(said.removeprefix("On this machine: ").split(", ")) == shipped


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["codx"], "Did you mean 'codex'?"),
        (["demo"], "Available for: claude, codex"),
        (["cursor-agent"], "Available for: claude, codex"),
        (["gemini"], "AI command binary not found: gemini"),
        ([], "Missing argument"),
    ],
)
def test_agents_that_cannot_be_tested(bare: Workspace, words: list[str], says: str) -> None:
    """Exit 2 with a sentence; nothing is started."""
    ran = bare.rooda("agents", "test", *words)
    assert ran.code == 2 and says in ran.err and ran.out == ""


def test_a_cli_that_does_nothing_fails(bare: Workspace) -> None:
    """Every check of work and stopping fails, exit 1, and the folder with all that happened is kept and named."""
    install(bare, "codex")
    ran = bare.rooda("agents", "test", "codex")
    assert ran.code == 1
    failed = [what for what, word in verdicts(ran).items() if word == "FAIL"]
    assert failed == [what for what in CHECKS if what not in ("its cost is read", "TERM leaves nothing running")]
    folder = ran.err.split()[-1]
    assert folder.startswith(bare.home) and os.path.exists(f"{folder}/work/work/.rooda")


def test_a_cli_without_tokens_is_recognized(bare: Workspace) -> None:
    """Facts that the CLI is known to report must be there; others may be missing."""
    install(bare, "codex", CLI + 'echo \'{"type":"turn.completed"}\'\n')
    bare.config("[agents.codex]\nknown = []\n")
    assert verdicts(bare.rooda("agents", "test", "codex"))["its cost is read"] == "--"
    bare.config('[agents.codex]\nknown = ["usage", "cost"]\n')
    assert verdicts(bare.rooda("agents", "test", "codex"))["its cost is read"] == "FAIL"


def test_no_key_of_the_user_reaches_the_tested_cli(bare: Workspace) -> None:
    """The CLI runs with a HOME of its own and without the user's variables: it can't cost anything."""
    install(bare, "codex", CLI + f"env >>{bare.file('seen')}\n")
    keys = {"OPENAI_API_KEY": "paid-key", "CODEX_HOME": "/secret", "CODEX_API_KEY": "k"}
    bare.rooda("agents", "test", "codex", env=keys)
    seen = bare.read("seen")
    assert "STUB_KEY=" in seen and "ROODA_CALL=" in seen
    assert not any(secret in seen for secret in ("paid-key", "/secret", "CODEX_API_KEY", f"HOME={bare.home}\n"))


def test_the_server_and_the_check_know_the_same_clis() -> None:
    """All that the model server can are in for are tried; aider offers the model no tools."""
    assert set(check.testable()) == set(pointed.BY_NAME) - {"aider"}


@pytest.mark.parametrize("name", [*USUAL, *OTHERS])
def test_an_installed_cli_passes(bare: Workspace, cli: Callable[[str], str], name: str) -> None:
    """The real one does all that rooda relies on, and nothing of the check remains."""
    bare.env["PATH"] = cli(name) + os.pathsep + bare.env["PATH"]
    ran = bare.rooda("agents", "test", name, timeout=110)
    assert ran.code == 0, ran.both
    words = verdicts(ran)
    assert list(words) == CHECKS and set(words.values()) <= {"ok", "--"}
    assert words["tokens are read"] == "ok"
    assert os.listdir(f"{bare.home}/tmp") == []


@pytest.mark.parametrize("name", [*USUAL, *(each for each in OTHERS if each.values[0] in READERS)])
def test_read_only_changes_nothing(ws: Workspace, cli: Callable[[str], str], server: Any, name: str) -> None:
    """With read_only = true the real CLI neither writes the file nor runs the command that the model asks for."""
    folder = cli(name)
    server.play({"turns": [{"write": {"path": ws.file("made.txt"), "content": "x"}}, {"shell": "echo hi > shell.txt"}]})
    env, files = pointed.setup(name, server.url)
    for path, text in files.items():
        ws.write(os.path.relpath(os.path.join(ws.home, path), ws.path), text)
    model = f'model = "{pointed.MODELS[name]}"\n' if name in pointed.MODELS else ""
    ws.config(ws.read("rooda.toml").replace("[loop]\n", f"[loop]\nread_only = true\nretry_wait = 0\n{model}"))
    env["PATH"] = folder + os.pathsep + ws.env["PATH"]
    ran = ws.rooda("build", "-n", "1", "--agent", name, env=env, timeout=60)
    assert ran.code == 0, ran.both
    assert any(request.get("turn") for request in server.requests)
    assert not ws.exists("made.txt") and not ws.exists("shell.txt")
