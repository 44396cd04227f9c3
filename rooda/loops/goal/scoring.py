"""Derives scores, workflow, reversibility and gate skipping from the wording of a specification."""

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
    """The points of one dimension, with the words of the specification that earn them."""

    score: int = 0
    quote: str = ""
    note: str = ""  # why points were removed


class Scores(NamedTuple):
    """The scores of a specification in five dimensions."""

    outcome: Score = Score()
    scope: Score = Score()
    constraints: Score = Score()
    success: Score = Score()
    done: Score = Score()

    @property
    def total(self) -> int:
        return sum(each.score for each in self)


def shape_of(total: int) -> str:
    """Return the shape for a total score: Tool from 8 points, Colleague from 5 to 7, Intent below 5."""
    return TOOL if total >= 8 else COLLEAGUE if total >= 5 else INTENT


def read_scores(value: Any) -> Scores | str:
    """Read scores from JSON; return the error as a string if they are invalid."""
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
    """Set scores whose quote isn't in the specification to 0; if `trusted`, keep scores without a quote."""
    text = plain(spec)
    return Scores(*(_with_proven_quote(each, text, trusted) for each in scores))


def plain(text: str) -> str:
    """Normalize case, white space and typographic quotes."""
    return " ".join(text.translate(_TYPOGRAPHY).lower().split())


_TYPOGRAPHY = str.maketrans("‘’“”", "''\"\"")


def read_option(text: str) -> Scores | str:
    """Read --score, five numbers in the order of the dimensions; return the error as a string if it is invalid."""
    words = re.split(r"[,\s]+", text.strip())
    if len(words) != len(DIMENSIONS) or not all(re.fullmatch("[012]", word) for word in words):
        return f"--score takes five numbers from 0 to 2 ({', '.join(DIMENSIONS)}), got {text!r}"
    return Scores(*(Score(int(word)) for word in words))


# Scores from the wording alone.
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
    """Score a specification with patterns. They are stricter than an agent, so that rooda asks when in doubt."""
    return Scores(
        _score_match(_MEASURE, _DIRECTION, spec),
        _score_match(_PLACE, _AREA, spec),
        _constraints(spec),
        _success(spec),
        _score_match(_END, _VAGUE_END, spec),
    )


# The workflow, whether gates are skipped, and how hard the work is to undo.
_WORKFLOWS = {
    "A": r"add(?:s|ed|ing)?|implement(?:s|ed|ing)?|creat(?:e|es|ed|ing)|new features?",
    "B": r"fix(?:es|ed|ing)?|debug(?:s|ged|ging)?|broken|errors?|fail(?:s|ed|ing)|failures?",
    "C": r"refactor(?:s|ed|ing)?|clean(?:s|ed|ing)?[ -]up|cleanups?|reorgani[sz](?:e|es|ed|ing)|migrat(?:e|es|ed|ing)",
}
_ANY = re.compile("|".join(rf"(?P<{name}>\b(?:{words})\b)" for name, words in _WORKFLOWS.items()), re.IGNORECASE)
WORKFLOW_NAMES = {"A": "Build", "B": "Debug", "C": "Refactor"}
GATE_OF = {"A": "library_search", "B": "root_cause", "C": "deletion_considered"}
GATE_ASKS = {
    "A": "a library search: two candidates, or `No library exists because …`",
    "B": "the root cause and the evidence for it",
    "C": "what can be deleted, or why nothing can",
}
SKIP_GATES = "proceed without confirmation"
# Only an instruction counts, not a sentence that forbids, quotes or describes it.
_SENTENCE_ENDS = re.compile(r"[.!?;](?=\s|$)|\n\s*(?:\n|[-*+#>]|\d+[.)])|^\s*[-*+#>]+\s", re.MULTILINE)
_INSTRUCTION = re.compile(
    r"(?:|.*[,:—–-]|.*\b(?:and|then|so|but|please|just|also|simply|feel free to|(?:you|should|can|may|must)(?: to)?))",
    re.DOTALL,
)
_DENIED = re.compile(
    r"n[o']t\b|n’t\b|\b(?:never|no|nobody|none|neither|nor|cannot|avoid|unless|instead|rather|refuse[sd]?|if|whether)\b"
    r"|\b(?:forb|prohib|disallow|prevent|wrong)\w*|[\"“”„`«»]|(?<!\w)['‘]",
)

