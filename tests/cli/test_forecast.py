"""`rooda forecast` goes by the past iterations of this workspace."""

import json
import shutil

from rooda.run.forecast import Estimate, estimate
from tests.kit.spending import paid, usage
from tests.kit.workspace import Workspace


def test_E_43_a_forecast_of_cost_and_time(ws: Workspace) -> None:
    """It names its basis, is rough after two iterations, and needs no logs, since the ledger has the calls."""
    paid(ws)
    assert ws.rooda("build", "-n", "2").code == 0
    ran = ws.rooda("forecast", "build", "-n", "10")
    assert ran.code == 0
    assert ran.lines[0] == "10 iterations of build, judging by 2 past iterations: a rough estimate"
    assert ran.lines[2].split() == ["cost", "$7.50", "$7.50"]
    before = usage(ws)["total"]
    shutil.rmtree(ws.file(".rooda"))
    found = json.loads(ws.rooda("forecast", "build", "-n", "10", "--json").out)
    assert found["cost"] == {"p50": 7.5, "p90": 7.5} and found["from_iterations"] == 2
    assert usage(ws)["total"] == before  # E-44


def test_E_43_without_a_past_there_is_nothing_to_go_by(ws: Workspace) -> None:
    """Raw commands report no cost: only the time is estimated."""
    ws.procedure()
    assert "no estimate" in ws.rooda("forecast", "build").out
    assert ws.rooda("forecast", "nothing").code == 2
    assert ws.rooda("build", "-n", "1").code == 0
    ran = ws.rooda("forecast", "build")
    assert "unknown" in ran.lines[2] and "The cost of 1 of the 1 is unknown" in ran.out


def test_E_43_percentiles_of_totals() -> None:
    """One iteration has the percentiles of the past; many are close to their mean; equal input, equal output."""
    past = [float(value) for value in range(1, 101)]
    assert estimate(past, 1) == Estimate(50.0, 90.0)
    some = estimate(past, 16)
    assert some and 770 < some.p50 < 850 < some.p90 < 1000 and some == estimate(past, 16)
    many = estimate(past, 10_000)
    assert many and many.p50 == 505_000.0 and 505_000 < many.p90 < 510_000
    assert estimate([], 3) is None
