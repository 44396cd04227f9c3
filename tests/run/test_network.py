"""The network of a sandbox: named hosts through rooda's proxy, a port of this machine, everything, or nothing."""

import http.server
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.processes import proxy, table
from tests.kit.walled import BWRAP, wall, walled  # noqa: F401 - a fixture
from tests.kit.workspace import Workspace, until

pytestmark = BWRAP

GET = """python3 - "$1" <<'END'
import sys, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())
except Exception as problem:
    print(getattr(problem, "code", type(problem).__name__))
END
"""
DIRECT = """python3 - <<'END'
import socket
try:
    print(len(socket.create_connection(("127.0.0.1", PORT), 2).recv(0)))
except OSError as problem:
    print("refused")
END
"""


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"hello {self.headers['Host']} {self.path}".encode())

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def port() -> Iterator[int]:
    """A web server on this machine's loopback device."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def asked(ws: Workspace, *addresses: str) -> list[str]:
    """What one call got from these addresses."""
    ws.write("get.sh", GET)
    ws.side(1, "".join(f'sh get.sh {address} >>"$FAKE/got"\n' for address in addresses))
    run = ws.rooda("build", "-n", "1")
    assert run.code == 0, run.err
    return Path(ws.fake, "got").read_text().split("\n")[:-1]


def test_S_22_an_agent_reaches_named_hosts_alone(walled: Workspace, port: int) -> None:  # noqa: F811
    """The named address through the proxy; others get 403, are one event each, and are in summary and STATUS."""
    wall(walled, keys=f'hosts = ["127.0.0.1:{port}", "*.example.invalid"]')
    named, other = f"http://127.0.0.1:{port}/a?b", "http://evil.test/"
    found = asked(walled, named, other, other, "http://127.0.0.1:1/", "http://a.example.invalid/")
    assert found == [f"hello 127.0.0.1:{port} /a?b", "403", "403", "403", "502"]
    refused = [event["host"] for event in walled.events() if event["event"] == "network.refused"]
    assert refused == ["evil.test:80", "127.0.0.1:1"]
    walled.forget_calls()
    walled.side(1, "")
    run = walled.rooda("build", "-n", "2")
    assert "  sandbox     refused: evil.test:80, 127.0.0.1:1" in run.err
    assert "The sandbox has no connection to evil.test:80." in walled.calls[1].text


def test_S_22_a_port_of_this_machine_is_there_without_a_proxy(ws: Workspace, port: int) -> None:
    """A gate that needs a service of this machine: red with `off`, green with `hosts` and the port's name."""
    gate = DIRECT.replace("PORT", str(port)) + "\n"
    ws.write("direct.sh", gate)
    wall(ws, gates={"database": 'test "$(sh direct.sh)" = 0'})
    assert ws.rooda("build", "-n", "1").code == 1
    wall(
        ws,
        gates={"database": 'test "$(sh direct.sh)" = 0'},
        keys=f'hosts = ["localhost:{port}"]\ngate_network = "hosts"',
    )
    run = ws.rooda("build", "-n", "1", "--fresh")
    assert run.code == 0, run.err + run.out


@pytest.mark.parametrize(("network", "reached"), [("on", "0"), ("off", "refused"), ("agent", "refused")])
def test_S_22_the_machines_own_services(walled: Workspace, port: int, network: str, reached: str) -> None:  # noqa: F811
    """Only with `on` an agent reaches a service on loopback that nobody named."""
    wall(walled, keys=f'network = "{network}"')
    walled.write("direct.sh", DIRECT.replace("PORT", str(port)))
    walled.side(1, 'sh direct.sh >"$FAKE/got"')
    assert walled.rooda("build", "-n", "1").code == 0
    assert Path(walled.fake, "got").read_text().strip() == reached


def test_S_22_the_proxy_ends_with_the_loop(walled: Workspace) -> None:  # noqa: F811
    """Two calls share it; after the run, and after a kill of the loop, no process is left."""
    assert walled.rooda("build", "-n", "2").code == 0
    assert not walled.leftovers()
    walled.side(3, 'touch "$FAKE/started"; sleep 60')
    running = walled.start("build", "-n", "1", "--fresh")
    until(lambda: Path(walled.fake, "started").exists())
    for pid in [running.pid, *table.children(running.pid)]:
        os.kill(pid, signal.SIGKILL)
    until(lambda: not walled.leftovers(), 2, "the end of all processes")


