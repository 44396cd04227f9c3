"""The four kinds of loops, a row each: how a workspace is made, started and resumed, and how its end is known."""

import json
import os
import subprocess
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.kit import kinds

Json = dict[str, Any]
PHASES = ("observe", "orient", "decide", "act")
RULES = [
    {"id": "a.correct.endpoints", "severity": "fail", "description": "All endpoints", "check": "ENDPOINTS is there"},
    {"id": "a.style.names", "severity": "warn", "description": "Good names", "check": "NAMES is there"},
    {"id": "b.complete.access", "severity": "fail", "description": "Who may do what", "check": "A reader finds ACCESS"},
]
FLOW = """\
version: 1
flow:
  id: outer
  type: loop
  controller: agents/loop-controller-outer.md
  actuator:
    strategy: composite
    child:
      id: inner
      type: loop
      controller: agents/loop-controller-inner.md
      actuator: {strategy: direct, agent: agents/loop-actuator.md}
      sensors: [agents/loop-sensor-unit.md]
      termination: {max_iterations: 4}
  sensors: [agents/loop-sensor-suite.md]
  termination: {max_iterations: 5}
"""
FLOW_AGENTS = {
    "sensor-suite": "FLOW: sensor suite 2 {output-path}",
    "sensor-unit": "FLOW: sensor unit parent {output-path}",
    "controller-outer": "{sensors-section}\n{child-node-id}\n"
    "FLOW: controller outer {artifacts-path}/sensor-suite-output.md {artifacts-path}/controller-output.md",
    "controller-inner": "{sensors-section}\n"
    "FLOW: controller inner {artifacts-path}/sensor-unit-output.md {artifacts-path}/controller-output.md",
    "actuator": "FLOW: actuator work {input-path} {output-path}",
}
SPEC = "Make alpha and beta, nothing else, checked by their presence, done then."


class Failed(Exception):
    """Something that is neither a fault nor its consequence."""


class Kind(NamedTuple):
    """One kind of loop with a run of several turns. `agent` is the command line of the scripted agent."""

    name: str
    prepare: Callable[[str, str], None]  # (folder, agent)
    start: tuple[str, ...]
    resume: Callable[[str], tuple[str, ...]]  # (folder)
    turns: tuple[frozenset[str], ...]  # the calls of an undisturbed run in their order; those of one set in any order
    begun: Callable[[str], bool]  # is there something that can go on?
    over: Callable[[str], bool]  # do the public files say that it has come to its end?
    public: tuple[str, ...]  # folders of the public files
    keys: "dict[str, dict[str, type | tuple[type, ...]]]"  # what each JSON file must hold, by the end of its name
    git: bool = False
    finished: int = 0  # exit code of a resume of what is over


