"""rooda/modelserver/scenario.py, by the name the tests know."""

from rooda.modelserver.scenario import (
    CALLING,
    KEYS,
    KINDS,
    Call,
    Event,
    Json,
    Reply,
    Script,
    Taken,
    Usage,
    kind,
    message,
    new_id,
)

__all__ = [
    "CALLING",
    "KEYS",
    "KINDS",
    "Call",
    "Event",
    "Json",
    "Reply",
    "Script",
    "Taken",
    "Usage",
    "kind",
    "message",
    "new_id",
]
