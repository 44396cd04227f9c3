"""Makes the screenshots in docs/: real loops in a temporary folder, the real page, the system's Chromium.

    python tools/screenshots.py            docs/page-*.png
    python tools/screenshots.py FOLDER     every view at 390, 820 and 1440 pixels, dark and light, to look at

It needs the extra `page`, Playwright (`pip install playwright`) and Chromium (`apt-get install chromium`).
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WIDTHS = {"phone": 390, "tablet": 820, "desktop": 1440}
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync"]  # fmt: skip
AGENT = """#!/usr/bin/env python3
import json, os, sys, time
sys.stdin.read()
n = int(open(".calls").read()) + 1 if os.path.exists(".calls") else 1
open(".calls", "w").write(str(n))
def say(text):
    content = [{"type": "text", "text": text}]
    print(json.dumps({"type": "assistant", "message": {"id": str(time.time()), "content": content}}), flush=True)
say("I read the open issue and the failing test.")
say("The date is parsed twice. I change parse() in src/dates.py and keep the old tests.")
os.makedirs("src", exist_ok=True)
open("src/dates.py", "w").write(f"def parse(text):\\n    return text.strip()[:{n}]\\n")
time.sleep(0.3)
if n == %WAITS%:
    say("Now I run the tests of the import, which take a few minutes.")
    time.sleep(600)
usage = {"input_tokens": 2100 + n * 731 % 4000, "output_tokens": 1800 + n * 977 % 5000,
         "cache_read_input_tokens": 21000 + n * 5113 % 30000}
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": %RESULT%,
                  "total_cost_usd": 0.14 + n * 7 % 23 / 100, "usage": usage}))
"""
SETTINGS = """[loop]
agent = "claude"
safety = "snapshot"
failure_threshold = 2

