"""[hooks]: commands and addresses that get an event when a run ends or waits."""

import base64
import http.server
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli_w

from rooda.settings.setup import HOOKS
from tests.kit.workspace import Workspace


def hooked(ws: Workspace, **hooks: object) -> None:
    """`append` puts the event into the file `told`."""
    ws.sections["hooks"] = "\n" + tomli_w.dumps({"hooks": hooks})
    ws.procedure()


def told(ws: Workspace) -> list[dict[str, object]]:
    return [json.loads(line) for line in ws.read("told").splitlines()] if ws.exists("told") else []


ALL = dict.fromkeys(("done", "failed", "paused", "stopped", "limit"), "cat >>told")


@pytest.mark.parametrize(
    ("words", "exits", "moment", "code"),
    [
        (("-n", "1"), (0,), "done", 0),
        (("-n", "9"), (1, 1, 1), "failed", 1),
        (("-n", "9", "--max-duration", "0.001"), (0,), "paused", 4),
    ],
)
def test_the_end_of_a_run(
    ws: Workspace, words: tuple[str, ...], exits: tuple[int, ...], moment: str, code: int
) -> None:
    """The hook gets the event with the moment on stdin, once per run."""
    hooked(ws, **ALL)
    ws.exits(*exits)
    assert ws.rooda("build", *words).code == code
    assert [(event["event"], event["moment"], event["exit_code"]) for event in told(ws)] == [
        ("run.ended", moment, code)
    ]


def test_a_signal(ws: Workspace) -> None:
    """Ctrl+C is a moment too, and the run still ends with 130."""
    hooked(ws, **ALL)
    ws.signal_at(1)
    assert ws.rooda("build", "-n", "2").code == 130
    assert [event["moment"] for event in told(ws)] == ["stopped"]


def test_a_failing_hook_changes_nothing(ws: Workspace) -> None:
    """A failed hook is reported with its last line; the exit code is the run's."""
    hooked(ws, done="echo no such channel >&2; exit 3")
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 0
    assert "the hook 'done' failed (exit 3): no such channel" in ran.err


@pytest.mark.parametrize(
    ("words", "status"), [(("-n", "9", "--ai-cmd", "false"), "failed"), (("--max-duration", "0.001"), "paused")]
)
def test_a_run_whose_last_hook_failed_was_not_cut_off(ws: Workspace, words: tuple[str, ...], status: str) -> None:
    """The hook's failure comes after the end: `status` shows how the run ended, and `resume --all` skips it."""
    hooked(ws, failed="exit 1", paused="exit 1")
    assert "failed (exit 1)" in ws.rooda("build", *words).err
    (row,) = json.loads(ws.rooda("status", "--all", "--json").out)
    assert row["state"] == status and bool(row["reason"]) == (status == "paused")
    assert ws.rooda("resume", "--all").out == "No run was cut off; there is nothing to resume.\n"


def test_a_hook_that_hangs_is_ended(ws: Workspace) -> None:
    """A hook is ended after its timeout, with all its processes."""
    hooked(ws, done={"command": "sleep 1000", "timeout": 0.2})
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 0 and "the hook 'done' failed (timed out after 0.2s)" in ran.err
    assert ws.leftovers() == []


authorized: list[str] = []  # what the server below was told of who posts


@pytest.fixture
def server() -> Iterator[tuple[str, list[bytes]]]:
    """A web server that stores what is posted."""
    posted: list[bytes] = []
    authorized.clear()

    class Keeper(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if self.path[1:].isdecimal():  # the status with which it sends on to itself
                self.send_response(int(self.path[1:]))
                self.send_header("Location", "/")
                self.end_headers()
                return
            posted.append(self.rfile.read(int(self.headers["Content-Length"])))
            authorized.append(self.headers.get("Authorization", ""))
            self.send_response(204)
            self.end_headers()

        def do_GET(self) -> None:
            posted.append(b"got")
            self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Keeper) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{found.server_port}/", posted
        found.shutdown()


def test_a_web_hook(ws: Workspace, server: tuple[str, list[bytes]]) -> None:
    """The event is the body of a POST."""
    address, posted = server
    hooked(ws, done={"url": address})
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 0 and ran.notes == ""
    assert [json.loads(body)["moment"] for body in posted] == ["done"] and authorized == [""]


