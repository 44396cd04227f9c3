"""What was measured, as files: results.json for programs, table.md for people, and the block in README.md."""

import json
import os
from typing import Any

from benchmarks.bench import ROOT
from benchmarks.measure import Failed
from benchmarks.verdict import Measured

VERSION = 1
BEGIN, END = "<!-- figures:begin -->", "<!-- figures:end -->"
_FORMS = {"×": "{:.2f} ×", "/s": "{:.1f} /s", "MB": "{:.1f} MB", "ms": "{:.0f} ms", "ms/min": "{:.0f} ms/min"}


def load(folder: str) -> dict[str, Any]:
    """Earlier results; none when there are none."""
    try:
        with open(os.path.join(folder, "results.json"), encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
            return found
    except FileNotFoundError:
        return {"v": VERSION, "goals": {}}


def keep(results: dict[str, Any], goal: int, measured: Measured, how: dict[str, Any]) -> None:
    """Put one goal's figures into the results, in place of older ones."""
    results["goals"][str(goal)] = {
        **how,
        "rows": [{**row._asdict(), "measured": round(row.measured, 4), "met": row.met} for row in measured.rows],
        "series": {
            name: {metric: spread._asdict() for metric, spread in metrics.items()}
            for name, metrics in measured.series.items()
        },
    }


def save(folder: str, results: dict[str, Any]) -> None:
    os.makedirs(folder, exist_ok=True)
    results["goals"] = dict(sorted(results["goals"].items(), key=lambda item: int(item[0])))
    _replace(os.path.join(folder, "results.json"), json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    _replace(os.path.join(folder, "table.md"), table(results))


def rows(results: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for goal in results["goals"].values() for row in goal["rows"]]


def table(results: dict[str, Any]) -> str:
    """Goals and, below, all that was measured."""
    lines = ["| goal | what | measured | at most | met |", "|---|---|---|---|---|"]
    for row in rows(results):
        told = f"{_shown(row, 'measured')} | {_shown(row, 'limit')} | {_met(row)}"
        lines.append(f"| {row['goal']} | {row['what']} | {told} |")
    for number, goal in results["goals"].items():
        quick = ", quick: too few rounds to rely on" if goal["quick"] else ""
        lines += ["", f"Goal {number} ({goal['python']}, {goal['system']}, agent in {goal['agent']}{quick})", ""]
        lines += ["| contender | metric | median | quartiles | rounds |", "|---|---|---|---|---|"]
        for name, metrics in goal["series"].items():
            for metric, spread in metrics.items():
                low, middle, high = (_figure(metric, spread[key]) for key in ("low", "median", "high"))
                lines.append(f"| {name} | {metric} | {middle} | {low} … {high} | {spread['rounds']} |")
    return "\n".join(lines) + "\n"


def short_table(results: dict[str, Any]) -> str:
    """For the README: what was measured against what was promised."""
    lines = ["| what | measured | goal |", "|---|---|---|"]
    for row in rows(results):
        goal = "" if row["limit"] is None else f"≤ {_shown(row, 'limit')}{'' if row['met'] else ' (missed)'}"
        lines.append(f"| {row['what']} | {_shown(row, 'measured')} | {goal} |")
    return "\n".join(lines)


def into_readme(results: dict[str, Any], path: str = os.path.join(ROOT, "README.md")) -> None:
    """Replace the block between the marks. Failed without marks, or with figures of a quick run."""
    quick = [number for number, goal in results["goals"].items() if goal["quick"]]
    if quick or not results["goals"]:
        why = f"those of goal {', '.join(quick)} are from a quick run" if quick else "none are measured"
        raise Failed(f"No figures to print: {why}. Run: python -m benchmarks")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise Failed(f"{path} has no block between {BEGIN} and {END}")
    _replace(path, f"{before}{BEGIN}\n{short_table(results)}\n{kills_told()}{END}{after}")


def kills_told() -> str:
    """What `python -m benchmarks.kills` found, in a sentence; nothing when it was not run."""
    try:
        with open(os.path.join(ROOT, "benchmarks", "results", "kills.json"), encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return ""
    return (
        f"\n{found['kills']:,} random SIGKILLs of loop, guardian, both or the group (`python -m benchmarks.kills`):\n"
        f"{found['lost']} states lost, {found['corrupted']} corrupted, {found['orphaned']} agents left alive, "
        f"{found['doubled']} at work twice, {found['redone']} iterations repeated.\n"
    )


def _shown(row: dict[str, Any], key: str) -> str:
    if row[key] is None:
        return "–"
    if key == "limit":
        return f"{row[key]:g} {row['unit']}"
    return _FORMS[row["unit"]].format(row[key])


def _met(row: dict[str, Any]) -> str:
    if row["limit"] is None:
        return "–"
    return "yes" if row["met"] else "**no**"


def _figure(metric: str, value: float) -> str:
    if metric in ("cpu", "wall", "gap", "first", "last"):
        return f"{value * 1000:.3g} ms"
    return f"{value / 1e6:.1f} MB" if metric in ("rss", "private", "gained") else f"{value:.3g}"


def _replace(path: str, text: str) -> None:
    with open(f"{path}.tmp", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.tmp", path)
