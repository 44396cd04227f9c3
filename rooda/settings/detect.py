"""Detects the kind of a project, the commands that check it, and the installed agent CLIs."""

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from rooda.base import files, workspace_files
from rooda.base.dirs import shipped
from rooda.errors import UsageProblem
from rooda.settings.toml import parse


class Gates(NamedTuple):
    """Commands that check one kind of project, and the evidence for that kind."""

    because: str
    commands: tuple[str, ...]


def installed_agents() -> list[str]:
    """Return the agent CLIs on PATH that the shipped rooda.toml defines, in its order."""
    import shutil
    import tomllib

    tables = tomllib.loads(files.text(shipped("config", "rooda.toml")))["agents"]
    names = [name for name, table in tables.items() if table["command"].split()[0] == name]
    return [name for name in names if shutil.which(name)]


def gates(folder: str) -> list[Gates]:
    """Return proposed quality gates for a project; a Makefile or justfile counts only if nothing else is found."""
    found = [gate for look in (_python, _node, _by_marker) for gate in look(folder) if gate.commands]
    return found or [gate for gate in _recipes(folder) if gate.commands]


def program(command: str) -> str:
    return command.split(maxsplit=1)[0]


def missing(folder: str, command: str) -> bool:
    """True if the gate's program is neither in the folder nor on PATH."""
    import shutil

    name = program(command)
    return shutil.which(os.path.join(folder, name) if "/" in name else name) is None


def _text(folder: str, name: str) -> str:
    try:
        return workspace_files.text(folder, name)
    except FileNotFoundError:
        return ""
    except OSError as problem:
        what = f"{os.path.join(folder, name)} can't be read: {problem.strerror}."
        raise UsageProblem(what, "Repair or remove it, then try again.") from None


def _exists(folder: str, *names: str) -> bool:
    return any(os.path.exists(os.path.join(folder, name)) for name in names)


def _toml(folder: str, name: str) -> dict[str, Any]:
    try:
        return parse(_text(folder, name))[0]
    except ValueError:
        return {}


def _python(folder: str) -> Iterator[Gates]:
    if not _exists(folder, "pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "noxfile.py", "pytest.ini"):
        return
    tools = _toml(folder, "pyproject.toml").get("tool", {})
    tools = tools if isinstance(tools, dict) else {}
    commands = [
        command for command in (_python_tests(folder, tools), _ruff(folder, tools), _mypy(folder, tools)) if command
    ]
    yield Gates("Python", tuple(_python_runner(folder, command) for command in commands))


def _python_tests(folder: str, tools: dict[str, Any]) -> str:
    if "pytest" in tools or _exists(folder, "pytest.ini", "conftest.py", "tests/conftest.py"):
        return "pytest -q"
    config = "".join(_text(folder, name) for name in ("pyproject.toml", "setup.cfg", "requirements-dev.txt"))
    if "pytest" in config:
        return "pytest -q"
    if _exists(folder, "noxfile.py"):
        return "nox"
    if "tox" in tools or _exists(folder, "tox.ini"):
        return "tox"
    return _unittest(folder)


def _unittest(folder: str) -> str:
    for name in ("tests", "test"):
        inside = os.path.join(folder, name)
        if os.path.isdir(inside) and any(
            entry.startswith("test") and entry.endswith(".py") for entry in os.listdir(inside)
        ):
            return f"python3 -m unittest discover -s {name}"
    return ""


def _ruff(folder: str, tools: dict[str, Any]) -> str:
    return "ruff check ." if "ruff" in tools or _exists(folder, "ruff.toml", ".ruff.toml") else ""


def _mypy(folder: str, tools: dict[str, Any]) -> str:
    if "mypy" not in tools and not _exists(folder, "mypy.ini", ".mypy.ini"):
        return ""
    named = isinstance(tools.get("mypy"), dict) and {"files", "packages", "modules"} & set(tools["mypy"])
    return "mypy" if named else "mypy ."


def _python_runner(folder: str, command: str) -> str:
    """Return the command, changed to run in the project's own Python environment if it has one."""
    if _exists(folder, "uv.lock"):
        return f"uv run {command}"
    if _exists(folder, "poetry.lock"):
        return f"poetry run {command}"
    if _exists(folder, os.path.join(".venv", "bin", program(command))):
        return f".venv/bin/{command}"
    return command


def _node(folder: str) -> Iterator[Gates]:
    import json

    try:
        scripts = json.loads(_text(folder, "package.json"))["scripts"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    if not isinstance(scripts, dict):
        return
    locks = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
    manager = next((name for lock, name in locks.items() if _exists(folder, lock)), "npm")
    known = [name for name in ("test", "lint", "typecheck") if name in scripts]
    yield Gates(
        "package.json",
        tuple(f"{manager} run {name}" for name in known if "no test specified" not in str(scripts[name])),
    )


_MARKERS = {
    "Cargo.toml": ("cargo test --quiet",),
    "go.mod": ("go vet ./...", "go test ./..."),
    "gradlew": ("./gradlew test",),
    "mvnw": ("./mvnw -q test",),
    "pom.xml": ("mvn -q test",),
    "mix.exs": ("mix test",),
    "Package.swift": ("swift test",),
    "build.zig": ("zig build test",),
    "pubspec.yaml": ("dart test",),
    "deno.json": ("deno test",),
    ".rspec": ("bundle exec rspec",),
}


def _by_marker(folder: str) -> Iterator[Gates]:
    for name, commands in _MARKERS.items():
        if _exists(folder, name) and not (name == "pom.xml" and _exists(folder, "mvnw")):
            yield Gates(name, commands)


def _recipes(folder: str) -> Iterator[Gates]:
    import re

    for tool, names in (("make", ("GNUmakefile", "makefile", "Makefile")), ("just", ("justfile", "Justfile"))):
        name = next((name for name in names if _exists(folder, name)), "")
        rules = set(re.findall(r"^([\w-]+)(?: [^:=\n]*)?:(?!=)", _text(folder, name), re.MULTILINE)) if name else set()
        if rules:
            wanted = ("test", "lint") if "test" in rules else ("check",)
            yield Gates(name, tuple(f"{tool} {rule}" for rule in wanted if rule in rules))
