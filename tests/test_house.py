"""The law of the house, which ARCHITECTURE.md explains: layers, slices, pure files, doors, a start-up that is cheap."""

import ast
import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.loops import registry

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "rooda"
LAYERS = ["otel", "cli", "page", "fleet", "tasks", "loops", "views", "settings"]
LAYERS += ["run", "agents", "git", "processes", "base", "errors"]
TOP = {"startup", "demo"}  # they belong to the layer of cli
KINDS = {path.parent.name for path in (PACKAGE / "loops").glob("*/kind.py")}  # slices
LONGEST_FUNCTION = 40
LONG_MODULE = 500  # from here on ARCHITECTURE.md says why it is one thing

# Files of these names, in any slice, and these modules of the platform, import only pure modules.
PURE_NAMES = {"state", "model", "world", "rules", "loop", "contract", "scoring", "criteria", "plan", "planning",
              "answers", "task_plan", "boundaries", "statistics", "shape",
              "checklist", "closing", "phases", "prompts", "history", "events", "feedback", "progress"}  # fmt: skip
PURE = {"errors", "base/json", "base/text", "base/secrets", "base/secret_forms",
        "base/yaml", "agents/records", "agents/outcome", "agents/last_words", "agents/error_text", "agents/backoff",
        "agents/prices", "git/retention",
        "run/budgets", "run/gate_words", "run/gates_md", "run/records", "run/setup", "run/spending", "run/ended",
        "run/placeholders", "run/task_lists", "tasks/model", "tasks/outcome", "tasks/sources", "tasks/view",
        "fleet/chain", "fleet/port", "fleet/names", "fleet/decide", "fleet/money",
        "run/event_records", "run/tally", "run/vocabulary", "loops/kernel"}  # fmt: skip

TASKS = {f"tasks/{path.stem}" for path in (PACKAGE / "tasks").glob("cli*.py")}
TASKS |= {f"fleet/{path.stem}" for path in (PACKAGE / "fleet").glob("cli*.py")}
ENGINE = {"fleet/engine", "fleet/flow", "fleet/serve"}  # all of rooda that knows Temporal
LEGS = {"fleet/serve", "fleet/remote", "fleet/held_loop", "fleet/leg", "fleet/preparation"}  # each leg has threads

# Who may use what reaches the world. A name ending in / is a room.
DOORS = {
    "subprocess": {"processes/"},
    "signal": {"processes/", "agents/call", "agentkit/"},
    "time": {"base/clock"},
    "datetime": {"base/clock", *ENGINE},  # Temporal takes timeouts as timedelta
    "fcntl": {"processes/lock"},
    "select": {"processes/", "run/questions", "fleet/link"},
    "yaml": {"base/yaml"},
    "ctypes": {"processes/linux"},
    "shutil": {"settings/detect"},
    "socket": {"processes/systemd", "processes/proxy", "processes/link", "fleet/link", "page/listening", "page/server"},
    "click": {"cli/", "loops/options", "page/cli", *TASKS, *(f"loops/{kind}/cli" for kind in KINDS)},
    "asyncio": {*ENGINE, "page/server", "page/watch", "page/order"},
    "threading": {*LEGS, "page/server", "page/watch"},
    "temporalio": {*ENGINE},
    "starlette": {"page/server"},
    "sse_starlette": {"page/server"},
    "uvicorn": {"page/server"},
    "opentelemetry": set(),  # only the exporter, a program of its own
    "logging": set(),
    "multiprocessing": set(),
}
WRITERS = {"base/files"}
# Who opens files, and who reads files that are neither shipped, nor rooda's own, nor of a workspace: those of git, of
# this user's home, of rooda's temporary folders, and the style sheet that is beside the code.
OPENERS = {"base/files", "base/workspace_files", "base/signing", "run/vocabulary"}
READERS = {"base/files", "base/workspace_files", "git/", "loops/flow/guard_git", "settings/layers", "agents/versions",
           "run/logins", "page/export",
           "run/installed", "run/tokens", "processes/detach", "cli/completion", "cli/service"}  # fmt: skip
WRITING = {"rename", "renames", "replace", "unlink", "remove", "removedirs", "makedirs", "mkdir", "rmdir", "mkfifo",
           "mknod", "link", "symlink", "truncate", "ftruncate", "fsync", "fdatasync", "pwrite", "chmod", "fchmod",
           "chown", "utime"}  # fmt: skip
