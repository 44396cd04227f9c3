"""Prints figures of the architecture: modules, rooms per kind, modules that `rooda status` loads, hops to an agent.

Run: python tools/house.py
"""

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "rooda"
KINDS = sorted(path.parent.name for path in (PACKAGE / "loops").glob("*/kind.py"))

# Prints the modules on the stack when the agent starts, main first. Audit events report the start of a process.
HOPS = """
import sys
agent, words = sys.argv[1], sys.argv[2:]
def audit(event, details):
    if event in ("subprocess.Popen", "os.posix_spawn") and agent in repr(details):
        frame, stack = sys._getframe(1), []
        while frame:
            name = frame.f_globals.get("__name__", "")
            if name.startswith("rooda.") and (not stack or stack[-1] != name):
                stack.append(name)
            frame = frame.f_back
        print("HOPS", *reversed(stack), file=sys.stderr)
sys.addaudithook(audit)
from rooda.startup import main
sys.exit(main(words))
"""
LOADED = """
import sys
from rooda.startup import main
try:
    main(["status"])
finally:
    print("LOADED", *(name for name in sys.modules if name.split(".")[0] == "rooda"), file=sys.stderr)
"""


def python(code: str, *words: str, folder: str) -> str:
    """Run a program in this folder, with the folder as HOME, and return its standard error."""
    environment = {**os.environ, "HOME": folder, "PYTHONPATH": str(ROOT), "ROODA_CACHE_HOME": f"{folder}/cache"}
    command = [sys.executable, "-c", code, *words]
    ran = subprocess.run(command, check=False, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    return ran.stderr


def last_line(text: str, word: str) -> list[str]:
    lines = [line.split()[1:] for line in text.splitlines() if line.startswith(word)]
    return lines[0] if lines else []


PLAN = {
    "scores": dict.fromkeys(("outcome", "scope", "constraints", "success", "done"), 1),
    "reversibility": "2A",
    "workflow_gate": {"kind": "library_search", "evidence": "No library exists because this is a measurement."},
    "criteria": [{"name": "made", "command": "test -f made"}],
    "steps": [{"name": "make", "criteria": ["made"]}],
}
GOAL = ("goal", "run", "x", "--plan", "plan.json", "--headless", "--yes", "-n", "1")


def project(folder: str) -> None:
    subprocess.run(["git", "init", "-q", folder], check=True)
    (Path(folder) / "plan.json").write_text(json.dumps(PLAN))
    (Path(folder) / "agent").write_text("#!/bin/sh\necho '<promise>SUCCESS</promise>'\n")
    (Path(folder) / "agent").chmod(0o755)


def hops(*words: str) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        project(folder)
        found = last_line(python(HOPS, f"{folder}/agent", *words, "--ai-cmd", f"{folder}/agent", folder=folder), "HOPS")
    return [name.removeprefix("rooda.") for name in found]


def loaded_by_status() -> dict[str, int]:
    """Modules of rooda that `rooda status` loads, by the state of the workspace."""
    counts = {}
    states = {
        "nothing": (),
        "an interrupted procedure": ("build", "--ai-cmd", "false", "-n", "9"),
        "a paused goal": (*GOAL, "--ai-cmd", "true"),
    }
    for what, words in states.items():
        with tempfile.TemporaryDirectory() as folder:
            project(folder)
            if words:
                python(f"from rooda.startup import main; main({[*words]!r})", folder=folder)
            counts[what] = len(last_line(python(LOADED, folder=folder), "LOADED"))
    return counts


def main() -> int:
    modules = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
    lengths = {path: len((PACKAGE / path).read_text().splitlines()) for path in modules}
    functions = [
        (node.end_lineno or 0) - node.lineno + 1
        for path in modules
        for node in ast.walk(ast.parse((PACKAGE / path).read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    print(f"modules: {len(modules)} (without packages' empty files: {sum(1 for n in lengths.values() if n)})")
    print(f"lines: {sum(lengths.values())}; of a module: median {median(n for n in lengths.values() if n):.0f}")
    print(f"functions: {len(functions)}, median {median(functions):.0f} lines, longest {max(functions)}")
    for path, count in sorted(lengths.items(), key=lambda item: -item[1]):
        if count > 500:
            print(f"over 500 lines: {path} ({count})")
    rooms = Counter(path.parts[1] for path in modules if path.parts[0] == "loops" and len(path.parts) > 2)
    for kind in KINDS:
        print(f"{kind}: {rooms[kind]} modules in 1 room")
    for what, count in loaded_by_status().items():
        print(f"`rooda status` with {what}: {count} modules of rooda")
    for words in (("build", "-n", "1"), GOAL):
        path = hops(*words)
        print(f"rooda {words[0]}: {len(path)} modules from main to the agent: {' -> '.join(path)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
