"""Scores of a specification: how clear it is in five dimensions, by an agent or by its words alone."""

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
    """Points of one dimension, and the words of the specification that earn them."""

    score: int = 0
    quote: str = ""
    note: str = ""  # why points were removed


class Scores(NamedTuple):
    """The five dimensions."""

    outcome: Score = Score()
    scope: Score = Score()
    constraints: Score = Score()
    success: Score = Score()
    done: Score = Score()

    @property
    def total(self) -> int:
        return sum(each.score for each in self)


def shape_of(total: int) -> str:
    """Tool from 8 points, Colleague from 5 to 7, Intent below."""
    return TOOL if total >= 8 else COLLEAGUE if total >= 5 else INTENT


def read_scores(value: Any) -> Scores | str:
    """Scores in JSON, or a sentence that says why they are invalid."""
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


def checked_quotes(scores: Scores, spec: str, trusted: bool = False) -> Scores:
    """The scores without points whose quote isn't in the specification. `trusted`: points without a quote count."""
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
    """The text without differences of case, white space and typographic quotes."""
    return " ".join(text.translate(_TYPOGRAPHY).lower().split())


_TYPOGRAPHY = str.maketrans("‘’“”", "''\"\"")


def read_option(text: str) -> Scores | str:
    """Read --score: five numbers in the order of the dimensions."""
    words = re.split(r"[,\s]+", text.strip())
    if len(words) != len(DIMENSIONS) or not all(re.fullmatch("[012]", word) for word in words):
        return f"--score takes five numbers from 0 to 2 ({', '.join(DIMENSIONS)}), got {text!r}"
    return Scores(*(Score(int(word)) for word in words))


