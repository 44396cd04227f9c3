"""Lets processes in a sandbox reach chosen hosts, through a proxy that listens in the sandbox's own network.

The proxy is a child of the loop. For each sandbox it forks a helper that joins the sandbox's network namespace, opens
the listening sockets there and passes them back; a socket stays in the namespace in which it was created. So no
program has to run in the sandbox, and no port of this machine is opened.
"""

import base64
import json
import os
import select
import signal
import socket
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from rooda.base.json import Json
from rooda.processes import ending, linux

PORT = 3128  # in the sandbox
WEB = (80, 443)  # allowed ports of a host that is named without a port
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MOST_WAITING = 128  # connections that wait to be accepted
_HEAD = 65_536  # longest head of a request in bytes
_CHUNK = 65_536
_CONNECT = 30.0  # seconds to connect to a host
_MOST_CONNECTIONS = 200  # at the same time; others wait
_RETRY = 0.1  # seconds to the next look for a free connection
_HANDLED = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD, signal.SIGTSTP),
    *(signal.SIGCONT, signal.SIGUSR1, signal.SIGUSR2),
)


class Rule(NamedTuple):
    """A host that may be reached; `*.example.org` means all hosts below it. `port` 0: ports 80 and 443."""

    host: str
    port: int = 0


def rule_of(text: str) -> Rule:
    """Parse HOST, HOST:PORT, or a URL with a scheme."""
    if "://" in text:
        parts = urlsplit(text)
        return Rule((parts.hostname or "").rstrip("."), parts.port or (80 if parts.scheme == "http" else 443))
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or (":" in host and not host.endswith("]")):  # the last: IPv6 without a port
        host, port = text, "0"
    return Rule(host.lower().strip("[]").rstrip("."), int(port))


def allows(rules: Sequence[Rule], host: str, port: int) -> bool:
    return any(
        port in ((rule.port,) if rule.port else WEB)
        and (host == rule.host or (rule.host.startswith("*.") and host.endswith(rule.host[1:])))
        for rule in rules
    )


def variables() -> dict[str, str]:
    """Return the environment variables that make programs use the proxy."""
    address = f"http://127.0.0.1:{PORT}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
    return {**dict.fromkeys(names, address), "NODE_USE_ENV_PROXY": "1"}


class Proxy:
    """The loop's interface to the proxy process of a session."""

    def __init__(self) -> None:
        self._line, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._asked: list[str] = []
        self._pid = _forked(lambda: _serve(there), there)
        there.close()
        ending.spared.add(self._pid)  # so that the search for orphans after a call does not kill it

    def open(self, pid: int, rules: Sequence[Rule]) -> str:
        """Let the proxy listen in the network of a process. Return the problem, "" if it works."""
        try:
            self._line.send(json.dumps({"pid": pid, "rules": rules}).encode())
            while said := self._line.recv(_CHUNK):
                answer: Json = json.loads(said)
                if "problem" in answer:
                    return str(answer["problem"])
                self._asked.append(str(answer["refused"]))
        except OSError as problem:
            return str(problem.strerror)
        return "the proxy has ended"

    def finish_round(self) -> list[str]:
        """Close the proxy's sockets in all sandboxes, which have ended; return the hosts that it refused."""
        with suppress(OSError):
            self._line.send(b"{}")
            while said := self._line.recv(_CHUNK, socket.MSG_DONTWAIT):
                self._asked.append(str(json.loads(said)["refused"]))
        found, self._asked = self._asked, []
        return list(dict.fromkeys(found))

    def close(self) -> None:
        self._line.close()
        ending.spared.discard(self._pid)
        ending.kill(self._pid)
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def _forked(work: Callable[[], None], *kept: socket.socket) -> int:
    """Run `work` in a child process that ends with this one and has no descriptors but `kept`; return its PID."""
    parent, pid = os.getpid(), os.fork()
    if pid:
        return pid
    try:
        signal.set_wakeup_fd(-1)
        for number in _HANDLED:
            signal.signal(number, signal.SIG_DFL)
        linux.signal_on_parent_death(signal.SIGKILL)
        _close_others({each.fileno() for each in kept})
        if os.getppid() == parent:
            work()
    finally:
        os._exit(0)


