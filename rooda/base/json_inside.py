"""JSON objects in the midst of other words, with an end to the effort: an answer may be anything. Pure."""

import json
from collections.abc import Iterator

from rooda.base.loads import Json, too_deep

MOST = 50_000_000  # characters that are looked at in vain
EACH = 1000  # what a brace that begins nothing costs besides


def objects(text: str, decoder: json.JSONDecoder) -> Iterator[Json]:
    """Each that is inside no other, in order."""
    effort, place = 0, text.find("{")
    while place >= 0 and effort < MOST:
        try:
            value, after = decoder.raw_decode(text, place)
            if not too_deep(text[place:after], value):
                yield value
        except (ValueError, RecursionError) as problem:
            after = place + 1
            effort += EACH + place // 100 + getattr(problem, "pos", place + 50 * EACH) - place
        place = text.find("{", after)
