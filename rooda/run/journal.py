"""`events.jsonl`: what happened in a run, one JSON object a line, in the one versioned format."""

import json
import os
from collections.abc import Mapping
from typing import Any

from rooda.base import clock, files, secrets
from rooda.run.folder import RunFolder

VERSION = 1
NAME = "events.jsonl"
_json = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode


class Journal:
    """Appends events, each in one write. Never fails the loop: an event that can't be written is dropped."""

    def __init__(self, folder: RunFolder, **always: Any) -> None:
        self._folder = folder
        self._always = {"run": folder.run, **always}
        self._sequence = 0
        self._descriptor = -1
        self._unsynced = False
        self.hidden: tuple[str, ...] = ()  # values that no reader gets
        self._looked_at: Mapping[str, str] = {}

    def hide(self, environ: Mapping[str, str], workspace: str) -> None:
        """From now on the keys in these variables are stars in every event."""
        if environ == self._looked_at:  # every call of an agent has the same
            return
        self._looked_at = dict(environ)
        found = {*self.hidden, *secrets.values(environ, (workspace,))}
        self.hidden = tuple(sorted(found, key=len, reverse=True))

    def record(self, event: str, turn: dict[str, int], facts: dict[str, Any]) -> dict[str, Any]:
        """The event as every reader gets it."""
        self._sequence += 1
        stamp = clock.rfc3339_milli(clock.now())
        said = secrets.without(facts, self.hidden) if self.hidden else facts
        return {"v": VERSION, "ts": stamp, **self._always, "seq": self._sequence, "event": event, **turn, **said}

    def append(self, record: dict[str, Any], durable: bool = False) -> None:
        try:
            if self._descriptor < 0 or (durable and not os.fstat(self._descriptor).st_nlink):
                self._open()
            files.append(self._descriptor, _json(record).encode("utf-8", "replace") + b"\n")
            self._unsynced = self._unsynced or durable
        except OSError:
            self.close()

    def sync(self) -> None:
        """Make the durable events durable. While an agent works it costs nothing: the loop has to wait anyway."""
        try:
            if self._unsynced and self._descriptor >= 0:
                files.sync(self._descriptor)
        except OSError:
            self.close()
        self._unsynced = False

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        self.close()
        self._descriptor = files.open_append(os.path.join(self._folder.ready(), NAME))
