"""The benchmarks run, and their results have the form that the documents' blocks are made from."""

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ("goals", "today", "compared", "peers", "endings", "growth", "soak")


def benchmarks(*arguments: str, cwd: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments], cwd=cwd, capture_output=True, text=True, timeout=100
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of one quick part, measured on the rooda beside the Python that runs the tests."""
    folder = tmp_path_factory.mktemp("results")
    rooda = os.path.join(os.path.dirname(sys.executable), "rooda")
    assert os.path.exists(rooda)
    ran = benchmarks("gap", "--quick", "--rooda", rooda, "--results", str(folder))
    assert ran.returncode == 0, ran.stderr
    assert "[1/1] gap …" in ran.stdout and "time between two agent calls" in ran.stdout
    return folder


def test_results_have_rows_and_series(folder: Path) -> None:
    """Each row has what it says, measured, limit and met; each contender has median, quartiles and rounds."""
    results: dict[str, Any] = json.loads((folder / "results.json").read_bytes())
    assert results["v"] == 2 and list(results["parts"]) == ["gap"]
    part = results["parts"]["gap"]
    assert part["quick"] is True and part["agent"] in ("C", "Python")
    bounded, fact = part["rows"]
    assert set(bounded) == {"goal", "what", "measured", "limit", "unit", "met"}
    assert bounded["limit"] == 1.5 and bounded["met"] == (bounded["measured"] <= 1.5)
    assert fact["limit"] is None
    gaps = {name: metrics["gap"] for name, metrics in part["series"].items()}
    assert set(gaps) == {"least durable loop", "rooda", "rooda.sh (v1)"}
    for spread in gaps.values():
        assert 0 < spread["low"] <= spread["median"] <= spread["high"] and spread["rounds"] == 3
    middle = gaps["rooda"]["median"] / gaps["least durable loop"]["median"]
    assert bounded["measured"] == pytest.approx(middle, abs=0.001)


def test_the_table_shows_every_contender(folder: Path) -> None:
    """table.md has a line for each row and each contender, and says that quick figures don't count."""
    table = (folder / "table.md").read_text()
    for what in ("| 3 | time between", "| least durable loop | gap |", "| rooda | gap |", "quick: too few rounds"):
        assert what in table


def test_an_unknown_part_is_refused(tmp_path: Path) -> None:
    """The parts that there are, are named; nothing is measured."""
    ran = benchmarks("gpa", "--results", str(tmp_path))
    assert ran.returncode == 2 and "no such part: gpa" in ran.stderr and "growth" in ran.stderr
    assert not any(tmp_path.iterdir())


def spread(median: float) -> dict[str, float]:
    return {"median": median, "low": median, "high": median, "rounds": 1}


def made(folder: Path) -> dict[str, Any]:
    """Results as a whole run would leave them, with the other files of results beside."""
    results = json.loads((folder / "results.json").read_bytes())
    gap = {**results["parts"]["gap"], "quick": False}
    one = {"gap": spread(0.001), "cpu": spread(0.002), "private": spread(14e6), "wakeups": spread(0)}
    peers = {"rooda": one, "other": {**one, "gap": spread(1.5)}}
    left = {"rooda": {"hung": spread(0), "left alive": spread(0), "TERM to exit": spread(0.01)}}
    growth = {"ooda: gates": {"turn at 1": spread(0.002), "turn at 10": spread(0.01), "turn at 100": spread(0.08)}}
    turns = {name: spread(0) for name in ("left alive", "turns after the limit", "turns after another start")}
    codex = {"gap": spread(0.032), "private": spread(185e6), "own private": spread(0), **turns}
    today = {"rooda": {"left alive": spread(0)}, "Codex goals": {**codex, "turns after the next start": spread(3)}}
    tools = {"rooda": "", "Codex goals": "0.169.0", "Bernstein": "3.23.0: could not be installed: no Python 3.12 here"}
    results["parts"] = {
        "gap": gap,
        "left": {**gap, "rows": [], "series": left, "notes": {"peers": {}}},
        "growth": {**gap, "rows": [], "series": growth, "notes": {}},
        "today": {**gap, "rows": [], "series": today, "notes": {"tools": tools}},
        "peers": {**gap, "rows": [], "series": peers, "notes": {"peers": {"other": "1.0, PyPI: odd"}}},
    }
    return results


@pytest.fixture
def checkout(folder: Path, tmp_path: Path) -> Path:
    """A copy of the benchmarks with made results, a README and a page with blocks."""
    others = shutil.ignore_patterns("results", "__pycache__")
    shutil.copytree(ROOT / "benchmarks", tmp_path / "benchmarks", ignore=others)
    (tmp_path / "benchmarks" / "results").mkdir()
    (tmp_path / "benchmarks" / "results" / "results.json").write_text(json.dumps(made(folder)))
    (tmp_path / "README.md").write_text("before\n<!-- figures:begin -->\nold\n<!-- figures:end -->\nafter\n")
    (tmp_path / "docs").mkdir()
    blocks = "".join(f"<!-- {name}:begin -->\nold\n<!-- {name}:end -->\n" for name in PAGE)
    (tmp_path / "docs" / "comparison.md").write_text(blocks)
    return tmp_path


def test_the_documents_blocks_are_made_from_the_results(checkout: Path) -> None:
    """The blocks between the marks are replaced and nothing else; a README without marks is said."""
    ran = benchmarks("--readme", cwd=checkout)
    assert ran.returncode == 0, ran.stderr
    text = (checkout / "README.md").read_text()
    assert text.startswith("before\n<!-- figures:begin -->\n| what | measured |")
    assert text.endswith("|\n<!-- figures:end -->\nafter\n") and "old" not in text
    assert "| time that rooda adds between two agent calls, state saved |" in text
    page = (checkout / "docs" / "comparison.md").read_text()
    assert "| time between two agent calls over the least durable loop |" in page
    assert "Not measured yet: `python -m benchmarks.soak`." in page
    assert "| rooda | this checkout | – | – | – | 0 | – | – | – |" in page
    assert "| Codex goals | 0.169.0 | 32 | 0 | 185 | 0 | 0 | 0 | yes |" in page
    assert "* Bernstein 3.23.0: could not be installed: no Python 3.12 here." in page
    assert "| processes left after `kill -9` | 0 | 0 |" in page
    assert "| other | 1500.00 | 2.00 |" in page and "* other 1.0, PyPI: odd." in page
    assert "| rooda | 0 | 0 |" in page and "| ooda: gates | 1 → 10 → 100 | 2.00 → 10 → 80 | 40.00 × |" in page
    assert "old" not in page
    (checkout / "README.md").write_text("no marks\n")
    refused = benchmarks("--readme", cwd=checkout)
    assert refused.returncode == 1 and "has no block" in refused.stderr
    assert (checkout / "README.md").read_text() == "no marks\n"


def test_the_pictures_are_drawn(checkout: Path) -> None:
    """One of the peers and one of the growth; both are XML and name what they show."""
    results = checkout / "benchmarks" / "results"
    code = "import sys; from benchmarks import plots, results; plots.drawn(results.load(sys.argv[1]), sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(results)], cwd=checkout, check=True)
    for name, words in {"peers.svg": {"rooda", "other"}, "growth.svg": {"ooda", "gates  40.00×"}}.items():
        texts = {each.text for each in ElementTree.parse(results / name).iter() if each.text}
        assert words <= texts


def test_quick_figures_do_not_reach_the_readme(folder: Path) -> None:
    """--readme refuses what a quick run measured."""
    ran = benchmarks("--readme", "--results", str(folder))
    assert ran.returncode == 1
    assert "quick run" in ran.stderr
