"""Texts that hold a key, kept with the name of its variable in the key's place, and filled in again. Pure."""

import re
from collections.abc import Mapping

from rooda.base import secrets

MARK = "\0"  # stands in no word of a command line, and in no variable's name
LOST = MARK + MARK  # a form of a key that can't be made again from its variable


def referenced(text: str, environ: Mapping[str, str], ordinary: str) -> str:
    """No key of these variables is in it any more."""
    known, forms = secrets.keys(environ, (ordinary,)), secrets.values(environ, (ordinary,))
    if secrets.hidden(text, forms) == text:
        return text
    longest = sorted(known, key=len, reverse=True)
    made = re.sub("|".join(map(re.escape, longest)), lambda key: f"{MARK}{known[key[0]]}{MARK}", text)
    parts = made.split(MARK)
    for place in range(0, len(parts), 2):
        for form in forms:
            parts[place] = parts[place].replace(form, LOST)
    left = MARK.join(parts)
    return LOST if any(secrets.hidden(part, forms) != part for part in left.split(MARK)[::2]) else left


def starred(text: str) -> str:
    """As readers see it."""
    parts = text.split(MARK)
    return "".join(secrets.HIDDEN if place % 2 else part for place, part in enumerate(parts))


def filled(text: str, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """With the keys as the variables have them now, and the names of those that have none."""
    parts = text.split(MARK)
    missing = [] if len(parts) % 2 else [""]
    for place in range(1, len(parts), 2):
        name = parts[place]
        found = [*secrets.keys({name: environ.get(name, "")})]
        missing += [] if found else [name]
        parts[place] = found[0] if found else secrets.HIDDEN
    return "".join(parts), missing
