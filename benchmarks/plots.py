"""The results as pictures: SVG, written by hand so that nothing has to be installed to draw them."""

import math
import os
from typing import Any
from xml.sax.saxutils import escape

from benchmarks import results
from benchmarks.contenders import BASH, FLOOR, ROODA

INK, FAINT, GRID, OURS, FLOORS, OTHERS = "#24292f", "#6e7781", "#d8dee4", "#0969da", "#57606a", "#afb8c1"
COLOURS = ("#0969da", "#bf3989", "#1a7f37", "#9a6700", "#8250df", "#cf222e", "#57606a")
FONT = "font-family='-apple-system,Segoe UI,Helvetica,Arial,sans-serif'"
PANELS = (  # title, part, metric, factor, unit
    ("time between two agent calls", "peers", "gap", 1e3, "ms"),
    ("CPU per iteration", "peers", "cpu", 1e3, "ms"),
    ("private memory while an agent works", "peers", "private", 1e-6, "MB"),
    ("CPU of --help", "peers", "help cpu", 1e3, "ms"),
    ("wake-ups while an agent works", "peers", "wakeups", 1, "/s"),
    ("ways to end it that leave something alive", "left", "left alive", 1, "of 25"),
)
ROW, WIDE, LABEL = 20, 400, 128


def drawn(found: dict[str, Any], folder: str) -> None:
    """Every picture for which there are results."""
    parts = found["parts"]
    if "peers" in parts or "left" in parts:
        results.replace(os.path.join(folder, "peers.svg"), peers(parts))
    if "growth" in parts:
        results.replace(os.path.join(folder, "growth.svg"), growth(parts["growth"]["series"]))
    soak = results.read(folder, "soak.json")
    if soak.get("course"):
        results.replace(os.path.join(folder, "soak.svg"), course(soak))


def peers(parts: dict[str, Any]) -> str:
    """Bars, one panel for each measure, shortest first; logarithmic where one is far longer than another."""
    shapes, top, left, lowest = [], 56, 0, 0
    for number, (title, part, metric, factor, unit) in enumerate(PANELS):
        series = parts.get(part, {}).get("series", {})
        bars = {name: metrics[metric]["median"] * factor for name, metrics in series.items() if metric in metrics}
        if not bars:
            continue
        if number % 2 == 0:
            left, top = 24, max(top, lowest)
        else:
            left = 24 + WIDE + 40
        shapes += _panel(left, top, f"{title}, {unit}", bars)
        lowest = max(lowest, top + 54 + ROW * len(bars))
    head = _text(24, 32, "rooda, floors and other loop runners, on the same machine in the same run", 16, INK, "600")
    return _svg(2 * WIDE + 88, lowest, [head, *shapes])


def _panel(left: int, top: int, title: str, bars: dict[str, float]) -> list[str]:
    shapes = [_text(left, top + 14, title, 13, INK, "600")]
    least, most = min((each for each in bars.values() if each > 0), default=1.0), max(bars.values()) or 1.0
    logarithmic = most / least > 50
    room = WIDE - LABEL - 70
    for row, (name, value) in enumerate(sorted(bars.items(), key=lambda item: item[1])):
        y = top + 26 + ROW * row
        share = value / most
        if logarithmic:
            share = math.log(value / least * 2) / math.log(most / least * 2) if value > 0 else 0
        colour = OURS if name == ROODA else FLOORS if name in (FLOOR, BASH, "python -c pass") else OTHERS
        shapes.append(_text(left + LABEL - 8, y + 12, name, 12, INK, "600" if name == ROODA else "400", "end"))
        wide = max(1.5, room * share)
        size = f"width='{wide:.1f}' height='15' rx='2'"
        shapes.append(f"<rect x='{left + LABEL}' y='{y}' {size} fill='{colour}'/>")
        shapes.append(_text(left + LABEL + wide + 6, y + 12, _number(value), 12, FAINT))
    if logarithmic:
        shapes.append(_text(left + WIDE, top + 14, "logarithmic", 11, FAINT, anchor="end"))
    return shapes


