"""`rooda doctor`: what it finds, what it says to do, and when it exits with 1."""

import json
import os
import shutil
import time
from typing import Any

import pytest

from rooda.processes import capture
from tests.kit.processes import alive
from tests.kit.workspace import Workspace, until

KEY = "sk-ant-0123456789abcdefWXYZ"


def examined(ws: Workspace, code: int, *words: str, **how: Any) -> dict[str, dict[str, str]]:
    """The findings by name, from --json; the exit code and `ok` agree."""
    done = ws.rooda(*words, "doctor", "--json", **how)
    found = json.loads(done.out)
    assert (done.code, found["ok"]) == (code, code == 0), done.both
    assert all(set(row) == {"what", "status", "detail", "do"} for row in found["checks"])
    assert all(row["do"] for row in found["checks"] if row["status"] in ("warn", "fail") and row["what"] != "settings")
    return {row["what"].strip(): row for row in found["checks"]}


def program(ws: Workspace, name: str, version: str = "1.2.3") -> dict[str, str]:
    """An agent CLI that prints its version, first on PATH."""
    path = ws.write(f"../bin/{name}", f"#!/bin/sh\necho '{name} {version}'\n", 0o755)
    return {"PATH": os.path.dirname(path) + os.pathsep + ws.env["PATH"]}


def test_a_workspace_without_problems(ws: Workspace) -> None:
    """Exit 0, every line a good one, and nothing is written."""
    ws.git("init", "-q")
    before = sorted(os.listdir(ws.path))
    found = examined(ws, 0)
    for what in ("rooda", "python", "tokens", "git", "repository", "settings", "ai_cmd", "disk", "state"):
        assert found[what]["status"] == "ok", found[what]
    assert found["repository"]["detail"] == ws.path
    said = ws.rooda("doctor")
    assert (said.code, said.err) == (0, "")
    assert said.lines[-1] == "A loop can run here."
    assert sorted(os.listdir(ws.path)) == before


@pytest.mark.parametrize(
    ("version", "status"), [("2.33.9", "warn"), ("2.34.0", "ok"), ("2.50.1 (Apple Git-155)", "ok")]
)
def test_the_oldest_git(ws: Workspace, version: str, status: str) -> None:
    """An older git is a warning that says what to do; the loop can run."""
    real = shutil.which("git", path=ws.env["PATH"])
    script = f'case " $* " in *" --version "*) echo "git version {version}";; *) exec {real} "$@";; esac'
    ws.write("../bin/git", f"#!/bin/sh\n{script}\n", 0o755)
    found = examined(ws, 0, env={"PATH": os.path.join(ws.root, "bin") + os.pathsep + ws.env["PATH"]})
    assert found["git"]["status"] == status and found["git"]["detail"].startswith(version)


def test_versions_and_payers_of_agents(ws: Workspace) -> None:
    """Each agent on PATH has its version and the account or key that is billed, with its last four characters only."""
    ws.procedure("build", loop={"ai_cmd": None, "agent": "claude"})
    env = program(ws, "claude", "2.0.14 (Claude Code)") | {"IS_SANDBOX": "1"}
    plain = ws.rooda("doctor", env=env)
    assert "2.0.14" in plain.out and "billed: the account that claude is logged in to" in plain.out
    keyed = ws.rooda("doctor", "--json", env=env | {"ANTHROPIC_API_KEY": KEY})
    (claude,) = (row for row in json.loads(keyed.out)["agents"] if row["name"] == "claude")
    assert claude["billed"] == "the Anthropic account of this key (ANTHROPIC_API_KEY …WXYZ)"
    assert claude["version"] == "2.0.14" and claude["program"].endswith("/bin/claude")
    assert KEY not in keyed.out


def test_a_key_in_a_version_is_hidden(ws: Workspace) -> None:
    """What a program says in place of its version is shown, and kept, without the values of keys."""
    found = ws.rooda("doctor", "--json", env=program(ws, "claude", f"key {KEY}") | {"ANTHROPIC_API_KEY": KEY})
    (claude,) = (row for row in json.loads(found.out)["agents"] if row["name"] == "claude")
    assert claude["version"] == "claude key ***" and KEY not in found.both


def test_a_hanging_helper_is_ended_with_its_children() -> None:
    """A program that is asked for its version and does not answer is ended with all that it started."""
    done = capture.capture(["/bin/sh", "-c", "sleep 300 & echo $!; wait"], timeout=0.5)
    assert done.code == 124
    until(lambda: not alive(int(done.out)), what="its child's end")


def test_doctor_finds_what_a_start_refuses(ws: Workspace) -> None:
    """An agent whose program is missing is a failure; so is one that the start itself would refuse."""
    ws.procedure("build", loop={"ai_cmd": None, "agent": "claude"})
    found = examined(ws, 1, env={"PATH": os.path.dirname(ws.env["PATH"].partition(":")[0])})
    assert found["agent claude"]["status"] == "fail" and "not found: claude" in found["agent claude"]["detail"]
    if os.geteuid() == 0:
        start = ws.rooda("build", "-n", "1", env=program(ws, "claude"))
        refused = examined(ws, 1, env=program(ws, "claude"))["agent claude"]
        assert start.code == 2 and refused["detail"] in start.err and refused["do"] in start.err


