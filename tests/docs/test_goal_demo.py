"""The demo of docs/goal.md does what the page says of it."""

from rooda.demo.goal import SPEC
from tests.kit.pages import ROOT, commands
from tests.kit.workspace import Workspace

PAGE = ROOT / "docs" / "goal.md"


def test_the_goal_of_the_page_ends_with_evidence_for_three_criteria(bare: Workspace) -> None:
    """The first step is wrong and claims to be done; the loop finds out, continues, and verifies all three."""
    typed = next(words for words in commands(PAGE) if words[-2:] == ["--agent", "demo"])
    assert typed == ["goal", "run", SPEC, "--agent", "demo"]
    run = bare.rooda(*typed)
    assert run.code == 0, run.both
    steps = [line.partition(" | ")[0] for line in run.lines if line.startswith(("[LOOP] ✗", "[LOOP] ✓"))]
    assert steps == [
        "[LOOP] ✗ Write the greeting not complete",
        "[LOOP] ✓ Write the greeting complete",
        "[LOOP] ✓ Write the notes complete",
    ]
    assert "🟢 SHIP" in run.out and "3/3 criteria verified" in run.out
    for name in ("greets", "one line", "noted"):
        assert bare.exists(f".loop/evidence/3-{name}.txt")
