"""Flows for tests: a git repository, the three flows and five scenarios of the checklist, and what a run left."""

import json
import os
import re
import shlex
from collections.abc import Callable
from typing import Any, NamedTuple

import yaml

from .workspace import FAKE_AI, Call, Ran, Workspace, waiting

AGENT = f"{FAKE_AI} --model {{model}}"
AGENTS = ".claude/agents"


def edit(rest: str) -> str:
    path, _, text = rest.partition(" ")
    folder = f"mkdir -p {shlex.quote(os.path.dirname(path))}; " if "/" in path else ""
    return f"{folder}printf '%s\\n' {shlex.quote(text)} >{shlex.quote(path)}\n"


# The agent's directives as shell text.
DIRECTIVES: dict[str, Callable[[str], str]] = {
    "!edit": edit,
    "!sh": lambda rest: f"sh -c {shlex.quote(rest)} >/dev/null 2>&1\n",
    "!wait": waiting,
    "!nowrite": lambda rest: "to=/dev/null\n",
    "!stdout": lambda rest: "to=\n",
}


class Level(NamedTuple):
    """One node of a chain: the last one is direct."""

    id: str
    sensors: tuple[str, ...]
    most: int


FL1 = (Level("main", ("unit",), 5),)
FL2 = (Level("delivery", ("full", "cover"), 3), Level("impl", ("types", "unit"), 4))
FL3 = (Level("a", ("sa",), 2), Level("b", ("sb",), 2), Level("c", ("sc",), 2))


def limited(levels: tuple[Level, ...], *most: int) -> tuple[Level, ...]:
    return tuple(level._replace(most=number) for level, number in zip(levels, most, strict=True))


def topology(levels: tuple[Level, ...]) -> dict[str, Any]:
    """The flow file as data."""
    first, *rest = levels
    inside = topology(tuple(rest))["flow"] if rest else None
    direct = {"strategy": "direct", "agent": f"{AGENTS}/loop-actuator-{first.id}.md"}
    return {
        "version": 1,
        "defaults": {"termination": {"on_error": "fail-fast"}},
        "flow": {
            "id": first.id,
            "type": "loop",
            "controller": f"{AGENTS}/loop-controller-{first.id}.md",
            "actuator": {"strategy": "composite", "child": inside} if inside else direct,
            "sensors": [f"{AGENTS}/loop-sensor-{name}.md" for name in first.sensors],
            "termination": {"max_iterations": first.most},
        },
    }


class Commit(NamedTuple):
    sha: str
    subject: str
    body: list[str]

    @property
    def fields(self) -> dict[str, str]:
        return dict(re.findall(r"^\[([\w-]+)\] (.*)$", "\n".join(self.body), re.MULTILINE))

    @property
    def label(self) -> str:
        found = re.search(r"iteration (\S+) —", self.subject)
        return found[1] if found else ""


