"""`rooda init` on real project folders."""

import os
import re

import pytest

from rooda.loops.configuration import load
from rooda.settings import detect
from tests.kit.workspace import Workspace

PROJECTS = {
    "pytest": (
        {"pyproject.toml": "[tool.pytest.ini_options]\n[tool.ruff]\n[tool.mypy]\nfiles='x'\n"},
        ["pytest -q", "ruff check .", "mypy"],
    ),
    "pytest in extras": ({"pyproject.toml": "[project.optional-dependencies]\ntest=['pytest']\n"}, ["pytest -q"]),
    "uv": ({"pyproject.toml": "[tool.pytest]\n", "uv.lock": ""}, ["uv run pytest -q"]),
    "poetry": (
        {"pyproject.toml": "[tool.mypy]\n", "poetry.lock": "", "tox.ini": ""},
        ["poetry run tox", "poetry run mypy ."],
    ),
    "venv": ({"setup.py": "", "conftest.py": "", ".venv/bin/pytest": ""}, [".venv/bin/pytest -q"]),
    "nox": ({"pyproject.toml": "", "noxfile.py": ""}, ["nox"]),
    "unittest": ({"setup.py": "", "tests/test_x.py": ""}, ["python3 -m unittest discover -s tests"]),
    "broken pyproject": ({"pyproject.toml": "[tool", "tox.ini": ""}, ["tox"]),
    "npm": ({"package.json": '{"scripts": {"test": "jest", "lint": "eslint ."}}'}, ["npm run test", "npm run lint"]),
    "npm without tests": (
        {"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'},
        [],
    ),
    "pnpm": ({"package.json": '{"scripts": {"test": "x"}}', "pnpm-lock.yaml": ""}, ["pnpm run test"]),
    "broken package.json": ({"package.json": "[1]"}, []),
    "cargo": ({"Cargo.toml": "[package]"}, ["cargo test --quiet"]),
    "go": ({"go.mod": "module x"}, ["go vet ./...", "go test ./..."]),
    "make": ({"Makefile": "VAR := x\nall:\n\ttrue\ntest: all\n\ttrue\nlint:\n"}, ["make test", "make lint"]),
    "make check": ({"Makefile": "check:\n\ttrue\n"}, ["make check"]),
    "make beside cargo": ({"Makefile": "test:\n", "Cargo.toml": ""}, ["cargo test --quiet"]),
    "just": ({"justfile": "test:\n  true\n"}, ["just test"]),
    "empty": ({}, []),
}


@pytest.mark.parametrize("name", PROJECTS)
def test_gates_proposed(name: str, bare: Workspace) -> None:
    """Each kind of project gets the commands that check it, and the file loads without a warning."""
    files, gates = PROJECTS[name]
    for path, content in files.items():
        bare.write(path, content)
    assert [command for project in detect.gates(bare.path) for command in project.commands] == gates
    written = bare.rooda("init")
    assert written.code == 0, written.err
    found = load(bare.path, environ=bare.env)
    assert found.warnings == ()
    assert found.table("loop").get("quality_gates", []) == gates


def agent(bare: Workspace, *names: str) -> None:
    """Programs of these names, and nothing else that is an agent, on PATH."""
    for name in names:
        bare.write(f"../bin/{name}", "#!/bin/sh\n", 0o755)
    bare.env["PATH"] = f"{bare.root}/bin:{os.path.dirname(bare.env['PATH'].split(':')[0])}/bin:/usr/bin:/bin"


def test_the_agents_on_this_machine(bare: Workspace) -> None:
    """The best one found is set, all are named."""
    agent(bare, "gemini", "codex")
    ran = bare.rooda("init")
    assert load(bare.path, environ=bare.env).table("loop")["agent"] == "codex"
    assert "On this machine: codex, gemini." in bare.read("rooda.toml")
    assert ran.lines[0] == f"Wrote {bare.file('rooda.toml')}"
    assert ran.lines[-1] == "Next: rooda build --dry-run"


def test_no_agent(bare: Workspace) -> None:
    """Without any, the line is a comment and the demo is offered."""
    agent(bare)
    ran = bare.rooda("init")
    assert "agent" not in load(bare.path, environ=bare.env).table("loop")
    assert "Agent: none found" in ran.out and "init --demo" in ran.lines[-1]


def test_a_gate_that_is_not_installed(bare: Workspace) -> None:
    """It is proposed, and said to be missing."""
    agent(bare)
    bare.write("mix.exs", "")
    assert "Quality gate: mix test  (not found: install it, or change the gate)" in bare.rooda("init").lines


def test_every_comment_is_a_setting_when_uncommented(bare: Workspace) -> None:
    """Each commented line that looks like a setting is one: with all of them switched on the file loads."""
    agent(bare, "claude")
    bare.rooda("init")
    lines = bare.read("rooda.toml").splitlines()
    on = [line.removeprefix("# ") if re.match(r"# (\w+ = |\[)", line) else line for line in lines]
    assert len([line for line in on if line and not line.startswith("#")]) > 25
    bare.config("\n".join(on))
    assert load(bare.path, environ=bare.env).warnings == ()


def test_never_overwrites(bare: Workspace) -> None:
    """An existing file, even an empty one or a dangling link, stays as it is; exit 2 and a way to look."""
    bare.config("")
    ran = bare.rooda("init")
    assert ran.code == 2 and bare.read("rooda.toml") == "" and "rooda init --print" in ran.err
    os.unlink(bare.file("rooda.toml"))
    os.symlink("nowhere", bare.file("rooda.toml"))
    assert bare.rooda("init").code == 2 and not os.path.exists(bare.file("nowhere"))


def test_print_writes_nothing(bare: Workspace) -> None:
    """--print shows the file, even if there is one already."""
    shown = bare.rooda("init", "--print")
    assert shown.code == 0 and shown.out.startswith("# How rooda runs") and not bare.exists("rooda.toml")
    bare.config("")
    assert bare.rooda("init", "--print").out == shown.out
