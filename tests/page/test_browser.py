"""The page in a real browser: it opens, follows a run, answers by keyboard, and refuses forgeries."""

import http.server
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kit.page import CHROMIUM, Page, needs_browser, needs_extra, start
from tests.kit.workspace import Workspace, until, waiting

pytestmark = [needs_extra, needs_browser]
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync"]  # fmt: skip
HOSTILE = "<script>document.title='owned'</script><img src=x onerror=document.title='owned'>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One Chromium for all tests of this module."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    """A tab with cookies of its own."""
    context = browser.new_context()
    context.set_default_timeout(20_000)
    yield context.new_page()
    context.close()


@pytest.fixture
def faultless(tab: Any) -> Iterator[None]:
    """No script fails in the tab, and nothing is against the page's policy; the first visit by a file is a 401."""
    faults: list[str] = []
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    yield
    assert not [fault for fault in faults if "status of 401" not in fault]


@contextmanager
def elsewhere(html: str) -> Iterator[str]:
    """Another site on this machine, with one page; gives its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *words: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()


def test_P_05_a_run_is_followed_to_its_end(ws: Workspace, tab: Any, faultless: None) -> None:
    """Opened by the private file; the token is in no address; words, iterations and the end appear by themselves."""
    ws.git("init", "-q")
    ws.git("commit", "-qm", "first", "--allow-empty")
    ws.procedure("build", gates={"tests": "echo gate-output; true"}, loop={"safety": "snapshot"})
    ws.out(1, f"{HOSTILE}\n")
    ws.side(1, f"echo {HOSTILE!r} > '<b>name'")
    ws.side(2, f"echo words of the second call\n{waiting(ws.file('go'))}")
    process = ws.start("page", "--no-browser")
    page = Page(process)
    door = until(lambda: next(Path(ws.home, ".state").rglob("open-*.html"), None))
    tab.goto(f"file://{door}")
    tab.wait_for_url(f"{page.origin}{page.base}")
    tab.get_by_text("No loop has run yet").wait_for()
    ws.start("build", "-n", "2")
    tab.locator('tr[data-name="build"][data-state="running"] a').click()
    tab.get_by_text("words of the second call").wait_for()
    first = tab.locator('[data-piece="iterations/1"]')
    assert "success" in first.inner_text()
    first.locator("summary").first.click()
    for name, words in (("Gate tests", "gate-output"), ("What the agent said", "<script>"), ("Changes", "+<script>")):
        first.locator("details details", has_text=name).locator("summary").click()
        tab.locator("pre", has_text=words).first.wait_for()
    ws.write("go", "")
    tab.locator(".head .state", has_text="completed").wait_for()
    tab.locator('[data-piece="iterations/2"] .state', has_text="success").wait_for()
    assert first.locator("details").first.get_attribute("open") is not None
    assert tab.locator("#why li").count() >= 3
    tab.set_viewport_size({"width": 1000, "height": 800})
    beyond = "each => each.lastElementChild.getBoundingClientRect().right > each.getBoundingClientRect().right"
    assert not first.locator("summary").first.evaluate(beyond)
    assert "owned" not in tab.title()
    assert page.token not in tab.evaluate("JSON.stringify(performance.getEntries().map((entry) => entry.name))")
    tab.locator("nav a").press("Enter")
    cost = tab.locator('#finished tr[data-name="build"] .cost')
    lines = "each => { const all = new Range(); all.selectNodeContents(each); return all.getClientRects().length }"
    assert (cost.inner_text(), cost.evaluate(lines)) == ("unknown", 1)


def test_P_05_a_question_is_answered_by_keyboard(ws: Workspace, tab: Any, faultless: None) -> None:
    """Tab reaches the button, its focus is visible, Enter opens the dialog, and the loop goes on with the answer."""
    ws.procedure(keys="promise_signals = true\n")
    ws.out(1, f"<question>Which? {HOSTILE}</question>\n")
    ws.side(2, waiting(ws.file("go")))
    ws.rooda("build", "-n", "3")
    page = start(ws)
    tab.goto(page.door)
    tab.get_by_text("Which?").wait_for()
    button = tab.get_by_role("button", name="Answer build")
    for _ in range(5):
        tab.keyboard.press("Tab")
        if button.evaluate("each => each === document.activeElement"):
            break
    assert button.evaluate("each => getComputedStyle(each).outlineStyle") == "solid"
    tab.keyboard.press("Enter")
    tab.get_by_role("dialog").wait_for()
    tab.keyboard.type("Use SQLite – für 日本.")
    tab.keyboard.press("Tab")
    tab.keyboard.press("Tab")
    tab.keyboard.press("Enter")
    tab.locator('tr[data-name="build"][data-state="running"]').wait_for()
    assert "Use SQLite – für 日本." in ws.wait_calls(2)[1].text
    tab.get_by_role("button", name="Stop build").press("Enter")
    tab.get_by_role("dialog").get_by_role("button", name="Stop").press("Enter")
    tab.locator('tr[data-name="build"]:not([data-state="running"])').wait_for()
    assert "owned" not in tab.title()
    width = tab.evaluate("innerWidth")
    tab.set_viewport_size({"width": 390, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390 < width


def test_P_05_a_failed_loop_is_resumed_to_its_end(ws: Workspace, tab: Any) -> None:
    """Resume starts it again, and it ends though the page was killed; the next page has it among the finished runs."""
    ws.procedure("build", gates={"tests": f"test -e {ws.file('green')}"}, loop={"failure_threshold": 1})
    ws.side(2, waiting(ws.file("go")))
    ws.rooda("build", "-n", "2")
    page = start(ws)
    tab.goto(page.door)
    row = tab.locator('#open tr[data-name="build"]')
    row.locator(".state", has_text="failed").wait_for()
    ws.write("green", "")
    tab.get_by_role("button", name="Resume build").press("Enter")
    tab.locator('#open tr[data-name="build"][data-state="running"]').wait_for()
    ws.wait_calls(2)
    os.killpg(page.process.pid, signal.SIGKILL)
    page.process.finish(10)
    tab.locator("#connection", has_text="reconnecting").wait_for()
    ws.write("go", "")
    until(lambda: ws.state() is None)  # it has completed
    tab.goto(start(ws).door)
    tab.locator('#finished tr[data-name="build"] .state', has_text="completed").wait_for()


def test_P_08_a_raised_limit_leads_a_paused_loop_to_its_end(ws: Workspace, tab: Any) -> None:
    """Typed into the dialog; the refusal of a wrong limit is shown in it, in the command's words."""
    ws.rooda("build", "-n", "9", "--max-duration", "0.001")
    page = start(ws)
    tab.goto(page.door)
    tab.locator('#open tr[data-name="build"] .state', has_text="paused").wait_for()
    tab.get_by_role("button", name="Set limits of build").press("Enter")
    dialog = tab.get_by_role("dialog")
    dialog.get_by_label("Iterations").fill("many")
    dialog.get_by_label("Time").fill("10m")
    tab.keyboard.press("Enter")
    dialog.locator("#said", has_text="many").wait_for()
    dialog.get_by_label("Iterations").fill("3")
    tab.keyboard.press("Enter")
    tab.locator('#finished tr[data-name="build"] .state', has_text="completed").wait_for()
    dialog.wait_for(state="hidden")
    assert len(ws.calls) == 3


