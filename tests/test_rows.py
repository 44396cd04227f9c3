"""Every row of the conformance checklist has a test that carries its number."""

import ast
import re
from pathlib import Path

ROWS = {"O": 124}  # letter of the checklist: how many rows it has


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
    for letter, count in ROWS.items():
        assert numbers(letter) == set(range(1, count + 1))
