"""How clear a goal's specification is: five dimensions, each 0 to 2, and what the sum means."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

DIMENSIONS = ("outcome", "scope", "constraints", "success", "done")
TOOL, COLLEAGUE, INTENT = "Tool", "Colleague", "Intent"
GAPS = {
    "outcome": "say what is to be measured, with a number or a name",
    "scope": "name the file, endpoint or function",
    "constraints": "say what must not happen, or how much is allowed",
    "success": "name two ways to check the result",
    "done": "say by what event it is finished",
}


class Score(NamedTuple):
    """One dimension: its points, and the words of the specification that earn them."""

    score: int = 0
    quote: str = ""
    note: str = ""  # why it was cut


class Scores(NamedTuple):
    """All five, in their order."""

    outcome: Score = Score()
    scope: Score = Score()
    constraints: Score = Score()
    success: Score = Score()
    done: Score = Score()

    @property
    def total(self) -> int:
        return sum(each.score for each in self)


def shape_of(total: int) -> str:
    """Tool from 8 on, Colleague from 5 to 7, Intent below."""
    return TOOL if total >= 8 else COLLEAGUE if total >= 5 else INTENT


def read(value: Any) -> Scores | str:
    """Scores as an agent or a file gives them; a sentence if they can't be that."""
    if not isinstance(value, Mapping):
        return "the scores are not an object"
    found = []
    for name in DIMENSIONS:
        given = value.get(name)
        points = given.get("score") if isinstance(given, Mapping) else given
        if type(points) is not int or not 0 <= points <= 2:
            return f"the score of {name} is not 0, 1 or 2"
        quote = given.get("quote") if isinstance(given, Mapping) else ""
        found.append(Score(points, quote if isinstance(quote, str) else ""))
    return Scores(*found)


def quoted(scores: Scores, spec: str, trusted: bool = False) -> Scores:
    """Points count only with words that occur in the specification. A person's own bare number is believed."""
    text = plain(spec)
    return Scores(*(_kept(each, text, trusted) for each in scores))


def _kept(score: Score, text: str, trusted: bool) -> Score:
    if not score.score or (trusted and not score.quote):
        return score
    quote = plain(score.quote)
    if quote and quote in text:
        return score
    return Score(0, "", f"cut from {score.score}: the specification does not say {score.quote!r}")


def plain(text: str) -> str:
    """Without regard to case, white space and typographic quotes."""
    return " ".join(text.translate(_TYPOGRAPHY).lower().split())


_TYPOGRAPHY = str.maketrans("‘’“”", "''\"\"")


def typed(text: str) -> Scores | str:
    """What --score says: five numbers in the order of the dimensions."""
    words = re.split(r"[,\s]+", text.strip())
    if len(words) != len(DIMENSIONS) or not all(re.fullmatch("[012]", word) for word in words):
        return f"--score takes five numbers from 0 to 2 ({', '.join(DIMENSIONS)}), got {text!r}"
    return Scores(*(Score(int(word)) for word in words))
