"""The benchmarks run, and their results have the form that the README's block is made from."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def benchmarks(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=100
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of one quick goal, measured on the rooda beside the Python that runs the tests."""
    folder = tmp_path_factory.mktemp("results")
    rooda = os.path.join(os.path.dirname(sys.executable), "rooda")
    assert os.path.exists(rooda)
    ran = benchmarks("--quick", "--goal", "3", "--rooda", rooda, "--results", str(folder))
    assert ran.returncode == 0, ran.stderr
    assert "time between two agent calls" in ran.stdout
    return folder


def test_results_have_rows_and_series(folder: Path) -> None:
    """Each row has what it says, measured, limit and met; each contender has median, quartiles and rounds."""
    results: dict[str, Any] = json.loads((folder / "results.json").read_bytes())
    assert results["v"] == 1 and list(results["goals"]) == ["3"]
    goal = results["goals"]["3"]
    assert goal["quick"] is True and goal["agent"] in ("C", "Python")
    bounded, fact = goal["rows"]
    assert set(bounded) == {"goal", "what", "measured", "limit", "unit", "met"}
    assert bounded["limit"] == 1.5 and bounded["met"] == (bounded["measured"] <= 1.5)
    assert fact["limit"] is None
    gaps = {name: metrics["gap"] for name, metrics in goal["series"].items()}
    assert set(gaps) == {"least durable loop", "rooda", "rooda.sh (v1)"}
    for spread in gaps.values():
        assert 0 < spread["low"] <= spread["median"] <= spread["high"] and spread["rounds"] == 3
    middle = gaps["rooda"]["median"] / gaps["least durable loop"]["median"]
    assert bounded["measured"] == pytest.approx(middle, abs=0.001)


def test_the_table_shows_every_contender(folder: Path) -> None:
    """table.md has a line for each row and each contender, and says that quick figures are no good."""
    table = (folder / "table.md").read_text()
    for what in ("| 3 | time between", "| least durable loop | gap |", "| rooda | gap |", "quick: too few rounds"):
        assert what in table


def test_the_readme_block_is_made_from_the_results(folder: Path, tmp_path: Path) -> None:
    """The block between the marks is replaced and nothing else; without marks it is said."""
    checkout = tmp_path / "checkout"
    others = shutil.ignore_patterns("results", "__pycache__")
    shutil.copytree(ROOT / "benchmarks", checkout / "benchmarks", ignore=others)
    results = json.loads((folder / "results.json").read_bytes())
    results["goals"]["3"]["quick"] = False
    (checkout / "benchmarks" / "results").mkdir()
    (checkout / "benchmarks" / "results" / "results.json").write_text(json.dumps(results))
    readme = checkout / "README.md"
    readme.write_text("before\n<!-- figures:begin -->\nold\n<!-- figures:end -->\nafter\n")
    command = [sys.executable, "-m", "benchmarks", "--readme"]
    subprocess.run(command, cwd=checkout, check=True, timeout=30)
    text = readme.read_text()
    assert text.startswith("before\n<!-- figures:begin -->\n| what |")
    assert text.endswith("|\n<!-- figures:end -->\nafter\n")
    assert "| time between two agent calls over the least durable loop |" in text and "old" not in text
    readme.write_text("no marks\n")
    refused = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=30)
    assert refused.returncode == 1 and "has no block" in refused.stderr
    assert readme.read_text() == "no marks\n"


def test_quick_figures_do_not_reach_the_readme(folder: Path) -> None:
    """--readme refuses what a quick run measured."""
    ran = benchmarks("--readme", "--results", str(folder))
    assert ran.returncode == 1
    assert "quick run" in ran.stderr
