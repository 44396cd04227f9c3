"""`rooda doctor --paths`: what rooda keeps outside of workspaces, compared with the code that keeps it."""

import ast
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rooda.cli import paths
from tests.kit.pages import ROOT
from tests.kit.workspace import Workspace

PACKAGE = ROOT / "rooda"
TABLES = {"state": paths.STATE, "make_state": paths.STATE, "cache": paths.CACHE, "data": paths.DATA}

# Calls of `dirs` whose first name is no constant, with the names that it can have.
COMPUTED = {"run/counts.py: folder": {"ledger", "counts"}, "run/private_homes.py: kind": {"homes", "commits"}}

# Files that find the user's folders without `dirs`, and why `--paths` need not, or does, know of it.
OTHERS = {
    "base/dirs.py": "the folders of the tables",
    "settings/layers.py": "the user's settings: listed",
    "cli/service.py": "unit, log and environment: listed",
    "cli/completion.py": "scripts: listed",
    "agents/cli_log.py": "reads logs of agent CLIs",
    "agents/sessions.py": "reads the CLIs' own sessions",
    "agents/clis/": "names folders of the CLIs",
    "agentkit/check.py": "a temporary folder",
    "agents/call.py": "the HOME of a call",
    "git/programs.py": "variables that git reads",
    "page/run_view.py": "shortens paths",
    "run/project_walls.py": "what a sandbox shows",
    "run/walls.py": "what a sandbox shows",
    "run/logins.py": "the CLIs' logins",
    "cli/attempts.py": "attempts of a hostile agent",
}


def listed(ws: Workspace, **env: str) -> dict[str, dict[str, Any]]:
    ran = ws.rooda("doctor", "--paths", "--json", env=env)
    assert ran.code == 0, ran.both
    return {row["path"]: row for row in json.loads(ran.out)}


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text())


def constants(tree: ast.Module) -> dict[str, str]:
    """Texts that a module gives to names."""
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def uses() -> Iterator[tuple[str, str]]:
    """Each first name that the code gives to a function of `dirs`, with the function."""
    for name, tree in trees():
        known = constants(tree)
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            if not (
                isinstance(node.func.value, ast.Name) and node.func.value.id == "dirs" and node.func.attr in TABLES
            ):
                continue
            first = node.args[0]
            if isinstance(first, ast.Constant):
                yield node.func.attr, first.value
            elif isinstance(first, ast.Name) and first.id in known:
                yield node.func.attr, known[first.id]
            else:
                yield from ((node.func.attr, each) for each in COMPUTED[f"{name}: {ast.unparse(first)}"])


def test_the_tables_have_every_folder_that_the_code_uses() -> None:
    """Each name given to `dirs.state`, `cache` and `data` has a row, and each row is used (`empty` without `dirs`)."""
    found = [*uses()]
    assert len(found) > 25
    for function, name in found:
        assert name in TABLES[function], f"dirs.{function}({name!r}) is not in rooda/cli/paths.py"
    for table in (paths.STATE, paths.CACHE, paths.DATA):
        assert {*table} - {name for function, name in found if TABLES[function] is table} <= {"empty"}


def test_nothing_else_finds_the_users_folders() -> None:
    """A module that asks for HOME or an XDG folder is known here; paths that the user types are not meant."""
    for name, tree in trees():
        asks = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and re.fullmatch(r"HOME|XDG_\w*", str(node.value)):
                asks.add(node.value)
            if isinstance(node, ast.Call) and ast.unparse(node) == "os.path.expanduser('~')":
                asks.add("~")
        assert not asks or any(map(name.startswith, OTHERS)), f"{name} uses {asks}: what does it keep there?"


def test_temporary_files_have_the_prefix_that_is_listed() -> None:
    """Each temporary file and folder of rooda is named `rooda-…`."""
    calls = 0
    for name, tree in trees():
        known = constants(tree)
        for node in ast.walk(tree):
            made = isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2]
            if made not in ("mkdtemp", "mkstemp", "TemporaryDirectory", "NamedTemporaryFile", "TemporaryFile"):
                continue
            assert isinstance(node, ast.Call)
            prefix = next(word.value for word in node.keywords if word.arg == "prefix")
            text = prefix.value if isinstance(prefix, ast.Constant) else known[ast.unparse(prefix)]
            assert str(text).startswith("rooda-"), name
            calls += 1
    assert calls > 5


def test_what_a_loop_leaves_is_listed_and_can_be_removed(ws: Workspace) -> None:
    """After a run each file below HOME is in a row, all rows are known, and their commands leave nothing."""
    ws.procedure("build")
    env = {name: "" for name in ws.env if name.startswith("XDG_")} | {"ROODA_CACHE_HOME": ""}
    assert ws.rooda("build", "-n", "1", env=env).code == 0
    assert ws.rooda("completion", "install", "bash", env=env).code == 0
    rows = listed(ws, **env)
    there = {path: row for path, row in rows.items() if row["exists"] and path.startswith(ws.home)}
    assert {"trust", "key", "ledger", "workspaces", "tokens", "rooda"} <= {os.path.basename(path) for path in there}
    assert all(row["what"] != paths.UNKNOWN for row in rows.values())
    assert all(row["bytes"] > 0 for path, row in there.items() if os.path.basename(path) in ("ledger", "trust", "key"))
    for row in there.values():
        command = shlex.split(row["remove"])
        if command[0] == "rooda":
            assert ws.rooda(*command[1:], env=env).code == 0
        elif row["path"].startswith(ws.home + "/."):
            subprocess.run(command, check=True)
    left = [path for path in Path(ws.home).glob(".[a-z]*/**/*") if path.is_file() and ".rooda-cache" not in path.parts]
    assert left == []


def test_what_this_version_does_not_know_is_listed(ws: Workspace) -> None:
    """A file of another version in rooda's folders is shown as such."""
    path = Path(ws.home, ".state", "rooda", "of a newer one")
    path.parent.mkdir(parents=True)
    path.write_text("x" * 5000)
    row = listed(ws)[str(path)]
    assert row["what"] == paths.UNKNOWN and row["exists"] and row["bytes"] >= 5000
    said = ws.rooda("doctor", "--paths").out
    assert f"  {path}\n" in said and f"remove: rm -rf '{path}'\n" in said


def test_places_follow_the_variables(ws: Workspace) -> None:
    """ROODA_STATE_HOME, ROODA_KEY_FILE and ROODA_CONFIG_HOME move the rows."""
    rows = listed(ws, ROODA_STATE_HOME="/a", ROODA_KEY_FILE="/b/key", ROODA_CONFIG_HOME="/c", ROODA_DATA_HOME="/d")
    assert {"/a/trust", "/b/key", "/c/rooda.toml", "/c/environment", "/d/tasks"} <= {*rows} and "/a/key" not in rows


def test_without_a_home_nothing_is_listed_as_roodas(ws: Workspace) -> None:
    """No HOME: no state, no cache, no data; the command still works."""
    env = {name: "" for name in ws.env if name.startswith(("XDG_", "ROODA_"))} | {"HOME": ""}
    assert not any("/rooda/trust" in path for path in listed(ws, **env))
