"""When is an error the same as the last one? By its line, without what changes from run to run."""

import re

_ERROR = re.compile(
    r"^\s*(?:(?:ERROR|Error|error|FAILED|FAIL|fatal|FATAL|panic|Traceback)\b|E   )|\b\w*(?:Error|Exception):|: error:"
)
_FIELD = re.compile(r"^\s*[\"']?\w+[\"']?\s*:\s*[\[{\"'\d]|^\s*[{\[]")
_CHANGING = (
    (re.compile(r"\x1b\[[0-9;?]*[A-Za-z]"), ""),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)?\s?(?:ms|µs|us|ns|s|sec|seconds|minutes)\b"), "<duration>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<address>"),
    (re.compile(r"\bpid[ =:]*\d+", re.IGNORECASE), "<pid>"),
    (re.compile(r"(?:/var/folders|/private/tmp|/tmp|/dev/shm)/[^\s:'\")]+"), "<temporary>"),
)
LONGEST = 300


def looks_like_error(line: str) -> bool:
    return bool(_ERROR.search(line)) and not _FIELD.match(line)


def first(text: str) -> str:
    """The first line that looks like an error, or ""."""
    return next((line.strip() for line in text.splitlines() if looks_like_error(line)), "")[:LONGEST]


def last(text: str) -> str:
    """The last line that looks like an error, else the last line that says anything."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = [line for line in lines if looks_like_error(line)]
    return (found or lines or [""])[-1][:LONGEST]


def normal(line: str) -> str:
    """The line without time stamps, durations, addresses, process numbers and temporary paths."""
    for pattern, word in _CHANGING:
        line = pattern.sub(word, line)
    return " ".join(line.split())