HOSTILE = """
import socket, sys
PROXY = ("127.0.0.1", 3128)
def ask(head, body=b"", read=True):
    with socket.create_connection(PROXY, 5) as line:
        line.sendall(head.replace("PORT", sys.argv[1]).encode("latin-1") + b"\\r\\n\\r\\n" + body)
        said = b""
        while read and b"200 Connection" not in said:
            try:
                more = line.recv(65536)
            except ConnectionResetError:  # it did not read a head that is too long to its end
                more = b""
            if not more:
                break
            said += more
        return said
def status(said):
    return said.split(b" ")[1].decode() if said else "closed"
asked = [
    "CONNECT localhost:PORT HTTP/1.1",
    "CONNECT LOCALHOST.:PORT HTTP/1.1",
    "CONNECT 127.0.0.1:PORT HTTP/1.1",
    "CONNECT 127.1:PORT HTTP/1.1",
    "CONNECT 0.0.0.0:PORT HTTP/1.1",
    "CONNECT [::1]:PORT HTTP/1.1",
    "CONNECT [::ffff:127.0.0.1]:PORT HTTP/1.1",
    "CONNECT 2130706433:PORT HTTP/1.1",
    "CONNECT localhost@evil.test:PORT HTTP/1.1",
    "CONNECT evil.test#localhost:PORT HTTP/1.1",
    "CONNECT localhost:1 HTTP/1.1",
    "CONNECT localhost:PORT:80 HTTP/1.1",
    "CONNECT a..example.invalid:443 HTTP/1.1",
    "GET / HTTP/1.1\\r\\nHost: localhost:PORT",
    "GET ftp://localhost:PORT/ HTTP/1.1",
    "GET http://evil.test\\\\@localhost:PORT/x HTTP/1.1",
    "GET http://localhost:PORT/x HTTP/1.1\\r\\nX: " + 70000 * "x",
    "\\x16\\x03\\x01 \\xff\\xfe",
]
print(*(status(ask(head)) for head in asked))
said = ask("GET http://localhost:PORT/x HTTP/1.1\\r\\nHost: evil.test\\r\\nProxy-Authorization: Basic eDp4")
print(said.rpartition(b"\\r\\n\\r\\n")[2].decode().replace(sys.argv[1], "PORT"))
held = [socket.create_connection(PROXY, 5) for _ in range(260)]
for line in held:
    line.sendall(b"CONNECT localhost:" + sys.argv[1].encode() + b" HTTP/1.1\\r\\n")
for number in range(400):
    try:
        ask(f"CONNECT host-{number}.test:443 HTTP/1.1", read=False)
    except OSError:
        break
print("done")
"""


def test_S_22_a_hostile_client_gains_nothing(walled: Workspace, port: int) -> None:  # noqa: F811
    """Other spellings of addresses, bad requests, hundreds of open connections: refused, and the loop goes on."""
    wall(walled, keys=f'hosts = ["localhost:{port}", "*.example.invalid"]')
    walled.write("hostile.py", HOSTILE)
    walled.side(1, f'python3 hostile.py {port} >"$FAKE/got" 2>&1')
    walled.write("get.sh", GET)
    walled.side(2, f'sh get.sh http://localhost:{port}/ >"$FAKE/second"')
    run = walled.rooda("build", "-n", "2")
    assert run.code == 0, run.err
    got = Path(walled.fake, "got").read_text().splitlines()
    expected = "200 200 403 403 403 403 403 403 403 403 403 400 502 400 400 200 400 400"
    assert [got[0].replace("closed", "400"), *got[1:]] == [expected, "hello localhost:PORT /x", "done"], got
    assert Path(walled.fake, "second").read_text() == f"hello localhost:{port} /\n"
    refused = [event["host"] for event in walled.events() if event["event"] == "network.refused"]
    assert f"127.0.0.1:{port}" in refused and len(refused) <= 50
    assert not walled.leftovers()


class Forwarding(http.server.BaseHTTPRequestHandler):
    """A user's proxy with a password, which answers each CONNECT itself."""

    def do_CONNECT(self) -> None:
        self.send_response(200)
        self.end_headers()
        said = f"{self.path} {self.headers['Proxy-Authorization']}".encode()
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said))

    def log_message(self, *_: object) -> None: ...


def test_S_22_the_users_own_proxy_is_used(walled: Workspace) -> None:  # noqa: F811
    """With its name and password; a proxy that is not an http:// one is an error that names it."""
    wall(walled, keys='hosts = ["a.example.invalid"]')
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forwarding) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        walled.env["HTTPS_PROXY"] = f"http://me:p%40ss@127.0.0.1:{server.server_address[1]}"
        assert asked(walled, "http://a.example.invalid/") == ["a.example.invalid:80 Basic bWU6cEBzcw=="]
        server.shutdown()
    walled.forget_calls()
    walled.env["HTTPS_PROXY"] = "socks5://127.0.0.1:9"
    walled.side(1, 'curl -s http://a.example.invalid/ >"$FAKE/got" 2>&1')
    walled.rooda("build", "-n", "1", "--fresh")
    assert "since it is not an http:// one: socks5://127.0.0.1" in Path(walled.fake, "got").read_text()


@pytest.mark.parametrize("host", ["*", "example.org/path", "exa mple", "example.org:0", "example.org:70000", "::1"])
def test_S_22_a_host_that_can_not_match_is_an_error(ws: Workspace, host: str) -> None:
    """The file, the line and what a host looks like, instead of a rule that never allows anything."""
    wall(ws, keys=f'hosts = ["localhost:1", "{host}"]')
    run = ws.rooda("build", "-n", "1")
    assert run.code == 2 and "must be a host: example.org" in run.err and "rooda.toml:" in run.err


def test_S_22_hosts_as_people_write_them() -> None:
    """A URL, a port, a wildcard, an IPv6 address, capitals and a final dot."""
    given = ["https://Example.org", "http://a.b.:81/", "*.C.org.", "[::1]:5432", "d.org:8443"]
    rules = [proxy.rule_of(each) for each in given]
    allowed = [("example.org", 443), ("a.b", 81), ("x.c.org", 80), ("x.y.c.org", 443), ("::1", 5432), ("d.org", 8443)]
    assert all(proxy.allows(rules, *each) for each in allowed)
    refused = [("example.org", 80), ("a.b", 80), ("c.org", 443), ("evilc.org", 443), ("d.org", 443), ("::1", 443)]
    assert not any(proxy.allows(rules, *each) for each in refused)
