"""Who may read the page and act on it: token, cookie, Host, Origin, and what the answers allow a browser."""

import http.client
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.page import Page, needs_extra, start
from tests.kit.workspace import Workspace, until

pytestmark = needs_extra


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One page for all questions of this module, over a workspace with one finished run."""
    workspace = Workspace(str(tmp_path_factory.mktemp("guarded")))
    workspace.procedure("build")
    workspace.rooda("build", "-n", "1")
    yield start(workspace)
    workspace.close()


PATHS = ["", "events", "data", "do", "static/page.js", "run/0/20260101T000000Z-build-1/", "no-such-page", "metrics"]


@pytest.mark.parametrize("path", PATHS)
def test_P_03_without_the_token_nothing_is_read(shared: Page, path: str) -> None:
    """Neither without a cookie, nor with a wrong one, nor with the token in its place: 401, and no word of a loop."""
    for cookie in ("", "rooda=", f"rooda={shared.token}", "rooda=é", f"{shared.cookie}x", shared.cookie[:-1]):
        answer = shared.ask(path, cookie=cookie.encode().decode("latin-1"))
        assert answer.status == 401
        assert "build" not in answer.text


@pytest.mark.parametrize("path", ["/", "/do", "/events", "/metrics/", "/static/page.js", "//", "/.."])
def test_P_03_nothing_outside_of_the_path_reads_or_acts(shared: Page, path: str) -> None:
    """Without the cookie it is 401 there, too; with it there is nothing."""
    assert shared.ask(path, cookie="").status == 401
    assert shared.ask(path).status == 404
    assert shared.ask(path, "POST", {"do": "stop"}).status == 404


def test_P_03_the_token_is_only_in_the_first_address(shared: Page) -> None:
    """It becomes a cookie bound to a random path, and leads to an address without it; no page has it."""
    first = shared.ask(f"{shared.base}?{shared.query}", cookie="")
    name, *attributes = first.headers["set-cookie"].split("; ")
    assert sorted(attributes) == sorted([f"Path={shared.base}", "HttpOnly", "SameSite=Strict"])
    assert (first.status, shared.token in first.headers["location"]) == (303, False)
    page = shared.ask(first.headers["location"], cookie=name)
    assert page.status == 200
    assert shared.token not in page.text
    assert len(shared.base) > 16
    assert len(shared.token) > 40


@pytest.mark.parametrize(
    "query", ["token=", "token=x", "token=%00", "token=%C3%A9", "Token={}", "token={}x", "a&token={}0"]
)
def test_P_03_a_guessed_token_gets_no_cookie(shared: Page, query: str) -> None:
    """Each wrong token is a 401 without a cookie."""
    answer = shared.ask(f"{shared.base}?{query.format(shared.token)}", cookie="")
    assert (answer.status, "set-cookie" in answer.headers) == (401, False)


HOSTS = [
    "evil.example",
    "evil.example:{}",
    "127.0.0.1",
    "127.0.0.1:1",
    "127.0.0.1.evil.example:{}",
    "10.0.0.1:{}",
    "x:x:{}",
]


@pytest.mark.parametrize("host", HOSTS)
def test_P_03_another_host_is_refused(shared: Page, host: str) -> None:
    """A name that an attacker's DNS leads here gets nothing, with the cookie or with the token."""
    for path in ("", f"{shared.base}?{shared.query}", "/metrics"):
        answer = shared.ask(path, Host=host.format(shared.port))
        assert (answer.status, "set-cookie" in answer.headers) == (421, False)
    assert shared.ask("", Host=f"localhost:{shared.port}").status == 200


def test_P_03_no_host_is_refused(shared: Page) -> None:
    """HTTP/1.0 without a Host header, or with an empty one."""
    connection = http.client.HTTPConnection("127.0.0.1", shared.port, timeout=30)
    connection.putrequest("GET", shared.base, skip_host=True)
    connection.putheader("Cookie", shared.cookie)
    connection.putheader("Host", "")
    connection.endheaders()
    assert connection.getresponse().status == 421
    connection.close()


ORIGINS = [
    "null",
    "http://evil.example",
    "http://127.0.0.1",
    "http://127.0.0.1:1",
    "https://127.0.0.1:{}",
    "file://",
    "",
]


