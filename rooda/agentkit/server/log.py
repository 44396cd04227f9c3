"""What the model server was asked: a record per request, in memory and as JSON lines in a file."""

import json
import threading
import time
from collections.abc import Iterable

from rooda.agentkit.server.scenario import Json

SECRET = ("authorization", "x-api-key", "x-goog-api-key")


class Log:
    """The requests in the order in which they came; the file has them in the order of their answers."""

    def __init__(self, path: str = "", bodies: bool = True) -> None:
        self.requests: list[Json] = []
        self._path, self._bodies, self._lock = path, bodies, threading.Lock()

    def arrived(self, record: Json) -> Json:
        """Keep a record from now on; gives it back to be added to."""
        with self._lock:
            self.requests.append(record)
        return record

    def answered(self, record: Json) -> None:
        """The record is complete."""
        record["seconds"] = round(time.time() - record["at"], 3)
        if not self._path:
            return
        kept = {key: value for key, value in record.items() if self._bodies or key != "body"}
        with self._lock, open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(kept) + "\n")


def shown(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The headers with keys cut short: enough to tell which one was sent."""
    lowered = ((key.lower(), value) for key, value in headers)
    return {key: value[:14] + "..." if key in SECRET and len(value) > 14 else value for key, value in lowered}
