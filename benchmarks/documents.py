"""The results in the documents: each block between `<!-- NAME:begin -->` and `<!-- NAME:end -->` is made from them."""

import os
from collections.abc import Callable
from typing import Any

from benchmarks import results
from benchmarks.bench import ROOT
from benchmarks.contenders import BASH, FLOOR, ROODA, UNSYNCED
from benchmarks.faults.table import COLUMNS
from benchmarks.faults.table import table as faults_table
from benchmarks.fleet import table as fleet
from benchmarks.measure import Failed
from benchmarks.peers.today import OURS, TOOLS, Tool

DOCUMENTS = ("README.md", "docs/figures.md", "docs/comparison.md", "docs/fleet.md")
NEEDED = ("README.md", "<!-- figures:begin -->")
Found = dict[str, Any]
Make = Callable[[Found, str], str]
WAITING = "rooda, waiting"
MISSING, MS, COUNT = "–", "{:.1f} ms", "{:.0f}"
SOAKED = ("lost", "corrupt", "doubled", "orphaned", "hung", "refused")


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
        if name == NEEDED[0] and NEEDED[1] not in text:
            raise Failed(f"{path} has no block between <!-- figures:begin --> and <!-- figures:end -->")
        for block, make in BLOCKS.items():
            text = _replaced(text, block, lambda make=make: make(found, folder))  # type: ignore[misc]
        results.replace(path, text)


def _replaced(text: str, block: str, make: Callable[[], str]) -> str:
    begin, end = f"<!-- {block}:begin -->", f"<!-- {block}:end -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    return f"{before}{begin}\n{make().strip()}\n{end}{after}" if found and closed else text


def figures(found: Found, folder: str) -> str:
    """At most eight figures that matter to a user."""
    rows = [
        (
            "time that rooda adds between two agent calls, state saved",
            _cell(_part(found, "gap"), ROODA, "gap", 1e3, MS),
        ),
        ("memory of rooda while an agent works", _cell(_part(found, "waiting"), WAITING, "private", 1e-6, "{:.0f} MB")),
        (
            "CPU of rooda while an agent works",
            _cell(_part(found, "waiting"), WAITING, "idle cpu", 1e3, "{:.0f} ms/min"),
        ),
        (
            "time that rooda adds, last tenth of 10,000 iterations over the first",
            _cell(_part(found, "steady"), ROODA, "growth", 1, "{:.1f} ×"),
        ),
        ("from SIGTERM to the end, state saved", _cell(_part(found, "stopping"), ROODA, "wall", 1e3, MS)),
        (
            "of 25 ways to end a loop, those that leave a process running",
            _cell(_part(found, "left"), ROODA, "left alive", 1, "{:.0f}"),
        ),
        *_campaigns(folder),
    ]
    lines = ["| what | measured |", "|---|---|", *(f"| {what} | {told} |" for what, told in rows if told != MISSING)]
    return "\n".join(lines)


def _campaigns(folder: str) -> list[tuple[str, str]]:
    """What the faults and the soak came to, in a row each."""
    rows = []
    faults = results.read(folder, "kills.json").get("faults", {})
    counts = [each for loops in faults.values() for each in loops.values()]
    if counts:
        bad = sum(each[name] for each in counts for name in COLUMNS[1:])
        tried = sum(each["faults"] for each in counts)
        rows.append(
            ("SIGKILLs, full disks and disk errors after which a resumed loop ended wrongly", f"{bad:,} of {tried:,}")
        )
    if soak := results.read(folder, "soak.json"):
        bad = sum(soak[name] for name in SOAKED)
        strikes = sum(soak["strikes"].values())
        told = f"{bad} faults in {strikes} strikes"
        rows.append((f"{soak['minutes']:g} minutes of kills, stops and pauses of running loops", told))
    return rows


def goals(found: Found, folder: str) -> str:
    """The twelve goals: what was measured, and what it may be at most."""
    lines = ["| what | measured | at most | goal |", "|---|---|---|---|"]
    for row in results.rows(found):
        if 0 < row["goal"] <= 12 and row["limit"] is not None:
            limit = f"{results.shown(row, 'limit')}{'' if row['met'] else ' (missed)'}"
            lines.append(f"| {row['what']} | {results.shown(row, 'measured')} | {limit} | {row['goal']} |")
    return "\n".join(lines)


def others(found: Found, folder: str) -> str:
    """What has a limit and is none of the twelve goals."""
    lines = ["| what | measured | at most |", "|---|---|---|"]
    for row in results.rows(found):
        if not row["goal"]:
            limit = f"{results.shown(row, 'limit')}{'' if row['met'] else ' (missed)'}"
            lines.append(f"| {row['what']} | {results.shown(row, 'measured')} | {limit} |")
    return "\n".join(lines)


