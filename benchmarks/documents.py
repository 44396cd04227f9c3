"""The results in the documents: each block between `<!-- NAME:begin -->` and `<!-- NAME:end -->` is made from them."""

import os
from collections.abc import Callable
from typing import Any

from benchmarks import results
from benchmarks.bench import ROOT
from benchmarks.contenders import BASH, FLOOR, ROODA, UNSYNCED
from benchmarks.faults.table import table as faults_table
from benchmarks.measure import Failed

DOCUMENTS = ("README.md", "docs/comparison.md")
BARE = "python -c pass"
Found = dict[str, Any]
Make = Callable[[Found, str], str]


def filled(found: Found, folder: str, root: str = ROOT) -> None:
    """Fill every block of every document. Failed with figures of a quick run, or for a README without its block."""
    quick = [name for name, part in found["parts"].items() if part["quick"]]
    if quick or not found["parts"]:
        why = f"those of {', '.join(quick)} are from a quick run" if quick else "none are measured"
        raise Failed(f"No figures to print: {why}. Run: python -m benchmarks")
    for name in DOCUMENTS:
        path = os.path.join(root, name)
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if name == "README.md" and "<!-- figures:begin -->" not in text:
            raise Failed(f"{path} has no block between <!-- figures:begin --> and <!-- figures:end -->")
        for block, make in BLOCKS.items():
            text = _replaced(text, block, lambda make=make: make(found, folder))  # type: ignore[misc]
        results.replace(path, text)


def _replaced(text: str, block: str, make: Callable[[], str]) -> str:
    begin, end = f"<!-- {block}:begin -->", f"<!-- {block}:end -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    return f"{before}{begin}\n{make().strip()}\n{end}{after}" if found and closed else text


def goals(found: Found, folder: str) -> str:
    """The twelve goals, and in a sentence each what the campaigns found."""
    lines = ["| what | measured | at most | goal |", "|---|---|---|---|"]
    for row in results.rows(found):
        if 0 < row["goal"] <= 12 and row["limit"] is not None:
            limit = f"{results.shown(row, 'limit')}{'' if row['met'] else ' (missed)'}"
            lines.append(f"| {row['what']} | {results.shown(row, 'measured')} | {limit} | {row['goal']} |")
    return "\n".join([*lines, "", *faults_told(folder), *soak_told(folder)])


def faults_told(folder: str) -> list[str]:
    """In short, all kinds of loops together."""
    told = faults_table(os.path.join(folder, "kills.json"), by_loop=False)
    return ["Faults in loops of all four kinds (`python -m benchmarks.kills`):", "", told] if told else []


def soak_told(folder: str) -> list[str]:
    soak = results.read(folder, "soak.json")
    if not soak:
        return []
    what = ("lost", "corrupt", "doubled", "orphaned", "hung", "refused")
    words = ", ".join(f"{soak[name]} {name}" for name in what)
    more = f"{soak['memory']['gained']:+.2f} MB and {soak['files']['gained']:+.2f} open files a process"
    told = f"{sum(soak['strikes'].values())} kills, stops and pauses, {sum(soak['calls'].values()):,} agent calls"
    how = f"{soak['minutes']:g} minutes of four loops side by side (`python -m benchmarks.soak`)"
    return [f"{how}, {told}: {words}; {more}."]


def _when_measured(part: str, make: Make) -> Make:
    """The picture of that name, and what is made; a word when there is nothing to make it from."""

    def made(found: Found, folder: str) -> str:
        if part not in found["parts"]:
            return f"Not measured yet: `python -m benchmarks {part}`."
        return f"{_picture(folder, part)}{make(found, folder)}"

    return made


def _picture(folder: str, name: str) -> str:
    there = os.path.exists(os.path.join(folder, f"{name}.svg"))
    return f"![The same as a picture](../benchmarks/results/{name}.svg)\n\n" if there else ""


