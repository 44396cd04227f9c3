"""Parses agents' answers: status blocks, JSON, pre-checks and judges' rulings."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from rooda.base.json import find_objects, loads

# Possessive quantifiers avoid backtracking: an agent may print anything.
_BEGIN = re.compile(r"^[ \t>]*+---LOOP_STATUS---[ \t]*+$", re.MULTILINE)
_END = re.compile(r"^[ \t>]*+---END_STATUS---[ \t]*+$", re.MULTILINE)
_LINE = re.compile(r"^[ \t>]*+([A-Z_]++):(.*)$", re.MULTILINE)
_CAUSE = re.compile(r"^[ \t>*-]*+ROOT_CAUSE:[ \t]*+(\S.*)$", re.MULTILINE)


class Claim(NamedTuple):
    """An agent's status block: its unverified claims about its own work."""

    exit: bool = False
    criteria: tuple[str, ...] = ()  # names of criteria that the agent claims are met
    next: str = ""
    alt: str = ""
    risk: str = ""
    confidence: str = ""
    root_cause: str = ""
    files: tuple[str, ...] = ()  # files that the agent names as evidence
    fault: str = ""  # why the block is missing or invalid


def read_block(text: str) -> Claim:
    """Parse the last status block; a missing or invalid block yields an empty Claim with `fault` set."""
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
        next=_block_line(fields.get("NEXT", "")),
        alt=_block_line(fields.get("ALT", "")),
        risk=_block_line(fields.get("RISK", "")),
        confidence=_block_line(fields.get("CONFIDENCE", "")),
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
        return "the CRITERIA of its status block are not a JSON object", ()
    return "", tuple(name for name, met in found.items() if met is True)


def _root_cause(text: str) -> str:
    found = _CAUSE.findall(text)
    return _block_line(found[-1]) if found else ""


def _block_line(text: str) -> str:
    """Return the text as one printable line of at most 300 characters."""
    return "".join(sign for sign in " ".join(text.split()) if sign.isprintable())[:300]


def redacted(claim: Claim, stars: Callable[[str], str]) -> Claim:
    """Mask secrets in the claim's free text with `stars`; keep names of criteria and files, which rooda looks up."""
    return claim._replace(
        next=stars(claim.next),
        alt=stars(claim.alt),
        risk=stars(claim.risk),
        confidence=stars(claim.confidence),
        root_cause=stars(claim.root_cause),
    )


def without_blocks(text: str) -> str:
    """Return the text without its status blocks."""
    text = text.replace("\r\n", "\n")
    kept, place = "", 0
    for begin, end in _blocks(text):
        kept, place = kept + text[place : begin.start()], end.end()
    return kept + text[place:]


def _blocks(text: str) -> "Iterator[tuple[re.Match[str], re.Match[str]]]":
    """Yield the matches of each status block's begin and end lines."""
    place = 0
    while (begin := _BEGIN.search(text, place)) and (end := _END.search(text, begin.end())):
        yield begin, end
        place = end.end()


# The final message in a CLI's output, and the JSON in that message.
_FENCE = re.compile(r"^[ \t]*+```[ \t]*+(?:json[ \t]*+)?\n(.*?)^[ \t]*+```", re.MULTILINE | re.DOTALL | re.IGNORECASE)
_DECODER = json.JSONDecoder()


class Answer(NamedTuple):
    """An agent's final message, with the cost and failure that its CLI reports."""

    text: str
    cost: float | None = None
    failed: bool = False


def unwrap(text: str) -> Answer:
    """Extract the final message from JSON output: claude's `result`, codex's last message, gemini's `response`."""
    words: str | None = None
    cost: float | None = None
    failed = False
    for record in _records(text):
        words = said if (said := _words(record)) is not None else words
        cost = dollars if (dollars := _dollars(record.get("total_cost_usd"))) is not None else cost
        failed = record["is_error"] is True if "is_error" in record else failed
    return Answer(text if words is None else words, cost, failed)


def _words(record: dict[str, Any]) -> str | None:
    item = record.get("item")
    if isinstance(item, dict) and item.get("type") == "agent_message":
        return str(item.get("text") or "")
    for key in ("result", "response"):
        if isinstance(record.get(key), str) and ({"type", "total_cost_usd", "stats", "is_error"} & set(record)):
            return str(record[key])
    return None


