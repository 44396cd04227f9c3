"""The prompts of a goal: templates filled with what this call needs to know, and no more."""

import json
from collections.abc import Callable, Mapping, Sequence

from rooda.loops.goal.goal_types import Criterion
from rooda.run.placeholders import substitute

Template = Callable[[str], str]
LONGEST_TAIL = 4000
LONGEST_CHANGE = 100_000


def filled(template: Template, name: str, values: Mapping[str, str]) -> str:
    """The first line says which call it is, as ROODA_CALL does."""
    kind = name.partition("-")[0]
    text = substitute(template(name), values, f"goal/{name}.md").strip("\n")
    return f"ROODA_CALL={kind}\n\n{squeezed(text)}\n"


def squeezed(text: str) -> str:
    """Sections that turned out empty leave one blank line, not three."""
    lines: list[str] = []
    for line in text.split("\n"):
        if line.strip() or (lines and lines[-1].strip()):
            lines.append(line)
    return "\n".join(lines)


def section(title: str, body: str) -> str:
    return f"## {title}\n\n{body.strip()}\n" if body.strip() else ""


def bullets(texts: Sequence[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def quoted(text: str) -> str:
    """A text that is to be read, not obeyed, with a fence that it can't close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text.strip(chr(10))}\n{fence}"


def change(diff: str) -> str:
    """What a judge is shown of a change: the beginning of a long one, and how much is missing."""
    more = unseen(diff)
    return f"{quoted(diff[:LONGEST_CHANGE])}\n\n(cut: {more} more characters are not shown)" if more else quoted(diff)


def unseen(diff: str) -> int:
    """How many characters of it no judge is shown."""
    return max(0, len(diff) - LONGEST_CHANGE)


def shown(criteria: Sequence[Criterion]) -> list[Criterion]:
    """What an agent may know of."""
    return [each for each in criteria if not each.holdout]


def method(criterion: Criterion) -> str:
    """How it will be verified."""
    if criterion.command:
        expect = f", and its output must show {criterion.expect}" if criterion.expect else ""
        return f"verified by `{criterion.command}`{expect}"
    return f"verified by {criterion.verification}{f': {criterion.note}' if criterion.note else ''}"


def standing(criteria: Sequence[Criterion], met: Mapping[str, bool]) -> str:
    """One line per criterion."""
    return bullets([f"[{'x' if met[each.name] else ' '}] {each.name}" for each in criteria])


def claim_form(criteria: Sequence[Criterion]) -> str:
    """The block as this agent should print it."""
    return json.dumps({each.name: False for each in criteria}, ensure_ascii=False)


def tail(text: str) -> str:
    """The end of an output, which is where errors stand."""
    return text if len(text) <= LONGEST_TAIL else f"…{text[-LONGEST_TAIL:]}"
