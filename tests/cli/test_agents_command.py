"""`rooda agents` and `rooda agents test NAME`."""

import json
import os
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rooda.agentkit import check
from rooda.base import dirs
from rooda.settings.check import faults_of
from tests.kit.clis import homes as pointed
from tests.kit.clis import install as pinned
from tests.kit.workspace import Ran, Workspace

CLI = """\
#!/bin/sh
if [ "$1" = --version ]; then echo "codex-cli 1.2.3"; exit 0; fi
"""
OTHERS = [pytest.param(name, marks=pytest.mark.real) for name in sorted(check.shipped()) if name not in pinned.CI]
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


def test_A_13_one_table_of_agents(bare: Workspace) -> None:
    """A row for each agent: version, what rooda knows of it, when it was tested; then how to install the others."""
    install(bare, "codex")
    ran = bare.rooda("agents")
    table, _, missing = ran.out.partition("\n\nTo install:\n")
    head, *rows = (re.split(" {2,}", line) for line in table.splitlines())
    assert head == ["AGENT", "INSTALLED", "UNATTENDED", "TOKENS", "DOLLARS", "TOOL RULES", "LIMITS SEEN", "TESTED"]
    found = {row[0]: row[1:] for row in rows}
    assert ran.code == 0 and {*found} >= {*pointed.BY_NAME, "demo", "amp", "kiro-cli", "cursor-agent"}
    assert found["codex"][:6] == ["1.2.3", "yes", "yes", "computed", "read-only", "yes"]
    assert found["gemini"][0] == "not installed" and found["aider"][1] == "edits only"
    assert found["amp"][1:] == ["as documented", "-", "-", "-", "-", "never"]
    assert re.search(r"^gemini +npm install -g @google/gemini-cli$", missing, re.MULTILINE)


def test_A_13_two_tables_on_a_narrow_terminal(bare: Workspace) -> None:
    """80 columns hold all facts of the agents that ship; a wide terminal has one table."""
    narrow, wide = (bare.terminal("agents", columns=columns) for columns in (80, 160))
    assert narrow.finish() == wide.finish() == 0
    tables = narrow.out.partition("To install:")[0].split("\r\n\r\n" if "\r\n" in narrow.out else "\n\n")
    heads = [re.split(" {2,}", each.splitlines()[0]) for each in tables if each.strip()]
    assert heads == [
        ["AGENT", "INSTALLED", "UNATTENDED", "TESTED"],
        ["AGENT", "TOKENS", "DOLLARS", "TOOL RULES", "LIMITS SEEN"],
    ]
    assert max(len(line) for each in tables for line in each.splitlines()) <= 80
    assert re.search(r"^AGENT +INSTALLED +UNATTENDED +TOKENS .*TESTED", wide.out, re.MULTILINE)


def test_A_13_the_shipped_versions_are_those_that_the_tests_run(bare: Workspace) -> None:
    """Of an agent that nobody has tested here, the table names the version of rooda's own tests."""
    tested = {name: row["tested"] for name, row in facts(bare).items() if name in pinned.NAMES}
    assert tested == {name: f"by rooda: {pinned.version(name)}" for name in tested} and len(tested) >= 9


FOREIGN = {  # packages of strangers, of an abandoned or another program of that name, and former names
    *("cursor-agent", "codewhisperer", "mux", "goose", "goose-ai", "codex-cli", "forge", "forgecode", "codebuddy"),
    *("kiro-cli", "kimi-cli", "@vibe-kit/grok-cli", "droid", "@mariozechner/pi-coding-agent"),
    *("@zed-industries/claude-agent-acp", "@zed-industries/codex-acp"),
}


def test_A_07_no_foreign_package_is_suggested(bare: Workspace) -> None:
    """An install line has the maker's package of today, or names the maker's own installer."""
    for row in facts(bare).values():
        assert not FOREIGN & {*row["install"].partition(": http")[0].split()}, row["install"]


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


def test_every_agent_that_is_here_is_proposed(bare: Workspace) -> None:
    """Where no agent is chosen the message names those on PATH, each one that ships."""
    shipped = {name for name, row in facts(bare).items() if name == row["command"].split()[0]}
    for name in shipped:
        install(bare, name)
    bare.env["PATH"] = os.pathsep.join((bare.file("bin"), "/usr/bin", "/bin"))
    said = bare.rooda("build").err.splitlines()[-1]
    assert set(said.removeprefix("On this machine: ").split(", ")) == shipped


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["codx"], "Did you mean 'codex'?"),
        (["demo"], "Available for: aider, claude"),
        (["cursor-agent"], "Available for: aider, claude"),
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


