"""What an adversarial pre-check found: each misreading of the specification, as a constraint for the prompts."""

import re

from rooda.loops.goal import goal_answer

LEAST, MOST = 3, 5
LEAST_RULES = 2  # of what must not happen
_BLOCK = re.compile(r"^#{2,4}[ \t]++([^\n]+)$(.*?)(?=^#{2,4}[ \t]|\Z)", re.MULTILINE | re.DOTALL)
_AMENDED = re.compile(r"^[ \t>*-]*+amended(?: text)?+\**+[ \t]*+:\**+[ \t]*+(\S.*)$", re.MULTILINE | re.IGNORECASE)
_FORBIDS = re.compile(r"\b(?:must|may|shall)(?:[ -]?not|n['’]t)\b|\bnever\b", re.IGNORECASE)
_THEIRS = re.compile(r"^[ \t>*-]*+(?:spec text|misinterpretation)\b.*$", re.MULTILINE | re.IGNORECASE)
_ITEM = re.compile(r"^[ \t]*+(?:[-*+]|\d++[.)])[ \t]++(\S.*)$", re.MULTILINE)


def read(text: str) -> tuple[str, ...]:
    """One line for each: the amended words if there are some, else the name of the misreading."""
    found = _of_json(text) or _of_blocks(text) or [_line(item) for item in _ITEM.findall(text)]
    return tuple(dict.fromkeys(filter(None, found)))[:MOST]


def must_nots(text: str) -> int:
    """How many things it forbids; what the specification or a misreading of it forbids does not count."""
    return len(_FORBIDS.findall(_THEIRS.sub("", text)))


def _of_blocks(text: str) -> list[str]:
    found = []
    for name, body in _BLOCK.findall(text):
        amended = _AMENDED.search(body)
        if amended or "vulnerability" in name.lower():
            found.append(_line(amended[1] if amended else f"Not: {name.partition(':')[2] or name}"))
    return found


def _of_json(text: str) -> list[str]:
    """Any list of objects or texts in the answer."""
    answer = goal_answer.found(text)
    lists = [value for value in answer.values() if isinstance(value, list)] if answer else []
    return [_of_item(item) for item in max(lists, key=len, default=[])]


def _of_item(item: object) -> str:
    if not isinstance(item, dict):
        return _line(item) if isinstance(item, str) else ""
    for key in ("amended", "amended_text", "amendment", "criterion", "misinterpretation", "name"):
        if isinstance(item.get(key), str) and item[key].strip():
            return _line(item[key])
    return ""


def _line(text: str) -> str:
    return " ".join(text.split()).strip("\"'")[:500]
