"""Answers the calls of a goal loop as the demo agent: plans, takes a step per call, and once claims success too early.

It writes only into `hello-goal/`. Its plan fits only the specification `SPEC`, which docs/goal.md shows.
"""

import json
from collections.abc import Callable

FOLDER = "hello-goal"
GREETING = f"{FOLDER}/greeting.sh"
NOTES = f"{FOLDER}/NOTES.md"
HELLO = "I am the scripted demo agent: no model, no network, no cost."
SPEC = (
    "Add hello-goal/greeting.sh, which prints exactly one line: Hello from a goal. Without new packages. "
    "Checked by running it and by its notes; done when hello-goal/NOTES.md exists."
)
PLAN = {
    "scores": {
        "outcome": {"score": 2, "quote": "prints exactly one line"},
        "scope": {"score": 2, "quote": "hello-goal/greeting.sh"},
        "constraints": {"score": 2, "quote": "Without new packages"},
        "success": {"score": 2, "quote": "Checked by running it and by its notes"},
        "done": {"score": 2, "quote": "done when hello-goal/NOTES.md exists"},
    },
    "reversibility": "2A",
    "workflow_gate": {
        "kind": "library_search",
        "evidence": "No library exists because one line of shell needs none.",
    },
    "criteria": [
        {
            "name": "greets",
            "verification": "execution output",
            "command": f"sh {GREETING}",
            "expect": "^Hello from a goal$",
        },
        {"name": "one line", "verification": "measurement", "command": f"sh {GREETING} | wc -l", "expect": "== 1"},
        {"name": "noted", "verification": "execution output", "command": f"grep -q greeting.sh {NOTES}"},
    ],
    "mustNot": [{"text": "new packages", "violated_if": f"test -e {FOLDER}/requirements.txt"}],
    "steps": [
        {"name": "Write the greeting", "criteria": ["greets", "one line"]},
        {"name": "Write the notes", "criteria": ["noted"]},
    ],
    "points": 1,
    "alt": "printf in place of echo",
    "risk": "a shell without echo",
}


def act(kind: str, prompt: str, write: Callable[[str, str], None]) -> str | None:
    """Do what a plan or step call asks for, and return the agent's output; None for another kind of call."""
    if kind == "plan":
        return json.dumps(PLAN)
    return f"{HELLO}\n{step(prompt, write)}" if kind == "step" else None


def step(prompt: str, write: Callable[[str, str], None]) -> str:
    """Do a step and return its report. The first attempt is wrong but claims success; the second one corrects it."""
    if "\nWrite the notes\n" in prompt:
        write(NOTES, "greeting.sh greets. It needs nothing but a shell.\n")
        return claimed(f"Wrote {NOTES}.", True, "none")
    if "What failed the last time" in prompt:
        write(GREETING, "echo Hello from a goal\n")
        return claimed("The check's output showed what was wrong; put right.", False, "write the notes")
    write(GREETING, "echo Hello\n")
    return claimed(f"Wrote {GREETING}. I believe that everything is done.", True, "none")


def claimed(text: str, done: bool, following: str) -> str:
    block = ("---LOOP_STATUS---", f"EXIT_SIGNAL: {str(done).lower()}", "CRITERIA: {}", f"NEXT: {following}")
    return "\n".join([text, "", *block, "---END_STATUS---"])