@pytest.mark.parametrize("origin", ORIGINS)
def test_P_03_another_origin_is_refused(shared: Page, origin: str) -> None:
    """Every action from another page, `null` and none included, is a 403, and so is reading from one that says so."""
    origin = origin.format(shared.port)
    assert shared.ask("do", "POST", {"do": "stop", "id": "x"}, Origin=origin).status == 403
    if origin:
        assert shared.ask("data", Origin=origin).status == 403
    assert shared.ask("do", "POST", {"do": "stop", "id": "x"}).status == 404


def test_P_03_every_answer_forbids_scripts_frames_and_referrers(shared: Page) -> None:
    """Also those that refuse: no inline script, no frame, no address for other sites, no guess of a type."""
    for path, cookie in (("", None), ("", ""), ("static/page.js", None), ("nothing", None), ("/metrics", "")):
        headers = shared.ask(path, cookie=cookie).headers
        policy = {each.split()[0]: each.split()[1:] for each in headers["content-security-policy"].split(";")}
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == ["'none'"]
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == ["'self'"]
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path", ["static/../cli.py", "static/%2e%2e/cli.py", "static/..%2fcli.py", "static/uPlot.LICENSE"]
)
def test_P_03_only_the_pages_own_files_are_served(shared: Page, path: str) -> None:
    """No path leads to other files."""
    assert shared.ask(path).status == 404


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"[" * 5000, b'{"do": "stop"}' + b" " * 200_000, b"\xff"])
def test_P_03_a_malformed_request_does_nothing(shared: Page, body: bytes) -> None:
    """It is refused in one sentence, and the page goes on."""
    connection = http.client.HTTPConnection("127.0.0.1", shared.port, timeout=30)
    headers = {"Cookie": shared.cookie, "Origin": shared.origin, "Content-Type": "application/json"}
    connection.request("POST", f"{shared.base}do", body, headers)
    assert connection.getresponse().status in (400, 404)
    connection.close()
    form = shared.ask("do", "POST", {"do": "stop"}, **{"Content-Type": "text/plain"})
    assert form.status == 400
    assert shared.ask("").status == 200


RAW = {
    "two hosts": ("GET {base} HTTP/1.1", "Host: {host}", "Host: evil.example", "Cookie: {cookie}"),
    "an address for a proxy": ("GET http://evil.example{base} HTTP/1.1", "Host: {host}", "Cookie: {cookie}"),
    "no host": ("GET {base} HTTP/1.0", "Cookie: {cookie}"),
    "an IP address as a number": ("GET {base} HTTP/1.1", "Host: 2130706433:{port}", "Cookie: {cookie}"),
    "another's bytes": ("GET {base} HTTP/1.1", "Host: {host}", "Cookie: rooda=\xff"),
    "two lengths": ("POST {base}do HTTP/1.1", "Host: {host}", "Cookie: {cookie}", "Origin: http://{host}",
                    "Content-Length: 5", "Transfer-Encoding: chunked", "", "0", "", "GET {base} HTTP/1.1"),
    "no HTTP": ("\x16\x03\x01",),
}  # fmt: skip


@pytest.mark.parametrize("name", RAW)
def test_P_03_a_strange_request_is_refused(shared: Page, name: str) -> None:
    """What a proxy and a server could read in two ways gets 4xx, also with the cookie."""
    facts = {"base": shared.base, "host": shared.host, "port": shared.port, "cookie": shared.cookie}
    lines = (*(line.format(**facts) for line in RAW[name]), "", "")
    with socket.create_connection(("127.0.0.1", shared.port), timeout=30) as connection:
        connection.sendall("\r\n".join(lines).encode("latin-1"))
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 4")
    assert b"build" not in answer


def test_P_03_a_browser_is_opened_by_a_private_file(ws: Workspace) -> None:
    """$BROWSER gets the path of a file that only the user can read and that leads there; no command has the token."""
    recorder = ws.write(
        "browser",
        f'#!/bin/sh\nls -l "$1" > {ws.root}/opened\ncat "$1" >> {ws.root}/opened\nmv {ws.root}/opened {ws.root}/done\n',
        0o755,
    )
    process = ws.start("page", env={"BROWSER": recorder})
    page = Page(process)
    said = until(lambda: Path(ws.root, "done").exists() and Path(ws.root, "done").read_text(), 20)
    assert said.startswith("-rw-------")
    assert page.door in said
    door = next(Path(ws.home, ".state").rglob("open-*.html"))
    assert stat.S_IMODE(door.stat().st_mode) == 0o600
    assert page.token not in Path(f"/proc/{process.pid}/cmdline").read_text()
    process.stop()
    assert not door.exists()