STARTING = {
    "fork",
    "forkpty",
    "execv",
    "execve",
    "execvp",
    "execvpe",
    "posix_spawn",
    "posix_spawnp",
    "system",
    "popen",
    "spawnv",
}
STARTERS = {"processes/", "startup"}
SPEAKING = {"cli/", "page/cli", "views/", "run/questions", "startup", *TASKS}
SPEAKING |= {f"loops/{kind}/{name}" for kind in KINDS for name in ("cli", "view")}
PROGRAMS = ("demo/", "agentkit/", "otel/")  # they run as processes of their own, and cause their own effects


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Every module by its path without `rooda/` and `.py`; a package by its folder and `/__init__`."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {path.relative_to(PACKAGE).as_posix()[:-3]: ast.parse(path.read_text()) for path in paths}


def length(module: str) -> int:
    return len((PACKAGE / f"{module}.py").read_text().splitlines())


def room(module: str) -> str:
    first = module.partition("/")[0]
    return "cli" if first in TOP else first


def within(module: str, allowed: set[str]) -> bool:
    return any(module.startswith(each) if each.endswith("/") else module == each for each in allowed)


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def nodes(tree: ast.AST, at_load: bool) -> Iterator[ast.AST]:
    """All nodes; `at_load`: only those that run while the module is loaded."""
    for node in ast.iter_child_nodes(tree):
        if at_load and (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or is_type_checking(node)
        ):
            continue
        yield node
        yield from nodes(node, at_load)


def own_module(dotted: str) -> str:
    """The module that `rooda.x.y` or `rooda.x.y.name` means; "" if none."""
    path = dotted.removeprefix("rooda.").replace(".", "/")
    for candidate in (path, path.rpartition("/")[0], f"{path}/__init__"):
        if candidate in modules():
            return candidate
    return ""


@functools.cache
def imports(module: str, at_load: bool = False) -> frozenset[str]:
    """What a module imports: our modules as paths, those of others by their first name."""
    found = set()
    for node in nodes(modules()[module], at_load):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            ours = node.module.split(".")[0] == "rooda"
            names = [f"{node.module}.{alias.name}" for alias in node.names] if ours else [node.module]
        for name in names:
            found.add(own_module(name) if name.split(".")[0] == "rooda" else name.split(".")[0])
    return frozenset(found - {""})


def needs(module: str) -> Iterator[str]:
    """First names of the foreign modules that a module imports; imports for types alone do not count."""
    trees: list[ast.AST] = [modules()[module]]
    while trees:
        for node in ast.iter_child_nodes(trees.pop()):
            if not is_type_checking(node):
                trees.append(node)
                if isinstance(node, ast.Import):
                    yield from (alias.name.split(".")[0] for alias in node.names)
                if isinstance(node, ast.ImportFrom) and node.module:
                    yield node.module.split(".")[0]


def ours(module: str, at_load: bool = False) -> set[str]:
    return {each for each in imports(module, at_load) if each in modules()}


def slice_of(module: str) -> str:
    parts = module.split("/")
    return parts[1] if parts[0] == "loops" and len(parts) > 2 else ""


def test_imports_point_down() -> None:
    """Each room imports only itself and rooms below it."""
    faults = []
    for module in modules():
        for other in ours(module):
            if module == "__main__":
                wrong = other != "startup"
            elif room(other) == "agentkit":
                wrong = room(module) != "agentkit" and module != "cli/agents"
            elif room(module) == "agentkit":
                wrong = LAYERS.index(room(other)) <= LAYERS.index("loops")
            elif room(module) == "__init__" or other == "__init__":
                wrong = room(module) == "__init__"
            else:
                wrong = LAYERS.index(room(other)) < LAYERS.index(room(module))
            if wrong:
                faults.append(f"{module} imports {other}")
    assert not faults, "\n".join(faults)


def test_slices_do_not_see_each_other() -> None:
    """No kind of loop imports another one, and what they share imports none."""
    faults = [
        f"{module} imports {other}"
        for module in modules()
        if room(module) != "cli" and module != "loops/registry"
        for other in ours(module)
        if slice_of(other) and slice_of(other) != slice_of(module)
    ]
    assert not faults, "\n".join(faults)


def test_only_the_registry_names_a_kind() -> None:
    """No other shared module has the name of a kind as a text."""
    faults = [
        f"{module}:{node.lineno} {node.value!r}"
        for module, tree in modules().items()
        if not slice_of(module) and module != "loops/registry" and not module.startswith(PROGRAMS)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in registry.KINDS
    ]
    assert not faults, "\n".join(faults)


def test_every_kind_is_one_folder_and_one_row() -> None:
    """The registry has a row for each slice, and mypy checks each kind.py against the contract."""
    assert {row.package for row in registry.KINDS.values()} == {f"rooda.loops.{kind}" for kind in KINDS}
    for kind in KINDS:
        assert "    _CONTRACT: registry.Kind = kind\n" in (PACKAGE / "loops" / kind / "kind.py").read_text()


def is_pure(module: str) -> bool:
    return module in PURE or (bool(slice_of(module)) and module.rpartition("/")[2] in PURE_NAMES)


