"""The test kit of the reflex rows: rule sets, scripted answers, and a loop's files as they are on disk."""

import hashlib
import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

from .workspace import FAKE_AI, Call, Ran, Running, Workspace, until, waiting

FAKE = FAKE_AI
ALIAS = "write-the-courses-api"
TASK = "Write the courses API"
Json = dict[str, Any]


def rule(name: str, severity: str, weight: float | None = None, search: str = "") -> Json:
    found: Json = {"id": name, "description": f"About {name}", "severity": severity, "phase": name[0].upper()}
    if weight is not None:
        found["weight"] = weight
    return found | {"check": f"The artifact holds {search or name}"}


ENDPOINTS, NAMING, AUTH, DESCR = (
    *("a.correctness.endpoints", "a.style.naming"),
    *("b.completeness.auth", "b.quality.descriptions"),
)
WORDS = {ENDPOINTS: "ENDPOINTS", NAMING: "NAMING", AUTH: "AUTH", DESCR: "DESCR"}
RS1 = [rule(ENDPOINTS, "fail", 2), rule(NAMING, "warn", 1), rule(AUTH, "fail", 2), rule(DESCR, "warn", 1)]
LETTERS = {"E": "ENDPOINTS", "N": "NAMING", "A": "AUTH", "D": "DESCR"}
PLAN = json.dumps({"plan": ["Endpoints first", "Then the names", "Then the rest"]})


def words(letters: str, more: str = "") -> str:
    """An artifact that holds these of the four words, each in a section of its own."""
    return "# Courses\n" + "".join(f"\n## {LETTERS[each].title()}\n\n{LETTERS[each]}\n" for each in letters) + more


def content(name: str, search: str, **more: Any) -> Json:
    return {"rule_id": name, "type": "content", "search": search, "expected": f"{search} is there", **more}


def command(name: str, text: str) -> Json:
    return {"rule_id": name, "type": "executable", "command": text, "expected": "exit code 0"}


def checks(*found: Json) -> str:
    return json.dumps({"checks": list(found)})


def checks_of(rules: list[Json], level: str) -> str:
    """One content check for each active rule: its word, or its id."""
    active = [each for each in rules if level == "B" or each["phase"] == "A"]
    return checks(*(content(each["id"], WORDS.get(each["id"], each["id"])) for each in active))


def verdicts(**found: str) -> str:
    results = [
        {"id": name.replace("__", "."), "verdict": verdict, "details": "seen"} for name, verdict in found.items()
    ]
    return json.dumps({"rule_results": results})


def judged(found: dict[str, str]) -> str:
    return json.dumps({"rule_results": [{"id": n, "verdict": v, "details": f"seen {n}"} for n, v in found.items()]})


def issue(name: str, fix: str = "Add it") -> Json:
    return {"rule_id": name, "problem": f"{name} fails", "fix_instruction": fix, "expected_effect": f"{name} passes"}


def issues(*found: Json) -> str:
    return json.dumps({"issues": list(found)})


