"""`rooda init` on real project folders."""

import os
import re
import tempfile
from pathlib import Path

import pytest

from rooda.loops.configuration import load
from rooda.settings import detect
from tests.kit.workspace import Workspace, until

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
    "unittest without project files": ({"x.py": "", "test_x.py": "import unittest\n"}, ["python3 -m unittest"]),
    "make with unittest": ({"Makefile": "test:\n", "test_x.py": "import unittest\n"}, ["make test"]),
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
    "make acceptance": ({"Makefile": "build:\n\ttrue\nacceptance: build\n\ttrue\n"}, ["make acceptance"]),
    "phpunit in composer": ({"composer.json": '{"require-dev": {"phpunit/phpunit": "^12"}}'}, ["vendor/bin/phpunit"]),
    "phpunit.xml": ({"composer.json": "{}", "phpunit.xml.dist": "<phpunit/>"}, ["vendor/bin/phpunit"]),
    "composer test": ({"composer.json": '{"scripts": {"test": "phpunit"}}', "phpunit.xml": ""}, ["composer test"]),
    "broken composer.json": ({"composer.json": "{"}, []),
    "dotnet solution": ({"App.sln": "", "App.csproj": ""}, ["dotnet test"]),
    "dotnet project": ({"App.Tests.csproj": "<Project/>"}, ["dotnet test"]),
    "gradle without a wrapper": ({"build.gradle": "plugins {}"}, ["gradle test"]),
    "gradle in Kotlin": ({"build.gradle.kts": ""}, ["gradle test"]),
    "gradle with a wrapper": ({"build.gradle": "", "gradlew": ""}, ["./gradlew test"]),
    "maven with a wrapper": ({"pom.xml": "", "mvnw": ""}, ["./mvnw -q test"]),
    "rspec": ({".rspec": "", "Gemfile": ""}, ["bundle exec rspec"]),
    "rspec without bundler": ({"spec/spec_helper.rb": ""}, ["rspec"]),
    "rake": ({"Rakefile": "Rake::TestTask.new\n", "Gemfile": ""}, ["bundle exec rake test"]),
    "rake without tests": ({"Rakefile": "task :build\n"}, []),
    "rebar3": ({"rebar.config": ""}, ["rebar3 eunit"]),
    "mix": ({"mix.exs": ""}, ["mix test"]),
    "cmake": (
        {"CMakeLists.txt": "project(x)\nenable_testing()\nadd_test(a a)\n"},
        ["cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure"],
    ),
    "cmake without tests": ({"CMakeLists.txt": "project(x)\n"}, []),
    "package.json check": ({"package.json": '{"scripts": {"check": "biome check ."}}'}, ["npm run check"]),
    "check that writes": (
        {"package.json": '{"scripts": {"check": "biome check --write .", "test": "x"}}'},
        ["npm run test"],
    ),
    "packageManager": (
        {"package.json": '{"packageManager": "yarn@4.9.1", "scripts": {"test": "x"}}', "pnpm-lock.yaml": ""},
        ["yarn run test"],
    ),
    "bun": ({"package.json": '{"scripts": {"typecheck": "tsc"}}', "bun.lock": ""}, ["bun run typecheck"]),
    "pdm": ({"pyproject.toml": "[tool.pytest]\n", "pdm.lock": ""}, ["pdm run pytest -q"]),
    "pdm scripts": (
        {"pyproject.toml": "[tool.pdm.scripts]\ntest='pytest'\nlint='ruff'\n"},
        ["pdm run test", "pdm run lint"],
    ),
    "pdm without a lock": ({"pyproject.toml": "[tool.pdm]\n[tool.pytest]\n"}, ["pdm run pytest -q"]),
    "poetry without a lock": ({"pyproject.toml": "[tool.poetry]\n[tool.pytest]\n"}, ["poetry run pytest -q"]),
    "pixi": ({"pixi.toml": "[tasks]\ntest = 'pytest'\nbuild = 'make'\n"}, ["pixi run test"]),
    "pixi in pyproject": (
        {"pyproject.toml": "[tool.pixi.tasks]\ntest='x'\nlint='y'\n"},
        ["pixi run test", "pixi run lint"],
    ),
    "hatch scripts": ({"pyproject.toml": "[tool.hatch.envs.default.scripts]\ntest='x'\n"}, ["hatch run test"]),
    "hatch test": ({"pyproject.toml": "[tool.hatch.envs.hatch-test]\n"}, ["hatch test"]),
    "tox": ({"tox.ini": "[tox]\n"}, ["tox"]),
    "mypy and ruff by layout": (
        {"pyproject.toml": "[tool.mypy]\n[tool.ruff]\n", "src/a.py": "", "tests/x.txt": ""},
        ["ruff check src tests", "mypy src"],
    ),
    "mypy and ruff by CI": (
        {
            "pyproject.toml": "[tool.mypy]\n[tool.ruff]\n",
            "app/a.py": "",
            ".github/workflows/ci.yml": "      - run: mypy --strict app\n      - run: ruff check --no-fix app\n",
        },
        ["ruff check app", "mypy app"],
    ),
    "CI that names nothing here": (
        {"pyproject.toml": "[tool.mypy]\n", ".github/workflows/ci.yml": "run: mypy ${{ matrix.path }}\n"},
        ["mypy ."],
    ),
}


