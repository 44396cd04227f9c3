"""Every row of the conformance checklist has a test that carries its number."""

import ast
import re
from pathlib import Path


def spans(*pairs: tuple[int, int]) -> set[int]:
    return {number for first, last in pairs for number in range(first, last + 1)}


ROWS = {  # letter of the checklist: the rows that it has
    "C": spans((1, 108)),
    "F": spans(
        *(
            (1, 11),
            (20, 25),
            (30, 34),
            (40, 45),
            (50, 64),
            (70, 92),
            (100, 111),
            (120, 124),
            (130, 141),
            (150, 158),
            (160, 164),
            (170, 179),
            (190, 197),
            (200, 203),
        ),
    ),
    "O": spans((1, 124)),
    "R": spans(
        *(
            (1, 16),
            (20, 32),
            (40, 53),
            (60, 79),
            (90, 106),
            (110, 117),
            (120, 158),
            (160, 175),
            (180, 193),
            (200, 218),
            (230, 241),
            (250, 257),
        ),
    ),
}


def numbers(letter: str) -> set[int]:
    """The rows that test names speak of: test_O_052_O_122_… speaks of two."""
    found = set()
    for path in Path(__file__).parent.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found |= {int(number) for number in re.findall(rf"_{letter}_(\d\d\d)(?=_|$)", node.name)}
    return found


def test_every_row_has_a_test() -> None:
    """No row of a checklist is without a test, and no test speaks of a row that there is not."""
    for letter, rows in ROWS.items():
        assert numbers(letter) == rows, letter