CLASSES = ("2A", "2B", "1")  # from easy to hard to undo
_HARD = re.compile(
    r"\bschemas?\b|\bmigrations?\b|\bdrop(?:s|ped|ping)? (?:the )?(?:\w+ )?(?:tables?|columns?|database)\b"
    r"|\bpublic[ -](?:apis?|interfaces?|endpoints?)\b|\bpublish(?:es|ed|ing)?\b"
    r"|\bdelet(?:e|es|ed|ing|ion of) (?:\w+ ){0,2}data\b",
    re.IGNORECASE,
)
_MIDDLE = re.compile(
    r"\bdependenc(?:y|ies)\b|\bupgrad(?:e|es|ed|ing)\b|\brefactor(?:s|ed|ing)?\b|\bmov(?:e|es|ed|ing)\b", re.IGNORECASE
)


def workflow(spec: str) -> str:
    """Return the workflow to which the first keyword in the specification belongs; A if it has no keyword."""
    found = _ANY.search(_unwrapped(spec))
    return found.lastgroup or "A" if found else "A"


def least_class(spec: str) -> str:
    """Return the lowest reversibility class that the specification's words require; "" if none."""
    spec = _unwrapped(spec)
    return "1" if _HARD.search(spec) else "2B" if _MIDDLE.search(spec) else ""


def stricter(*classes: str) -> str:
    """Return the strictest of these reversibility classes; 2B if none of them is valid."""
    known = [each for each in classes if each in CLASSES]
    return max(known, key=CLASSES.index) if known else "2B"


def reversibility(spec: str, planned: str) -> str:
    """Return the plan's reversibility class, or the one that the specification's words require if that is stricter."""
    return stricter(planned, least_class(spec))


def class_of(value: object) -> str:
    """Normalize a reversibility class such as `2A`, `type 2a` or `1`; "" for anything else."""
    word = re.sub(r"^type\s*", "", str(value).strip().lower()) if isinstance(value, str | int) else ""
    return {"2a": "2A", "2b": "2B", "1": "1"}.get(word, "")


def skips_gates(text: str) -> bool:
    """True if the text clearly instructs rooda not to ask for confirmation."""
    return any(_is_instruction(_unwrapped(sentence)) for sentence in _SENTENCE_ENDS.split(text.lower()))


def gate_fault(letter: str, kind: str, evidence: str) -> str:
    """Return why a plan's evidence fails the gate of workflow `letter` (A, B or C); "" if it passes."""
    given = re.sub(r"[\s-]+", "_", kind.strip().lower())
    if given in GATE_OF.values() and given != GATE_OF[letter]:
        return f"its kind is {given}, not {GATE_OF[letter]}"
    text = evidence.lower().strip(" .!-")
    if text in _NO_EVIDENCE:
        return "it has no evidence"
    if letter == "A" and not re.search(r"\bno\b.*\blibrar|[,;/&]|\b(?:and|or|vs|versus)\b", text):
        return f"the library search names fewer than two candidates: {evidence}"
    return ""


_NO_EVIDENCE = ("", "none", "n/a", "na", "unknown", "not known", "not yet known", "todo", "tbd", "nothing", "null", "…")


def _with_proven_quote(score: Score, text: str, trusted: bool) -> Score:
    if not score.score or (trusted and not score.quote):
        return score
    quote = plain(score.quote)
    if quote and quote in text:
        return score
    return Score(0, "", f"cut from {score.score}: the specification does not say {score.quote!r}")


def _score_match(two: "re.Pattern[str]", one: "re.Pattern[str]", spec: str) -> Score:
    if found := two.search(spec):
        return Score(2, found[0].strip())
    found = one.search(spec)
    return Score(1, found[0].strip()) if found else Score()


def _constraints(spec: str) -> Score:
    return _score_match(_LIMIT, _LEANING, spec)


def _success(spec: str) -> Score:
    """Score the dimension `success`: one point per kind of check that the specification names, at most two."""
    found = [match[0].strip() for pattern in _CHECKS.values() if (match := pattern.search(spec))]
    return Score(min(len(found), 2), found[0] if found else "")


def _unwrapped(text: str) -> str:
    """Return the text with single spaces between words, because a phrase may span lines."""
    return " ".join(text.split())


def _is_instruction(sentence: str) -> bool:
    before, found, after = sentence.partition(SKIP_GATES)
    instruction = _INSTRUCTION.fullmatch(before.rstrip()) and not after[:1].isalnum()
    return bool(found and instruction and not _DENIED.search(f"{before} {after}"))
