"""`rooda export RUN -o FILE`: a run as one HTML file that needs no script, and in which no text is HTML."""

import json
import os
import shutil
import stat
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rooda.page.texts import text_of
from rooda.settings.where import Where
from tests.kit.background import kill_all
from tests.kit.kinds import KINDS
from tests.kit.loops import Loops
from tests.kit.workspace import Ran, Workspace, until

KEY = "sk-ant-api03-" + "abcdefghijKLMNOPQRST0123456789" * 2
NAMED = "a-password-of-the-project"
SAID = "<script>alert(1)</script><img src=x onerror=alert(2)> 日本語 Grüße \\u001b[31m\\u202e red "
SAID += KEY[:20] + "\\u001b[0m" + KEY[20:]
ACTIVE = ("script", "img", "iframe", "object", "embed", "link", "base", "form", "a")
WORDS = {"goal": ("--yes",)}


class Elements(HTMLParser):
    """The elements of a page, their attributes, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


def exported(ws: Workspace, run: str, *words: str) -> tuple[Ran, str]:
    """The command and the file that it wrote; the file has nothing that could run, load or lead elsewhere."""
    path = Path(ws.path, "run.html")
    path.unlink(missing_ok=True)
    ran = ws.rooda("export", run, "-o", "run.html", *words)
    if not path.exists():
        return ran, ""
    page = path.read_bytes().decode()
    elements = Elements(page)
    assert not {*ACTIVE} & {tag for tag, _ in elements.found}
    for _, attributes in elements.found:
        assert not any(name.startswith("on") or name in ("src", "href", "style", "action") for name in attributes)
    assert all(each.isprintable() or each == "\n" for each in page.replace("\t", "")), "control characters"
    policies = [each["content"] for tag, each in elements.found if tag == "meta" and "http-equiv" in each]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"] and page.startswith("<!doctype html>")
    return ran, page


@pytest.fixture
def run(ws: Workspace) -> Workspace:
    """A run of two iterations, the second with a red gate, with markup and secrets wherever an agent can write."""
    agent = '[loop]\nagent = "mine"\n[agents.mine]\ncommand = "sh agent.sh"\noutput = "claude"\n'
    gates = '[[loop.quality_gates]]\nname = "<b>bold</b>"\ncommand = "cat said; [ $ROODA_ITERATION != 2 ]"\n'
    ws.config(f"{agent}{gates}")
    ws.write("said", f"<i>gate</i> {NAMED} {KEY}\n")
    record = '{"type":"assistant","message":{"content":[{"type":"text","text":"' + SAID + '"}]}}\n'
    record += '{"type":"result","subtype":"success","is_error":false,"result":"x","total_cost_usd":0.5,'
    record += '"usage":{"input_tokens":1000,"output_tokens":500}}'
    ws.write("record", record + "\n")
    ws.write("agent.sh", "cat record\n")
    ws.env["PROJECT_PASSWORD"] = NAMED
    assert ws.rooda("build", "-n", "2").code == 1
    return ws


def test_P_09_a_run_as_one_file(run: Workspace) -> None:
    """Iterations, gates, costs, reasons and the agent's words; secrets are stars by name and by form."""
    (row,) = json.loads(run.rooda("runs", "--json").out)
    ran, page = exported(run, "build")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    text = Elements(page).text
    words = ("<script>alert(1)</script>", "日本語 Grüße  red", "<i>gate</i>", "Gate <b>bold</b>: exit 1")
    for shown in (*words, "$1.00", "3,000", row["run"], "Iteration 2 failed", "every gate"):
        assert shown in text
    assert NAMED not in page and KEY not in page and "***" in page
    assert stat.S_IMODE(Path(run.path, "run.html").stat().st_mode) == 0o600
    assert [each["class"] for tag, each in Elements(page).found if tag == "rect"] == ["bar"] * 4
    assert exported(run, row["run"])[1] == page  # by its ID, and always the same


def test_P_09_the_diff_of_each_iteration(ws: Workspace) -> None:
    """From the snapshots, as text: names and content of files are no HTML, and secrets are stars; none without them."""
    ws.git("init", "-q")
    ws.write("old", "1\n")
    ws.git("add", "old")
    ws.git("commit", "-qm", "first")
    ws.side(1, f"echo '<u>one</u> {KEY}' >old; echo 2 >'<i>&.txt'")
    ws.side(2, "seq 100000 >large")
    assert ws.rooda("build", "-n", "3", "--safety", "snapshot").code == 0
    ran, page = exported(ws, "build")
    elements = Elements(page)
    lines = {each["class"] for tag, each in elements.found if tag == "span" and each.get("class")}
    assert ran.code == 0 and {"added", "removed", "place", "file"} <= lines and KEY not in page
    added = ("+<u>one</u> sk-***", "diff --git a/<i>&.txt b/<i>&.txt", "+100\n")
    for shown in (*added, "-1\n", "To see all: rooda diff 2"):
        assert shown in elements.text
    assert "+100000\n" not in elements.text and elements.text.count("Changes (diff)") == 2
    assert ws.rooda("build", "-n", "1", "--fresh").code == 0
    assert "Changes (diff)" not in exported(ws, "build")[1]