def test_A_10_the_shipped_ways_to_test_an_agent_are_valid() -> None:
    """Each names an agent that ships, and has the keys that a user's table may have."""
    shipped = {name: {"test": table} for name, table in check.shipped().items()}
    assert not faults_of({"agents": shipped}, {})
    assert set(shipped) < set(tomllib.loads(Path(dirs.shipped("config", "rooda.toml")).read_text())["agents"])


OWN = f"""\
#!{sys.executable}
import json, os, subprocess, sys, urllib.request
prompt = sys.stdin.read()
said = [{{"role": "user", "content": prompt}}]
url = os.environ["HOUSE_URL"] + open(os.path.expanduser("~/.house/path")).read().strip()
tools = [{{"type": "function", "function": {{"name": "shell", "parameters": {{"properties": {{"command": {{}}}}}}}}}}]
while True:
    body = json.dumps({{"model": "m", "messages": said, "tools": tools}}).encode()
    with urllib.request.urlopen(url, body) as answer:
        message = json.load(answer)["choices"][0]["message"]
    if not message.get("tool_calls"):
        sys.exit(print(message["content"]))
    given = json.loads(message["tool_calls"][0]["function"]["arguments"])
    subprocess.run(given["command"], shell=True)
    said.append(message)
"""
OWN_TABLE = """
[agents.house.test]
env = { HOUSE_URL = "{url}" }
files = { ".house/path" = "/v1/chat/completions" }
"""


def test_A_10_an_agent_of_the_settings_is_tested(bare: Workspace) -> None:
    """Pointed at the server by its own variables and files; what plain text can't say is `--`."""
    bare.write("cli/house", OWN, mode=0o755)
    bare.config(f'[agents.house]\ncommand = "cli/house"\n{OWN_TABLE}')
    ran = bare.rooda("agents", "test", "house")
    words = verdicts(ran)
    assert ran.code == 0, ran.both
    assert (
        re.fullmatch(r"\d{4}-\d\d-\d\d", facts(bare)["house"]["tested"]) and facts(bare)["house"]["unattended"] == "yes"
    )
    unknown = {"its transcript is understood", "tokens are read", "its cost is read"}
    assert list(words) == CHECKS and {what for what, word in words.items() if word == "--"} == unknown
    bare.config(f'[agents.house]\ncommand = "cli/house"\n{OWN_TABLE}api = "anthropic"\n')
    assert verdicts(bare.rooda("agents", "test", "house"))["its transcript is understood"] == "FAIL", "404"


HOUSE = OWN.replace('os.environ["HOUSE_URL"]', 'os.environ["OPENAI_BASE_URL"] + "/chat/completions"').replace(
    ' + open(os.path.expanduser("~/.house/path")).read().strip()', ""
)
ANSWERS = '        sys.exit(print(message["content"]))\n'
RESULT = """\
        if sys.argv[1] == "--json":
            usage = {"input_tokens": 5, "output_tokens": 2}
            result = {"type": "result", "is_error": False, "result": message["content"], "usage": usage}
            sys.exit(print(json.dumps(result)))
        sys.exit(print(message["content"]))
"""


def test_A_14_an_agent_is_added_by_its_command(bare: Workspace) -> None:
    """rooda finds how the prompt goes in and which reader fits; comments of the file stay, the agent works."""
    install(bare, "mycli", HOUSE.replace("sys.stdin.read()", "sys.argv[2]").replace(ANSWERS, RESULT))
    mine = f"{bare.home}/.config/rooda/rooda.toml"
    bare.write(mine, "# my settings\n[loop]\nmax_duration = 60  # a minute\n")
    ran = bare.rooda("agents", "add", "mine", "mycli --json {prompt}")
    assert ran.code == 0, ran.both
    written = Path(mine).read_text()
    assert written.startswith("# my settings\n[loop]\nmax_duration = 60  # a minute\n\n[agents.mine]\n")
    assert ran.out.endswith(f"{written.partition('# a minute')[2].lstrip()}\nUse it: rooda build --agent mine\n")
    table = tomllib.loads(written)["agents"]["mine"]
    kept = {key: value for key, value in table.items() if key != "test"}
    assert kept == {"command": "mycli --json {prompt}", "output": "claude", "known": ["usage"]}
    assert table["test"]["env"]["OPENAI_BASE_URL"] == "{url}/v1"
    assert bare.rooda("agents", "add", "mine", "mycli").code == 2, "the name is taken"
    assert bare.rooda("agents", "test", "mine").code == 0