class Kit:
    """One workspace, one scripted agent, one loop."""

    def __init__(self, ws: Workspace) -> None:
        self.ws = ws
        ws.env["FAKE_KEYS"] = "phases"
        self.rules = RS1
        self.config()
        self.answer("PLAN.1", PLAN)
        self.give_rules(RS1)
        self.answer("PRODUCE.1", words("ENAD"))
        self.answer("REFINE.1", words("ENAD"))
        self.answer("CRITIQUE.1", issues(issue(ENDPOINTS, "Add GET /courses")))

    # given

    def config(self, more: str = "", table: str = "") -> None:
        """rooda.toml: the scripted agent; checks are run."""
        agent = json.dumps(f"{FAKE}")
        self.ws.config(f'[loop]\nai_cmd = {agent}\n[reflex]\nexec_checks = "run"\n{table}\n{more}')

    def answer(self, name: str, text: str, *directives: str) -> None:
        """What the agent says: `name` is PHASE.k, PHASE.<level>.k, PHASE.i<iteration>.k or PHASE.bad.k.

        Before, it does what the directives say: `exit N`, `sleep S`, `stderr TEXT`, `write PATH` (instead of stdout),
        `touch FILE`, `wait FILE`.
        """
        shell, code = "", 0
        for word, _, rest in (each.partition(" ") for each in directives):
            code = int(rest) if word == "exit" else code
            shell += {
                "sleep": f"sleep {rest}\n",
                "stderr": f"echo {shlex.quote(rest)} >&2\n",
                "write": f"to={shlex.quote(rest)}\n",
                "touch": f": >{shlex.quote(rest)}\n",
                "wait": waiting(rest),
            }.get(word, "")
        self.ws.answers(name, text, shell, code)

    def said(self, name: str) -> str:
        """The text of an answer."""
        return Path(self.ws.fake, f"{name}.out").read_bytes().decode()

    def answers(self) -> list[str]:
        """The names of all answers."""
        return sorted(path.name.removesuffix(".out") for path in Path(self.ws.fake).glob("*.out"))

    def forget(self, *names: str) -> None:
        for name in names:
            self.ws.forget_answer(name)

    def give_rules(self, rules: list[Json], **more: Any) -> None:
        """The rules file, and checks for all of them."""
        self.rules = rules
        self.ws.write("rs.json", json.dumps({"rules": rules, **more} if more else rules))
        for level in "AB":
            self.answer(f"PREPARE.{level}.1", checks_of(rules, level))

    # when

    def arguments(self, maximum: int | None = 4, *more: str, task: str = TASK) -> list[str]:
        limit = [] if maximum is None else ["--max-iterations", str(maximum)]
        return ["reflex", "new", task, "--rules", "rs.json", *limit, *more]

    def new(self, maximum: int | None = 4, *more: str, stdin: bytes = b"y\ny\n", task: str = TASK) -> Ran:
        return self.ws.rooda(*self.arguments(maximum, *more, task=task), stdin=stdin, timeout=60)

    def start(self, maximum: int = 4, *more: str) -> Running:
        """A loop that continues while the test looks at it."""
        return self.ws.start(*self.arguments(maximum, *more), stdin=b"y\ny\n")

    def reflex(self, *arguments: str, stdin: bytes | None = None) -> Ran:
        return self.ws.rooda("reflex", *arguments, stdin=stdin, timeout=60)

    def kill_in(self, name: str, text: str, maximum: int = 4, *more: str) -> None:
        """A loop that is killed for good while the agent gives this answer."""
        flag = os.path.join(self.ws.root, f"here-{len(self.ws.running)}")
        self.answer(name, text, f"touch {flag}", "sleep 30")
        running = self.start(maximum, *more)
        until(lambda: os.path.exists(flag), what=f"the call that answers {name}")
        self.killed(running)
        self.answer(name, text)

    def killed(self, running: Running) -> None:
        """Kill the visible process, and wait until no process of it is left."""
        running.process.kill()
        running.process.wait()
        until(lambda: not self.ws.leftovers(), what="every process to be gone")

    def again(self) -> None:
        """The agent counts its calls from 1 again."""
        self.ws.forget_calls()

    # then

    @property
    def home(self) -> Path:
        return Path(self.ws.path, ".ai-factory", "evolution")

    def files(self) -> list[str]:
        """Everything in the public folder."""
        return sorted(str(path.relative_to(self.home)) for path in self.home.rglob("*") if path.is_file())

    def path(self, name: str, alias: str = ALIAS) -> Path:
        return self.home / alias / name

    @property
    def run(self) -> Json:
        found: Json = json.loads(self.path("run.json").read_text())
        return found

    @property
    def history(self) -> list[Json]:
        return [json.loads(line) for line in self.path("history.jsonl").read_text().splitlines()]

    @property
    def ev(self) -> list[str]:
        return [event["event"] for event in self.history]

    @property
    def artifact(self) -> str:
        return self.path("artifact.md").read_text()

    def log_lines(self) -> list[Json]:
        """The calls of phases: one record when a call began, one when it ended, in this order."""
        found = []
        for call in self.ws.calls:
            if call.names:
                facts = facts_of(call) | {"t_start": self.ws.recorded(call.n, "meta").stat().st_mtime}
                found.append({"kind": "start", **facts})
                end = self.ws.recorded(call.n, "end")
                if end.exists():
                    found.append({"kind": "end", **facts, "t_end": end.stat().st_mtime})
        return sorted(found, key=lambda line: float(line.get("t_end", line["t_start"])))

    def started(self, phase: str) -> list[Json]:
        return [line for line in self.log_lines() if line["kind"] == "start" and phase in (line["phase"], "*")]

    def ended(self, phase: str) -> list[Json]:
        return [line for line in self.log_lines() if line["kind"] == "end" and phase in (line["phase"], "*")]

    def calls(self, phase: str) -> list[Json]:
        return self.started(phase)

    def counts(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for line in self.started("*"):
            found[line["phase"]] = found.get(line["phase"], 0) + 1
        return found

    def prompt(self, phase: str, nth: int = 1) -> str:
        text: str = self.started(phase)[nth - 1]["stdin"]
        return text

    def checksums(self) -> dict[str, str]:
        return {name: hashlib.sha256((self.home / name).read_bytes()).hexdigest() for name in self.files()}


def facts_of(call: Call) -> Json:
    """A call, and what the first line of its prompt says."""
    found = re.match(r"You are executing phase (\w+) for run (\S+), iteration (\d+), phase level (\w)\.\n", call.text)
    phase, run, iteration, level = found.groups() if found else ("DRAFT", "", "0", "A")
    facts: Json = {"phase": phase, "level": level, "iteration": int(iteration), "run_id": run, "pid": call.pid}
    facts |= {"cwd": call.cwd, "argv": call.argv, "stdin": call.text, "env": call.env}
    return facts | {"stdin_sha256": hashlib.sha256(call.prompt).hexdigest()}


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def traced(events: list[str]) -> str:
    """Short letters for the events, with the pair of PRODUCE and PREPARE in one order."""
    short = {
        "run_started": "R",
        "plan_created": "P",
        "artifact_created": "a",
        "checks_prepared": "c",
        "evaluation_done": "E",
        "critique_done": "C",
        "refinement_done": "F",
        "phase_switched": "S",
        "iteration_advanced": "I",
        "phase_error": "!",
        "stopped": "X",
        "failed": "Z",
    }
    return "".join(short[event] for event in events).replace("ca", "ac")