def test_P_02_colours_do_not_hide_a_secret_from_the_mask(tmp_path: Path) -> None:
    """What the page shows of a file is masked after its colours are removed."""
    folder = tmp_path / ".rooda" / "runs" / "s"
    folder.mkdir(parents=True)
    (folder / "g.out").write_text(f"{KEY[:20]}\x1b[0m{KEY[20:]}\n")
    one = {"gates": [{"session": "s", "output": "g.out"}], "calls": []}
    found = {"sessions": ["s"], "snapshots": False, "iterations": [one]}
    asked = {"session": "s", "what": "gate", "file": "g.out"}
    assert text_of(found, Where(str(tmp_path)), asked, ()).strip() == "sk-***"


def test_P_09_nothing_is_overwritten(run: Workspace) -> None:
    """A file that exists stays as it is without --force; what isn't a file stays in any case."""
    path = Path(run.path, "mine.html")
    path.write_text("mine")
    ran = run.rooda("export", "build", "-o", "mine.html")
    assert ran.code == 2 and "mine.html exists" in ran.err and "--force" in ran.err and path.read_text() == "mine"
    assert run.rooda("export", "build", "-o", "mine.html", "--force").code == 0
    assert path.read_text().startswith("<!doctype html>")
    os.mkfifo(run.file("pipe"))
    os.symlink("nowhere", run.file("dangling"))
    for name in ("pipe", "dangling", "."):
        assert run.rooda("export", "build", "-o", name, "--force").code == 2
    assert run.rooda("export", "build", "-o", "none/x.html").code == 1
    assert os.path.islink(run.file("dangling")) and not os.path.exists(run.file("nowhere"))


@pytest.mark.parametrize("word", ["../../etc", "/etc/passwd", "nobody", "", "29990101T000000Z-x-1", "a\x1b[31m", "."])
def test_P_09_a_run_that_is_not_there(run: Workspace, word: str) -> None:
    """One sentence, exit 2, no file."""
    ran, page = exported(run, word)
    assert ran.code == 2 and not page and "There is no run" in ran.err and "\x1b" not in ran.err
    assert len(ran.err.splitlines()) == 2


@pytest.mark.parametrize("kind", [*KINDS])
def test_P_09_every_kind(ws: Workspace, kind: str) -> None:
    """By the ID and by the words that `rooda runs` prints; the file has the run's reasons."""
    assert getattr(Loops(ws), kind)(*WORDS.get(kind, ())).code == 0
    (row,) = json.loads(ws.rooda("runs", "--json").out)
    what = ws.rooda("runs").lines[1].split("  ")[1]
    pages = [exported(ws, word)[1] for word in (row["run"], what)]
    assert pages[0] == pages[1]
    assert row["run"] in pages[0] and "Run ended" in Elements(pages[0]).text


def test_P_09_a_run_that_goes_on_and_one_that_was_killed(ws: Workspace) -> None:
    """It is exported as it stands, also from another folder by its ID; a resume is part of the run."""
    ws.procedure("build")
    ws.side(2, 'echo half-said; touch "$FAKE/here"; sleep 60')
    ws.start("build", "-n", "3")
    until(lambda: os.path.exists(f"{ws.fake}/here"), what="the second call")
    text = Elements(exported(ws, "build")[1]).text
    assert "running" in text and "half-said" in text
    kill_all(ws)
    text = Elements(exported(ws, "build")[1]).text
    assert "interrupted" in text and "cut off" in text
    assert ws.rooda("resume", "build").code == 0
    (row,) = json.loads(ws.rooda("runs", "--json").out)
    page = exported(ws, "build")[1]
    assert row["sessions"] == 2 and "completed" in Elements(page).text and "cut off" in Elements(page).text
    elsewhere = Path(ws.root, "elsewhere")
    elsewhere.mkdir()
    ran = ws.rooda("export", row["run"], "-o", str(elsewhere / "x.html"), cwd=str(elsewhere))
    assert ran.code == 0 and (elsewhere / "x.html").read_text() == page
    assert ws.rooda("export", "build", "-o", "y.html", cwd=str(elsewhere)).code == 2


def test_P_09_hostile_files_in_the_run_folder(run: Workspace) -> None:
    """Links, pipes, bytes, a line of ten megabytes and edited events: each costs its own text, nothing else."""
    run.damages_events = True
    (folder,) = Path(run.path, ".rooda", "runs").iterdir()
    secret = Path(run.root, "private")
    secret.write_text("private words\n")
    (folder / "0001-iteration.out").unlink()
    (folder / "0001-iteration.out").symlink_to(secret)
    (folder / "0001-gate-1.out").unlink()
    os.mkfifo(folder / "0001-gate-1.out")
    (folder / "0002-gate-1.out").write_bytes(b"begin\n" + b"\x00\xff\x1b]0;x\x07<u>" * 900_000 + b"\nthe last line\n")
    (folder / "0002-iteration.out").write_bytes(b"x" * 10_000_000)
    with (folder / "events.jsonl").open("a") as log:
        log.write('{"event": "gate.ended", "ts": "x", "gate": ["<s>"], "output": "../../../private", "verdict": 3}\n')
        log.write('{"event": "agent.started", "ts": "2026-01-01", "transcript": "/etc/passwd", "display": 9}\n')
        log.write("y" * 5_000_000 + "\n[]\n\x00\n")
    ran, page = exported(run, "build")
    assert ran.code == 0 and "not signed by you" in ran.err and "not signed by the user" in page
    text = Elements(page).text
    assert "private words" not in page and "root:" not in page
    assert "can't be read" in text and "the last line" in text and "Only the end is shown" in text
    assert len(page) < 3_000_000
    shutil.move(folder, run.file("moved"))
    folder.symlink_to(run.file("moved"))
    ran, page = exported(run, "build")
    assert ran.code == 2 and "is a link" in ran.err and not page