class Flow:
    """A project with a flow in a workspace."""

    def __init__(self, ws: Workspace, levels: tuple[Level, ...] = FL1, git: bool = True) -> None:
        self.ws, self.levels = ws, levels
        self.scripts: dict[str, str] = {}  # what was said as which answer
        ws.env["FAKE_KEYS"] = "roles"
        ws.config(f"[loop]\nai_cmd = {json.dumps(AGENT)}\nretry_wait = 0\n")
        self.put(levels)
        ws.write("src.txt", "zero\n")
        if git:
            ws.git("init", "-q", "-b", "main")
            os.makedirs(ws.file(".git/hooks"), exist_ok=True)  # the template of the tests is empty
            self.commit("the beginning")

    # given

    def put(self, levels: tuple[Level, ...]) -> None:
        """Write the flow file and its agent files."""
        self.levels = levels
        self.ws.write(".ai-loop/flow.yaml", yaml.safe_dump(topology(levels), sort_keys=False))
        for level in levels:
            child = "Child: {child-node-id}\n"
            self.agent(
                f"controller-{level.id}",
                f"FAKE: controller {level.id} -> {{artifacts-path}}/controller-output.md\n"
                f"Node {{node-path}}\n{child}{{sensors-section}}\n",
            )
            for name in level.sensors:
                self.agent(f"sensor-{name}", f"FAKE: sensor {name} -> {{output-path}}\n")
        self.agent(f"actuator-{levels[-1].id}", f"FAKE: actuator {levels[-1].id} {{input-path}} -> {{output-path}}\n")

    def agent(self, name: str, text: str, front: str = "") -> str:
        return self.ws.write(f"{AGENTS}/loop-{name}.md", f"---\nname: loop-{name}\n{front}---\n{text}")

    def commit(self, message: str) -> None:
        self.ws.git("add", "-A")
        self.ws.git("commit", "-q", "--allow-empty", "-m", message)

    def say(self, key: str, *texts: str) -> None:
        """The answers of `role-name`, one after the other; the last one repeats."""
        for number, text in enumerate(texts, 1):
            self.script(f"{key}.{number}", text)

    def script(self, name: str, text: str) -> None:
        """What the agent does as answer `role-name.number`: the text is written to the file that it was asked for.

        Lines that begin with `!` come before: `!edit PATH TEXT`, `!sh COMMAND`, `!wait FILE`, `!exit N`, `!nowrite`,
        and `!stdout`, which prints the text instead.
        """
        self.scripts[name] = text
        shell, code, said = "", 0, []
        for line in text.splitlines(keepends=True):
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "!exit":
                code = int(rest)
            elif word in DIRECTIVES:
                shell += DIRECTIVES[word](rest)
            else:
                said.append(line)
        self.ws.answers(name, "".join(said), shell, code)

    def forget(self, name: str) -> None:
        """Take an answer away."""
        self.scripts.pop(name, None)
        self.ws.forget_answer(name)

    def also(self, call: str, line: str) -> None:
        """What `role-name.number` does before it says what it was given to say."""
        self.script(call, f"{line}\n{self.scripts[call]}")

    def sensor(self, name: str, *states: str, more: str = "") -> None:
        head = f"---\nsensor: {name}\nstatus: %s\n---\n# Sensor Output: {name}\n"
        self.say(f"sensor-{name}", *(head % state + more for state in states))

    def controller(self, node: str, *met: bool, plan: str = "1. do it") -> None:
        texts = []
        for number, each in enumerate(met, 1):
            text = (
                f"---\ntarget-met: {str(each).lower()}\n---\n# Controller Output\n\n## Gap Analysis\n\ngap {number}\n"
            )
            texts.append(text if each else f"{text}\n## Action Plan\n\n{plan}\n")
        self.say(f"controller-{node}", *texts)

    def actuator(self, node: str, *edits: str, said: str = "") -> None:
        texts = []
        for edit in edits:
            done = said or f"Wrote {edit} into src.txt."
            texts.append(f"!edit src.txt {edit}\n# Actuator Output\n\n## What Was Done\n\n{done}\n")
        self.say(f"actuator-{node}", *texts)

    def scenario(self, name: str) -> "Flow":
        """S1 to S5."""
        getattr(self, f"_{name}")()
        if self.ws.git("status", "--porcelain").strip():
            self.commit("another flow")
        return self

    def _S1(self) -> None:
        self.put(FL1)
        self.sensor("unit", "fail", "pass")
        self.controller("main", False, True)
        self.actuator("main", "one")

    def _S2(self) -> None:
        self.put(FL2)
        for name in ("full", "cover"):
            self.sensor(name, "fail", "pass")
        for name in ("types", "unit"):
            self.sensor(name, "pass")
        self.controller("impl", False, True, plan="inner plan")
        self.controller("delivery", False, True, plan="outer plan")
        self.actuator("impl", "one")

    def _S3(self) -> None:
        self.put(limited(FL1, 3))
        self.sensor("unit", "fail")
        self.controller("main", False)
        self.actuator("main", "one", "two")

    def _S4(self) -> None:
        self.put(limited(FL2, 2, 3))
        for name in ("full", "cover", "types", "unit"):
            self.sensor(name, "fail")
        self.controller("impl", False)
        self.controller("delivery", False)
        self.actuator("impl", "one", "two", "three")

    def _S5(self) -> None:
        self.put(FL3)
        for name in ("sa", "sb", "sc"):
            self.sensor(name, "fail")
        self.controller("a", False, plan="plan of a")
        self.controller("b", False, plan="plan of b")
        self.controller("c", False, plan="plan of c")
        self.actuator("c", "one", "two")

    # when

    def run(self, *words: str, **how: Any) -> Ran:
        return self.ws.rooda("flow", "run", *(words or ("do it",)), **{"timeout": 60, **how})

    def resume(self, *words: str, **how: Any) -> Ran:
        return self.ws.rooda("flow", "resume", *words, **{"timeout": 60, **how})

    # then

    @property
    def run_id(self) -> str:
        return sorted(name for name in os.listdir(self.ws.file(".ai-loop/runs")) if name.startswith("run_"))[-1]

    def rd(self, name: str = "") -> str:
        """A path inside the run's folder, relative to the project."""
        return f".ai-loop/runs/{self.run_id}/{name}".rstrip("/")

    def ap(self, node: str, name: str = "") -> str:
        """A path inside a node's folder: `impl` or `delivery/impl`."""
        path = "/".join(level.id for level in self.levels)
        path = path[: path.index(node) + len(node)] if "/" not in node else node
        return self.rd(f"nodes/{path}/{name}").rstrip("/")

    def fm(self, path: str) -> dict[str, Any]:
        return front_matter(self.ws.read(path))

    @property
    def state(self) -> dict[str, Any]:
        return self.fm(self.rd("run-state.md"))

    def log(self, base: str = "main") -> list[Commit]:
        text = self.ws.git("log", "--reverse", "-z", "--format=%H%n%B", f"{base}..HEAD")
        rows = [each.strip("\n").split("\n") for each in text.split("\0") if each.strip()]
        return [Commit(row[0], row[1], row[2:]) for row in rows]

    def labels(self, base: str = "main") -> list[str]:
        return [commit.label for commit in self.log(base)]

    def at(self, label: str) -> Commit:
        return next(commit for commit in self.log() if commit.label == label)

    def shown(self, label: str, path: str) -> str:
        """A file as the boundary's commit has it."""
        return self.ws.git("show", f"{self.at(label).sha}:{path}")

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The agent's calls, in order."""
        return [self._facts(call) for call in self.ws.calls if call.names or self.ws.recorded(call.n, "runs").exists()]

    def _facts(self, call: Call) -> dict[str, Any]:
        served = [name.split("-", 1) for name in call.names]
        copy = self.ws.recorded(call.n, "runs")
        found = {str(path.relative_to(copy)): path for path in copy.rglob("*")}
        return {
            "n": call.n,
            "role": served[0][0] if served else "",
            "served": served,
            "argv": call.argv,
            "pid": call.pid,
            "prompt": call.text,
            "env": call.env,
            "texts": {f".ai-loop/runs/{name}": path.read_text() for name, path in found.items() if path.is_file()},
            "folders": [f".ai-loop/runs/{name}" for name, path in found.items() if path.is_dir()],
        }

    def forget_ended(self, *names: str) -> None:
        """The agent no longer counts the calls of these names (`actuator-impl`; all, if none is given)."""
        for call in self.ws.calls:
            if not names or {*call.names} & {*names}:
                self.ws.recorded(call.n, "end").unlink(missing_ok=True)

    def roles(self) -> list[str]:
        """`sensor full+cover haiku`, `controller main opus`, …"""
        return [
            f"{call['role']} {'+'.join(name for _, name in call['served'])} {call['argv'][-1]}" for call in self.calls
        ]

    def clean(self) -> bool:
        return self.ws.git("status", "--porcelain") == ""


def front_matter(text: str) -> dict[str, Any]:
    found = re.match(r"---\n(.*?)^---$", text, re.DOTALL | re.MULTILINE)
    assert found, text
    keys = yaml.safe_load(found[1])
    assert isinstance(keys, dict)
    return keys


def words(*parts: str) -> str:
    return shlex.join(parts)