def growth(series: dict[str, Any]) -> str:
    """A panel for each kind of loop: the cost of a turn over that at the smallest size."""
    kinds: dict[str, dict[str, list[float]]] = {}
    for what, metrics in series.items():
        kind, _, rest = what.partition(": ")
        costs = [spread["median"] for spread in metrics.values()]
        kinds.setdefault(kind if kind in ("ooda", "reflex", "flow", "goal") else "commands", {})[
            rest if kind in ("ooda", "reflex", "flow", "goal") else what.replace("`", "")
        ] = [cost / costs[0] for cost in costs]
    most = max((ratio for lines in kinds.values() for each in lines.values() for ratio in each), default=1.0)
    most = max(10.0, most * 1.15)
    title = "What a turn costs when there is more of something: ratio to the smallest size"
    head = _text(24, 32, title, 16, INK, "600")
    shapes, wide, high = [head], 250, 230
    for number, (kind, lines) in enumerate(kinds.items()):
        shapes += _axes(24 + number % 3 * (wide + 40), 60 + number // 3 * (high + 110), wide, high, kind, lines, most)
    rows = -(-len(kinds) // 3)
    return _svg(24 + 3 * (wide + 40), 60 + rows * (high + 110), shapes)


def _axes(
    left: int, top: int, wide: int, high: int, title: str, lines: dict[str, list[float]], most: float
) -> list[str]:
    """Both scales are logarithmic; a straight diagonal would be growth with the size itself."""
    shapes = [_text(left, top, title, 13, INK, "600")]
    least = min(0.5, *(ratio for each in lines.values() for ratio in each)) * 0.9

    def x(step: int) -> float:
        return left + 30 + (wide - 40) * step / 2

    def y(ratio: float) -> float:
        return top + 12 + (high - 40) * (1 - math.log(ratio / least) / math.log(most / least))

    for mark in (1, 10, 100):
        if least <= mark <= most:
            shapes.append(f"<line x1='{x(0)}' x2='{x(2)}' y1='{y(mark):.1f}' y2='{y(mark):.1f}' stroke='{GRID}'/>")
            shapes.append(_text(left + 24, y(mark) + 4, f"{mark}×", 11, FAINT, anchor="end"))
    for step, word in enumerate(("least", "middle", "most")):
        shapes.append(_text(x(step), top + high - 10, word, 11, FAINT, anchor="middle"))
    for number, (what, ratios) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(f"{x(step):.1f},{y(ratio):.1f}" for step, ratio in enumerate(ratios))
        shapes.append(f"<polyline points='{points}' fill='none' stroke='{colour}' stroke-width='2'/>")
        shapes += [f"<circle cx='{x(s):.1f}' cy='{y(r):.1f}' r='3' fill='{colour}'/>" for s, r in enumerate(ratios)]
        low = top + high + 8 + 16 * number
        shapes.append(f"<rect x='{left + 4}' y='{low - 9}' width='10' height='10' rx='2' fill='{colour}'/>")
        shapes.append(_text(left + 20, low, f"{what}  {ratios[-1]:.2f}×", 12, INK))
    return shapes


def course(soak: dict[str, Any]) -> str:
    """Memory and open files of rooda's processes over a soak."""
    rows = soak["course"]
    shapes = [_text(24, 32, f"{soak['minutes']:g} minutes: medians over all processes of rooda", 16, INK, "600")]
    for number, (what, title) in enumerate((("memory", "private memory, MB"), ("files", "open files"))):
        left, top, wide, high = 24 + number * 440, 70, 400, 180
        most = math.ceil(max(row[what] for row in rows) * 0.65 + 0.5) * 2
        shapes.append(_text(left, top - 8, title, 13, INK, "600"))
        end = rows[-1]["minutes"] or 1
        for share in (0, 0.5, 1):
            level = top + high * (1 - share)
            shapes.append(f"<line x1='{left + 34}' x2='{left + wide}' y1='{level}' y2='{level}' stroke='{GRID}'/>")
            shapes.append(_text(left + 28, level + 4, _number(most * share), 11, FAINT, anchor="end"))
        spots = [(left + 34 + (wide - 34) * row["minutes"] / end, top + high * (1 - row[what] / most)) for row in rows]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        shapes.append(f"<polyline points='{points}' fill='none' stroke='{COLOURS[number]}' stroke-width='2'/>")
        shapes.append(_text(left + wide, top + high + 18, f"{end:.0f} min", 11, FAINT, anchor="end"))
    return _svg(880, 290, shapes)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _text(x: float, y: float, text: str, size: int, fill: str, weight: str = "400", anchor: str = "start") -> str:
    look = f"font-size='{size}' font-weight='{weight}' fill='{fill}' text-anchor='{anchor}' {FONT}"
    return f"<text x='{x:.1f}' y='{y:.1f}' {look}>{escape(text)}</text>"


def _svg(wide: int, high: int, shapes: list[str]) -> str:
    box = f"width='{wide}' height='{high}' viewBox='0 0 {wide} {high}'"
    body = "\n".join(shapes)
    paper = "<rect width='100%' height='100%' fill='#fff'/>"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {box}>\n{paper}\n{body}\n</svg>\n"
