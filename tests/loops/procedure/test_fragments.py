"""prompts/: each fragment on its own is short, plain and says what no other says."""

import re
from collections import defaultdict

import pytest

from rooda.run import gates_md
from rooda.run.records import Gate
from tests.kit.shipped_prompts import fragments

PATHS = sorted(fragments())
NAMES = "AGENTS README STATUS CONTEXT JSON TODO PLAN TASK CONTRIBUTING CLAUDE GEMINI SUCCESS FAILURE HEAD"
FILLER = re.compile(
    r"\b(please|very|really|simply|just|carefully|important to note|make sure|ensure|leverage|robust|expert|"
    r"world-class|best practices?|as needed|if appropriate|etc)\b",
    re.I,
)


def sentences(text: str) -> list[str]:
    """Sentences and list items, without their marks and capitals."""
    parts = re.split(r"(?<=[.:;?])\s+|\n+", re.sub(r"^\s*(?:[-#]+|\d+\.)\s+", "", text, flags=re.M))
    return [part.strip().lower() for part in parts if len(part.split()) > 2]


@pytest.mark.parametrize("path", PATHS)
def test_a_fragment_is_short(path: str) -> None:
    """One heading, four to fifteen lines, none of them longer than a paragraph on a screen."""
    lines = fragments()[path].splitlines()
    assert re.fullmatch(r"### [A-Z][^.]+", lines[0])
    assert lines[1] == ""
    assert 4 <= len(lines) <= 15
    assert max(map(len, lines)) <= 260
    assert not [line for line in lines[1:] if line.startswith("#")]


@pytest.mark.parametrize("path", PATHS)
def test_a_fragment_is_plain_text(path: str) -> None:
    """ASCII, one newline at the end, no trailing blanks, no word twice, no half-open code span."""
    text = fragments()[path]
    assert text.isascii()
    assert text.endswith("\n") and not text.endswith("\n\n")
    assert not re.search(r"[ \t]$|\t|\n\n\n", text, re.M)
    assert not re.search(r"\b([A-Za-z]+) \1\b", text)
    assert all(line.count("`") % 2 == 0 and line.count("(") == line.count(")") for line in text.splitlines())


@pytest.mark.parametrize("path", PATHS)
def test_a_fragment_neither_shouts_nor_pads(path: str) -> None:
    """No exclamation mark, no capitals but names, no filler, nothing left to do."""
    text = fragments()[path]
    assert "!" not in text
    assert set(re.findall(r"\b[A-Z]{4,}\b", text)) <= set(NAMES.split())
    assert not FILLER.search(text)


def test_no_sentence_is_in_two_fragments() -> None:
    """What two procedures share is one file."""
    where: defaultdict[str, set[str]] = defaultdict(set)
    for path, text in fragments().items():
        for sentence in sentences(text):
            where[sentence].add(path)
    assert {sentence: paths for sentence, paths in where.items() if len(paths) > 1} == {}


def test_OA_015_the_gate_form_that_is_taught_is_the_one_that_is_read() -> None:
    """The example in the gates fragment, put into an AGENTS.md, is found as a gate."""
    example = re.search(r"``(.+?) ``", fragments()["act/gates.md"])
    assert example
    found = gates_md.gates(f"# Project\n\n## Quality Gates\n\n{example[1]}\n")
    assert found == (Gate("tests", "make test"),)
