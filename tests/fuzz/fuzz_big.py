"""Inputs that are large and simple: where a parser's work grows faster than its input, these take forever."""

from collections.abc import Iterator

from tests.fuzz.fuzz_table import Target

RUNS = (
    " ",
    "\t",
    "\n",
    "a",
    "1",
    "1,",
    ".",
    "-",
    "a-",
    "*",
    "#",
    "`",
    '"',
    "'",
    "\\",
    "{",
    "[",
    "(",
    "<",
    ">",
    ":",
    "|",
    "\x00",
    "é",
    "٣",
)
LINES = ("- `a`\n", "# a\n", "a: b\n", "```\n", "{}\n", "the \n", "\r\n")
OPENED = (
    '{"a":',
    '{"',
    '[{"a":1,"b":',
    "<!--",
    "---LOOP_STATUS---\n",
    "&a [*a,",
    "a:\n  ",
    "- ",
    "- - ",
    "? ",
    "a.",
    "[a.",
    "`` ",
    '"',
    "'",
)


def big(target: Target, size: int) -> Iterator[tuple[str, bytes]]:
    """Each with a word for it. Runs alone, behind what the target knows, and in the middle of a line."""
    for piece in dict.fromkeys((*RUNS, *LINES, *OPENED, *target.pieces)):
        yield f"{piece[:12]!r} again and again", _filled(piece, size)
    for piece in dict.fromkeys(piece for piece in target.pieces if len(piece) < 100):
        for run in (" ", "a", "\t"):
            yield f"{piece[:12]!r}, then {run!r}", _bytes(piece) + _filled(run, size) + b"!\n"
    for number, path in enumerate(target.corpus()[:3]):
        data = path.read_bytes()
        if data:
            yield f"input {number} again and again", data * (size // len(data) + 1)
            half = data.rfind(b" ") if b" " in data else len(data) // 2
            yield f"input {number} with a gap", data[:half] + b" " * size + data[half:]


def _filled(piece: str, size: int) -> bytes:
    one = _bytes(piece)
    return one * (size // len(one) + 1)


def _bytes(piece: str) -> bytes:
    return piece.encode("utf-8", "surrogatepass")
