"""Sends questions to the process that started this loop, over a Unix socket. Questions and answers are lines of JSON.

Only loops that a worker of the fleet has started load this module.
"""

import json
import os
import socket

from rooda.base.json import Json, loads
from rooda.processes.signals import Signals

CHUNK = 65_536


class Closed(Exception):
    """Raised if the other process has closed the socket, or is gone."""


class Link:
    """The connection to the other process, kept until the loop ends."""

    def __init__(self, path: str, signals: Signals) -> None:
        """Connect to the socket at `path`. Raises Closed if nothing listens there."""
        self._signals, self._number, self._rest = signals, 0, b""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(path)
        except OSError as problem:
            self._socket.close()
            raise Closed(problem.strerror or str(problem)) from None

    def ask(self, question: Json) -> Json | None:
        """Send a question and return its answer; None if a signal ends the wait, although the question was sent."""
        try:
            self.tell(question)
            while not self._signals.first:
                if not self._signals.wait_for(self._socket.fileno(), None):
                    continue
                for answer in self._answers():
                    if answer.get("id") == self._number:
                        return answer
        except OSError as problem:
            raise Closed(problem.strerror or str(problem)) from None
        return None

    def tell(self, text: Json) -> None:
        """Send a text whose answer the next `ask` discards. Raises OSError if the other process is gone."""
        self._number += 1
        self._socket.sendall(json.dumps({**text, "id": self._number}).encode() + b"\n")

    def _answers(self) -> list[Json]:
        """Read the data that has arrived, and return its complete lines. They may answer earlier questions."""
        data = os.read(self._socket.fileno(), CHUNK)
        if not data:
            raise Closed("the other side has closed it")
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [found for line in lines if isinstance(found := loads(line), dict)]

    def close(self) -> None:
        self._socket.close()