_UNIT = (
    r"(?:ms|s|sec\w*|min\w*|hours?|%|percent|x|times|kb|mb|gb|bytes?|loc|lines?|rps|qps|fps|requests?|errors?|users?)"
)
_NOTHING = (  # words that name nothing specific
    r"(?!(?:the|an?|our|all|this|that|it|app|application|project|code|codebase|everything|things?|stuff|better|faster"
    r"|nicer)\b)"
)
# Each repetition is bounded: a specification may be long and contain anything.
_NUMBER = rf"(?:[<>≤≥]=?\s{{0,9}}\$?\d[\d.,]{{0,20}}\s{{0,9}}{_UNIT}?|\b\d[\d.,]{{0,20}}\s{{0,9}}{_UNIT}(?!\w))"
_MEASURE = re.compile(
    rf"(?:\b(?:p\d\d|latency|coverage|throughput|memory|time|size|rate|accuracy|score)\b[^.;\n]{{0,30}})?{_NUMBER}"
    r"|\b(?:returns?|responds?(?: with)?|exits?(?: with)?|prints?|status)\s+(?:code\s+)?[\"'`]?\w+[\"'`]?",
    re.IGNORECASE,
)
_DIRECTION = re.compile(
    r"\b(?:improve|increase|reduce|decrease|speed up|faster|optimi[sz]e|add|implement|create|fix|refactor|remove|rename"
    r"|migrate|support|replace|convert|write|build|extract|update)\b\s+(?:(?:the|an?|our|all|this|that)\s+)*"
    rf"{_NOTHING}[\w/.`-]+",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"(?<![\w<])/(?:[\w{}:.-]+/?)+|\b[\w-]{1,80}(?:/[\w.-]+)+|\b[\w-]{1,80}\.(?:py|js|jsx|ts|tsx|go|rs|rb|java|kt|c|h|cc|cpp|cs|php|sh"
    r"|sql|css|html|vue|swift|toml|ya?ml|json|md|txt|cfg|ini|proto|tf)\b|\b\w+\(\)|`[^`\s]{1,200}`",
    re.IGNORECASE,
)
_AREA = re.compile(
    r"\b(?:fix|improve|refactor|update|change|rewrite|clean up|optimi[sz]e|add|implement|extend|migrate|debug|speed up"
    r"|test|document|reduce|remove|support|in|of|for)\b\s+(?:(?:the|an?|our|all|this|that)\s+)*"
    rf"{_NOTHING}(?!system\b|performance\b)[A-Za-z][\w-]+",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    rf"\b(?:no|without|must not|mustn't|do not|don't|never|only|at most|max(?:imum)?|not more than|under|within"
    rf"|less than|fewer than|up to)\b\s+[\w<\d`/.-]+|[<≤]\s{{0,9}}\d[\d.,]{{0,20}}\s{{0,9}}{_UNIT}?",
    re.IGNORECASE,
)
_LEANING = re.compile(
    r"\b(?:use|using|keep|with|follow|stay|based on|compatible|existing|same)\b\s+[\w`./-]+", re.IGNORECASE
)
_CHECKS = {
    "test": re.compile(r"\b(?:unit |integration |all |the )?(?:tests?|specs?|pytest|jest|suite)\b", re.IGNORECASE),
    "lint": re.compile(r"\b(?:lint\w*|ruff|eslint|flake8|clippy|format\w*)\b", re.IGNORECASE),
    "types": re.compile(r"\b(?:types?|type[ -]?check\w*|mypy|tsc|pyright)\b", re.IGNORECASE),
    "build": re.compile(r"\b(?:builds?|compiles?)\b(?= (?:pass|succeed|is|clean|without)| *[,;.]|$)", re.IGNORECASE),
    "manual": re.compile(r"\b(?:manual\w*|qa|review\w*|approv\w*|screenshots?|demo)\b", re.IGNORECASE),
    "measure": re.compile(r"\b(?:benchmark\w*|load test\w*|latency|coverage|p\d\d)\b[^.;\n]{0,200}\d", re.IGNORECASE),
    "call": re.compile(r"\b(?:curl|returns?|responds?|status)\b[^.;\n]{0,200}\b\d{3}\b", re.IGNORECASE),
}
_END = re.compile(
    r"\b(?:merged|deployed|released|published|shipped|pushed|tagged|committed|live)\b(?:\s+(?:in)?to\s+[\w`/.-]+)?"
    r"|\b(?:returns?|responds?(?: with)?)\s+\d{3}\b|\bexits?\s+(?:with\s+)?0\b"
    r"|\bpr\b[^.;\n]{0,200}\b(?:open|merged|approved)\w*"
    r"|\b(?:done|finished|complete)\s+(?:when|once|if)\b[^.;\n]{0,200}\b(?:pass\w*|exist\w*|green|merged|deployed|\d+)",
    re.IGNORECASE,
)
_VAGUE_END = re.compile(
    r"\b(?:when|once|until|as soon as|after)\b\s+(?:it|everything|all|the|this|they|tests?)\b[^.;\n]{0,200}",
    re.IGNORECASE,
)


def score_words(spec: str) -> Scores:
    """Score by patterns. They are stricter than an agent, so that rooda asks if in doubt. Each point has its quote."""
    return Scores(
        _graded(_MEASURE, _DIRECTION, spec),
        _graded(_PLACE, _AREA, spec),
        _constraints(spec),
        _success(spec),
        _graded(_END, _VAGUE_END, spec),
    )


def _graded(two: "re.Pattern[str]", one: "re.Pattern[str]", spec: str) -> Score:
    if found := two.search(spec):
        return Score(2, found[0].strip())
    found = one.search(spec)
    return Score(1, found[0].strip()) if found else Score()


def _constraints(spec: str) -> Score:
    return _graded(_LIMIT, _LEANING, spec)


def _success(spec: str) -> Score:
    """Score the dimension success: one point for each kind of check that the specification names, at most two."""
    found = [match[0].strip() for pattern in _CHECKS.values() if (match := pattern.search(spec))]
    return Score(min(len(found), 2), found[0] if found else "")