def test_no_agent_chosen(bare: Workspace) -> None:
    """None chosen but one here: a warning that names it. None at all: a failure."""
    found = examined(bare, 0, env=program(bare, "codex"))
    assert found["agent"]["status"] == "warn" and "--agent codex" in found["agent"]["do"]
    assert f'under [loop] of {bare.path}/rooda.toml: agent = "codex"' in found["agent"]["do"]  # E-33
    nobody = examined(bare, 1, env={"PATH": "/usr/bin:/bin"})
    assert nobody["agent"]["status"] == "fail" and "rooda init --demo DIR" in nobody["agent"]["do"]
    assert 'under [loop] of rooda.toml: ai_cmd = "COMMAND"' in nobody["agent"]["do"]
    assert examined(bare, 0, env={"PATH": "/usr/bin:/bin", "ROODA_LOOP_AGENT": "demo"})["agent demo"]["status"] == "ok"


@pytest.mark.parametrize(
    ("toml", "what"),
    [
        ("[loop]\nfailure_threshold = 0\n", "settings"),
        ("[loop\n", "settings"),
        ('[loop]\nagent = "nobody"\n', "agent"),
        ('[loop]\nai_cmd = "cat"\n[procedures.x]\nobserve = "./gone.md"\nact = "a"\n', "procedure x"),
        ('[loop]\nai_cmd = "no-such-program --flag"\n', "ai_cmd"),
    ],
)
def test_broken_settings(bare: Workspace, toml: str, what: str) -> None:
    """A setting that would stop a start is a failure with its sentence, not a stop of the examination."""
    bare.config(toml)
    found = examined(bare, 1)
    assert found[what]["status"] == "fail" and found["disk"]["status"] == "ok"


def test_an_unknown_key_is_a_warning(ws: Workspace) -> None:
    """The warnings of the settings are shown here too."""
    ws.config(ws.read("rooda.toml").replace("[loop]", "[loop]\nsafty = 1"))
    found = examined(ws, 0)["settings"]
    assert found["status"] == "warn" and "did you mean 'safety'?" in found["do"]


def test_without_git(ws: Workspace) -> None:
    """A loop can do without; snapshots can't, and that is said."""
    assert examined(ws, 0)["repository"]["status"] == "warn"
    os.makedirs(f"{ws.root}/empty")
    found = examined(ws, 0, env={"PATH": f"{ws.root}/empty"})
    assert found["git"]["status"] == "warn" and "Install git" in found["git"]["do"]


def test_a_rooda_folder_that_is_none(ws: Workspace) -> None:
    """Where no state can be written, a run could not be resumed: a failure, with what to look at."""
    ws.write(".rooda", "a file\n")
    assert examined(ws, 1)["state"]["status"] == "fail"
    assert ws.rooda("doctor").lines[-1] == "Something that a loop needs is broken: see FAIL."


def test_another_workspace(ws: Workspace) -> None:
    """-C says which folder is examined."""
    ws.git("init", "-q")
    os.makedirs(ws.file("sub"))
    assert ws.file("sub") in examined(ws, 0, "-C", "sub")["disk"]["detail"]


@pytest.mark.parametrize(("term", "status"), [("xterm-256color", "ok  "), ("dumb", "warn")])
def test_on_a_terminal(ws: Workspace, term: str, status: str) -> None:
    """What the terminal can do decides whether there is a status line."""
    terminal = ws.terminal("doctor", env={"TERM": term}, rows=60, columns=200)
    assert terminal.finish() == 0
    until(lambda: f"{status}  terminal" in terminal.out)


@pytest.mark.parametrize(
    ("toml", "what", "words"),
    [
        ('[loop]\nai_cmd = "cat"\non_limit = "switch"\nfallback = ["gemini"]\n', "agent gemini", "build"),
        ('[loop]\nai_cmd = "cat"\n[procedures.x]\nobserve = "{{a}}"\nparameters = {b = "1"}\n', "procedure x", "x"),
        ('[loop]\nagent = "nope"\n', "agent", "build"),
        ('[loop]\nai_cmd = "cat"\n[reflex]\nagent = "nope"\n', "agent of reflex", "reflex new a -n 1"),
    ],
)
def test_what_a_start_refuses_is_a_failure(bare: Workspace, toml: str, what: str, words: str) -> None:
    """A missing fallback, a missing parameter, an unknown agent: each is reported once."""
    bare.config(toml)
    env = {"PATH": os.path.dirname(bare.env["PATH"].partition(":")[0]) + ":/usr/bin:/bin"}
    found = examined(bare, 1, env=env)
    assert [name for name, row in found.items() if row["status"] == "fail"] == [what]
    assert found.get("agent", {}).get("status") != "warn"
    start = bare.rooda(*words.split(), env=env)
    assert start.code == 2 and found[what]["detail"] in start.err


HANGS = "sleep 300 & echo 2.0.14; exec sleep 300"


@pytest.mark.parametrize("answer", ["yes 2.0.14", "yes 2.0.14 >&2", pytest.param(HANGS, marks=pytest.mark.long)])
def test_an_agent_that_floods_or_hangs_at_its_version(ws: Workspace, answer: str) -> None:
    """It is ended with what it started, after some bytes or seconds, and has no version; the rest is looked at."""
    path = ws.write("../bin/claude", f"#!/bin/sh\n{answer}\n", 0o755)
    env = {"PATH": os.path.dirname(path) + os.pathsep + ws.env["PATH"]}
    done = ws.rooda("doctor", "--json", env=env)
    (claude,) = (row for row in json.loads(done.out)["agents"] if row["name"] == "claude")
    assert claude["version"] == "" and done.code == 0


def test_a_program_that_hangs_is_ended_with_its_children() -> None:
    """What it printed before is kept."""
    began = time.monotonic()
    late = capture.capture(["/bin/sh", "-c", f"echo $$; {HANGS}"], timeout=1, most=1000)
    assert late.code == capture.TIMED_OUT and time.monotonic() - began < 30
    leader, version = late.out.split()
    assert version == b"2.0.14"
    until(lambda: not group_exists(int(leader)), what="the end of its process group")


def group_exists(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    return True