def _soak(found: Found, folder: str) -> str:
    told = "\n".join(soak_told(folder)) or "Not measured yet: `python -m benchmarks.soak`."
    return f"{told}\n\n{_picture(folder, 'soak')}"


def peers(found: Found, folder: str) -> str:
    """A line for everybody, a column for each measure."""
    part, left = _part(found, "peers"), _part(found, "left")
    head = (
        "",
        "gap, ms",
        "CPU per iteration, ms",
        "1,000th over 100th gap",
        "`--help` CPU over Python's",
        "memory, MB",
        "wake-ups, /s",
        "100 MB of output: s",
        "CPU, s",
        "peak, MB",
    )
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    bare = _median(part, BARE, "help cpu") or 1.0
    for name in (ROODA, UNSYNCED, FLOOR, BASH, *(each for each in part.get("notes", {}).get("peers", {}))):
        forms: list[tuple[str, float, str]] = [
            ("gap", 1e3, "{:.2f}"),
            ("cpu", 1e3, "{:.2f}"),
            ("growth", 1, "{:.2f}"),
            ("help cpu", 1 / bare, "{:.1f}"),
            ("private", 1e-6, "{:.1f}"),
            ("wakeups", 1, "{:.0f}"),
            ("output wall", 1, "{:.2f}"),
            ("output cpu", 1, "{:.2f}"),
            ("output rss", 1e-6, "{:.0f}"),
        ]
        cells = [_cell(part, name, *form) for form in forms]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    about = f"{part['python']}, {part['system']}. –: not measured." if part else ""
    odd = {**left.get("notes", {}).get("peers", {}), **part.get("notes", {}).get("peers", {})}
    return "\n".join([*lines, "", about, "", *(f"* {name} {note}." for name, note in odd.items())])


def endings(found: Found, folder: str) -> str:
    """What came of every ending beside every agent."""
    part = _part(found, "left")
    head = (
        "",
        "hung, of 25",
        "something left alive, of 25",
        "Ctrl+C to exit, ms",
        "TERM to exit, ms",
        "TERM to exit, agent ignores it, ms",
    )
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name in part.get("series", {}):
        exits = ("INT to exit", "TERM to exit", "TERM to exit, ignoring")
        times = [_cell(part, name, metric, 1e3, "{:.0f}") for metric in exits]
        counts = [_cell(part, name, metric, 1, "{:.0f}") for metric in ("hung", "left alive")]
        lines.append(f"| {name} | {' | '.join(counts + times)} |")
    return "\n".join(lines)


def growth(found: Found, folder: str) -> str:
    part = _part(found, "growth")
    lines = ["| what there is more of | sizes | cost of a turn, ms | last over first |", "|---|---|---|---|"]
    for what, metrics in part.get("series", {}).items():
        costs = [spread["median"] * 1e3 for spread in metrics.values()]
        sizes = " → ".join(name.removeprefix("turn at ") for name in metrics)
        told = " → ".join(f"{cost:.2f}" if cost < 10 else f"{cost:.0f}" for cost in costs)
        lines.append(f"| {what} | {sizes} | {told} | {costs[-1] / costs[0]:.2f} × |")
    return "\n".join(lines)


def _part(found: Found, name: str) -> Found:
    part: Found = found["parts"].get(name, {})
    return part


def _median(part: Found, name: str, metric: str) -> float | None:
    spread = part.get("series", {}).get(name, {}).get(metric)
    return None if spread is None else float(spread["median"])


def _cell(part: Found, name: str, metric: str, factor: float, form: str) -> str:
    value = _median(part, name, metric)
    return "–" if value is None else form.format(max(0.0, value * factor))


BLOCKS: dict[str, Make] = {
    "figures": goals,
    "peers": _when_measured("peers", peers),
    "endings": _when_measured("left", endings),
    "growth": _when_measured("growth", growth),
    "soak": _soak,
    "faults": lambda found, folder: faults_table(os.path.join(folder, "kills.json")),
}
