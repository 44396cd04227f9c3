"""Detects the kind of a project, the commands that check it, and the installed agent CLIs."""

import glob
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
    """Return the agent CLIs on PATH that the shipped rooda.toml defines, in the order of that file."""
    import shutil
    import tomllib

    tables = tomllib.loads(files.text(shipped("config", "rooda.toml")))["agents"]
    names = [name for name, table in tables.items() if table["command"].split()[0] == name]
    return [name for name in names if shutil.which(name)]


def gates(folder: str) -> list[Gates]:
    """Return proposed gates for a project; a Makefile, justfile or script counts only if nothing else is found."""
    looks = (_python, _node, _php, _dotnet, _ruby, _cmake, _by_marker)
    found = [gate for look in looks for gate in look(folder) if gate.commands]
    return found or [gate for gate in _recipes(folder) if gate.commands] or [*_scripts(folder)]


_INSTALLS = {
    "uv.lock": "uv sync",
    "poetry.lock": "poetry install",
    "package-lock.json": "npm ci",
    "pnpm-lock.yaml": "pnpm install --frozen-lockfile",
    "yarn.lock": "yarn install --frozen-lockfile",
    "bun.lock": "bun install",
    "bun.lockb": "bun install",
    "Gemfile.lock": "bundle install",
}


def worktree_setup(folder: str) -> str:
    """Return the command that installs the dependencies of the project in a new worktree; "" if none is known."""
    return " && ".join(dict.fromkeys(command for lock, command in _INSTALLS.items() if _exists(folder, lock)))


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


