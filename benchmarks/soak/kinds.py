"""The four kinds of loops in a soak: what each needs on disk, how it is begun and gone on with, how far it is."""

import glob
import json
import os
import subprocess
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from benchmarks.bench import write
from benchmarks.goals.flow import topology
from benchmarks.goals.goal import plan
from tests.kit import kinds

MANY = 1000
IGNORED = ("said", "calls", "doubled", "limits.told", ".rooda/", ".loop/", ".ai-factory/")
PHASES = ("observe", "orient", "decide", "act")
SETTINGS = """\
[loop]
agent = "scripted"
iteration_timeout = 2
kill_grace = 0.5
retry_wait = 0
failure_threshold = 20
[goal]
agent = "scripted"
iteration_timeout = 2
[flow]
agent = "scripted"
iteration_timeout = 2
[reflex]
agent = "scripted"
iteration_timeout = 2
[agents.scripted]
command = %s
output = "claude"
[hooks]
limit = "cat >>limits.told"
[procedures.soak]
safety = "snapshot"
quality_gates = ["ls work*"]
max_cost = 1000
promise_signals = true
"""


Counter = Callable[[str], tuple[str, int]]


class Kind(NamedTuple):
    """One kind of loop."""

    name: str
    begin: Callable[[int], list[str]]  # the words that begin the n-th run
    resume: list[str]
    counter: Counter  # which run, and how far it is; ("", 0) when there is none
    json: tuple[str, ...]  # files that must be whole at any moment
    lines: tuple[str, ...]  # files whose every line must be, but for a torn last one


def furnish(folder: str, agent: str, env: Mapping[str, str]) -> None:
    """Whatever any of the four wants to find; a repository with a commit."""
    write(os.path.join(folder, "rooda.toml"), SETTINGS % json.dumps(agent) + "".join(f'{p} = "{p}"\n' for p in PHASES))
    write(os.path.join(folder, "rules.json"), kinds.rules())
    write(os.path.join(folder, "plan.json"), json.dumps(plan(20)))
    write(os.path.join(folder, ".gitignore"), "".join(f"/{name}\n" for name in IGNORED))
    for name in ("controller", "sensor", "actuator"):
        write(os.path.join(folder, f"loop-{name}-one.md"), f"You are the {name}. Write {{output-path}}.\n")
    os.mkdir(os.path.join(folder, ".ai-loop"))
    write(os.path.join(folder, ".ai-loop", "flow.yaml"), json.dumps({"version": 1, "flow": topology(2, MANY)}))
    for number in range(200):
        write(os.path.join(folder, f"file-{number}"), f"{number}\n" * 20)
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "all"]):
        subprocess.run(["git", *words], cwd=folder, env=env, check=True, capture_output=True)


def _state(path: str, which: str, count: str = "iteration") -> Callable[[str], tuple[str, int]]:
    def counter(folder: str) -> tuple[str, int]:
        found = _newest(os.path.join(folder, path))
        return (str(found[which]), int(found[count])) if found else ("", 0)

    return counter


def _newest(pattern: str) -> dict[str, Any]:
    paths = sorted(glob.glob(pattern), key=os.path.getmtime)
    if not paths:
        return {}
    with open(paths[-1], encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
        return found


def _commits(folder: str) -> tuple[str, int]:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False).stdout.strip()

    branch = git("symbolic-ref", "--short", "HEAD")
    return branch, int(git("rev-list", "--count", "HEAD") or 0)


def _goal(folder: str) -> tuple[str, int]:
    run = _newest(os.path.join(folder, ".loop", "run.json"))
    return str(run.get("started_at", "")), _state(".loop/state.json", "spec")(folder)[1]


_LIMIT = ["--iterations", str(MANY), "--force-limits"]
_PLANNED = ["--plan", "plan.json", "--score", "2,2,2,2,2", "--fresh"]


def _kind(name: str, begin: Callable[[int], list[str]], resume: list[str], counter: Counter) -> Kind:
    row = kinds.KINDS[name]
    return Kind(name, begin, [*row.resume, *resume], counter, row.whole, row.lines)


def _landed(folder: str) -> tuple[str, int]:
    paths = glob.glob(os.path.join(folder, TASKS, "[0-9]*.json"))
    return "tasks", sum(_newest(path)["state"] == "landed" for path in paths)


TASKS = os.path.join(".git", "rooda", "tasks")
TASK_LIST = Kind(
    "tasks",
    lambda _: ["tasks", "run", "-j", "2", "--land"],
    ["tasks", "run", "-j", "2", "--land"],
    _landed,
    (os.path.join(TASKS, "[0-9]*.json"),),
    (os.path.join(TASKS, "log*"),),
)
KINDS = (
    _kind("ooda", lambda _: [*kinds.ooda(0, "soak")], ["soak"], _state(".rooda/state/soak.json", "started_at")),
    _kind(
        "reflex",
        lambda n: [*kinds.reflex(MANY, f"soak-{n:04d}")],
        [],
        _state(".ai-factory/evolution/soak-*/run.json", "run_id"),
    ),
    _kind("flow", lambda _: [*kinds.flow(), "--new"], [], _commits),
    _kind("goal", lambda _: [*kinds.goal(MANY, "a task"), *_PLANNED], _LIMIT, _goal),
)