def write(folder: str, name: str, text: str) -> None:
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def load(folder: str, name: str) -> Json:
    """A JSON file's content; {} when it is not there or not one."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def git(folder: str, *words: str) -> str:
    name = ["-c", "user.name=faults", "-c", "user.email=faults@example.invalid"]
    command = ["git", *name, *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise Failed(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def _repository(folder: str) -> None:
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "faults")
    git(folder, "config", "user.email", "faults@example.invalid")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "The beginning")


def _settings(section: str, agent: str, more: str = "") -> str:
    return f"[{section}]\nai_cmd = {json.dumps(agent)}\nkill_grace = 1\nretry_wait = 0\n{more}"


def _ooda(folder: str, agent: str) -> None:
    phases = "".join(f'{phase} = "{phase}"\n' for phase in PHASES)
    gate = '[[procedures.build.quality_gates]]\nname = "made"\ncommand = "test -d made"\n'
    write(folder, "rooda.toml", f"{_settings('loop', agent)}[procedures.build]\n{phases}{gate}")


def _reflex(folder: str, agent: str) -> None:
    write(folder, "rooda.toml", _settings("reflex", agent, 'exec_checks = "run"\n'))
    write(folder, "rules.json", json.dumps(RULES))


def _flow(folder: str, agent: str) -> None:
    write(folder, "rooda.toml", _settings("flow", agent))
    write(folder, ".ai-loop/flow.yaml", FLOW)
    for name, text in FLOW_AGENTS.items():
        write(folder, f"agents/loop-{name}.md", f"---\nname: loop-{name}\n---\n{text}\n")
    write(folder, "work.txt", "0\n")
    _repository(folder)


def _goal(folder: str, agent: str) -> None:
    write(folder, "rooda.toml", _settings("goal", agent))
    _repository(folder)


def _flow_state(folder: str) -> str:
    """run-state.md of the only run."""
    runs = os.path.join(folder, ".ai-loop", "runs")
    try:
        with open(
            os.path.join(runs, sorted(os.listdir(runs))[-1], "run-state.md"), encoding="utf-8", errors="replace"
        ) as file:
            return file.read()
    except (OSError, IndexError):
        return ""


def _failed_run(folder: str) -> tuple[str, ...]:
    """A run that ended with an error goes on when it is named."""
    state = _flow_state(folder)
    return (state.partition("run-id: ")[2].split()[0],) if "\nstatus: error" in state else ()


def _any(folder: str, *names: str) -> bool:
    """Is there one of them, and something in it?"""
    paths = [os.path.join(folder, name) for name in names]
    return any(os.path.exists(path) and os.path.getsize(path) > 0 for path in paths)


def _calls(*rows: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(row.split(", ")) for row in rows)


TURNS = 6
OODA_STATE, COURSES = ".rooda/state/build.json", ".ai-factory/evolution/courses"
OODA = Kind(
    "ooda",
    _ooda,
    kinds.ooda(TURNS),
    lambda folder: ("resume", "build"),
    tuple(frozenset([f"iteration {number}"]) for number in range(1, TURNS + 1)),
    lambda folder: os.path.exists(os.path.join(folder, OODA_STATE)),
    lambda folder: not os.path.exists(os.path.join(folder, OODA_STATE)) and _any(folder, f"made/{TURNS}"),
    kinds.KINDS["ooda"].public,
    {
        "build.json": {
            **dict.fromkeys(("iteration", "max_iterations", "consecutive_failures", "failure_threshold"), int),
            **dict.fromkeys(("started_at", "status", "procedure_name"), str),
            "elapsed_per_iteration": list,
        }
    },
    finished=2,
)
REFLEX = Kind(
    "reflex",
    _reflex,
    kinds.reflex(4, "courses"),
    lambda folder: kinds.KINDS["reflex"].resume,
    _calls(
        *("plan 1 A", "produce 1 A, prepare 1 A", "prepare 1 B", "evaluate 1 B", "critique 1 B", "refine 1 B"),
        *("plan 2 B", "produce 2 B, prepare 2 B", "evaluate 2 B"),
    ),
    lambda folder: _any(folder, f"{COURSES}/run.json", f"{COURSES}/history.jsonl"),
    lambda folder: load(folder, f"{COURSES}/run.json").get("status") not in (None, "running"),
    kinds.KINDS["reflex"].public,
    {
        "current.json": dict.fromkeys(("active_run_id", "task_alias", "status", "updated_at"), str),
        "run.json": {**dict.fromkeys(("run_id", "task_alias", "status"), str), "iteration": int},
        "history.jsonl": {**dict.fromkeys(("ts", "run_id", "event", "step", "phase"), str), "payload": dict},
    },
    finished=3,
)
FLOW_KIND = Kind(
    "flow",
    _flow,
    kinds.flow(),
    lambda folder: (*kinds.KINDS["flow"].resume, *_failed_run(folder)),
    _calls(
        "sensor 0 outer 0",
        *(
            call
            for turn in (1, 2)
            for call in (
                f"controller {turn} outer {turn}",
                f"controller 1 outer/inner {turn}.1",
                f"actuator 1 outer/inner {turn}.1",
                f"sensor 1 outer/inner {turn}.1",
                f"controller 2 outer/inner {turn}.2",
                f"sensor {turn} outer {turn}",
            )
        ),
        "controller 3 outer 3",
    ),
    lambda folder: bool(_flow_state(folder)),
    lambda folder: "\nstatus: complete" in _flow_state(folder) and not git(folder, "status", "--porcelain"),
    (".ai-loop",),
    {},
    git=True,
    finished=2,
)
GOAL = Kind(
    "goal",
    _goal,
    kinds.goal(name=SPEC),
    lambda folder: kinds.KINDS["goal"].resume,
    _calls("plan 1", "step 1", "step 2", "step 3"),
    lambda folder: _any(folder, ".loop/run.json", ".loop/iterations.jsonl"),
    lambda folder: load(folder, ".loop/state.json").get("status") == "completed" and _any(folder, ".loop/summary.md"),
    kinds.KINDS["goal"].public,
    {
        "state.json": {"status": str, "iteration": int},
        "run.json": {},
        "iterations.jsonl": {"iteration": int},
    },
    git=True,
    finished=2,
)
KINDS = {kind.name: kind for kind in (OODA, REFLEX, FLOW_KIND, GOAL)}
