"""What a judge says of what must not be: which of the entries have come true. In doubt it is no answer."""

from collections.abc import Sequence

from rooda.loops.goal import goal_answer

_SIGNS = " \t\r\n\"'`.,;:!*-–—“”‘’"
LONGEST = 200  # characters of an entry in the judge's own words


def read(text: str, entries: Sequence[str]) -> tuple[str, ...] | None:
    """The entries that it names, in its own words where they are none of ours; None: an answer that is no use."""
    answer = goal_answer.found(text) or {}
    named = answer.get("violated")
    if named is True:  # of one of them, and which it does not say
        return tuple(entries)
    if named is False:
        return ()
    named = [named] if isinstance(named, str) else named
    if not isinstance(named, list) or not all(isinstance(each, str) and _plain(_line(each)) for each in named):
        return None
    known = {_plain(entry): entry for entry in entries}
    return tuple(dict.fromkeys(known.get(_plain(each)) or _line(each) for each in named))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_SIGNS)


def _line(text: str) -> str:
    return "".join(sign for sign in " ".join(text.split()) if sign.isprintable())[:LONGEST]
