"""The verdict box: 38 columns, padded and wrapped by display width."""

from rooda.base.json import Json
from rooda.base.text import padded, visible, width

INSIDE = 36
MARKS = {"SHIP": "🟢", "MONITOR": "🟡", "RESEARCH": "🔴"}


def box(record: Json) -> list[str]:
    """How it was verified, how much of it, and what could be otherwise."""
    verdict = record["verdict"]
    title = f"─ {MARKS[verdict]} {verdict} "
    met = sum(record["criteria"].values()) - len(record.get("claimed", ()))  # an older log does not say them
    rows = [
        f"Verified: {' + '.join(record['verified']) or 'nothing yet'}",
        f"Checklist: {met}/{len(record['criteria'])} criteria verified",
        f"Subjective: {_confidence(record['confidence'])} · Type {record['type']} · {_points(record['points'])}",
    ]
    risk = "; ".join(filter(None, (record["risk"], *(f"changed: {visible(path)}" for path in record["tests_changed"]))))
    return [
        f"╭{title}{'─' * (INSIDE - width(title))}╮",
        *(line for row in rows for line in framed(row)),
        f"├{'─' * INSIDE}┤",
        *framed(f"↳ Alt: {record['alt'] or 'n/a'}"),
        *framed(f"↳ Risk: {risk or 'n/a'}"),
        f"╰{'─' * INSIDE}╯",
    ]


def _confidence(text: str) -> str:
    word = text.strip().removesuffix("%").strip().lstrip("~")
    return f"~{word}%" if word.isdecimal() else text or "n/a"


def _points(points: int) -> str:
    return f"{points}pt" if points else "n/a"


def framed(text: str) -> list[str]:
    """The text between the frame's sides, on as many lines as it needs."""
    return [f"│ {padded(line, INSIDE - 1)}│" for line in wrapped(text, INSIDE - 1)]


def wrapped(text: str, room: int) -> list[str]:
    lines, line = [], ""
    for word in text.split(" "):
        if line and width(f"{line} {word}") > room:
            lines.append(line)
            line = "  "
        joined = f"{line}{word}" if line in ("", "  ") else f"{line} {word}"
        while width(joined) > room:
            head = _fitting(joined, room)
            lines.append(head)
            joined = f"  {joined[len(head) :]}"
        line = joined
    return [*lines, line]


def _fitting(text: str, room: int) -> str:
    while width(text) > room:
        text = text[:-1]
    return text
