"""Where a specification comes from, and what is said if the agent that is to read it fails."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.kit.goal import SPEC, Goals

ROOT = Path(__file__).parents[3]
FAILING = "echo 'Error: no key' >&2; exit 7"


def test_a_specification_of_any_bytes_from_stdin(g: Goals) -> None:
    """Bytes that are not UTF-8 are taken as from a file, however strict the terminal's encoding is."""
    g.succeeds()
    spec = SPEC.encode() + b" \xff\xfe"
    ran = g.rooda("goal", "run", "--file", "-", stdin=spec, env={"PYTHONIOENCODING": "utf-8:strict"})
    assert ran.code == 0 and spec in g.calls[0].prompt, ran.both


@pytest.mark.parametrize("path", ["prompts/goal/plan.md", "docs/goal.md"])
def test_the_example_must_not_detects_only_a_violation(g: Goals, path: str) -> None:
    """Outside of git as well, and whether or not the agent has committed."""
    shown = re.findall(r"```json\n(.*?)```", (ROOT / path).read_text(), re.DOTALL)
    (entry,) = json.loads(shown[0])["mustNot"]
    verdicts = []
    for text in (None, "dependencies = []\n", 'dependencies = ["requests"]\n'):
        if text is not None:
            g.write("pyproject.toml", text)
        verdicts.append(subprocess.run(entry["violated_if"], shell=True, cwd=g.path, capture_output=True).returncode)
    assert verdicts[0] and verdicts[1] and verdicts[2] == 0


@pytest.mark.parametrize("word", ["score", "shape", "run"])
def test_a_failed_plan_call_is_not_an_unclear_specification(g: Goals, word: str) -> None:
    """Exit 1: what failed and how, that nothing was done, and where the output is; not that something is unclear."""
    g.side("plan", FAILING)
    g.out("plan", "")
    ran = g.rooda("goal", word, SPEC)
    assert ran.code == 1 and g.kinds == ["plan", "plan"], ran.both
    assert "Error: The plan call failed: exit 7: Error: no key\nNothing was " in ran.err
    assert "rooda logs goal" in ran.err and "unclear" not in ran.err.partition("Error: The plan")[2]


@pytest.mark.parametrize("word", ["score", "shape"])
def test_a_plan_counts_although_its_command_failed(g: Goals, word: str) -> None:
    """What was answered is used, whatever the exit code."""
    ran = g.rooda("goal", word, SPEC, env={"FAKE_EXIT": "1"})
    assert ran.code == 0 and g.kinds == ["plan"], ran.both
