"""A real `rooda page`, and requests to it: with its cookie, without, forged."""

import http.client
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from .processes import Running, until
from .workspace import Workspace

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LACKS = [name for name in ("starlette", "uvicorn", "sse_starlette") if not find_spec(name)]
MUST = os.environ.get("CI_TOOLS") == "yes"  # where everything is installed, nothing is skipped
needs_extra = pytest.mark.skipif(bool(LACKS) and not MUST, reason=f"the extra rooda[page] lacks {LACKS}")
NO_BROWSER = not CHROMIUM or not find_spec("playwright")
needs_browser = pytest.mark.skipif(NO_BROWSER and not MUST, reason="needs Chromium and Playwright")


class Answer(NamedTuple):
    """An answer: its status, headers in lower case, and body."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Page:
    """A page that is served, seen by one client that has opened the printed address."""

    def __init__(self, process: Running) -> None:
        self.process = process
        self.door = process.wait_line("Page: ", 30).split()[1]
        parts = urlsplit(self.door)
        assert parts.port
        self.port, self.base, self.query = parts.port, parts.path, parts.query
        self.token = self.query.partition("=")[2]
        self.host = self.origin = ""
        self.host, self.origin = f"127.0.0.1:{self.port}", f"http://127.0.0.1:{self.port}"
        self.cookie = ""

    def enter(self) -> "Page":
        """Open the printed address, as a browser does."""
        answer = self.ask(f"{self.base}?{self.query}")
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return self

    def ask(
        self, path: str, method: str = "GET", body: Any = None, cookie: str | None = None, **headers: str
    ) -> Answer:
        """Send a request; a path without a leading slash is below the page's own."""
        sent = {"Host": self.host, "Cookie": self.cookie if cookie is None else cookie, **headers}
        data = json.dumps(body) if body is not None else None
        if data is not None:
            sent = {"Content-Type": "application/json", "Origin": self.origin, **sent}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=40)
        try:
            whole = path if path.startswith("/") else f"{self.base}{path}"
            connection.request(method, whole, data, {key: value for key, value in sent.items() if value})
            got = connection.getresponse()
            found = {key.lower(): value for key, value in got.getheaders()}
            return Answer(got.status, found, got.read().decode("utf-8", "replace"))
        finally:
            connection.close()

    def act(self, what: str, entry: str, **typed: str) -> Answer:
        """Carry out an action on a loop that is open."""
        return self.ask("do", "POST", {"do": what, "id": entry, **typed})

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """The overview's rows."""
        found: dict[str, list[dict[str, Any]]] = self.ask("data").json
        return found

    def button(self, name: str, what: str = "") -> str:
        """The id that the buttons of the open loop NAME act on."""
        html = self.ask("").text
        row = next(part for part in html.split("<tr ")[1:] if f'data-name="{name}"' in part)
        assert f'data-do="{what}"' in row or not what, row
        return row.partition('data-piece="open/')[2].partition('"')[0]

    def run_path(self, name: str) -> str:
        """The address of the newest run of NAME, below the page's own."""
        html = self.ask("").text
        row = next(part for part in html.split("<tr ")[1:] if f'data-name="{name}"' in part)
        return row.partition('href="')[2].partition('"')[0]

    @contextmanager
    def stream(self, path: str = "events") -> "Iterator[Stream]":
        """Listen to the events of the overview, or of a run."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=40)
        connection.request("GET", f"{self.base}{path}", headers={"Host": self.host, "Cookie": self.cookie})
        try:
            yield Stream(connection.getresponse())
        finally:
            connection.close()


class Stream:
    """Server-sent events."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.response = response

    def next(self, name: str) -> Any:
        """The data of the next event of this name."""
        event = ""
        while line := self.response.readline().decode():
            key, _, value = line.rstrip("\n").partition(": ")
            if key == "event":
                event = value
            if key == "data" and event == name:
                return json.loads(value)
        raise AssertionError("the stream has ended")

    def until(self, name: str, text: str) -> Any:
        """The data of the next event of this name that has a text."""
        while text not in json.dumps(found := self.next(name), ensure_ascii=False):
            pass
        return found


def start(ws: Workspace, *options: str, env: dict[str, str] | None = None) -> Page:
    """Serve a page of everything that this workspace's user has."""
    return Page(ws.start("page", "--no-browser", *options, env=env)).enter()


def awaited(page: Page, name: str, **facts: Any) -> dict[str, Any]:
    """The open row of a loop, as soon as it has these facts."""

    def found() -> dict[str, Any] | None:
        rows = [row for row in page.rows()["open"] if row["name"] == name]
        return next((row for row in rows if all(row[key] == value for key, value in facts.items())), None)

    row: dict[str, Any] = until(found, 30, f"{name} with {facts}")
    return row
