"""What was measured, as files: results.json for programs, table.md for people."""

import json
import os
from typing import Any

from benchmarks.bench import ROOT
from benchmarks.verdict import FORMS, Measured

VERSION = 2
FOLDER = os.path.join(ROOT, "benchmarks", "results")
_TIMES = ("cpu", "wall", "gap", "first", "last", "added", "exit", "turn")
_SIZES = ("rss", "private", "gained")


def load(folder: str) -> dict[str, Any]:
    """Earlier results; none when there are none, or when they are of an older form."""
    found = read(folder, "results.json")
    return found if found.get("v") == VERSION else {"v": VERSION, "parts": {}}


def read(folder: str, name: str) -> dict[str, Any]:
    """A file of results; {} when it is not there."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
            return found
    except FileNotFoundError:
        return {}


def keep(results: dict[str, Any], part: str, measured: Measured, how: dict[str, Any]) -> None:
    """Put one part's figures into the results, in place of older ones."""
    results["parts"][part] = {
        **how,
        "rows": [{**row._asdict(), "measured": round(row.measured, 4), "met": row.met} for row in measured.rows],
        "series": {
            name: {metric: spread._asdict() for metric, spread in metrics.items()}
            for name, metrics in measured.series.items()
        },
        "notes": measured.notes,
    }


def save(folder: str, results: dict[str, Any], order: list[str]) -> None:
    os.makedirs(folder, exist_ok=True)
    results["parts"] = {part: results["parts"][part] for part in order if part in results["parts"]}
    replace(os.path.join(folder, "results.json"), json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    replace(os.path.join(folder, "table.md"), table(results))


def rows(results: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of the table, goal by goal; facts without a number come last."""
    found = [row for part in results["parts"].values() for row in part["rows"]]
    return sorted(found, key=lambda row: row["goal"] or 99)


def table(results: dict[str, Any]) -> str:
    """Goals and, below, all that was measured."""
    lines = ["| goal | what | measured | at most | met |", "|---|---|---|---|---|"]
    for row in rows(results):
        told = f"{shown(row, 'measured')} | {shown(row, 'limit')} | {_met(row)}"
        lines.append(f"| {row['goal'] or ''} | {row['what']} | {told} |")
    for name, part in results["parts"].items():
        quick = ", quick: too few rounds to rely on" if part["quick"] else ""
        about = f"{part['python']}, {part['system']}, agent in {part['agent']}, {part['seconds']:.0f} s{quick}"
        lines += ["", f"## {name}", "", about, ""]
        if part["series"]:
            lines += ["| contender | metric | median | quartiles | rounds |", "|---|---|---|---|---|"]
        for contender, metrics in part["series"].items():
            for metric, spread in metrics.items():
                low, middle, high = (_figure(metric, spread[key]) for key in ("low", "median", "high"))
                lines.append(f"| {contender} | {metric} | {middle} | {low} … {high} | {spread['rounds']} |")
    return "\n".join(lines) + "\n"


def shown(row: dict[str, Any], key: str) -> str:
    if row[key] is None:
        return "–"
    form = f"{{:g}} {row['unit']}" if key == "limit" else FORMS[str(row["unit"])]
    return form.format(row[key]).strip()


def _met(row: dict[str, Any]) -> str:
    if row["limit"] is None:
        return "–"
    return "yes" if row["met"] else "**no**"


def _figure(metric: str, value: float) -> str:
    words = metric.split()
    if any(word in _TIMES for word in words):
        return f"{value * 1000:.3g} ms"
    return f"{value / 1e6:.1f} MB" if any(word in _SIZES for word in words) else f"{value:.3g}"


def replace(path: str, text: str) -> None:
    with open(f"{path}.tmp", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.tmp", path)
