"""Every row of the conformance checklist has a test that carries its number."""

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


def numbers() -> dict[str, set[int]]:
    """The rows in the names of tests, by letter: test_O_052_O_122_… has two."""
    found: dict[str, set[int]] = {letter: set() for letter in ROWS}
    for path in Path(__file__).parent.rglob("test_*.py"):
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE):
            for letter, number in re.findall(r"_([CFOR])_(\d\d\d)(?=_|$)", name):
                found[letter].add(int(number))
    return found


def test_every_row_has_a_test() -> None:
    """Each row of a checklist has a test, and each test's row exists."""
    assert numbers() == ROWS
