"""Computes the IDs of traces and spans from names of runs and calls, so that processes need not share them. Pure."""

import re
from typing import NamedTuple

from rooda.base.hashes import hashlib

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
RUN = "run"  # the key of the span of a session


class Parent(NamedTuple):
    """The span in which rooda was started."""

    trace: str
    span: str
    flags: str = "01"


def parent_of(traceparent: str) -> Parent | None:
    """Parse a W3C `traceparent`; None if it is invalid."""
    found = _TRACEPARENT.fullmatch(traceparent.strip())
    if found is None or not int(found[1], 16) or not int(found[2], 16):
        return None
    return Parent(found[1], found[2], found[3])


def trace_id(workspace: str, begun: str) -> str:
    """Return the ID of the trace of a run and all its resumes. `begun`: the session that started the run."""
    return _hash("trace", workspace, begun)[:32]


def span_id(workspace: str, session: str, key: str) -> str:
    """Return the ID of a span in a session. `key`: RUN, `iteration N`, or the name of the file with the output."""
    return _hash("span", workspace, session, key)[:16]


def traceparent(trace: str, span: str, flags: str = "01") -> str:
    return f"00-{trace}-{span}-{flags}"


def _hash(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()
