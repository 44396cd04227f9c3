"""Rows of cells to lines of text whose columns stand below each other. Pure."""

from collections.abc import Collection, Sequence


def columns(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """`right`: the columns that end at the same place, as numbers should."""
    widths = [max(width(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = (zip(row, widths, strict=True) for row in rows)
    return ["  ".join(_cell(*each, right) for each in enumerate(line)).rstrip() for line in lines]


def _cell(place: int, pair: tuple[str, int], right: Collection[int]) -> str:
    text, room = pair
    return " " * (room - width(text)) + text if place in right else padded(text, room)


def cut(line: str, room: int) -> str:
    """No more than fits; what is missing is shown by a last `…`."""
    if width(line) <= room:
        return line
    while width(line) >= max(room, 1):
        line = line[:-1]
    return f"{line}…"


def padded(text: str, room: int) -> str:
    return text + " " * (room - width(text))


def width(text: str) -> int:
    """Columns on a terminal."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(sign: str) -> int:
    import unicodedata

    if unicodedata.combining(sign) or unicodedata.category(sign) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1