def test_pure_files_import_only_pure_files() -> None:
    """A loop, its state and its rules never touch the world."""
    faults = [
        f"{module} imports {other}"
        for module in modules()
        if is_pure(module)
        for other in ours(module)
        if not is_pure(other)
    ]
    assert not faults, "\n".join(faults)


def attributes(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.lineno, node.value.id, node.attr


def calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node, node.func.id


def opens_for_writing(call: ast.Call) -> bool:
    mode = call.args[1] if len(call.args) > 1 else None
    return isinstance(mode, ast.Constant) and bool({*str(mode.value)} & {*"wax+"})


def test_every_effect_has_one_door() -> None:
    """Processes, signals, clocks, locks, file writes, click and words for people happen only behind their door."""
    faults = []
    for module, tree in modules().items():
        if module.startswith(PROGRAMS):
            continue
        for other in needs(module):
            if other in DOORS and not within(module, DOORS[other]):
                faults.append(f"{module} imports {other}")
        for line, name, attribute in attributes(tree):
            if name == "os" and attribute in WRITING and module not in WRITERS:
                faults.append(f"{module}:{line} writes with os.{attribute}")
            if name == "os" and attribute in STARTING and not within(module, STARTERS):
                faults.append(f"{module}:{line} starts with os.{attribute}")
            if name == "sys" and attribute in ("stdout", "stderr") and not within(module, SPEAKING):
                faults.append(f"{module}:{line} uses sys.{attribute}")
        for call, name in calls(tree):
            if name == "print":
                faults.append(f"{module}:{call.lineno} prints")
            if name == "open" and opens_for_writing(call) and module not in WRITERS:
                faults.append(f"{module}:{call.lineno} opens for writing")
    assert not faults, "\n".join(faults)


def is_of(node: ast.expr, name: str) -> bool:
    """True for a call of a function or method with this name."""
    named = node.func if isinstance(node, ast.Call) else None
    return getattr(named, "id", getattr(named, "attr", "")) == name


def opened_wrongly(module: str, call: ast.Call) -> str:
    """How a call goes past the door to files of a workspace; "" if it does not."""
    words, target = ast.unparse(call.func), call.args[0] if call.args else call
    if words in ("open", "io.open", "os.open") and ast.unparse(target) != "os.devnull":
        return "" if within(module, OPENERS) else "opens a file"
    if words in ("files.read", "files.text", "base_files.read", "base_files.text") and not is_of(target, "shipped"):
        return "" if within(module, READERS) else f"reads with {words}"
    return ""


def test_S_07_files_of_a_workspace_have_one_door() -> None:
    """They are read by base/workspace_files, and rooda's own by `files.read_ours`, `tail`, `head` and `lines`."""
    faults = [
        f"{module}:{node.lineno} {fault}"
        for module, tree in modules().items()
        if not module.startswith(PROGRAMS)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and (fault := opened_wrongly(module, node))
    ]
    assert not faults, "\n".join(faults)


def test_packages_are_empty() -> None:
    """Importing a room costs nothing and runs nothing."""
    full = [module for module, tree in modules().items() if module.endswith("/__init__") and tree.body]
    assert not full


def test_no_rings_at_load_time() -> None:
    """No module needs, while it is loaded, one that needs it."""
    done: set[str] = set()

    def rings(module: str, path: tuple[str, ...]) -> Iterator[str]:
        if module in path:
            yield " -> ".join([*path[path.index(module) :], module])
        elif module not in done:
            for other in sorted(ours(module, at_load=True)):
                yield from rings(other, (*path, module))
            done.add(module)

    assert not [ring for module in modules() for ring in rings(module, ())]


def test_functions_are_short() -> None:
    """No function has over 40 lines."""
    faults = [
        f"{module}:{node.lineno} {node.name}"
        for module, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (node.end_lineno or 0) - node.lineno >= LONGEST_FUNCTION
    ]
    assert not faults, "\n".join(faults)


def test_no_group_is_possessive() -> None:
    """Python before 3.11.5 goes on at a wrong place after a possessive group of which a part had matched."""
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in (ROOT / "rooda").rglob("*.py")
        for match in re.finditer(r"(?<!\\)\)(?:[*+?]|\{[0-9,]+\})\+|\(\?>", path.read_text())
    ]
    assert found == []


