"""The house rules, enforced: import direction, one door per effect, sizes, and a start-up that costs nothing."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "rooda"
FLOORS = ["startup", "cli", "report", "stores", "loops", "settings", "world", "prompting", "policy"]
FLOORS += ["model", "terms", "kernel", "errors"]
MODULES = sorted(path for path in PACKAGE.rglob("*.py"))
AGENTS = ("world/agents/demo_agent.py", "world/agents/demo_flow.py")  # programs of their own; no door is for them
SERVER = "modelserver/"  # another one; it is started, never imported
DOORS = {
    "subprocess": {"world/spawn.py", "world/helper.py"},
    "signal": {
        "world/signals.py",
        "world/guardian.py",
        "world/process.py",
        "world/spawn.py",
        "world/helper.py",
        "world/tree.py",
        "world/agents/ask.py",
        "world/agents/conformance.py",
    },
    "time": {"world/clock.py"},
    "datetime": {"world/clock.py"},
    "fcntl": {"world/lock.py"},
    "select": {"world/signals.py", "world/guardian.py", "world/person.py", "world/goal_asking.py"},
    "yaml": {"policy/flow_yaml.py"},
    "shutil": {"settings/detect.py"},  # which
    "socket": {"world/notify.py"},
    "asyncio": set(),
    "threading": set(),
    "logging": set(),
    "multiprocessing": set(),
}
WRITERS = {"world/files.py", "world/folders.py"}
WRITING = {"rename", "renames", "replace", "unlink", "remove", "removedirs", "makedirs", "mkdir", "rmdir", "mkfifo",
           "mknod", "link", "symlink", "truncate", "ftruncate", "fsync", "fdatasync", "pwrite", "chmod", "fchmod",
           "chown", "utime"}  # fmt: skip
STARTING = {"fork", "forkpty", "execv", "execve", "execvp", "posix_spawn", "posix_spawnp", "system", "popen", "spawnv"}
STARTERS = {"world/spawn.py", "world/guardian.py", "world/background.py", "startup.py"}
SPEAKING = ("cli/", "report/", "world/person.py", "world/goal_asking.py", "startup.py")


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(tree: ast.AST) -> Iterator[str]:
    """Every module that is imported anywhere in the file, with the names taken from packages of ours."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            if node.module == "rooda":
                yield from (f"rooda.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_down(path: Path) -> None:
    """A room imports only rooms below it, and a loop never the world."""
    room = name_of(path).split("/")[0].removesuffix(".py")
    if name_of(path).startswith(SERVER):
        assert all(m.startswith("rooda.modelserver") for m in imports(tree_of(path)) if m.split(".")[0] == "rooda")
        return
    assert not any(module.startswith("rooda.modelserver") for module in imports(tree_of(path)))
    if room not in FLOORS:
        assert room in ("__init__", "__main__")
        return
    for module in imports(tree_of(path)):
        parts = module.split(".")
        if parts[0] == "rooda" and len(parts) > 1 and parts[1] in FLOORS:
            assert FLOORS.index(parts[1]) >= FLOORS.index(room), f"{name_of(path)} imports upward: {module}"
            assert not (room == "loops" and parts[1] == "world"), f"a loop imports the world: {module}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_effect_has_one_door(path: Path) -> None:
    """Processes, signals, clocks, locks, file writes and words for people happen only behind their door."""
    name = name_of(path)
    if name in AGENTS or name.startswith(SERVER):
        return
    tree = tree_of(path)
    for module in imports(tree):
        allowed = DOORS.get(module.split(".")[0])
        assert allowed is None or name in allowed, f"{name} imports {module}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            what = f"{node.value.id}.{node.attr}"
            if node.value.id == "os":
                assert node.attr not in WRITING or name in WRITERS, f"{name} writes with {what}"
                assert node.attr not in STARTING or name in STARTERS, f"{name} starts with {what}"
            assert what not in ("sys.stdout", "sys.stderr") or name.startswith(SPEAKING), f"{name} uses {what}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"{name} prints"
            if node.func.id == "open" and len(node.args) > 1 and isinstance(mode := node.args[1], ast.Constant):
                assert not set(str(mode.value)) & set("wax+") or name in WRITERS, f"{name} opens for writing"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nothing_grows(path: Path) -> None:
    """No function over 40 lines."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno + 1 <= 40, f"{name_of(path)}: {node.name}"


HEAVY = ("rich", "tiktoken", "yaml", "psutil", "asyncio", "logging", "importlib.metadata", "tomli_w")


def loaded_by(arguments: list[str], environment: dict[str, str], folder: Path) -> set[str]:
    """Modules that are loaded when the command has ended."""
    code = (
        "import sys; from rooda.startup import main; code = main(sys.argv[1:]);"
        "sys.stdout.flush(); print('LOADED', *sys.modules, file=sys.stderr); sys.exit(code)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True, text=True, cwd=folder, env={**os.environ, **environment}, timeout=60,
    )  # fmt: skip
    last = ran.stderr.splitlines()[-1]
    assert last.startswith("LOADED"), ran.stderr
    return set(last.split()[1:])


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["build", "--help"], ["version"]], ids=" ".join)
def test_cheap_questions_load_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    """Help and version import none of the heavy libraries; the plain ones not even click."""
    loaded = loaded_by(arguments, {}, tmp_path)
    assert not loaded & set(HEAVY)
    assert "click" not in loaded or len(arguments) > 1 or arguments == ["version"]


def test_completion_loads_nothing_heavy(tmp_path: Path) -> None:
    """TAB completes commands and procedures without the heavy libraries."""
    environment = {"_ROODA_COMPLETE": "bash_complete", "COMP_WORDS": "rooda b", "COMP_CWORD": "1"}
    code = "import sys\nfrom rooda.startup import main\n"
    code += "try: main([])\nfinally: print('LOADED', *sys.modules, file=sys.stderr)"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **environment}
    )
    assert "build" in ran.stdout and "bootstrap" in ran.stdout
    assert not set(ran.stderr.splitlines()[-1].split()) & set(HEAVY)


def test_a_loop_loads_nothing_heavy(tmp_path: Path) -> None:
    """A whole run with a raw command imports none of them either: tokens are counted in a short-lived process."""
    loaded = loaded_by(["build", "--ai-cmd", "true", "-n", "1"], {}, tmp_path)
    assert not loaded & set(HEAVY)


def test_status_loads_little(tmp_path: Path) -> None:
    """One procedure that can go on, and `rooda status` loads nothing of the kinds that aren't here."""
    loaded_by(["build", "--ai-cmd", "false", "-n", "9"], {}, tmp_path)
    loaded = {name for name in loaded_by(["status"], {}, tmp_path) if name.split(".")[0] == "rooda"}
    assert len(loaded) <= 110, sorted(loaded)  # the aim is 70
    assert not {name for name in loaded if name.startswith(("rooda.stores.flow", "rooda.loops.goal.store"))}
