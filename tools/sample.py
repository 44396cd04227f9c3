"""Print 100 docstrings and 60 messages, or with --docs 100 sentences of the documents, drawn at random to read."""

import argparse
import ast
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "rooda"
DOCSTRINGS, MESSAGES, SENTENCES = 100, 60, 100
ROOT = PACKAGE.parent
MADE = {"configuration.md", "events.md"}  # from code, whose texts are drawn with the messages
ERRORS = {
    "RoodaError",
    "UsageProblem",
    "ConfigProblem",
    "Undecided",
    "StateDamaged",
    "Fault",
    "say",
    "warning",
    "error",
    "Problem",
}


def docstrings(path: Path, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            paragraph = " ".join(text.partition("\n\n")[0].split())
            yield f"{path.relative_to(PACKAGE.parent)}: {heading(node)}: {paragraph}"


def heading(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> str:
    """Return what stands above a docstring: the name, with the parameters of a function."""
    if isinstance(node, ast.FunctionDef):
        result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        return f"{node.name}({ast.unparse(node.args)}){result}"
    return f"class {node.name}" if isinstance(node, ast.ClassDef) else "the module"


def messages(path: Path, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            texts = [part for part in node.args if isinstance(part, ast.Constant | ast.JoinedStr)]
            texts += [keyword.value for keyword in node.keywords if keyword.arg in ("help", "text")]
            if texts and (name in ERRORS or name == "Option"):
                yield f"{path.relative_to(PACKAGE.parent)}:{node.lineno}: " + " | ".join(map(ast.unparse, texts))


def sentences(path: Path) -> Iterator[str]:
    """Yield the sentences of a page, without headings, tables, blocks and quoted examples."""
    text = re.sub(r"^(```|<!--).*?^(```|.*-->)$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[*-]|\d+\.) )", text):
        if not paragraph.lstrip().startswith(("#", "|", "![", "<")):
            whole = " ".join(paragraph.split()).removeprefix("* ")
            for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z`*\[\"]|rooda )", whole):
                if len(sentence.split()) > 3:
                    yield f"{path.relative_to(ROOT)}: {sentence}"


def documents(draw: random.Random) -> None:
    pages = [path for path in sorted(ROOT.glob("docs/**/*.md")) if path.name not in MADE]
    print(*draw.sample([each for path in pages for each in sentences(path)], SENTENCES), sep="\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/sample.py", description=__doc__)
    parser.add_argument("seed", nargs="?", type=int, default=20261119, help="integer; the same seed draws the same")
    parser.add_argument("--docs", action="store_true", help="sentences of the documents")
    given = parser.parse_args()
    draw = random.Random(given.seed)
    if given.docs:
        documents(draw)
        return 0
    found: tuple[list[str], list[str]] = ([], [])
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        found[0].extend(docstrings(path, tree))
        found[1].extend(text for text in messages(path, tree) if any(len(word) > 3 for word in text.split()[1:]))
    for texts, count in zip(found, (DOCSTRINGS, MESSAGES), strict=True):
        print(*draw.sample(texts, min(count, len(texts))), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