def test_the_map_explains_long_modules() -> None:
    """ARCHITECTURE.md says of each module over 500 lines why it is one thing."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    faults = [f"{module}: {length(module)} lines" for module in modules() if length(module) > LONG_MODULE]
    print(*faults, sep="\n")
    assert not [fault for fault in faults if f"`{fault.split(':')[0]}" not in text]


HEAVY = ("rich", "tiktoken", "yaml", "psutil", "asyncio", "logging", "importlib.metadata", "tomli_w", "temporalio",
         "uvicorn")  # fmt: skip


def loaded_by(arguments: list[str], folder: Path, environment: dict[str, str] | None = None) -> set[str]:
    """Modules that are loaded when the command has ended."""
    code = (
        "import sys; from rooda.startup import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: sys.stdout.flush(); print('LOADED', *sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True, text=True, cwd=folder, env={**os.environ, **(environment or {})}, timeout=60,
    )  # fmt: skip
    last = next(line for line in reversed(ran.stderr.splitlines()) if line.startswith("LOADED"))
    return {*last.split()[1:]}


def test_a_loop_loads_nothing_needless(tmp_path: Path) -> None:
    """In a git workspace: click finds -n and words its messages without them, and git is started without subprocess."""
    environment = {"HOME": str(tmp_path), "ROODA_STATE_HOME": str(tmp_path / "state")}
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    loaded = loaded_by(["build", "-n", "1", "--ai-cmd", "true"], tmp_path, environment)
    assert "rooda.loops.procedure.loop" in loaded
    assert not loaded & {"difflib", "locale", "subprocess", "_hashlib"}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["build", "--help"], ["version"]], ids=" ".join)
def test_cheap_questions_load_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    """Help and version import none of the heavy libraries; the plain ones not even click."""
    loaded = loaded_by(arguments, tmp_path)
    assert not loaded & {*HEAVY}
    assert "click" not in loaded or len(arguments) > 1 or arguments == ["version"]


def test_completion_loads_nothing_heavy(tmp_path: Path) -> None:
    """TAB completes commands and procedures without the heavy libraries."""
    asked = {"_ROODA_COMPLETE": "bash_complete", "COMP_WORDS": "rooda b", "COMP_CWORD": "1"}
    assert not loaded_by([], tmp_path, asked) & {*HEAVY}


def test_a_loop_loads_nothing_heavy(tmp_path: Path) -> None:
    """A whole run with a raw command imports none of them either: tokens are counted in a short-lived process."""
    assert not loaded_by(["build", "--ai-cmd", "true", "-n", "1"], tmp_path) & {*HEAVY}


@pytest.mark.parametrize("arguments", [["--help"], ["tasks"], ["tasks", "--help"], ["status"], ["worker", "--help"]])
def test_FL_18_what_is_not_of_the_fleet_loads_nothing_of_it(arguments: list[str], tmp_path: Path) -> None:
    """`tasks` without --fleet loads no module of the room, and help loads no engine."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    loaded = loaded_by(arguments, tmp_path, {"HOME": str(tmp_path)})
    assert "temporalio" not in loaded
    assert arguments[0] == "worker" or not {each for each in loaded if each.startswith("rooda.fleet")}


def test_FL_18_a_loop_loads_nothing_of_the_fleet(tmp_path: Path) -> None:
    """Nor does a whole run."""
    loaded = loaded_by(["build", "--ai-cmd", "true", "-n", "1"], tmp_path)
    assert not {each for each in loaded if each.startswith(("rooda.fleet", "temporalio"))}


MOST_FOR_STATUS = 70  # modules of rooda
PLAN = {
    "scores": dict.fromkeys(("outcome", "scope", "constraints", "success", "done"), 1),
    "reversibility": "2A",
    "workflow_gate": {"kind": "library_search", "evidence": "No library exists because this is a test."},
    "criteria": [{"name": "made", "command": "test -f made"}],
    "steps": [{"name": "make", "criteria": ["made"]}],
}
INTERRUPTED = {
    "build": ["build", "--ai-cmd", "false", "-n", "9"],
    "goal": ["goal", "run", "x", "--plan", "plan.json", "--ai-cmd", "true", "--headless", "--yes", "-n", "1"],
}


@pytest.mark.parametrize("name", INTERRUPTED)
def test_status_loads_only_what_it_shows(name: str, tmp_path: Path) -> None:
    """In a git workspace with a loop that can be resumed: modules of that kind, of no other, and few in all."""
    environment = {"HOME": str(tmp_path), "ROODA_STATE_HOME": str(tmp_path / "state")}
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    loaded_by(INTERRUPTED[name], tmp_path, environment)
    ran = subprocess.run(
        [sys.executable, "-m", "rooda", "status", "--json"],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **environment}, timeout=60, check=True,
    )  # fmt: skip
    assert [row["name"] for row in json.loads(ran.stdout)] == [name]
    ours = {module for module in loaded_by(["status"], tmp_path, environment) if module.split(".")[0] == "rooda"}
    assert len(ours) < MOST_FOR_STATUS
    assert len({module.split(".")[2] for module in ours if module.count(".") == 3 and ".loops." in module}) == 1
