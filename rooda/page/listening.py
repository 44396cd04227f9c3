"""Opens the page's socket, and a browser."""

import errno
import os
import socket
from collections.abc import Sequence

from rooda.errors import UsageProblem
from rooda.processes import children


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises UsageProblem if the port is in use or the machine does not have the address."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind)
    except OSError as problem:
        raise UsageProblem(f"{host} is not an address of this machine: {problem.strerror}.") from None
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(512)
    except OSError as problem:
        found.close()
        why = "is in use" if problem.errno == errno.EADDRINUSE else f"can't be used ({problem.strerror})"
        raise UsageProblem(f"Port {port} of {host} {why}; leave out --port to get a free one.") from None
    return found


def open_browser(argv: Sequence[str]) -> None:
    """Start a browser in its own session. Ignore failures, because the address is printed, too."""
    try:
        children.start_alone(argv, os.getcwd(), os.environ, "")
    except (OSError, ValueError):
        return