def _records(text: str) -> Iterator[dict[str, Any]]:
    """If the text is one JSON object, yield that object; otherwise yield each line that is a JSON object."""
    if (whole := _object(text)) is not None:
        yield whole
        return
    for line in text.splitlines():
        if line.lstrip().startswith("{") and (record := _object(line)) is not None:
            yield record


def _object(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _dollars(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
    return float(value) if number else None


def find_json(text: str) -> dict[str, Any] | None:
    """Return an answer's JSON object: the whole text, else the last fenced block, else the last balanced object."""
    if (whole := _object(text)) is not None:
        return whole
    for block in reversed(_FENCE.findall(text)):
        if (inside := _object(block)) is not None:
            return inside
    return next(reversed([*find_objects(text, _DECODER)]), None)


# The adversarial pre-check: misreadings of the specification, which become constraints in the prompts.
LEAST, MOST = 3, 5
LEAST_RULES = 2  # fewest prohibitions in plan, SHAPE.md and pre-check together
_BLOCK = re.compile(r"^#{2,4}[ \t]++([^\n]+)$(.*?)(?=^#{2,4}[ \t]|\Z)", re.MULTILINE | re.DOTALL)
_AMENDED = re.compile(r"^[ \t>*-]*+amended(?: text)?\**+[ \t]*+:\**+[ \t]*+(\S.*)$", re.MULTILINE | re.IGNORECASE)
_FORBIDS = re.compile(r"\b(?:must|may|shall)(?:[ -]?not|n['’]t)\b|\bnever\b", re.IGNORECASE)
_THEIRS = re.compile(r"^[ \t>*-]*+(?:spec text|misinterpretation)\b.*$", re.MULTILINE | re.IGNORECASE)
_ITEM = re.compile(r"^[ \t]*+(?:[-*+]|\d++[.)])[ \t]++(\S.*)$", re.MULTILINE)


def read_precheck(text: str) -> tuple[str, ...]:
    """Return one line per misreading in a pre-check: the amended text that rules it out, else the misreading's name."""
    found = _of_json(text) or _of_blocks(text) or [_precheck_line(item) for item in _ITEM.findall(text)]
    return tuple(dict.fromkeys(filter(None, found)))[:MOST]


def must_nots(text: str) -> int:
    """Count the prohibitions in a pre-check, ignoring lines that quote the specification or describe a misreading."""
    return len(_FORBIDS.findall(_THEIRS.sub("", text)))


def _of_blocks(text: str) -> list[str]:
    found = []
    for name, body in _BLOCK.findall(text):
        amended = _AMENDED.search(body)
        if amended or "vulnerability" in name.lower():
            found.append(_precheck_line(amended[1] if amended else f"Not: {name.partition(':')[2] or name}"))
    return found


def _of_json(text: str) -> list[str]:
    """Return one line per item of the longest list in a JSON answer."""
    answer = find_json(text)
    lists = [value for value in answer.values() if isinstance(value, list)] if answer else []
    return [_of_item(item) for item in max(lists, key=len, default=[])]


def _of_item(item: object) -> str:
    if not isinstance(item, dict):
        return _precheck_line(item) if isinstance(item, str) else ""
    for key in ("amended", "amended_text", "amendment", "criterion", "misinterpretation", "name"):
        if isinstance(item.get(key), str) and item[key].strip():
            return _precheck_line(item[key])
    return ""


def _precheck_line(text: str) -> str:
    return " ".join(text.split()).strip("\"'")[:500]


# A judge's ruling on the mustNot entries.
_SIGNS = " \t\r\n\"'`.,;:!*-–—“”‘’"
LONGEST = 200  # most characters of an entry that the judge worded itself


def read_ruling(text: str, entries: Sequence[str]) -> tuple[str, ...] | None:
    """Return the entries that a judge calls violated; None if the answer is unusable.

    An entry that rooda doesn't know is returned in the judge's words.
    """
    answer = find_json(text) or {}
    named = answer.get("violated")
    if named is True:  # the judge doesn't say which entry is violated, so all are
        return tuple(entries)
    if named is False:
        return ()
    named = [named] if isinstance(named, str) else named
    if not isinstance(named, list) or not all(isinstance(each, str) and _plain(_ruling_line(each)) for each in named):
        return None
    known = {_plain(entry): entry for entry in entries}
    return tuple(dict.fromkeys(known.get(_plain(each)) or _ruling_line(each) for each in named))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_SIGNS)


def _ruling_line(text: str) -> str:
    return "".join(sign for sign in " ".join(text.split()) if sign.isprintable())[:LONGEST]
