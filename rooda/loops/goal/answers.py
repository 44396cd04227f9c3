"""The status block that an agent prints at its end: a claim, never a fact."""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rooda.base.json import loads

# Possessive, and no end looked for from each beginning: an agent may print anything.
_BEGIN = re.compile(r"^[ \t>]*+---LOOP_STATUS---[ \t]*+$", re.MULTILINE)
_END = re.compile(r"^[ \t>]*+---END_STATUS---[ \t]*+$", re.MULTILINE)
_LINE = re.compile(r"^[ \t>]*+([A-Z_]++):(.*)$", re.MULTILINE)
_CAUSE = re.compile(r"^[ \t>*-]*+ROOT_CAUSE:[ \t]*+(\S.*)$", re.MULTILINE)


class Claim(NamedTuple):
    """What an agent says of its own work."""

    exit: bool = False
    criteria: tuple[str, ...] = ()  # those that it says are met
    next: str = ""
    alt: str = ""
    risk: str = ""
    confidence: str = ""
    root_cause: str = ""
    files: tuple[str, ...] = ()  # named as evidence
    fault: str = ""  # why there is no claim, in words


def read(text: str) -> Claim:
    """The last block counts; without one, or with a broken one, nothing is claimed."""
    text = text.replace("\r\n", "\n")
    found = [*_blocks(text)]
    blocks = [text[begin.end() : end.start()] for begin, end in found]
    if not blocks:
        return Claim(fault="it printed no status block", root_cause=_root_cause(text))
    if _BEGIN.search(text, found[-1][1].end()):
        return Claim(fault="its last status block has no end", root_cause=_root_cause(text))
    fields = {key: value.strip(" \t") for key, value in _LINE.findall(blocks[-1])}
    word = fields.get("EXIT_SIGNAL", "").lower()
    if word not in ("true", "false"):
        return Claim(fault="its status block has no EXIT_SIGNAL of true or false", root_cause=_root_cause(text))
    fault, criteria = _criteria(fields.get("CRITERIA", "{}"))
    return Claim(
        exit=word == "true" and not fault,
        criteria=criteria,
        next=_line(fields.get("NEXT", "")),
        alt=_line(fields.get("ALT", "")),
        risk=_line(fields.get("RISK", "")),
        confidence=_line(fields.get("CONFIDENCE", "")),
        root_cause=_root_cause(text),
        files=tuple(re.findall(r"[^\s,]+", fields.get("EVIDENCE", ""))),
        fault=fault,
    )


def _criteria(text: str) -> tuple[str, tuple[str, ...]]:
    try:
        found: Any = loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        return "the CRITERIA of its status block are no JSON object", ()
    return "", tuple(name for name, met in found.items() if met is True)


def _root_cause(text: str) -> str:
    found = _CAUSE.findall(text)
    return _line(found[-1]) if found else ""


def _line(text: str) -> str:
    """One line of printable text, for a line of the screen."""
    return "".join(sign for sign in " ".join(text.split()) if sign.isprintable())[:300]


def told(claim: Claim, stars: Callable[[str], str]) -> Claim:
    """The claim as it goes on record: what is judged, names and files, is left as it was said."""
    return claim._replace(
        next=stars(claim.next),
        alt=stars(claim.alt),
        risk=stars(claim.risk),
        confidence=stars(claim.confidence),
        root_cause=stars(claim.root_cause),
    )


def without(text: str) -> str:
    """The text without its status blocks: what is left may tell of an error."""
    text = text.replace("\r\n", "\n")
    kept, place = "", 0
    for begin, end in _blocks(text):
        kept, place = kept + text[place : begin.start()], end.end()
    return kept + text[place:]


def _blocks(text: str) -> "Iterator[tuple[re.Match[str], re.Match[str]]]":
    """Each beginning with the end that follows it."""
    place = 0
    while (begin := _BEGIN.search(text, place)) and (end := _END.search(text, begin.end())):
        yield begin, end
        place = end.end()
