"""A collector for OpenTelemetry on loopback: a process of its own that speaks OTLP/HTTP, and misbehaves on request.

`python -m tests.kit.collector FOLDER WAY` writes its port to `FOLDER/port`, and each request it gets to a file there.
"""

import json
import os
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

WAYS = ("well", "hangs", "resets", "500", "503", "redirects", "gibberish", "deaf")


class Handler(BaseHTTPRequestHandler):
    """Answers as `WAY` says; the count of requests names the files."""

    folder, way = Path(), "well"
    lock = threading.Lock()
    count = 0

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.keep(body)
        if self.way == "hangs":
            time.sleep(600)
        if self.way == "resets":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.connection.close()
            return
        if self.way == "gibberish":
            self.wfile.write(b"\0\0\x12\4\0\0\0\0\0\0\0\3\0\0\0d")  # what a gRPC server says first
            return
        codes = {"500": 500, "503": 503, "redirects": 307}
        self.send_response(codes.get(self.way, 200))
        if self.way == "redirects":
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_address[1]}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def keep(self, body: bytes) -> None:
        with self.lock:
            Handler.count += 1
            name = f"{Handler.count:04d}"
        (self.folder / f"{name}.json").write_text(json.dumps({"path": self.path, "headers": dict(self.headers)}))
        temporary = self.folder / f"{name}.tmp"
        temporary.write_bytes(body)
        temporary.rename(self.folder / f"{name}.pb")

    def log_message(self, *_: Any) -> None:
        """Nothing on stderr."""


def main() -> None:
    Handler.folder, Handler.way = Path(sys.argv[1]), sys.argv[2]
    if Handler.way == "deaf":  # the kernel completes no further connection
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        port = listening.getsockname()[1]
        full = [socket.socket() for _ in range(4)]
        for each in full:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
    else:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        port = server.server_address[1]
    temporary = Handler.folder / "port.tmp"
    temporary.write_text(str(port))
    temporary.rename(Handler.folder / "port")
    while os.getppid() != 1 and Handler.way == "deaf":
        time.sleep(0.1)
    if Handler.way != "deaf":
        server.serve_forever()


if __name__ == "__main__":
    main()
