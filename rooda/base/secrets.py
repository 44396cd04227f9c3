"""Finds the secrets in environment variables and hides them in text. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rooda.base import secret_forms
from rooda.base.secret_forms import HIDDEN, SHORTEST, looks_secret

SHORTEST_LINE = 16  # characters of one line of a multi-line secret
SHORTEST_CODE = 12  # characters of base64
LONGEST_CODE = 8192  # characters of base64 that are searched in a text that arrives in pieces
SHORTEST_WRAPPED = 60  # characters of a wrapped base64 line; 64 and 76 are usual
_LINE_BREAK = r"(?:[ \t]*(?:\r?\n|\\r\\n|\\n)[ \t]*)?"
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def forms(environ: Mapping[str, str], ordinary: Iterable[str] = ()) -> tuple[str, ...]:
    """Return every encoding of the secrets in these variables, longest first.

    Leaves out secrets that are part of an `ordinary` string, such as a path.
    """
    found = {form for key in find_secrets(environ, ordinary) for form in _all_forms(key) if len(form) >= SHORTEST}
    return tuple(sorted(found, key=lambda text: (-len(text), text)))


def find_secrets(environ: Mapping[str, str], ordinary: Iterable[str] = ()) -> dict[str, str]:
    """Map each secret in these variables to the first variable that holds it; leave out parts of `ordinary` strings."""
    seen, found = [*ordinary], dict[str, str]()
    for name, value in environ.items():
        for key in [value.strip()] if looks_secret(name) and not _is_path(name, value) else _passwords(value):
            if len(key) >= SHORTEST and not any(key in text for text in seen) and not _is_harmless(key):
                found.setdefault(key, name)
    return found


def _is_path(name: str, value: str) -> bool:
    """True if the value is a certificate's path. Checks the name too, since a password may begin with a slash."""
    return name.upper().endswith("PEM") and value.lstrip().startswith(("/", ".", "~"))


def hide(text: str, values: Iterable[str]) -> str:
    """Replace these secrets, and all others of a recognizable form, with stars."""
    return secret_forms.hide(hide_values(text, values))


def hide_values(text: str, values: Iterable[str]) -> str:
    """Replace only these secrets with stars."""
    if len(text) < SHORTEST or not (values := (*values,)):
        return text
    for value in values:
        if value in text:
            text = text.replace(value, HIDDEN)
    return _hidden_across_lines(text, values) if "\n" in text or "\\n" in text else text


def _hidden_across_lines(text: str, values: Iterable[str]) -> str:
    """Hide secrets in base64 that is wrapped into lines, indented or not."""
    lines = _lines(text)
    if not any(len(line) >= SHORTEST_WRAPPED and " " not in line[-SHORTEST_WRAPPED:] for line in lines):
        return text
    joined = "".join(lines)
    for value in values:
        if value in joined and len(value) >= SHORTEST_CODE:
            text = re.sub(_LINE_BREAK.join(map(re.escape, value)), HIDDEN, text)
    return text


def hide_password(text: str) -> str:
    """Replace the password in a URL with stars, however short it is."""
    for password in filter(None, _passwords(text)):
        text = text.replace(f":{password}@", f":{HIDDEN}@", 1)
    return text


def _lines(text: str) -> list[str]:
    """Split a text into stripped lines at its line breaks, including those escaped as in JSON."""
    text = text.replace("\\r", "").replace("\\n", "\n") if "\\n" in text else text
    return [*map(str.strip, text.split("\n"))]


def _last_word(line: str) -> int:
    return len(line.rpartition(" ")[2])


def hide_in(facts: Any, values: tuple[str, ...]) -> Any:
    """Replace secrets with stars in JSON-like data of any depth."""
    return _with_each_text(facts, lambda text: hide(text, values))


def hide_values_in(facts: Any, values: tuple[str, ...]) -> Any:
    """Like `hide_in`, but replace only the secrets in `values`. Returns the data itself if `values` is empty."""
    return _with_each_text(facts, lambda text: hide_values(text, values)) if values else facts


def _with_each_text(facts: Any, change: Callable[[str], str]) -> Any:
    if isinstance(facts, str):
        return change(facts)
    if isinstance(facts, Mapping):
        return {change(key): _with_each_text(value, change) for key, value in facts.items()}
    if isinstance(facts, list | tuple):
        return [_with_each_text(value, change) for value in facts]
    return facts


def hide_piece(text: str, values: tuple[str, ...]) -> tuple[str, str]:
    """Hide secrets in a text that arrives in pieces. Returns the part to show and the rest, which may begin one."""
    end = len(text) - secret_forms.unfinished(text)
    shown, rest = hide(text[:end], values), text[end:]
    end = len(shown) - length_to_hold_back(shown, values)
    return shown[:end], shown[end:] + rest


def length_to_hold_back(text: str, values: Iterable[str]) -> int:
    """Return how many characters at the end may begin one of these secrets and must wait for the next piece."""
    values = [*values]
    broken = _wrapped_base64_length(text)
    codes = [value for value in values if len(value) >= SHORTEST_CODE] if broken else []
    begun = codes and _longest_begun("".join(_lines(text[-broken:])), codes)
    return max(_longest_begun(text, values), broken if begun else 0)


def _longest_begun(text: str, values: Iterable[str]) -> int:
    most = 0
    for value in values:
        length = min(len(text), len(value) - 1)
        while length > most and not value.startswith(text[-length:]):
            length -= 1
        most = max(most, length)
    return most