def _entries(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _python(folder: str) -> Iterator[Gates]:
    names = ("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "noxfile.py", "pytest.ini", "pixi.toml")
    if not _exists(folder, *names):
        return
    tools = _toml(folder, "pyproject.toml").get("tool", {})
    tools = tools if isinstance(tools, dict) else {}
    tasks = _tasks(folder, tools)
    tests = [command for name, command in tasks if name == "test"] or [_python_tests(folder, tools)]
    checks = [command for name, command in tasks if name in ("lint", "typecheck")]
    commands = [*filter(None, tests), *(checks or filter(None, (_ruff(folder, tools), _mypy(folder, tools))))]
    yield Gates("Python", tuple(_python_runner(folder, tools, command) for command in commands))


def _tasks(folder: str, tools: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the name and command of each check that the project defines as a task for pixi, hatch or pdm."""
    pixi = _toml(folder, "pixi.toml") or tools.get("pixi")
    places = (
        ("pixi run", pixi, ("tasks",)),
        ("hatch run", tools.get("hatch"), ("envs", "default", "scripts")),
        ("pdm run", tools.get("pdm"), ("scripts",)),
    )
    for runner, table, path in places:
        for key in path:
            table = table.get(key) if isinstance(table, dict) else None
        if found := [(name, f"{runner} {name}") for name in _CHECKS if isinstance(table, dict) and name in table]:
            return found
    return []


_CHECKS = ("test", "lint", "typecheck")


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
    if isinstance(hatch := tools.get("hatch"), dict) and "envs" in hatch and "hatch-test" in str(hatch["envs"]):
        return "hatch test"
    return _unittest(folder)


def _unittest(folder: str) -> str:
    for name in ("tests", "test"):
        inside = os.path.join(folder, name)
        if os.path.isdir(inside) and any(
            entry.startswith("test") and entry.endswith(".py") for entry in os.listdir(inside)
        ):
            return f"python3 -m unittest discover -s {name}"
    return ""


def _scripts(folder: str) -> Iterator[Gates]:
    """Yield a gate that runs the tests of a folder that has Python files but no project files."""
    names = glob.glob("test*.py", root_dir=folder)
    if any("import unittest" in _text(folder, name) for name in names):
        yield Gates("Python", ("python3 -m unittest",))


def _ruff(folder: str, tools: dict[str, Any]) -> str:
    if "ruff" not in tools and not _exists(folder, "ruff.toml", ".ruff.toml"):
        return ""
    return f"ruff check {_paths_in_ci(folder, 'ruff check') or _layout(folder, ('src', 'tests', 'test'))}"


def _mypy(folder: str, tools: dict[str, Any]) -> str:
    if "mypy" not in tools and not _exists(folder, "mypy.ini", ".mypy.ini"):
        return ""
    if isinstance(tools.get("mypy"), dict) and {"files", "packages", "modules"} & set(tools["mypy"]):
        return "mypy"
    return f"mypy {_paths_in_ci(folder, 'mypy') or _layout(folder, ('src',))}"


def _paths_in_ci(folder: str, tool: str) -> str:
    """Return the paths that the project's CI configuration passes to a tool; "" if it passes no existing path."""
    import re

    workflows = os.path.join(".github", "workflows")
    names = [os.path.join(workflows, name) for name in _entries(os.path.join(folder, workflows))]
    for name in [*names, ".gitlab-ci.yml", ".pre-commit-config.yaml", "tox.ini", "Makefile"]:
        text = _text(folder, name) if name.endswith((".yml", ".yaml", ".ini", "Makefile")) else ""
        for line in re.findall(rf"\b{tool}[ \t]+([^\n#&|;]+)", text):
            paths = [word for word in line.strip().strip("\"'").split() if not word.startswith("-")]
            if paths and all(_exists(folder, path) for path in paths):
                return " ".join(paths)
    return ""


def _layout(folder: str, names: tuple[str, ...]) -> str:
    """Return the existing folders among `names`, separated by spaces; `.` if the first of `names` does not exist."""
    found = [name for name in names if os.path.isdir(os.path.join(folder, name))]
    return " ".join(found) if names[0] in found else "."


def _python_runner(folder: str, tools: dict[str, Any], command: str) -> str:
    """Return the command, changed to run in the project's own Python environment if it has one."""
    if program(command) in ("hatch", "pixi", "pdm"):
        return command
    runners = (("uv.lock", "uv"), ("poetry.lock", "poetry"), ("pdm.lock", "pdm"), ("pixi.lock", "pixi"))
    runner = next((runner for lock, runner in runners if _exists(folder, lock)), "")
    runner = runner or next((name for name in ("poetry", "pdm") if name in tools), "")
    if runner:
        return f"{runner} run {command}"
    if _exists(folder, os.path.join(".venv", "bin", program(command))):
        return f".venv/bin/{command}"
    return command


def _node(folder: str) -> Iterator[Gates]:
    package = _json(folder, "package.json")
    scripts = package.get("scripts")
    if not isinstance(scripts, dict):
        return
    manager = _node_manager(folder, str(package.get("packageManager", "")))
    names = [name for name in ("test", "lint", "typecheck", "type-check", "check") if name in scripts]
    known = [name for name in names if not _is_no_check(str(scripts[name]))]
    yield Gates("package.json", tuple(f"{manager} run {name}" for name in known))


def _is_no_check(script: str) -> bool:
    """True for a script that checks nothing, changes files, or never ends."""
    return any(word in script for word in ("no test specified", "--fix", "--write", "--watch"))


def _node_manager(folder: str, named: str) -> str:
    """Return the package manager: the one that package.json names, else the one that the lock file belongs to."""
    name = named.partition("@")[0]
    if name in ("npm", "pnpm", "yarn", "bun"):
        return name
    locks = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
    return next((name for lock, name in locks.items() if _exists(folder, lock)), "npm")


def _json(folder: str, name: str) -> dict[str, Any]:
    import json

    try:
        found = json.loads(_text(folder, name))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _php(folder: str) -> Iterator[Gates]:
    composer = _json(folder, "composer.json")
    scripts = composer.get("scripts")
    if isinstance(scripts, dict) and "test" in scripts:
        yield Gates("composer.json", ("composer test",))
    elif _exists(folder, "phpunit.xml", "phpunit.xml.dist") or "phpunit/phpunit" in str(composer.get("require-dev")):
        yield Gates("PHPUnit", ("vendor/bin/phpunit",))


def _dotnet(folder: str) -> Iterator[Gates]:
    marks = (".sln", ".slnx", ".csproj", ".fsproj")
    if found := next((name for name in _entries(folder) if name.endswith(marks)), ""):
        yield Gates(found, ("dotnet test",))


def _ruby(folder: str) -> Iterator[Gates]:
    runner = "bundle exec " if _exists(folder, "Gemfile") else ""
    if _exists(folder, ".rspec", "spec/spec_helper.rb"):
        yield Gates("RSpec", ("bundle exec rspec" if not runner and _exists(folder, ".rspec") else f"{runner}rspec",))
    elif _exists(folder, "Rakefile") and "test" in _text(folder, "Rakefile").lower():
        yield Gates("Rakefile", (f"{runner}rake test",))


def _cmake(folder: str) -> Iterator[Gates]:
    import re

    testing = r"(?im)^\s*(?:enable_testing|add_test|include\s*\(\s*CTest)"
    if re.search(testing, _text(folder, "CMakeLists.txt")):
        build = "cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure"
        yield Gates("CMakeLists.txt", (build,))


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
    "rebar.config": ("rebar3 eunit",),
    "build.gradle": ("gradle test",),
    "build.gradle.kts": ("gradle test",),
}
_WRAPPERS = {"pom.xml": "mvnw", "build.gradle": "gradlew", "build.gradle.kts": "gradlew"}


def _by_marker(folder: str) -> Iterator[Gates]:
    for name, commands in _MARKERS.items():
        if _exists(folder, name) and not (name in _WRAPPERS and _exists(folder, _WRAPPERS[name])):
            yield Gates(name, commands)


def _recipes(folder: str) -> Iterator[Gates]:
    import re

    for tool, names in (("make", ("GNUmakefile", "makefile", "Makefile")), ("just", ("justfile", "Justfile"))):
        name = next((name for name in names if _exists(folder, name)), "")
        rules = set(re.findall(r"^([\w-]+)(?: [^:=\n]*)?:(?!=)", _text(folder, name), re.MULTILINE)) if name else set()
        if rules:
            others = next(((rule,) for rule in ("check", "acceptance") if rule in rules), ())
            wanted = ("test", "lint") if "test" in rules else others
            yield Gates(name, tuple(f"{tool} {rule}" for rule in wanted if rule in rules))
