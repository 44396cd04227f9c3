"""Changed files through the real commands: a sentence with the file's name, an exit code of the table, no traceback."""

from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz.fuzz_mutate import documents
from tests.fuzz.fuzz_table import TARGETS
from tests.kit.workspace import Workspace

FEW = settings(max_examples=2, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
MANY = settings(FEW, max_examples=40, derandomize=False)
LOOP = ".ai-factory/evolution/loop"
RUN = ".rooda/runs/20260301T120000Z-build-77"


class Way(NamedTuple):
    """A file that the user or an agent writes, and the commands that read it."""

    target: str
    path: str
    commands: tuple[str, ...]
    named: bool = True  # a refusal with exit 2 says its name


WAYS = {
    "settings": Way("settings", "rooda.toml", ("config show", "list", "build --dry-run")),
    "state": Way("ooda-state", ".rooda/state/build.json", ("status", "status --json", "resume build -n 1")),
    "lock": Way("ledger", ".rooda/state/build.lock", ("status build", "build --dry-run")),
    "reflex": Way(
        "reflex-run", f"{LOOP}/run.json", ("reflex status loop", "reflex list", "reflex history loop", "status")
    ),
    "history": Way("reflex-history", f"{LOOP}/history.jsonl", ("reflex status loop", "reflex history loop --json")),
    "rules": Way("reflex-draft", "rules.json", ("reflex new task --rules rules.json --ai-cmd true",)),
    "goal": Way("goal-run", ".loop/run.json", ("goal status", "goal status --json", "status", "goal cancel")),
    "journal": Way("goal-journal", ".loop/iterations.jsonl", ("goal status", "goal stop-check")),
    "specification": Way("specification", "spec.md", ("goal score --offline --file spec.md",)),
    "plan": Way("plan-reply", "plan.json", ("goal shape --fresh --plan plan.json --file spec.md",)),
    "flow": Way("flow-file", ".ai-loop/flow.yaml", ("flow check", "flow check --json")),
    "events": Way("events", f"{RUN}/events.jsonl", ("logs", "why", "usage", "status", "logs --agent --json")),
    "agents-md": Way("agents-md", "AGENTS.md", ("build --dry-run", "doctor")),
}


@pytest.mark.parametrize("name", WAYS)
def test_changed_files_through_the_real_commands(ws: Workspace, name: str) -> None:
    """A few of each kind, the same ones in every run."""
    _tried(ws, WAYS[name], FEW)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", WAYS)
def test_many_changed_files_through_the_real_commands(ws: Workspace, name: str) -> None:
    """More of them, other ones in every run."""
    _tried(ws, WAYS[name], MANY)


def _tried(ws: Workspace, way: Way, how: settings) -> None:
    for name in ("c.md", "a.md", "loop-sensor-tests.md"):
        ws.write(f".ai-loop/agents/{name}", "---\nname: x\n---\n")
    ws.write("spec.md", "Reduce the latency of /api/users to < 200 ms; tests pass. Done when merged.")

    @how
    @given(data=documents(TARGETS[way.target]))
    def tried(data: bytes) -> None:
        ws.write(way.path, data)
        for words, ran in zip(way.commands, ws.each(*way.commands), strict=True):
            assert ran.code in (0, 1, 2, 3, 4), (words, ran)
            assert "Traceback" not in ran.both, (words, ran)
            if ran.code in (1, 2, 3):
                assert ran.err.strip() or ran.out.strip(), (words, ran)
            if ran.code == 2 and way.named and data:  # an empty history is that of no loop
                assert way.path.rpartition("/")[2] in ran.err, (words, ran)

    tried()
    Path(ws.file(way.path)).unlink(missing_ok=True)  # so that nobody takes it for what rooda wrote
