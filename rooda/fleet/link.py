"""Answers the questions that a task's loop asks its worker. Each question and each answer is one line of JSON."""

import json
import os
import select
import socket
import tempfile
from collections.abc import Callable

from rooda.base import files
from rooda.base.json import Json, loads

CHUNK = 65_536
Answer = Callable[[Json], Json]


class Server:
    """The socket on which the worker answers one loop. Only this user can enter the socket's folder."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="rooda-leg-")
        self.path = os.path.join(self._folder, "link")
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listening.bind(self.path)
        self._listening.listen(1)
        self._reader, self._writer = os.pipe()
        self._loop: socket.socket | None = None
        self._rest = b""

    def serve(self, answer: Answer) -> None:
        """Answer the loop's questions until `stop` is called."""
        poll = select.poll()
        for each in (self._listening.fileno(), self._reader):
            poll.register(each, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._loop and self._loop.fileno() in ready:
                self._read(answer, poll)
            elif self._listening.fileno() in ready:
                self._accept(poll)
            elif self._reader in ready:
                return

    def _accept(self, poll: select.poll) -> None:
        """Accept the loop's connection. Close later ones, because the loop makes only one."""
        other, _ = self._listening.accept()
        if self._loop:
            other.close()
            return
        self._loop = other
        poll.register(other.fileno(), select.POLLIN)

    def _read(self, answer: Answer, poll: select.poll) -> None:
        assert self._loop
        try:
            data = self._loop.recv(CHUNK)
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                question = loads(line)
                if isinstance(question, dict):
                    said = {**answer(question), "id": question.get("id")}
                    self._loop.sendall(json.dumps(said).encode() + b"\n")
        except (OSError, ValueError):
            data = b""
        if not data:
            poll.unregister(self._loop.fileno())
            self.hang_up()

    def hang_up(self) -> None:
        """Close the connection, so that the loop ends its agent and exits."""
        if self._loop:
            self._loop.close()

    def stop(self) -> None:
        """Make `serve` return once it has answered all earlier questions. Call this after the loop has exited."""
        os.write(self._writer, b".")

    def close(self) -> None:
        self.hang_up()
        self._listening.close()
        os.close(self._reader)
        os.close(self._writer)
        files.remove_tree(self._folder)
