"""The test kit of the reflex rows: rule sets, scripted answers, and a loop's files as they are on disk."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from .workspace import Ran, Running, Workspace, until

FAKE = str(Path(__file__).with_name("agent_reflex"))
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
        self.answers = os.path.join(ws.root, "answers")
        os.makedirs(self.answers)
        self.log = os.path.join(ws.root, "fake.log")
        ws.env |= {"FAKE_DIR": self.answers, "FAKE_LOG": self.log}
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
        """What the agent says: `name` is PHASE.k, PHASE.<level>.k or PHASE.i<iteration>.k."""
        with open(os.path.join(self.answers, name), "w", encoding="utf-8", newline="") as file:
            file.write("".join(f"!{each}\n" for each in directives) + text)

    def forget(self, *names: str) -> None:
        for name in names:
            os.unlink(os.path.join(self.answers, name))

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
        """A loop that goes on while the test looks at it."""
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
        """KILL of the visible process, and wait until nobody of it is left."""
        running.process.kill()
        running.process.wait()
        until(lambda: not self.ws.leftovers(), what="every process to be gone")

    def again(self) -> None:
        """The agent counts its calls from 1 again."""
        os.unlink(self.log)

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
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8", errors="surrogateescape") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

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
