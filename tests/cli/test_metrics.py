"""`rooda metrics`: the numbers of all loops of a user, for Prometheus."""

import json
import os
import re
import shutil
import stat
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rooda.loops.metrics import Metrics
from rooda.run.ended import STATES
from rooda.settings.where import Where
from rooda.views.exposition import Family, Sample, exposition
from tests.kit.background import kill_all
from tests.kit.kinds import KINDS
from tests.kit.loops import Loops
from tests.kit.workspace import Workspace, until

PAID = (
    "echo \"$ROODA_ITERATION\" >>file; printf '%s\\n' "
    '\'{"type":"result","subtype":"success","is_error":false,"result":"x","total_cost_usd":0.25,'
    '"usage":{"input_tokens":1000,"output_tokens":500}}\'\n'
)
WORDS = {"goal": ("--yes",)}


def numbers(text: str) -> dict[str, float]:
    """The samples by name and label, as the parser of Prometheus' own client reads them."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.type in ("gauge", "counter")
        for sample in family.samples:
            key = "".join([sample.name, *(f" {value}" for value in sample.labels.values())])
            assert key not in found, key
            found[key] = sample.value
    return found


def failures(found: dict[str, float]) -> dict[str, float]:
    return {key.split()[1]: value for key, value in found.items() if key.startswith("rooda_failures_total ") and value}


@pytest.fixture
def paid(ws: Workspace) -> Workspace:
    """A workspace with an agent that reports its cost, and a gate that fails while there is a file `red`."""
    agent = '[loop]\nagent = "mine"\n[agents.mine]\ncommand = "sh agent.sh"\noutput = "claude"\n'
    ws.config(f'{agent}[[loop.quality_gates]]\nname = "secret-gate"\ncommand = "[ ! -e red ]"\n')
    ws.write("agent.sh", PAID)
    return ws


def test_P_07_the_numbers_of_all_workspaces(paid: Workspace, tmp_path: Path) -> None:
    """Iterations, failures by cause, tokens and cost of two projects, without any name, and none falls at a prune."""
    assert paid.rooda("build", "-n", "2").code == 0
    paid.write("red", "")
    assert paid.rooda("build", "-n", "9").code == 1  # three failures in a row
    other = tmp_path / "hush-project"
    other.mkdir()
    ran = paid.rooda("build", "-n", "9", "--ai-cmd", "false", cwd=str(other))
    assert ran.code == 1
    shown = paid.rooda("metrics")
    found = numbers(shown.out)
    assert shown.code == 0 and not shown.err
    assert found["rooda_iterations_total"] == 8
    assert failures(found) == {"gates": 3, "agent_error": 3}
    assert (found["rooda_tokens_total"], found["rooda_cost_dollars_total"]) == (7500, 1.25)
    assert found["rooda_limit_reset_seconds"] == 0
    assert {key: value for key, value in found.items() if key.startswith("rooda_loops ") and value} == {
        "rooda_loops failed": 2
    }
    assert {f"rooda_loops {state}" for state in STATES} <= {*found}
    for name in ("build", "secret-gate", "mine", "hush", paid.path):
        assert name not in shown.out
    assert paid.rooda("prune", "--keep", "0").code == 0
    for folder in (Path(paid.path), other):
        shutil.rmtree(folder / ".rooda" / "runs")
    after = numbers(paid.rooda("metrics").out)
    counters = [key for key in found if "_total" in key]
    assert {key: after[key] for key in counters} == {key: found[key] for key in counters}


@pytest.mark.parametrize("kind", [*KINDS])
def test_P_07_every_kind_is_counted_as_runs_counts_it(ws: Workspace, kind: str) -> None:
    """One loop that completes: its iterations, its state, no failure."""
    loops = Loops(ws)
    assert getattr(loops, kind)(*WORDS.get(kind, ())).code == 0
    (run,) = json.loads(ws.rooda("runs", "--json").out)
    found = numbers(ws.rooda("metrics").out)
    assert found["rooda_iterations_total"] == run["iterations"] >= 1
    assert found["rooda_loops completed"] == 1 and not failures(found)


@pytest.mark.parametrize("kind", [*KINDS])
def test_P_07_failures_of_every_kind(ws: Workspace, kind: str) -> None:
    """An agent that always fails: each kind of loop has a failure, and its cause."""
    loops = Loops(ws, agent='ai_cmd = "false"')
    assert getattr(loops, kind)(*WORDS.get(kind, ())).code != 0
    (run,) = json.loads(ws.rooda("runs", "--json").out)
    found = numbers(ws.rooda("metrics").out)
    print(run["state"], failures(found))
    assert {*failures(found)} == {"agent_error"} and found[f"rooda_loops {run['state']}"] == 1


def test_P_07_a_loop_at_work_one_that_was_killed_and_a_limit(ws: Workspace) -> None:
    """The states equal those of `status --all`; an account's limit is a number of seconds."""
    ws.procedure("build")
    ws.side(1, 'touch "$FAKE/here"; sleep 60')
    ws.start("build", "-n", "3")
    until(lambda: os.path.exists(f"{ws.fake}/here"), what="the agent to work")
    assert numbers(ws.rooda("metrics").out)["rooda_loops running"] == 1
    kill_all(ws)
    limits = Path(ws.home, ".state", "rooda", "limits")
    limits.mkdir(parents=True)
    (limits / "x.json").write_text('{"account": "claude (key)", "until": "2999-01-01T00:00:00Z", "noted": "x"}')
    (limits / "y.json").write_text("{damaged")
    found = numbers(ws.rooda("metrics").out)
    states = [row["state"] for row in json.loads(ws.rooda("status", "--all", "--json").out)]
    assert states == ["interrupted"] and found["rooda_loops interrupted"] == 1
    assert found["rooda_limit_reset_seconds"] > 1e9


