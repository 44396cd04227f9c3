"""The network of a sandbox: named hosts through rooda's proxy, a port of this machine, everything, or nothing."""

import http.server
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.processes import table
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