def _close_others(kept: Collection[int]) -> None:
    """Redirect stdin, stdout and stderr to /dev/null; close other descriptors, such as the lock's, except `kept`."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in kept:
            with suppress(OSError):  # the descriptor of the listing itself
                os.close(int(name))


# In the proxy's process


class _Door(NamedTuple):
    """A socket that listens in a sandbox. With `target`, its connections are forwarded to that port on this machine."""

    socket: socket.socket
    rules: Sequence[Rule]
    target: int = 0


def _serve(line: socket.socket) -> None:
    """Handle orders from the loop and connections from sandboxes, until the loop closes its end of `line`."""
    os.setsid()  # so that Ctrl+C at a terminal does not reach it
    doors: list[_Door] = []
    children: set[int] = set()
    while True:
        _reap(children)
        is_full = bool(doors) and len(children) >= _MOST_CONNECTIONS
        waiting = () if is_full else [door.socket for door in doors]
        ready, _, _ = select.select([line, *waiting], [], [], _RETRY if is_full else None)
        for door in doors:
            if door.socket in ready:
                _accept(line, door, children)
        if line in ready and not (said := line.recv(_CHUNK)):
            return
        if line in ready and "pid" in (order := json.loads(said)):
            problem, found = _doors(order["pid"], [Rule(*rule) for rule in order["rules"]])
            doors += found
            line.send(json.dumps({"problem": problem}).encode())
        elif line in ready:
            _end(doors, children)


def _end(doors: list[_Door], children: set[int]) -> None:
    """Close all sockets and connections: the sandboxes have ended, but a host may keep its connection open."""
    for door in doors:
        door.socket.close()
    doors.clear()
    for pid in children:
        ending.kill(pid)
        os.waitpid(pid, 0)
    children.clear()


def _reap(children: set[int]) -> None:
    while children and (pid := os.waitpid(-1, os.WNOHANG)[0]):
        children.discard(pid)


def _doors(pid: int, rules: Sequence[Rule]) -> tuple[str, list[_Door]]:
    """Open listening sockets in the network of a process. Return the problem, "" if there is none, and the sockets."""
    targets = [rule.port for rule in rules if rule.host in LOOPBACK and rule.port not in (0, PORT)]
    ports = list(dict.fromkeys([PORT, *targets]))
    here, there = socket.socketpair()
    helper = _forked(lambda: _listen(there, pid, ports), there)
    there.close()
    try:
        said, descriptors, _, _ = socket.recv_fds(here, 200, len(ports))
    except OSError as problem:
        said, descriptors = str(problem).encode(), []
    here.close()
    os.waitpid(helper, 0)
    made = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    if len(made) < len(ports):
        return said.decode() or "no socket could be opened in the sandbox", []
    return "", [_Door(each, rules, 0 if port == PORT else port) for each, port in zip(made, ports, strict=True)]


def _listen(line: socket.socket, pid: int, ports: Sequence[int]) -> None:
    """Listen on the ports in the network of a process, and send the sockets, or the problem, through `line`."""
    try:
        linux.join_network(pid)
        made = []
        for port in ports:
            made.append(socket.socket())
            made[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made[-1].bind(("0.0.0.0", port))  # 127.0.0.1 may not be set up yet
            made[-1].listen(_MOST_WAITING)
        socket.send_fds(line, [b"made"], [each.fileno() for each in made])
    except OSError as problem:
        line.send(str(problem).encode())


def _accept(line: socket.socket, door: _Door, children: set[int]) -> None:
    """Accept a connection, and serve it in a separate process."""
    try:
        client, _ = door.socket.accept()
    except OSError:
        return
    children.add(_forked(lambda: _connect(line, client, door), line, client))
    client.close()


def _connect(line: socket.socket, client: socket.socket, door: _Door) -> None:
    """Relay data between a client and the door's target or, if the rules allow it, the host that it requests."""
    first = b""
    client.settimeout(_CONNECT)
    try:
        if door.target:
            other = _here(door.target)
        else:
            request = _request(client)
            if request is None:
                return client.sendall(_answer("400 Bad Request", "This is a proxy of rooda's sandbox."))
            if not allows(door.rules, request.host, request.port):
                refused = f"{request.host}:{request.port}"[:300]
                with suppress(OSError):  # the loop has not read the last hundreds of them
                    line.send(json.dumps({"refused": refused}).encode(), socket.MSG_DONTWAIT)
                return client.sendall(_answer("403 Forbidden", f"{refused} is not among the hosts of rooda's sandbox."))
            other, first = _reach(request.host, request.port), request.rest
            if not request.rest:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
    except (OSError, ValueError) as problem:  # ValueError: a name that DNS does not allow
        return client.sendall(_answer("502 Bad Gateway", str(problem)))
    other.sendall(first)
    _pump(client, other)


