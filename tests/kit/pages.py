"""The project's documents, and what is in them."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md")})
STAND_INS = {"NAME": "build", "P": "build", "PROCEDURE": "build"}  # what a page writes for "any procedure"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, *languages: str) -> list[str]:
    """The contents of a page's fenced blocks in one of these languages ("" is a fence without a word)."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [text for language, text in found if language in languages]


def commands(page: Path) -> Iterator[list[str]]:
    """Every `rooda …` command of a page, as words behind `rooda`; in blocks, in tables, and in sentences."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for text in re.findall(r"(?<!`)`(rooda [^`]+)`(?!`)", prose):
        yield _words(text)
    for block in blocks(page, "", "sh", "console"):
        for line in block.splitlines():
            if found := re.match(r"(?:\$ )?(rooda .*)", line):
                yield _words(found[1])
            elif line.startswith("python3 "):
                yield from (_words(part) for part in line.split(" && ") if part.startswith("rooda "))


def _words(text: str) -> list[str]:
    """The words of the command; what stands two blanks to the right of it explains it."""
    command = re.split(r"\s{2,}|\s#|…", text)[0]
    return [STAND_INS.get(word, word) for word in shlex.split(command)[1:]]


def links(page: Path) -> list[str]:
    """Where a page's links lead, web addresses excepted."""
    prose = re.sub(r"^```.*?^```$|`[^`\n]+`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", prose) if "://" not in target]


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings make."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