def _wrapped_base64_length(text: str) -> int:
    """Return how many characters at the end look like base64 wrapped into lines; 0 if that part has no line break."""
    size, window = 0, text[-LONGEST_CODE:]
    for line in reversed(window.splitlines(keepends=True)) if "\n" in window else ():
        word = _last_word(line.strip())
        if not word or (line.endswith("\n") and word < SHORTEST_WRAPPED):
            break
        if word < len(line.strip()):
            size += len(line) - len(line.rstrip()) + word
            break
        size += len(line)
    return size if "\n" in text[len(text) - size :] else 0


def _all_forms(value: str) -> list[str]:
    """Return a secret and each of its lines, as plain text and encoded for JSON, for URLs and in base64."""
    lines = [line.strip() for line in value.splitlines()]
    plain = [value, *(line for line in lines if len(line) >= SHORTEST_LINE and len(lines) > 1)]
    return [form for each in plain for form in (each, *_in_json(each), *_in_address(each), *_in_base64(each))]


def _in_json(value: str) -> set[str]:
    """Return all escaped forms of a string in JSON, and in JSON inside JSON."""
    once = _json_variants(value)
    return once | {form for text in once for form in _json_variants(text)}


def _json_variants(value: str) -> set[str]:
    """Return a string's JSON escapes: with and without `\\u` (lower- and upper-case hex), with and without `\\/`."""
    found = {in_json(value), in_json(value, ascii_only=True)}
    found |= {_with_large_digits(text) for text in found if "\\u" in text}
    return found | {text.replace("/", "\\/") for text in found}


def in_json(value: str, ascii_only: bool = False) -> str:
    if value.isascii() and value.isprintable() and not set(value) & set('"\\'):
        return value
    import json

    return json.dumps(value, ensure_ascii=ascii_only)[1:-1]


def _with_large_digits(text: str) -> str:
    return re.sub(r"(?<!\\)((?:\\\\)*\\u)([0-9a-f]{4})", lambda found: found[1] + found[2].upper(), text)


def _in_address(value: str) -> list[str]:
    """Return the percent-encoded forms of a string: with upper- or lower-case hex, `+` for blanks, or slashes kept."""
    data = [chr(byte) for byte in value.encode("utf-8", "surrogateescape")]
    codes = [each if each in _UNRESERVED else f"%{ord(each):02X}" for each in data]
    path = "".join(each if each == "/" else code for each, code in zip(data, codes, strict=True))
    small = "".join(code if code in _UNRESERVED else code.lower() for code in codes)
    whole = "".join(codes)
    return list({whole, whole.replace("%20", "+"), small, path} - {value})


def _in_base64(value: str) -> list[str]:
    """Return the base64 of a string within a longer text, at each of the three offsets and in both alphabets."""
    from binascii import b2a_base64

    data, found = value.encode("utf-8", "surrogateescape"), set[str]()
    for before in range(3):
        code = b2a_base64(b"\0" * before + data, newline=False).decode()
        middle = code[(0, 2, 3)[before] : (before + len(data)) * 8 // 6]
        if len(middle) >= SHORTEST_CODE:
            found |= {middle, middle.replace("+", "-").replace("/", "_")}
    return list(found)


def _passwords(value: str) -> list[str]:
    """Return the password in `scheme://user:password@host` as a list, which is empty if there is none."""
    _, scheme, rest = value.partition("://")
    person, at, _ = rest.partition("/")[0].rpartition("@")
    _, colon, password = person.partition(":")
    return [password] if scheme and at and colon else []


def _is_harmless(value: str) -> bool:
    """True for a number or an ordinary word such as `postgres`, unless it is long."""
    ordinary = value.isdecimal() or (value.isascii() and value.isalpha() and value.islower())
    return ordinary and len(value) < SHORTEST_LINE


# Text is saved with references to variables in place of secrets, which are filled in again later.
MARK = "\0"  # cannot occur in a command line or in a variable's name
LOST = MARK + MARK  # replaces a form of a secret that can't be rebuilt from its variable


def to_references(text: str, environ: Mapping[str, str], ordinary: str) -> str:
    """Replace each secret with a reference to its variable, unless it is part of `ordinary`, such as a path."""
    known, hidden = find_secrets(environ, (ordinary,)), forms(environ, (ordinary,))
    if hide_values(text, hidden) == text:
        return text
    longest = sorted(known, key=len, reverse=True)
    made = re.sub("|".join(map(re.escape, longest)), lambda key: f"{MARK}{known[key[0]]}{MARK}", text)
    parts = made.split(MARK)
    for place in range(0, len(parts), 2):
        for form in hidden:
            parts[place] = parts[place].replace(form, LOST)
    left = MARK.join(parts)
    return LOST if any(hide_values(part, hidden) != part for part in left.split(MARK)[::2]) else left


def hide_references(text: str) -> str:
    """Replace each reference with stars, for display."""
    parts = text.split(MARK)
    return "".join(HIDDEN if place % 2 else secret_forms.hide(part) for place, part in enumerate(parts))


def fill_references(text: str, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """Replace each reference with its secret. Returns the text, and the named variables that now hold no secret."""
    parts = text.split(MARK)
    missing = [] if len(parts) % 2 else [""]
    for place in range(1, len(parts), 2):
        name = parts[place]
        found = [*find_secrets({name: environ.get(name, "")})]
        missing += [] if found else [name]
        parts[place] = found[0] if found else HIDDEN
    return "".join(parts), missing
