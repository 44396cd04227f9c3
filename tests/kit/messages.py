"""The texts of the program, with `…` in the place of each value that is filled in."""

import ast
from collections.abc import Iterator
from functools import cache

from .pages import ROOT


@cache
def texts() -> frozenset[str]:
    """Each text in the code, docstrings excepted."""
    found: set[str] = set()
    for path in sorted((ROOT / "rooda").rglob("*.py")):
        found.update(_of(ast.parse(path.read_text())))
    return frozenset(found)


def _of(tree: ast.AST) -> Iterator[str]:
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node.value


def said(message: str) -> bool:
    """True if the program has a text that contains this message."""
    return any(message in text for text in texts())