def proposed(name: str, folder: Path) -> list[str]:
    """The gates that are proposed for a project with these files."""
    for path, content in PROJECTS[name][0].items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    return [command for project in detect.gates(str(folder)) for command in project.commands]


@pytest.mark.parametrize("name", PROJECTS)
def test_I_10_gates_proposed(name: str, tmp_path: Path) -> None:
    """Each kind of project gets the commands that check it."""
    assert proposed(name, tmp_path) == PROJECTS[name][1]


@pytest.mark.parametrize("name", ["pytest", "npm", "cmake", "empty"])
def test_I_10_gates_written(name: str, bare: Workspace) -> None:
    """The file that `rooda init` writes has them, and loads without a warning."""
    files, gates = PROJECTS[name]
    for path, content in files.items():
        bare.write(path, content)
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


def test_E_33_the_one_agent_of_this_machine(bare: Workspace) -> None:
    """Where no agent is chosen, a start says which line chooses the only one; without any it offers the demo."""
    agent(bare, "codex")
    line = f'On this machine: codex. Write this line under [loop] of {bare.file("rooda.toml")}: agent = "codex"'
    assert line in bare.rooda("build").err
    assert 'agent = "codex"' in bare.rooda("init").lines[1]
    os.unlink(bare.file("rooda.toml"))
    os.unlink(f"{bare.root}/bin/codex")
    assert bare.rooda("build").err.rstrip().endswith("To try a loop without an AI: rooda init --demo DIR")


def test_E_41_limits_of_a_first_run(bare: Workspace) -> None:
    """--max-cost and --iteration-timeout are written; doctor names loops whose calls have no time limit."""
    agent(bare, "claude")
    bare.rooda("init", "--max-cost", "2.5", "--iteration-timeout", "900")
    assert load(bare.path, environ=bare.env).table("loop")["max_cost"] == 2.5
    assert "\niteration_timeout = 900\n" in bare.read("rooda.toml")
    assert "timeouts" not in bare.rooda("doctor").out
    bare.sections["goal"] = "\n[goal]\nbudget = 1\n"
    bare.procedure("mine")
    assert "an agent call may take forever: mine, build, goal" in bare.rooda("doctor").out
    assert bare.rooda("init", "--max-cost", "much").code == 2


def test_E_41_limits_are_asked_for(bare: Workspace) -> None:
    """At a terminal `rooda init` asks for both; an empty answer sets no limit, a wrong one is asked for again."""
    terminal = bare.terminal("init")
    until(lambda: "starts no further agent call" in terminal.out)
    terminal.type("x\n")
    until(lambda: "max_cost must be a number" in terminal.out)
    terminal.type("3\n")
    until(lambda: "Seconds after which" in terminal.out)
    terminal.type("\n")
    assert terminal.finish() == 0
    table = load(bare.path, environ=bare.env).table("loop")
    assert (table["max_cost"], table["iteration_timeout"]) == (3, 0)


def test_E_30_an_example_with_a_limit(bare: Workspace) -> None:
    """The procedure that `rooda init` shows runs once; a start without any limit says how to set one."""
    bare.rooda("init")
    assert "# [procedures.review]\n" in bare.read("rooda.toml") and "# default_iterations = 1\n" in bare.read(
        "rooda.toml"
    )
    bare.procedure("review", keys="promise_signals = true")
    bare.out(1, "<promise>SUCCESS</promise>\n")
    ran = bare.rooda("review")
    said = "'review' has no limit of iterations, cost or time; set one: rooda review --max-iterations N"
    assert ran.code == 0 and said in ran.err
    bare.forget_calls()
    assert said not in bare.rooda("review", "--max-duration", "1h").err


def test_E_28_the_setup_of_a_worktree_is_proposed(bare: Workspace) -> None:
    """From the lock file of the project; without one it is a comment."""
    bare.write("uv.lock", "")
    assert '\n[worktree]\nsetup = "uv sync"\n' in bare.rooda("init", "--print").out
    os.unlink(bare.file("uv.lock"))
    assert '\n# [worktree]\n# setup = "make deps"\n' in bare.rooda("init", "--print").out


def main() -> None:
    """Print for how many projects exactly the commands that check them are proposed."""
    with tempfile.TemporaryDirectory() as folder:
        folders = {name: Path(folder, str(place)) for place, name in enumerate(PROJECTS)}
        for path in folders.values():
            path.mkdir()
        wrong = [name for name, path in folders.items() if proposed(name, path) != PROJECTS[name][1]]
    print(f"manifests           {len(PROJECTS) - len(wrong):3} of {len(PROJECTS)}", *wrong)


if __name__ == "__main__":
    main()
