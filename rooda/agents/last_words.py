"""Finds the text in which an agent explains how its call ended. Pure."""

import re

from rooda.agents.records import Reply

LONGEST_WORDS = 1_000  # characters
_FAILURE = "<promise>FAILURE</promise>"
_TAG = re.compile("<promise>(?:SUCCESS|FAILURE)</promise>")


def last_words(reply: Reply) -> str:
    """Return the end of what the agent said; after FAILURE, the reason that the agent gave."""
    text = reply.answer.text.strip()
    if reply.promise == "FAILURE":
        before, _, after = text.rpartition(_FAILURE)
        text = after.strip() or before.strip()
    return _TAG.sub("", text).strip()[-LONGEST_WORDS:]