def test_P_07_with_names_for_the_page(paid: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same function gives each loop's numbers with its names; a second look reads on, and sums do not double."""
    assert paid.rooda("build", "-n", "9", "--max-cost", "0.3").code == 4
    for key, value in paid.env.items():
        monkeypatch.setenv(key, value)
    metrics = Metrics(Where(paid.path))
    first = numbers(metrics.text())
    named = metrics.text(named=True)
    assert f'rooda_loop_iteration{{workspace="{paid.path}",kind="ooda",name="build"}} 2\n' in named
    assert 'name="build",state="paused"} 1' in named
    again = numbers(named)
    assert {key: again[key] for key in first} == first and first["rooda_cost_dollars_total"] == 0.5


def test_P_07_a_file_for_node_exporter(ws: Workspace) -> None:
    """-o replaces the file in one step, readable for others; what isn't a file stays as it is."""
    path = Path(ws.path, "out", "rooda.prom")
    path.parent.mkdir()
    path.write_text("old\n")
    held = path.open()
    assert ws.rooda("metrics", "-o", str(path)).out == ""
    assert held.read() == "old\n" and numbers(path.read_text())["rooda_iterations_total"] == 0
    assert stat.S_IMODE(path.stat().st_mode) & 0o444 == 0o444 and [*path.parent.iterdir()] == [path]
    for wrong in (path.parent, Path(ws.path, "none", "x.prom")):
        ran = ws.rooda("metrics", "-o", str(wrong))
        assert ran.code in (1, 2) and len(ran.err.splitlines()) == 2 and str(wrong) in ran.err
    os.mkfifo(path.parent / "pipe")
    assert ws.rooda("metrics", "-o", str(path.parent / "pipe")).code == 2


def test_P_07_damaged_files_and_forged_logs(ws: Workspace) -> None:
    """Lines of other programs, a state that nobody knows and a FIFO for a log harm neither the text nor the sums."""
    ws.damages_events = True
    assert ws.rooda("build", "-n", "1", "--ai-cmd", "true").code == 0
    state = Path(ws.home, ".state", "rooda")
    (counts,) = (state / "counts").glob("*.jsonl")
    with counts.open("a") as file:
        file.write('nonsense\n[1]\n{"event":"iteration","outcome":"failure","cause":"a secret\\n# word"}\n{"torn')
    (ledger,) = (state / "ledger").glob("*.jsonl")
    with ledger.open("a") as file:
        file.write('{"usage":{"input":1e300},"cost":"x"}\n{"usage":3,"cost":[],"workspace":7}\n')
    runs = Path(ws.path, ".rooda", "runs")
    (real,) = runs.iterdir()
    forged = {"ts": "2026-01-01T00:00:00Z", "event": "run.ended", "status": 'leak"}', "loop": "ooda", "exit_code": 0}
    for name, line in (("29990101T000000Z-one-1", json.dumps(forged) + "\n"), ("29990101T000000Z-two-1", "")):
        (runs / name).mkdir()
        (runs / name / "events.jsonl").write_text(line)
    os.mkfifo(runs / "29990101T000000Z-two-1" / "fifo")
    (runs / "29990101T000000Z-three-1").mkdir()
    os.mkfifo(runs / "29990101T000000Z-three-1" / "events.jsonl")
    ran = ws.rooda("metrics")
    found = numbers(ran.out)
    assert ran.code == 0 and "leak" not in ran.out and "secret" not in ran.out
    assert found["rooda_iterations_total"] == 2 and failures(found) == {"rejected": 1}
    assert found["rooda_loops unknown"] == 1 and found["rooda_loops completed"] == 1 and real.exists()


def test_P_07_labels_are_escaped() -> None:
    """Quotes, backslashes, line ends and bytes that aren't UTF-8 come back as the parser expects them."""
    value = 'a"b\\c\nd'
    text = exposition([Family("x", "gauge", "Help.", (Sample(0.1, {"name": value}), Sample(2, {"name": "\udcff"})))])
    ((one, two),) = (family.samples for family in text_string_to_metric_families(text))
    assert (one.labels, one.value, two.labels) == ({"name": value}, 0.1, {"name": "?"})
    assert re.fullmatch(r"# HELP x Help\.\n# TYPE x gauge\n(x\{name=\".*\"\} \S+\n){2}", text)
