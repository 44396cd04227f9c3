"""The scenarios on the real command: event trace, end, calls, files."""

import pytest

from tests.kit.reflex import Kit, traced
from tests.kit.reflex_scenarios import T, play


@pytest.mark.parametrize("name", T)
def test_R_169_R_185_R_186_scenarios(kit: Kit, name: str) -> None:
    """Trace, status, reason, iteration, phase, score, count and exit code of T1 to T6."""
    ran = play(kit, name)
    wanted = T[name]
    assert ran.code == wanted.code, ran.both
    assert traced(kit.ev) == wanted.trace
    run = kit.run
    found = (run["status"], run["stop"]["reason"], run["iteration"], run["phase"], run["stagnation_count"])
    assert found == (wanted.status, wanted.reason, wanted.iteration, wanted.phase, wanted.count)
    assert run["last_score"] == pytest.approx(wanted.score)
    assert kit.files() == [f"{run['task_alias']}/{each}" for each in ("artifact.md", "history.jsonl", "run.json")]
