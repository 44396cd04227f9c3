"""Rules on a specification's words: the workflow, how hard the work is to undo, and whether gates are skipped."""

import re

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
# Only an instruction counts, not a sentence that forbids it, quotes it or describes what others do.
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
    """The workflow of the first indicator in the text; A without one."""
    found = _ANY.search(_joined(spec))
    return found.lastgroup or "A" if found else "A"


def floor(spec: str) -> str:
    """The class that the words alone require; "" for none."""
    spec = _joined(spec)
    return "1" if _HARD.search(spec) else "2B" if _MIDDLE.search(spec) else ""


def _joined(text: str) -> str:
    """The text with single blanks between words, because a phrase may be wrapped."""
    return " ".join(text.split())


def stricter(*classes: str) -> str:
    """The class that is hardest to undo; 2B if none is known."""
    known = [each for each in classes if each in CLASSES]
    return max(known, key=CLASSES.index) if known else "2B"


def reversibility(spec: str, planned: str) -> str:
    """The plan's class, or the class that the specification's words require if that is harder to undo."""
    return stricter(planned, floor(spec))


def class_of(value: object) -> str:
    """`2A`, `type 2a`, `1`: one of the classes, or "" for none."""
    word = re.sub(r"^type\s*", "", str(value).strip().lower()) if isinstance(value, str | int) else ""
    return {"2a": "2A", "2b": "2B", "1": "1"}.get(word, "")


def skips_gates(text: str) -> bool:
    """True if the text tells rooda not to ask. In doubt rooda asks."""
    return any(_is_instruction(_joined(sentence)) for sentence in _SENTENCE_ENDS.split(text.lower()))


def _is_instruction(sentence: str) -> bool:
    before, found, after = sentence.partition(SKIP_GATES)
    instruction = _INSTRUCTION.fullmatch(before.rstrip()) and not after[:1].isalnum()
    return bool(found and instruction and not _DENIED.search(f"{before} {after}"))


def gate_weakness(letter: str, evidence: str) -> str:
    """A remark for the user on weak evidence; "" if there is none."""
    text = evidence.lower()
    if letter == "A" and not re.search(r"\bno\b.*\blibrar|[,;/&]|\b(?:and|or|vs|versus)\b", text):
        return f"the library search names fewer than two candidates: {evidence}"
    return ""