def test_P_05_a_task_is_retried_and_landed(ws: Workspace, tab: Any, faultless: None) -> None:
    """From failed to completed to landed: the work is on main, and the row is gone."""
    ws.write("a.txt", "one\n")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "first")):
        ws.git(*words)
    ws.exits(1, 1)
    ws.side(3, "echo two > b.txt; git add b.txt; git commit -qm two")
    ws.rooda("tasks", "add", f"Write b.txt {HOSTILE}", "-n", "1", "--gate", "test -f a.txt")
    ws.rooda("tasks", "run", "-j", "1")
    page = start(ws)
    tab.goto(page.door)
    tab.get_by_text("1. Write b.txt <script>").wait_for()
    tab.get_by_role("button", name="Retry task 1").press("Enter")
    tab.locator('#open tr[data-name="1"] .state', has_text="completed").wait_for()
    tab.get_by_role("button", name="Land all completed tasks").press("Enter")
    dialog = tab.get_by_role("dialog")
    dialog.get_by_role("button", name="Land").press("Enter")
    dialog.locator("#said", has_text="landed").wait_for()
    dialog.get_by_role("button", name="Close").press("Enter")
    tab.locator('#open tr[data-name="1"]').wait_for(state="detached")
    assert ws.git("show", "main:b.txt") == "two\n"
    assert "owned" not in tab.title()


def test_P_05_a_forged_origin_is_refused(ws: Workspace, tab: Any) -> None:
    """A page of another site in the same browser can neither act, nor read, nor frame it, though a cookie is there."""
    ws.side(1, waiting(ws.file("go")))
    ws.start("build", "-n", "1")
    ws.wait_calls(1)
    page = start(ws)
    tab.goto(page.door)
    tab.locator('tr[data-state="running"]').wait_for()
    target, entry = f"{page.origin}{page.base}do", page.button("build", "stop")
    field = f"""<input name='{{"do":"stop","id":"{entry}","a":"' value='"}}'>"""
    forged = f"""<iframe src="{page.origin}{page.base}"></iframe>
        <form method="post" enctype="text/plain" action="{target}" target="_blank">{field}</form>"""
    tried = """async ([address, body, mode]) => {
        const options = body ? { method: "POST", body, headers: { "content-type": "text/plain" } } : {};
        try { return (await (await fetch(address, { credentials: "include", mode, ...options })).text()).length; }
        catch { return -1; }
    }"""
    with elsewhere(forged) as other:
        tab.goto(other)
        body = f'{{"do": "stop", "id": "{entry}"}}'
        assert tab.evaluate(tried, [target, body, "cors"]) == -1
        assert tab.evaluate(tried, [target, body, "no-cors"]) in (-1, 0)
        assert tab.evaluate(tried, [f"{page.origin}{page.base}data", "", "cors"]) == -1
        assert tab.frames[1].evaluate("document.body?.innerText ?? ''").find("build") == -1
        with tab.context.expect_page() as opened:
            tab.evaluate("document.forms[0].submit()")
        opened.value.get_by_text("The request comes from another site.").wait_for()
    assert page.rows()["open"][0]["state"] == "running"
    ws.write("go", "")
