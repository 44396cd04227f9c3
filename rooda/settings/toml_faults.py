"""What TOML's parser says of a mistake, and what a person most likely has to change."""

import re

_MEANT = {
    "Invalid value": "a text stands in quotes",
    "Illegal character '\\n'": "the text before it has no closing quote",
    "Unterminated string": "the last text has no closing quote",
    "Cannot declare": "a table may stand once only: put its keys together",
    "Cannot overwrite a value": "that key or table is there already",
    "Unescaped": "write \\\\ for a backslash, or put the text in single quotes",
    "Invalid hex value": "write \\\\ for a backslash, or put the text in single quotes",
    "Expected '=' after a key": "a line is KEY = VALUE, and a key has no spaces",
    "Invalid statement": "a line is KEY = VALUE or [TABLE]",
    "Expected newline": "one KEY = VALUE on a line, and a text stands in quotes",
    "Unclosed array": "a comma or the ] is missing",
    "Invalid initial character for a key part": "{ … } stands on one line and has no comma at its end",
}


def sentence(problem: ValueError, data: bytes) -> str:
    """`:LINE:COLUMN: what is wrong; what to do`, from the words of tomllib."""
    text = str(problem)
    found = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", text)
    if not found:
        return f": {text[:200]}"
    line, column = found.groups()
    where = f"{line}:{column}" if line else str(data.rstrip(b"\n").count(b"\n") + 1)
    return f":{where}: {_plain(text[: found.start()])}{'' if line else ' (at the end of the file)'}{_meant(text)}"


def _meant(text: str) -> str:
    return next((f"; {hint}" for words, hint in _MEANT.items() if text.startswith(words)), "")


def _plain(text: str) -> str:
    """A table's name as it is written, not as Python would."""
    parts = re.findall(r"'([^']*)'", text)
    return f"Cannot declare [{'.'.join(parts)}] twice" if text.startswith("Cannot declare (") and parts else text