FORMS = {  # how an invented CLI takes its prompt, what it prints, and the keys that rooda finds for it
    "one": ("run", "sys.stdin.read()", "print(message['content'])", {}),
    "two.x": (
        "run --json",
        "sys.argv[-1]",
        """print(json.dumps({"type": "item.completed", "item": {"type": "agent_message", "text": message["content"]}}))
        print(json.dumps({"type": "turn.completed", "usage": {"input_tokens": 9, "output_tokens": 4}}))""",
        {"prompt": "argument", "output": "codex", "known": ["usage"]},
    ),
    "three": (
        "-f {prompt}",
        "open(sys.argv[2]).read()",
        """print(json.dumps({"type": "text", "sessionID": "s", "part": {"text": message["content"]}}))
        print(json.dumps({"type": "step_finish", "part": {"reason": "stop", "cost": 0.5, "tokens": {"input": 9}}}))""",
        {"prompt": "file", "output": "opencode", "known": ["usage", "cost"]},
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_A_14_ways_of_the_prompt_and_forms_of_the_output(bare: Workspace, name: str) -> None:
    """stdin, argument and file; plain text and JSON; a name with a dot; the table shows that it was tested."""
    words, prompt, prints, keys = FORMS[name]
    script = HOUSE.replace("sys.stdin.read()", prompt).replace(ANSWERS, f"        {prints}\n        sys.exit()\n")
    install(bare, "mycli", script)
    ran = bare.rooda("agents", "add", name, f"mycli {words}", timeout=60)
    assert ran.code == 0 and max(map(len, ran.lines)) < 300, ran.both
    table = tomllib.loads(Path(f"{bare.home}/.config/rooda/rooda.toml").read_text())["agents"][name]
    assert {key: value for key, value in table.items() if key != "test"} == {"command": f"mycli {words}", **keys}
    assert facts(bare)[name]["unattended"] == "yes"


def test_A_14_nothing_is_written_for_a_cli_that_fails(bare: Workspace) -> None:
    """Each way to give the prompt is tried; then exit 1, with what it said."""
    install(bare, "mycli", "#!/bin/sh\necho no model\nexit 3\n")
    ran = bare.rooda("agents", "add", "mine", "mycli run")
    assert (ran.code, os.path.exists(f"{bare.home}/.config/rooda/rooda.toml")) == (1, False)
    why = "it sent no request to the server (exit 3, exit: no model)"
    assert ran.lines == [f"FAIL  prompt by {way}: {why}" for way in ("stdin", "argument")]
    assert "Nothing was written." in ran.err


def test_A_10_a_cli_without_tools_is_tested_by_its_answer(bare: Workspace) -> None:
    """aider's way: the model's words write the file, no command is tried, and TERM comes while the model answers."""
    words = 'answer = "write made.txt"\n'
    cli = OWN.replace('"tools": tools', '"stream": False').replace(
        "sys.exit(print(", 'open("made.txt", "w").write("from the model\\n")\n        sys.exit(print('
    )
    bare.write("cli/house", cli, mode=0o755)
    bare.config(f'[agents.house]\ncommand = "cli/house"\n{OWN_TABLE}{words}')
    ran = bare.rooda("agents", "test", "house")
    found = verdicts(ran)
    assert ran.code == 0, ran.both
    assert found["a file is written"] == found["TERM ends it in the middle of an answer"] == "ok"
    assert found["a shell command runs"] == "--"


@pytest.mark.parametrize("name", [*pinned.CI, *OTHERS])
def test_an_installed_cli_passes(bare: Workspace, cli: Callable[[str], str], name: str) -> None:
    """The real one does all that rooda relies on, and nothing of the check remains."""
    bare.env["PATH"] = cli(name) + os.pathsep + bare.env["PATH"]
    ran = bare.rooda("agents", "test", name, timeout=110)
    assert ran.code == 0, ran.both
    words = verdicts(ran)
    assert list(words) == CHECKS and set(words.values()) <= {"ok", "--"}
    assert words["tokens are read"] == "ok"
    assert os.listdir(f"{bare.home}/tmp") == []


@pytest.mark.parametrize("name", ["codex", "gemini", *(pytest.param(name, marks=pytest.mark.real) for name in READERS)])
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