[agents.claude]
command = "./agent"
"""


class Place:
    """A folder with workspaces, and a home of its own."""

    def __init__(self, root: str) -> None:
        self.root, self.running = root, list[subprocess.Popen[bytes]]()
        self.env = {**os.environ, "HOME": f"{root}/home", "XDG_STATE_HOME": "", "NO_COLOR": "1"}
        for name in ("ROODA_STATE_HOME", "ROODA_RUN", "BROWSER", "DISPLAY"):
            self.env.pop(name, None)
        os.makedirs(f"{root}/home")
        Path(root, "home", ".gitconfig").write_text("[user]\n\tname = you\n\temail = you@example.invalid\n")

    def workspace(self, name: str, waits: int = 0, result: str = "Done.", gates: str = "") -> str:
        path = f"{self.root}/home/{name}"
        os.makedirs(path)
        agent = AGENT.replace("%WAITS%", str(waits)).replace("%RESULT%", json.dumps(result))
        Path(path, "agent").write_text(agent)
        os.chmod(f"{path}/agent", 0o755)
        Path(path, "rooda.toml").write_text(SETTINGS + gates)
        Path(path, ".gitignore").write_text(".rooda\n.calls\n")
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "begin"]):
            subprocess.run(["git", *words], cwd=path, env=self.env, check=True)
        return path

    def rooda(self, path: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "rooda", *words]
        return subprocess.run(command, cwd=path, env=self.env, text=True, capture_output=True, check=False)

    def start(self, path: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-P", "-m", "rooda", *words]
        null = subprocess.DEVNULL
        self.running.append(subprocess.Popen(command, cwd=path, env=self.env, stdin=null, stdout=null, stderr=null))
        return self.running[-1]

    def close(self) -> None:
        for each in reversed(self.running):
            each.send_signal(signal.SIGTERM)
        for each in self.running:
            each.wait(30)


def gate(procedure: str, name: str, command: str) -> str:
    head = f"[[procedures.{procedure}.quality_gates]]\n"
    return f"{head}name = {json.dumps(name)}\ncommand = {json.dumps(command)}\n"


def loops(place: Place) -> None:
    """Make three loops that run, wait and ask, and some that have ended."""
    green = gate("build", "tests", "test -s src/dates.py") + gate("build", "lint", "true")
    red = gate("build", "tests", "echo '2 of 48 tests failed: test_leap_day, test_utc'; exit 1")
    shop = place.workspace("shop", 5, gates=green)
    place.start(shop, "build", "-n", "8")
    ask = "<question>Should dates without a zone be read as UTC, or refused?</question>"
    place.rooda(place.workspace("billing", result=ask, gates=green), "build", "-n", "5")
    place.rooda(place.workspace("docs-site", gates=green), "build", "-n", "3", "--max-cost", "0.30")
    place.rooda(place.workspace("importer", gates=red), "build", "-n", "5")
    for name in ("search", "mobile-app"):
        place.rooda(place.workspace(name, gates=green), "build", "-n", "2")


def others(place: Place) -> None:
    """Add many finished runs, long names, German and Japanese text, and tasks."""
    long = "extremely-long-workspace-name-that-somebody-chose-because-the-team-liked-it-at-the-time"
    german = "Sollen Überweisungen mit ungültiger Prüfziffer gelöscht oder als „fehlerhaft“ aufgehoben werden?"
    japanese = "日付にタイムゾーンがない場合、UTC として扱いますか?それともエラーにしますか?"
    many = place.workspace("nightly")
    for _ in range(54):
        place.rooda(many, "build", "-n", "1")
    place.rooda(place.workspace(long), "build", "-n", "1")
    place.rooda(place.workspace("überweisungen", result=f"<question>{german}</question>"), "build", "-n", "3")
    place.rooda(place.workspace("日付の処理", result=f"<question>{japanese}</question>"), "build", "-n", "3")
    listed = place.workspace("tasks", gates=gate("build", "tests", "false"))
    for text in ("Rechnungsnummern lückenlos vergeben", "支払い期限を祝日に合わせる", f"{long} {long}"):
        place.rooda(listed, "tasks", "add", text, "-n", "2")
    place.rooda(listed, "tasks", "add", "A task that fails", "-n", "1", "--priority", "high")
    place.rooda(listed, "tasks", "run", "-j", "1", "--max-cost", "0.30")


@contextmanager
def page(place: Place, path: str) -> Iterator[str]:
    """Serve the page; gives its address."""
    command = [sys.executable, "-P", "-m", "rooda", "page", "--no-browser"]
    process = subprocess.Popen(command, cwd=path, env=place.env, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        yield process.stdout.readline().split()[1]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


def shoot(address: str, target: str, views: list[tuple[str, str, str]], whole: bool = False) -> None:
    """Photograph views: name of the file, width, scheme; the overview, or with `run` in the name a run."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        for name, width, scheme in views:
            size: Any = {"width": WIDTHS[width], "height": 844 if width == "phone" else 900}
            scale = 2 if width == "phone" else 1
            context = browser.new_context(viewport=size, color_scheme=scheme, device_scale_factor=scale)
            tab = context.new_page()
            tab.goto(address)
            if "run" in name:
                tab.locator(f"tr[data-state={'failed' if 'failed' in name else 'running'}] a").first.click()
                tab.locator(".u-over").wait_for(timeout=5000)
            if "dialog" in name:
                tab.locator("button[data-do=set]").first.click()
            tab.wait_for_timeout(700)
            tab.screenshot(path=f"{target}/{name}.png", full_page=whole)
            context.close()
        browser.close()


FOR_DOCS = [("page-light", "desktop", "light"), ("page-run", "desktop", "light"), ("page-phone", "phone", "dark")]


def main(target: str) -> None:
    with tempfile.TemporaryDirectory() as root:
        place = Place(root)
        try:
            if target == str(ROOT / "docs"):
                _docs(place, target)
            else:
                _all(place, target)
        finally:
            place.close()


def _docs(place: Place, target: str) -> None:
    loops(place)
    time.sleep(3)
    with page(place, place.root) as address:
        shoot(address, target, FOR_DOCS)


def _all(place: Place, target: str) -> None:
    os.makedirs(target, exist_ok=True)
    with page(place, place.root) as address:
        shoot(address, target, [(f"none-{width}-{scheme}", width, scheme) for width, scheme in BOTH])
    loops(place)
    with page(place, place.root) as address:
        shoot(address, target, [(f"few-{width}-{scheme}", width, scheme) for width, scheme in BOTH])
        shoot(address, target, [(f"run-{width}-{scheme}", width, scheme) for width, scheme in BOTH], whole=True)
        shoot(address, target, [(f"run-failed-{width}-{scheme}", width, scheme) for width, scheme in BOTH], whole=True)
        shoot(address, target, [(f"dialog-{width}-{scheme}", width, scheme) for width, scheme in BOTH])
    others(place)
    with page(place, place.root) as address:
        shoot(address, target, [(f"many-{width}-{scheme}", width, scheme) for width, scheme in BOTH], whole=True)


BOTH = [(width, scheme) for width in WIDTHS for scheme in ("light", "dark")]

if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "docs"))
