"""One small loop of each kind, and what makes it end in one way or another; the scripted agent does the work."""

import json
from pathlib import Path
from typing import Any

from . import kinds
from .flow import AGENT, Flow
from .workspace import FAKE_AI, Ran, Running, Workspace

CHECK = {"rule_id": kinds.RULE["id"], "type": "content", "search": "one", "expected": "it is there"}


class Loops:
    """A workspace with `[loop]`, `[hooks]` and the loops' own settings; `more` is TOML."""

    def __init__(self, ws: Workspace, more: str = "", agent: str = f"ai_cmd = {json.dumps(FAKE_AI)}") -> None:
        self.ws, self.more, self.agent = ws, more, agent
        ws.procedure("build")

    def settings(self, agent: str = "") -> None:
        head = f"[loop]\n{agent or self.agent}\nretry_wait = 0\n"
        self.ws.config(head + "".join(self.ws.sections.values()) + self.more)

    def start(self, kind: str) -> Running:
        """One that continues while the test looks at it; a flow's actuator says where it is, and stays."""
        words = {"ooda": [*kinds.ooda(9)], "flow": [*kinds.flow()]}.get(kind)
        if kind == "reflex":
            words = self.reflex_words()
        elif kind == "goal":
            words = self.goal_words("--yes")
        elif kind == "flow":
            self.flow_ready("S1").say("actuator-main", '!sh touch "$FAKE/here"; sleep 60\n')
        else:
            self.settings()
        assert words is not None
        return self.ws.start(*words, stdin=b"y\ny\n")

    def ooda(self, *words: str, **how: Any) -> Ran:
        self.settings()
        return self.ws.rooda(*kinds.ooda(9), *words, **how)

    def reflex_words(self, *words: str) -> list[str]:
        """One rule of one word; the artifact holds it from the beginning."""
        self.settings()
        self.ws.write("rules.json", kinds.rules())
        for name, text in {
            "plan": json.dumps(kinds.STEPS),
            "produce": "# Page\n\none\n",
            "prepare": json.dumps({"checks": [CHECK]}),
        }.items():
            if not Path(self.ws.fake, f"{name}.out").exists():
                self.ws.out(name, text)
        return ["reflex", "new", "A page", "--rules", "rules.json", "-n", "2", "--alias", "page", *words]

    def reflex(self, *words: str, **how: Any) -> Ran:
        return self.ws.rooda(*self.reflex_words(*words), **{"stdin": b"y\ny\n", **how})

    def goal(self, *words: str, **how: Any) -> Ran:
        return self.ws.rooda(*self.goal_words(*words), **how)

    def goal_words(self, *words: str) -> list[str]:
        """One criterion, one step that makes it true and claims so."""
        self.settings()
        self.ws.write("plan.json", json.dumps(kinds.plan()))
        if not Path(self.ws.fake, "step-1.sh").exists():
            self.ws.side("step-1", "touch made")
        self.ws.out("step", kinds.CLAIM)
        return [*kinds.goal(), "--plan", "plan.json", *words]

    def flow(self, *words: str, scenario: str = "S1", **how: Any) -> Ran:
        """Measured, controlled, acted, complete; the kit's agent."""
        return self.flow_ready(scenario).run(*words, **how)

    def flow_ready(self, scenario: str) -> Flow:
        flow = Flow(self.ws, git=False)
        self.settings(f"ai_cmd = {json.dumps(AGENT)}")
        self.ws.git("init", "-q", "-b", "main")
        flow.commit("the beginning")
        return flow.scenario(scenario)
