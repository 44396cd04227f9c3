"""One small loop of each kind, in one table: how it is prepared, held in its middle, and known to be done.

The scripted agent does the work. What differs from test to test is a parameter, and an answer that the test has given
stays.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from . import kinds
from .flow import AGENT, Flow, front_matter
from .workspace import FAKE_AI, Ran, Running, Workspace

PAGE = "# Page\n\none\n"
CHECK = {"rule_id": kinds.RULE["id"], "type": "content", "search": "one", "expected": "it is there"}


class Small(NamedTuple):
    """The small loop of one kind."""

    prepare: Callable[..., Any]  # (workspace, …): its files and answers, but for rooda.toml
    middle: tuple[str, ...]  # the answers in its middle; each comes once it is let go
    done: Callable[[Workspace, int], bool]  # (…, turns): do its files say so, with nothing lost and nothing doubled?
    agent: str = FAKE_AI


def _ooda(ws: Workspace) -> None:
    """The procedure is in rooda.toml."""


def _ooda_done(ws: Workspace, turns: int) -> bool:
    ends = [each for each in ws.every_event() if each["event"] == "run.ended" and each["status"] == "completed"]
    return bool(ends) and ends[-1]["iterations"] == turns and ws.state() is None


def _reflex(ws: Workspace) -> None:
    """One rule of one word; the artifact holds it from the beginning."""
    ws.write("rules.json", kinds.rules())
    _answer(ws, "plan", json.dumps(kinds.STEPS))
    _answer(ws, "produce", PAGE)
    _answer(ws, "prepare", json.dumps({"checks": [CHECK]}))


def _reflex_done(ws: Workspace, turns: int) -> bool:
    folder = Path(ws.path, ".ai-factory", "evolution", "page")
    run = json.loads((folder / "run.json").read_text())
    history = [json.loads(line)["event"] for line in (folder / "history.jsonl").read_text().splitlines()]
    return (
        (run["status"], run["iteration"]) == ("completed", turns)
        and (folder / "artifact.md").read_text() == PAGE
        and [history.count(each) for each in ("run_started", "plan_created", "artifact_created")] == [1, 1, 1]
        and not (folder.parent / "current.json").exists()
    )


def _flow(ws: Workspace, scenario: str = "S1") -> Flow:
    """Measured, controlled, acted, complete, by the agent of flows; git ignores the settings."""
    flow = Flow(ws, git=False)
    ws.git("init", "-q", "-b", "main")
    ws.write(".git/info/exclude", "/rooda.toml\n")
    flow.commit("the beginning")
    return flow.scenario(scenario)


def _flow_done(ws: Workspace, turns: int) -> bool:
    (state,) = Path(ws.path, ".ai-loop", "runs").glob("run_*/run-state.md")
    subjects = ws.git("log", "--format=%s", "main..HEAD").splitlines()
    return front_matter(state.read_text())["status"] == "complete" and len(subjects) == len({*subjects}) == turns


def _goal(ws: Workspace, steps: int = 1, score: int = 1) -> None:
    """So many steps; the last one makes the criterion true and claims that all is done."""
    ws.write("plan.json", json.dumps(kinds.plan(score, steps)))
    _answer(ws, "plan", json.dumps(kinds.plan(score, steps, quote=kinds.SPEC)))
    if not Path(ws.fake, f"step-{steps}.sh").exists():
        ws.side(f"step-{steps}", "touch made")
    ws.out("step", kinds.CLAIM)
    for number in range(1, steps):
        ws.out(f"step-{number}", kinds.CLAIM.replace("true", "false"))


def _goal_done(ws: Workspace, turns: int) -> bool:
    rows = [json.loads(line)["iteration"] for line in ws.read(".loop/iterations.jsonl").splitlines()]
    return ws.json(".loop/state.json")["status"] == "completed" and rows == [*range(turns + 1)]


def _answer(ws: Workspace, key: str, text: str) -> None:
    if not Path(ws.fake, f"{key}.out").exists():
        ws.out(key, text)


SMALL = {
    "ooda": Small(_ooda, ("iteration-2", "iteration-3"), _ooda_done),
    "reflex": Small(_reflex, ("produce",), _reflex_done),
    "flow": Small(_flow, ("actuator-main.1",), _flow_done, AGENT),
    "goal": Small(_goal, ("step-1",), _goal_done),
}


def hold(ws: Workspace, kind: str, shell: str) -> None:
    """What the calls in the middle do before they answer."""
    for key in SMALL[kind].middle:
        path = Path(ws.fake, f"{key}.sh")
        path.write_text(f"{shell}\n{path.read_text() if path.exists() else ''}")


class Loops:
    """A workspace with `[loop]`, `[hooks]` and the loops' own settings; `more` is TOML, `agent` keys of [loop]."""

    def __init__(self, ws: Workspace, more: str = "", agent: str = "") -> None:
        self.ws, self.more, self.agent = ws, more, agent
        ws.procedure("build")

    def settings(self, kind: str = "ooda") -> None:
        agent = self.agent or f"ai_cmd = {json.dumps(SMALL[kind].agent)}"
        self.ws.config(f"[loop]\n{agent}\nretry_wait = 0\n" + "".join(self.ws.sections.values()) + self.more)

    def prepare(self, kind: str, **how: Any) -> Any:
        """Its files, its answers and the settings; `how` is a scenario, or a goal's steps and score."""
        made = SMALL[kind].prepare(self.ws, **how)
        self.settings(kind)
        return made

    def words(self, kind: str, *words: str, most: int = 2, **how: Any) -> list[str]:
        """Prepare it; the words that start it."""
        self.prepare(kind, **how)
        return [*kinds.KINDS[kind].begin(0 if kind == "goal" else most), *words]

    def start(self, kind: str) -> Running:
        """One that continues while the test looks at it; a flow's actuator says where it is, and stays."""
        words = self.goal_words("--yes") if kind == "goal" else self.words(kind, most=9)
        if kind == "flow":
            hold(self.ws, kind, 'touch "$FAKE/here"; sleep 60')
        return self.ws.start(*words)

    def ooda(self, *words: str, **how: Any) -> Ran:
        return self.ws.rooda(*self.words("ooda", *words, most=9), **how)

    def reflex(self, *words: str, **how: Any) -> Ran:
        return self.ws.rooda(*self.words("reflex", *words), **how)

    def goal(self, *words: str, **how: Any) -> Ran:
        return self.ws.rooda(*self.goal_words(*words), **how)

    def goal_words(self, *words: str) -> list[str]:
        return self.words("goal", "--plan", "plan.json", *words)

    def flow(self, *words: str, scenario: str = "S1", **how: Any) -> Ran:
        return self.flow_ready(scenario).run(*words, **how)

    def flow_ready(self, scenario: str) -> Flow:
        flow: Flow = self.prepare("flow", scenario=scenario)
        return flow
