"""Given and expected of goals: plans by their score, the steps' scripts, the state's copies."""

import json
import re
from pathlib import Path
from typing import Any

from .workspace import FAKE_AI, Ran, Terminal, Workspace

SPEC = "Make alpha and beta files. Outcome two, scope two, limits two, checks two, end one."
QUOTES = {
    "outcome": "Outcome two",
    "scope": "scope two",
    "constraints": "limits two",
    "success": "checks two",
    "done": "end one",
}
SCORES = {
    9: (2, 2, 2, 2, 1),
    8: (2, 2, 2, 1, 1),
    7: (2, 2, 1, 1, 1),
    6: (2, 1, 1, 1, 1),
    5: (1, 1, 1, 1, 1),
    4: (1, 1, 1, 1, 0),
}
A, B = "tests pass", "lint clean"
BLOCK = re.compile(
    r"---LOOP_STATUS---\nEXIT_SIGNAL: (true|false)\nCRITERIA: (\{.*\})\nSTUCK_COUNT: (\d+)\nNEXT: (.+)\n"
    r"---END_STATUS---\n"
)


def plan(total: int = 9, **changes: Any) -> dict[str, Any]:
    """A plan that scores so much; `changes` replaces keys, None removes them."""
    scores = {name: {"score": score, "quote": QUOTES[name]} for name, score in zip(QUOTES, SCORES[total], strict=True)}
    found: dict[str, Any] = {
        "scores": scores,
        "reversibility": "2A",
        "workflow_gate": {"kind": "library_search", "evidence": "one or two"},
        "criteria": [
            {"name": A, "verification": "execution output", "command": "test -f a.ok"},
            {"name": B, "verification": "execution output", "command": "test -f b.ok"},
        ],
        "steps": [
            {"name": "step1", "criteria": [A]},
            {"name": "step2", "criteria": []},
            {"name": "step3", "criteria": [B]},
        ],
    }
    return {key: value for key, value in {**found, **changes}.items() if value is not None}


def claim(exit_signal: bool, text: str = "", **lines: str) -> str:
    """What an agent prints at its end."""
    more = "".join(f"{name}: {value}\n" for name, value in lines.items())
    signal = str(exit_signal).lower()
    return f"{text}\n---LOOP_STATUS---\nEXIT_SIGNAL: {signal}\nCRITERIA: {{}}\n{more}---END_STATUS---\n"


class Goals(Workspace):
    """A workspace with the scripted agent as AI command. Call 1 plans, call k+1 is iteration k."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.config(f"[goal]\nai_cmd = {json.dumps(FAKE_AI)}\n")
        self.planned()
        self.claims(False)

    def planned(self, total: int = 9, **changes: Any) -> None:
        self.out("plan", json.dumps(plan(total, **changes)))

    def claims(self, exit_signal: bool, *calls: int, **lines: str) -> None:
        """The block of these calls, or of all step calls."""
        for key in calls or ("step",):
            self.out(key, claim(exit_signal, **lines))

    def side(self, key: int | str, shell: str) -> None:
        """Shell text of a call; `step` means every iteration, besides what single ones do."""
        for each in [f"step-{number}" for number in range(1, 13)] if key == "step" else [key]:
            super().side(each, shell)

    def succeeds(self) -> None:
        """Three steps, all well; the last one claims completion."""
        self.side("step-1", "touch a.ok")
        self.side("step-3", "touch b.ok")
        self.claims(True)
        for number in (1, 2):
            self.out(f"step-{number}", claim(False))

    def run(self, *arguments: str, spec: str = SPEC, **how: Any) -> Ran:
        return self.rooda("goal", "run", spec, *arguments, **how)

    def go_on(self, *arguments: str, **how: Any) -> Ran:
        return self.rooda("goal", "continue", *arguments, **how)

    def on_terminal(self, *arguments: str, spec: str = SPEC) -> Terminal:
        return self.terminal("goal", "run", spec, *arguments, columns=160)

    @property
    def public(self) -> dict[str, Any]:
        """`.loop/state.json`."""
        found: dict[str, Any] = self.json(".loop/state.json")
        return found

    @property
    def private(self) -> dict[str, Any]:
        """`.loop/run.json`."""
        found: dict[str, Any] = self.json(".loop/run.json")
        return found

    @property
    def journal(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.read(".loop/iterations.jsonl").splitlines()]

    def keeps_copies(self) -> None:
        """Every step call copies the state file first."""
        self.side("step", 'cp .loop/state.json "$FAKE/state-$ROODA_ITERATION.json"')

    @property
    def kinds(self) -> list[str]:
        """Of every call so far."""
        return [call.kind for call in self.calls]

    def evidence(self) -> list[str]:
        return sorted(path.name for path in Path(self.path, ".loop", "evidence").iterdir())


def blocks(out: str) -> list[tuple[bool, dict[str, bool], int, str]]:
    """Every status block of an output."""
    found = BLOCK.findall(out.replace("\r\n", "\n"))
    return [(signal == "true", json.loads(criteria), int(stuck), word) for signal, criteria, stuck, word in found]