def _here(port: int) -> socket.socket:
    """Connect to a port of this machine's loopback device."""
    try:
        return socket.create_connection(("127.0.0.1", port), _CONNECT)
    except ConnectionRefusedError:
        return socket.create_connection(("::1", port), _CONNECT)


class _Request(NamedTuple):
    host: str
    port: int
    rest: bytes = b""  # what to send to the host; empty for a tunnel


_REPLACED = (b"proxy-", b"connection:", b"keep-alive:", b"host:")  # headers


def _request(client: socket.socket) -> _Request | None:
    """Read the head of a request; None if it is not a request to a proxy."""
    data = b""
    while b"\r\n\r\n" not in data:
        if len(data) >= _HEAD or not (more := client.recv(_CHUNK)):
            return None
        data += more
    method, _, rest = data.partition(b" ")
    target, _, rest = rest.partition(b" ")
    address = target.decode("latin-1")
    try:
        parts = urlsplit(f"//{address}" if method == b"CONNECT" else address)
        host, port = (parts.hostname or "").rstrip("."), parts.port or (443 if method == b"CONNECT" else 80)
    except ValueError:
        return None
    if not host or (method != b"CONNECT" and parts.scheme != "http"):
        return None
    if method == b"CONNECT":
        return _Request(host, port)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    head, _, body = rest.partition(b"\r\n\r\n")
    fields = [each for each in head.split(b"\r\n") if not each.lower().startswith(_REPLACED)]
    named = parts.netloc.rpartition("@")[2].encode("latin-1")  # whatever Host says
    text = b"\r\n".join([*fields, b"Host: " + named, b"Connection: close"])
    return _Request(host, port, method + b" " + path.encode("latin-1") + b" " + text + b"\r\n\r\n" + body)


def _reach(host: str, port: int) -> socket.socket:
    """Connect to a host, through the user's own proxy (HTTPS_PROXY) if there is one."""
    named = os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy") or ""
    proxy = urlsplit(named if "://" in named else f"http://{named}")
    spared = (os.environ.get("NO_PROXY") or os.environ.get("no_proxy") or "").replace(" ", "").split(",")
    if host in LOOPBACK[1:]:
        return _here(port)
    if not proxy.hostname or host == LOOPBACK[0] or any(each and host.endswith(each.lstrip("*")) for each in spared):
        return socket.create_connection((host, port), _CONNECT)
    if proxy.scheme != "http":
        raise OSError(f"rooda can't use your proxy, since it is not an http:// one: {proxy.scheme}://{proxy.hostname}")
    other = socket.create_connection((proxy.hostname, proxy.port or 80), _CONNECT)
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    other.sendall(f"CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n{_login(proxy)}\r\n".encode())
    said = b""
    while b"\r\n\r\n" not in said and (more := other.recv(1)):
        said += more
    if b" 200 " not in said.partition(b"\r\n")[0]:
        raise OSError(f"the proxy {proxy.hostname} refused: {said[:200].decode('latin-1')}")
    return other


def _login(proxy: SplitResult) -> str:
    """Return the header with the name and password in the address of the user's proxy; "" if it has none."""
    if not proxy.username:
        return ""
    words = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
    return f"Proxy-Authorization: Basic {base64.b64encode(words).decode()}\r\n"


def _pump(*sides: socket.socket) -> None:
    """Copy bytes between two connections until both have ended."""
    for side in sides:
        side.settimeout(None)
    other = {sides[0]: sides[1], sides[1]: sides[0]}
    opened = set(sides)
    while opened:
        for side in select.select(list(opened), [], [])[0]:
            data = b""
            with suppress(OSError):
                data = side.recv(_CHUNK)
            try:
                if data:
                    other[side].sendall(data)
                else:
                    opened.discard(side)
                    other[side].shutdown(socket.SHUT_WR)
            except OSError:
                return


def _answer(status: str, text: str) -> bytes:
    body = f"{text}\n".encode("utf-8", "replace")
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body