@pytest.mark.parametrize(("form", "field"), [("text", ""), ("ntfy", ""), ("slack", "text"), ("discord", "content")])
def test_E_31_a_web_hook_for_a_service(ws: Workspace, server: tuple[str, list[bytes]], form: str, field: str) -> None:
    """The body is the sentence for people, in the form that the service takes."""
    address, posted = server
    hooked(ws, done={"url": address, "format": form})
    assert "hook" not in ws.rooda("build", "-n", "1").err
    body = posted[0].decode().strip()
    text = json.loads(body)[field] if field else body
    assert text == f"build is done after 1 iteration: max iterations [{os.uname().nodename}:{ws.path}]"


def test_E_31_the_sentence_names_red_gates(ws: Workspace) -> None:
    """Where a run ends red at its limit."""
    hooked(ws, failed="cat >>told")
    ws.procedure(gates={"tests": "exit 4"})
    assert ws.rooda("build", "-n", "2").code == 1
    (event,) = told(ws)
    assert str(event["text"]).startswith("build failed after 2 iterations: red gates: tests (exit 4) [")


def test_E_31_what_a_hook_is_given(ws: Workspace) -> None:
    """Workspace, host, branch, cost and a sentence come with the event; a command has no format."""
    ws.git("init", "-q")
    hooked(ws, done="cat >>told")
    ws.rooda("build", "-n", "1")
    (event,) = told(ws)
    assert (event["workspace"], event["host"], event["branch"]) == (ws.path, os.uname().nodename, "main")
    assert event["cost"] is None and str(event["text"]).endswith(f"{ws.path} (main)]")
    hooked(ws, done={"command": "true", "format": "slack"})
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 2 and "hooks.done.format: applies only to hooks with a url" in ran.err


def test_a_web_hook_with_a_password(ws: Workspace, server: tuple[str, list[bytes]]) -> None:
    """The password is sent with Basic authorization; `config show` and the run's files do not contain it."""
    address, posted = server
    hooked(ws, done={"url": address.replace("//", "//bob:p%40w@")})
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 0 and ran.notes == "" and len(posted) == 1
    assert authorized == ["Basic " + base64.b64encode(b"bob:p@w").decode()]
    shown = ws.rooda("config", "show", "hooks").out + ws.rooda("config", "show", "--json").out
    assert "p%40w" not in shown and "bob:***@127.0.0.1" in shown
    assert not any(b"p%40w" in path.read_bytes() for path in Path(ws.file(".rooda/runs")).glob("*/*"))


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("done = 3", "hooks.done: must be a command, or a table with command or url, got 3"),
        ("done = { timeout = 3 }", "hooks.done: must have either command or url, not both"),
        ('done = { url = "ftp://x" }', "hooks.done.url: must be an http or https address"),
        ('doen = "true"', "hooks.doen: unknown key; did you mean 'done'?"),
    ],
)
def test_a_wrong_hook_is_reported_with_its_line(ws: Workspace, toml: str, said: str) -> None:
    """File, line, key, and what was expected."""
    ws.config(f"[hooks]\n{toml}\n")
    ran = ws.rooda("config", "show")
    assert f"rooda.toml:2: {said}" in ran.err


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_S_13_a_web_hook_follows_no_redirect(ws: Workspace, server: tuple[str, list[bytes]], status: int) -> None:
    """The event is for the host that the user named, and a GET without it is no delivery."""
    address, posted = server
    hooked(ws, done={"url": f"{address}{status}"})
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 0 and posted == []
    said = f"the hook 'done' failed (exit 1): HTTP Error {status}: redirects are not followed; name the final address"
    assert said in ran.err


NOT_HERE = (
    "http://example.org/", "http://127.0.0.1.example.org/", "http://localhost@example.org/", "http://localhost.example/",
    "http://2130706433/", "http://0.0.0.0/", "http:///x", "http://[::ffff:1.2.3.4]/", "http://[", "http://10.0.0.1/",
)  # fmt: skip


def test_S_13_plain_http_leaves_the_machine_only_if_asked_for() -> None:
    """Everybody on the way could read it: it is refused with file and line."""
    for url in NOT_HERE:
        assert [fault.path for fault in HOOKS["done"].type.faults({"url": url})] == [("url",)], url
        assert HOOKS["done"].type.faults({"url": url, "insecure": True}) == []
    for url in ("https://example.org", "http://localhost:1/", "http://me:pw@127.0.0.1:8/", "http://[::1]:9/"):
        assert HOOKS["done"].type.faults({"url": url}) == [], url


def test_S_13_a_hook_over_plain_http_is_told_with_its_line(ws: Workspace) -> None:
    """Before anything starts."""
    ws.config('[hooks]\ndone = { url = "http://example.org/hook" }\n')
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 2 and "rooda.toml:2: hooks.done.url: must begin with https://" in ran.err