def compared(found: Found, folder: str) -> str:
    """The four promises, a column for each tool that was measured."""
    part = _part(found, "today")
    tools = [tool for tool in (OURS, *TOOLS) if tool is OURS or tool.title in part.get("series", {})]
    rows: list[tuple[str, Callable[[Tool], str]]] = [
        ("decides that the work is done", lambda tool: tool.judge),
        (
            "agent calls once the limit is reached",
            lambda tool: _cell(part, tool.title, "turns after the limit", 1, COUNT),
        ),
        ("… and after another start", lambda tool: _cell(part, tool.title, "turns after another start", 1, COUNT)),
        ("processes left after `kill -9`", lambda tool: _cell(part, tool.title, "left alive", 1, COUNT)),
        ("asks before a cloned project's commands run", lambda tool: tool.trust),
    ]
    lines = [f"| | {' | '.join(tool.title for tool in tools)} |", "|---" * (len(tools) + 1) + "|"]
    return "\n".join([*lines, *(f"| {what} | {' | '.join(map(cell, tools))} |" for what, cell in rows)])


def today(found: Found, folder: str) -> str:
    """All that was measured of the tools of today."""
    part = _part(found, "today")
    forms: dict[str, tuple[str, float, str]] = {
        "from turn to turn, ms": ("gap", 1e3, "{:,.0f}"),
        "memory beside the agent's, MB": ("own private", 1e-6, "{:.0f}"),
        "memory in all, MB": ("private", 1e-6, "{:.0f}"),
        "alive after SIGKILL": ("left alive", 1, COUNT),
        "turns after the limit": ("turns after the limit", 1, COUNT),
        "after another start": ("turns after another start", 1, COUNT),
    }
    lines = [f"| | version | {' | '.join(forms)} | goes on at the next start |", "|---" * (len(forms) + 3) + "|"]
    notes = part.get("notes", {}).get("tools", {})
    for title in part.get("series", {}):
        version = notes.get(title, "").partition("; ")[0]
        cells = [_cell(part, title, *form) for form in forms.values()]
        again = _median(part, title, "turns after the next start")
        cells.append(MISSING if again is None else "yes" if again > 1 else "no")
        lines.append(f"| {title} | {version or 'this checkout'} | {' | '.join(cells)} |")
    about = f"{part['python']}, {part['system']}. –: not measured." if part else ""
    missing = [f"* {title} {note}." for title, note in notes.items() if title not in part["series"] or ";" in note]
    return "\n".join([*lines, "", about, *([""] if missing else []), *missing])


def soak_told(folder: str) -> str:
    soak = results.read(folder, "soak.json")
    if not soak:
        return ""
    words = ", ".join(f"{soak[name]} {name}" for name in SOAKED)
    more = f"{soak['memory']['gained']:+.2f} MB and {soak['files']['gained']:+.2f} open files a process"
    told = f"{sum(soak['strikes'].values())} kills, stops and pauses, {sum(soak['calls'].values()):,} agent calls"
    what = "four loops, a list of tasks and the page" if "page" in soak else "four loops"
    how = f"{soak['minutes']:g} minutes of {what} side by side (`python -m benchmarks.soak`)"
    return f"{how}, {told}: {words}; {more}."


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
    told = soak_told(folder) or "Not measured yet: `python -m benchmarks.soak`."
    return f"{told}\n\n{_picture(folder, 'soak')}"


def peers(found: Found, folder: str) -> str:
    """A line for each of the older loop runners, a column for each measure."""
    part, left = _part(found, "peers"), _part(found, "left")
    forms: dict[str, tuple[str, float, str]] = {
        "between two calls, ms": ("gap", 1e3, "{:.2f}"),
        "CPU per iteration, ms": ("cpu", 1e3, "{:.2f}"),
        "1,000th over 100th gap": ("growth", 1, "{:.2f}"),
        "memory, MB": ("private", 1e-6, "{:.1f}"),
        "wake-ups, /s": ("wakeups", 1, "{:.0f}"),
        "100 MB of output, s": ("output wall", 1, "{:.2f}"),
    }
    lines = [f"|  | {' | '.join(forms)} |", "|---" * (len(forms) + 1) + "|"]
    for name in (ROODA, UNSYNCED, FLOOR, BASH, *part.get("notes", {}).get("peers", {})):
        lines.append(f"| {name} | {' | '.join(_cell(part, name, *form) for form in forms.values())} |")
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
    return MISSING if value is None else form.format(max(0.0, value * factor))


BLOCKS: dict[str, Make] = {
    "figures": figures,
    "compared": _when_measured("today", compared),
    "goals": goals,
    "others": others,
    "today": _when_measured("today", today),
    "peers": _when_measured("peers", peers),
    "endings": _when_measured("left", endings),
    "growth": _when_measured("growth", growth),
    "soak": _soak,
    "fleet-faults": fleet.faults,
    "fleet-figures": fleet.figures,
    "fleet-saturation": fleet.saturation,
    "faults": lambda found, folder: faults_table(os.path.join(folder, "kills.json")),
}
