"""Log of the model server's requests, in memory and as JSON lines in a file."""

import json
import threading
import time
from collections.abc import Iterable

from rooda.agentkit.server.scenario import Json

SECRET = ("authorization", "x-api-key", "x-goog-api-key")


class Log:
    """The requests, in the order of arrival in memory and in the order of completion in the file."""

    def __init__(self, path: str = "", bodies: bool = True) -> None:
        self.requests: list[Json] = []
        self._path, self._bodies, self._lock = path, bodies, threading.Lock()

    def arrived(self, record: Json) -> Json:
        """Add a record and return it, to be completed later."""
        with self._lock:
            self.requests.append(record)
        return record

    def answered(self, record: Json) -> None:
        """Complete a record and write it to the file."""
        record["seconds"] = round(time.time() - record["at"], 3)
        if not self._path:
            return
        kept = {key: value for key, value in record.items() if self._bodies or key != "body"}
        with self._lock, open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(kept) + "\n")


def shown(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The headers with shortened keys: enough to recognize which one was sent."""
    lowered = ((key.lower(), value) for key, value in headers)
    return {key: value[:14] + "..." if key in SECRET and len(value) > 14 else value for key, value in lowered}
