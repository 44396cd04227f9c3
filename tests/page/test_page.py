"""`rooda page`: what it shows equals what the commands print, live; what it does is what the commands do."""

import asyncio
import json
import os
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from rooda.page import order
from tests.kit.background import KINDS, begin, let_go
from tests.kit.page import Page, awaited, needs_extra, start
from tests.kit.processes import alive, switches
from tests.kit.workspace import Workspace, until, waiting

pytestmark = needs_extra
KEY = "sk-ant-api03-" + "abcdefghijKLMNOPQRST0123456789" * 2
HOSTILE = "<script>document.title='owned'</script><img src=x onerror=document.title='owned'>\x1b[31m\u202e"


def printed(ws: Workspace, *words: str, cwd: str = "") -> Any:
    """What a command prints as JSON."""
    return json.loads(ws.rooda(*words, "--json", cwd=cwd).out)


def second(ws: Workspace) -> str:
    """Another workspace of the same user, with the same settings."""
    path = os.path.join(ws.root, "other")
    os.makedirs(path)
    for name in ("rooda.toml", "prompts"):
        os.symlink(ws.file(name), os.path.join(path, name)) if name == "prompts" else Path(path, name).write_text(
            ws.read(name)
        )
    return path


def steady(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows without what differs from one moment to the next."""
    return [{key: value for key, value in row.items() if key not in ("elapsed", "details")} for row in rows]


def test_P_01_the_overview_has_the_rows_of_the_commands(ws: Workspace) -> None:
    """All workspaces of the user: open loops as `rooda status --all --json` has them, ended ones as `rooda runs`."""
    ws.procedure("audit")
    other = second(ws)
    ws.side(3, waiting(ws.file("go")))
    ws.rooda("audit", "-n", "1")
    ws.rooda("build", "-n", "1", cwd=other)
    ws.start("build", "-n", "5")
    ws.wait_calls(3)
    page = start(ws)
    shown = page.rows()
    assert steady(shown["open"]) == steady(printed(ws, "status", "--all"))
    assert [row["name"] for row in shown["open"]] == ["build"]
    runs = [*printed(ws, "runs", cwd=other), *printed(ws, "runs", "audit")]
    assert shown["finished"] == sorted(runs, key=lambda row: str(row["run"]), reverse=True)
    html = page.ask("").text
    assert all(row["run"] in html for row in (*shown["open"], *shown["finished"]))
    ws.write("go", "")


def test_P_01_only_the_newest_runs_are_listed(ws: Workspace) -> None:
    """Fifty finished runs, the newest first, each with its own sessions only."""
    for number in range(53):
        folder = f".rooda/runs/20260101T0000{number:02d}Z-build-{number + 1}"
        facts = {"v": 1, "ts": f"2026-01-01T00:00:{number:02d}.000Z", "loop": "ooda", "procedure": "build", "seq": 1}
        end = {"reason": "max-iterations", "status": "completed", "state": "completed", "exit_code": 0, "signal": 0}
        events = [{**facts, "event": "run.started"}, {**facts, "event": "run.ended", **end, "iterations": 1}]
        ws.write(f"{folder}/events.jsonl", "".join(json.dumps(each) + "\n" for each in events))
    ws.damages_events = True
    found = [row["run"] for row in start(ws).rows()["finished"]]
    assert found == [row["run"] for row in printed(ws, "runs")][:50]


def test_P_01_a_browser_is_told_and_never_asks(ws: Workspace) -> None:
    """The stream brings the row when a loop begins and when it has ended; while nobody listens, the server sleeps."""
    page = start(ws)
    with page.stream() as stream:
        stream.next("pieces")
        ws.side(1, waiting(ws.file("go")))
        running = ws.start("build", "-n", "1")
        assert 'data-state=\\"running\\"' in json.dumps(stream.until("pieces", "open/"))
        ws.write("go", "")
        assert "finished/" in json.dumps(stream.until("pieces", "completed"))
        running.finish()
    until(lambda: _sleeps(page.process.pid), 20, "the server to sleep")


def _sleeps(pid: int) -> bool:
    """True if the process is not woken for a second."""
    before = switches(pid)
    time.sleep(1)
    return switches(pid) - before <= 1


def test_P_01_a_port_in_use_is_one_sentence(ws: Workspace) -> None:
    """Exit code 2; the same for an address that others reach without --allow, and for one that is not here."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = ws.rooda("page", "--port", str(port))
    assert (ran.code, f"Port {port} of 127.0.0.1" in ran.err, "Traceback" in ran.err) == (2, True, False)
    for host, words in (("0.0.0.0", "--allow"), ("192.0.2.1", "--allow"), ("no.such.invalid", "--allow")):
        ran = ws.rooda("page", "--host", host)
        assert (ran.code, words in ran.err) == (2, True)
    assert ws.rooda("page", "--host", "192.0.2.1", "--allow").code == 2


def test_P_01_another_address_needs_to_be_allowed(ws: Workspace) -> None:
    """With --allow the page answers on all addresses; a Host with a foreign name is still refused."""
    page = Page(ws.start("page", "--no-browser", "--host", "0.0.0.0", "--allow")).enter()
    assert page.ask("").status == 200
    assert page.ask("", Host=f"10.1.2.3:{page.port}").status == 200
    assert page.ask("", Host=f"evil.example:{page.port}").status == 421


def test_P_01_a_missing_extra_is_one_sentence(ws: Workspace) -> None:
    """With the line for pip, and exit code 2."""
    hiding = "import sys\nclass Hides:\n    def __init__(self, inner): self.inner = inner\n"
    hiding += "    def find_spec(self, name, path=None, target=None):\n"
    hiding += "        return None if name == 'uvicorn' else self.inner.find_spec(name, path, target)\n"
    hiding += "    def __getattr__(self, name): return getattr(self.inner, name)\n"
    hiding += "sys.meta_path[:] = [Hides(each) for each in sys.meta_path]\n"
    Path(ws.root, "hiding").mkdir()
    Path(ws.root, "hiding", "sitecustomize.py").write_text(hiding)
    ran = ws.rooda("page", env={"PYTHONPATH": f"{ws.root}/hiding:{os.path.dirname(sys.path[0]) and os.getcwd()}"})
    assert (ran.code, "pip install 'rooda[page]'" in ran.err, "Traceback" in ran.err) == (2, True, False)


def finished_run(ws: Workspace) -> None:
    """A repository with a run of two iterations; the first fails a gate; its agent says and names hostile things."""
    ws.git("init", "-q")
    ws.git("commit", "-qm", "first", "--allow-empty")
    ws.procedure(
        "build", gates={"tests": f"cat f; echo {KEY}; echo '{HOSTILE}'; test -e f"}, loop={"safety": "snapshot"}
    )
    ws.out(1, f"{HOSTILE} {KEY} a-password-of-mine\n")
    ws.side(2, f"echo \"{HOSTILE.replace(chr(27), '')}\" > f; echo x > '<img src=x onerror=alert(1)>'")
    ws.rooda("build", "-n", "2")


def test_P_02_a_runs_view_has_what_the_commands_print(ws: Workspace) -> None:
    """Its row, its iterations' usage, and each decision equal `--json` of runs, usage and why."""
    finished_run(ws)
    page = start(ws)
    facts = page.ask(f"{page.run_path('build')}data").json
    assert [facts["row"]] == printed(ws, "runs", "build")
    usage = printed(ws, "usage", "build", "--by", "iteration")
    assert [each["usage"] for each in facts["iterations"] if each["usage"]] == (
        usage if isinstance(usage, list) else usage["rows"]
    )
    decisions = [{key: value for key, value in each.items() if key != "session"} for each in facts["why"]]
    assert decisions == printed(ws, "why", "build")
    assert [each["state"] for each in facts["iterations"]] == ["failure", "success"]
    assert [gate["verdict"] for each in facts["iterations"] for gate in each["gates"]] == ["exit 1", "pass"]
    html = page.ask(page.run_path("build")).text
    assert all(each["rule"].partition('"')[0][:30] in html.replace("&#x27;", "'") for each in decisions)


def sources(page: Page, html: str) -> dict[str, str]:
    """The texts of a run that are loaded when they are opened, by what they are and their number on the page."""
    parts = [part.partition('"')[0].replace("&amp;", "&") for part in html.split('data-src="')[1:]]
    return {f"{part.partition('what=')[2].partition('&')[0]}{at}": part for at, part in enumerate(parts)}


def test_P_02_texts_are_masked_and_never_html(ws: Workspace) -> None:
    """Gates' output, words, diffs and names are plain text, with secrets by name and by form replaced by stars."""
    finished_run(ws)
    page = start(ws, env={"MY_PASSWORD": "a-password-of-mine"})
    path = page.run_path("build")
    html = page.ask(path).text
    found = {name: page.ask(f"{path}{source}") for name, source in sources(page, html).items()}
    assert {answer.headers["content-type"] for answer in found.values()} == {"text/plain; charset=utf-8"}
    assert {answer.status for answer in found.values()} == {200}
    texts = "".join(answer.text for answer in found.values())
    assert "<script>" in texts
    assert any("+<script>" in answer.text for name, answer in found.items() if name.startswith("diff"))
    everything = texts + html + page.ask(f"{path}data").text + page.ask("").text
    assert KEY not in everything
    assert "a-password-of-mine" not in everything
    assert "\x1b" not in texts
    assert "\u202e" not in texts
    for shown in (html, page.ask("").text):
        assert "<script>document" not in shown
        assert "<img" not in shown


def test_P_02_only_the_runs_own_files_are_read(ws: Workspace) -> None:
    """A file outside of the run, one that is not named in its log, or a session of another run: 404."""
    ws.rooda("build", "-n", "1")
    page = start(ws)
    path = page.run_path("build")
    session = path.split("/")[2]
    for query in (
        "what=gate&file=events.jsonl",
        "what=words&file=../../../rooda.toml",
        "what=words&file=/etc/passwd",
    ):
        assert page.ask(f"{path}file?{query}&session={session}").status == 404
        assert page.ask(f"{path}file?{query}&session=../../x").status == 404
    key = path.split("/")[1]
    for other in ("nosuch", "20260101T000000Z-build-1", "..%2f..%2fx", "%00"):
        assert page.ask(f"run/{key}/{other}/").status == 404
    assert "writes to a temporary folder" in page.ask(f"run/{key}/nosuch/").text
    assert page.ask(f"run/0123456789abcdef/{session}/").status == 404


def test_P_02_without_snapshots_a_diff_names_the_setting(ws: Workspace) -> None:
    """It says that there are none, and how to get them."""
    ws.git("init", "-q")
    ws.rooda("build", "-n", "1")
    page = start(ws)
    path = page.run_path("build")
    diff = next(each for name, each in sources(page, page.ask(path).text).items() if name.startswith("diff"))
    said = page.ask(f"{path}{diff}").text
    assert "no snapshots" in said
    assert 'safety = "snapshot"' in said


def test_P_02_the_agents_words_arrive_while_it_works(ws: Workspace) -> None:
    """Also those on a line of ten megabytes, of which the end is kept."""
    ws.side(
        1, f"echo first words; head -c 10000000 /dev/zero | tr '\\0' x; echo; echo last words\n{waiting(ws.file('go'))}"
    )
    ws.start("build", "-n", "1")
    ws.wait_calls(1)
    page = start(ws)
    path = until(lambda: page.run_path("build"))
    with page.stream(f"{path}events?seen=0") as stream:
        words = stream.until("words", "last words")
        assert len(words["text"]) <= 65_536
        assert page.ask(path).status == 200
        ws.write("go", "")
        assert "completed" in json.dumps(stream.until("pieces", "completed"))


def test_P_04_killing_it_harms_nothing_and_term_ends_it(ws: Workspace) -> None:
    """SIGTERM ends it with streams open, SIGKILL at once; the loop goes on either way."""
    ws.side(1, waiting(ws.file("go")))
    loop = ws.start("build", "-n", "1")
    ws.wait_calls(1)
    one, other = start(ws), start(ws)
    with one.stream() as stream, one.stream(f"{one.run_path('build')}events") as second_stream:
        stream.next("pieces")
        second_stream.next("pieces")
        one.process.signal(signal.SIGTERM)
        assert one.process.finish(10) == 0
    assert one.process.err == ""
    with other.stream() as stream:
        stream.next("pieces")
        os.kill(other.process.pid, signal.SIGKILL)
        assert other.process.finish(10) == -signal.SIGKILL
    assert alive(loop.pid)
    ws.write("go", "")
    assert loop.finish() == 0


def test_P_07_metrics_need_no_token_and_have_no_names(ws: Workspace) -> None:
    """/metrics answers anybody with the text of `rooda metrics`; names are only for who has the token."""
    ws.rooda("build", "-n", "1")
    page = start(ws)
    answer = page.ask("/metrics", cookie="")
    assert (answer.status, answer.text) == (200, ws.rooda("metrics").out)
    assert "build" not in answer.text
    assert page.ask("metrics", cookie="").status == 401


DAMAGED = [
    {"event": "run.started", "ts": "x", "loop": 7, "limits": []},
    {"event": "run.started", "gates": 3, "max_iterations": "x"},
    {"event": "agent.ended", "usage": {"input": "x"}, "cost": [], "transcript": 7},
    {"event": "run.ended", "state": {}, "summary": {"iterations": []}, "exit_code": "x"},
    {"event": "gate.ended", "display": "<b>", "gate": {}, "output": 5, "verdict": []},
    {"event": "iteration.ended", "display": 1e99, "outcome": {}, "level": []},
]


def test_P_02_a_damaged_log_disturbs_no_other_loop(ws: Workspace) -> None:
    """Logs with wrong types, of a loop that is shown beside others: these stay visible, and the page answers."""
    ws.damages_events = True
    ws.procedure("audit")
    ws.rooda("audit", "-n", "1")
    other = second(ws)
    ws.rooda("build", "-n", "1", cwd=other)
    page = start(ws)
    always = {"v": 1, "ts": "2026-01-01T00:00:00Z", "loop": "ooda"}
    for number, event in enumerate(DAMAGED):
        lines = [json.dumps(always | each) for each in ({"event": "run.started"}, event)]
        run = f"20270101T0000{number:02d}Z-build-{number + 1}"
        ws.write(f".rooda/runs/{run}/events.jsonl", "\n".join([*lines, "[" * 2000, "\0" * 100, ""]))
        names = {row["name"] for rows in page.rows().values() for row in rows}
        assert {"audit", "build"} <= names
        key = page.run_path("audit").split("/")[1]
        assert page.ask(f"run/{key}/{run}/").status in (200, 404)
    assert page.ask(page.run_path("audit")).status == 200


def test_P_02_what_is_no_regular_file_is_not_read(ws: Workspace) -> None:
    """A transcript or a log that is a FIFO, a link or a device: nothing of it is shown, and the page never waits."""
    ws.damages_events = True
    ws.procedure("build", gates={"tests": "echo gate-output"})
    ws.procedure("audit")
    for name in ("build", "audit"):
        ws.rooda(name, "-n", "1")
    secret = Path(ws.root, "secret")
    secret.write_text("nothing for the page\n")
    page = start(ws)
    path, session = page.run_path("build"), page.run_path("build").split("/")[2]
    folder = Path(ws.file(f".rooda/runs/{session}"))
    for put in (os.mkfifo, lambda place: os.symlink(secret, place), lambda place: os.symlink("/dev/zero", place)):
        for what, name in (("words", "0001-iteration.out"), ("gate", "0001-gate-1.out")):
            (folder / name).unlink()
            put(folder / name)
            answer = page.ask(f"{path}file?what={what}&session={session}&file={name}")
            assert "nothing for the page" not in answer.text
            assert "\0" not in answer.text
    for put in (os.mkfifo, lambda place: os.symlink("/dev/zero", place)):
        (folder / "events.jsonl").unlink()
        put(folder / "events.jsonl")
        assert "audit" in {row["name"] for row in page.rows()["finished"]}
        until(lambda: page.ask(path).status == 404)
    assert page.ask(page.run_path("audit")).status == 200


def test_P_01_a_task_that_never_ran_is_shown(ws: Workspace) -> None:
    """Also by a page that is started in another folder."""
    ws.git("init", "-q", "-b", "main")
    ws.git("add", "-A")
    ws.git("commit", "-qm", "first")
    ws.rooda("tasks", "add", "Later")
    page = Page(ws.start("page", "--no-browser", cwd=ws.home)).enter()
    assert steady(page.rows()["open"]) == steady(printed(ws, "tasks"))
    assert "1. Later" in page.ask("").text


# Actions


def test_P_08_a_running_loop_is_steered(ws: Workspace) -> None:
    """Pause, continue, a note, a new limit and stop, each from the page."""
    ws.side(1, waiting(ws.file("go")))
    loop = ws.start("build", "-n", "2")
    ws.wait_calls(1)
    page = start(ws)
    entry = page.button("build", "pause")
    assert page.act("pause", entry).status == 200
    awaited(page, "build", suspended=True)
    assert page.act("pause", entry).status == 422
    assert page.act("continue", entry).status == 200
    awaited(page, "build", suspended=False)
    assert page.act("say", entry, text=f"--now 'prefer' $(SQLite) {HOSTILE}").status == 200
    assert page.act("set", entry, iterations="9", cost="3.50").status == 200
    assert page.act("set", entry).status == 422
    assert page.act("set", entry, iterations="many; touch x").status == 409
    ws.side(4, waiting(ws.file("never")))
    ws.write("go", "")
    ws.wait_calls(2)
    assert "--now 'prefer' $(SQLite)" in ws.calls[1].text
    awaited(page, "build", max_iterations=9)
    ws.wait_calls(4)
    assert page.act("stop", entry).status == 200
    loop.finish()
    assert not ws.exists("x")


def test_P_08_an_answer_resumes_at_once_and_outlives_the_page(ws: Workspace) -> None:
    """The loop continues in a session of its own, with question and answer in its prompt, and the page may end."""
    ws.procedure(keys="promise_signals = true\n")
    ws.out(1, "<question>SQLite or <b>files</b>?</question>\n")
    ws.side(2, waiting(ws.file("go")))
    ws.rooda("build", "-n", "3")
    page = start(ws)
    assert "SQLite or &lt;b&gt;files" in page.ask("").text
    entry = page.button("build", "answer")
    assert page.act("answer", entry, text="   ").status == 422
    assert page.act("answer", entry, text="-n 99; SQLite 日本").status == 200
    ws.wait_calls(2)
    assert "-n 99; SQLite 日本" in ws.calls[1].text
    pid = awaited(page, "build", running=True)["pid"]
    assert os.getsid(pid) != os.getsid(page.process.pid)
    os.killpg(page.process.pid, signal.SIGKILL)
    page.process.finish(10)
    assert alive(pid)
    ws.write("go", "")
    until(lambda: not alive(pid), 30)
    assert len(ws.calls) == 3


def test_P_08_a_raised_limit_resumes_a_paused_loop(ws: Workspace) -> None:
    """A loop that ended at its limit goes on with the new one; a resume without options is refused with its reason."""
    ws.rooda("build", "-n", "9", "--max-duration", "0.001")
    page = start(ws)
    entry = page.button("build", "set")
    before = len(ws.calls)
    assert page.act("set", entry, duration="10m", iterations=str(before + 2)).status == 200
    until(lambda: len(ws.calls) == before + 2, 30)
    assert page.act("resume", "0" * 16).status == 404
    assert page.act("land", entry).status in (404, 422)


def test_P_08_tasks_are_answered_retried_and_landed(ws: Workspace) -> None:
    """A task asks, is answered, and its loop goes on though no `rooda tasks run` was active; then it lands."""
    ws.write("a.txt", "one\n")
    ws.git("init", "-q", "-b", "main")
    ws.git("add", "-A")
    ws.git("commit", "-qm", "first")
    ws.out(1, "<question>Which <i>file</i>?</question>\n")
    ws.side(2, "echo two > b.txt; git add b.txt; git commit -qm two")
    ws.out(2, "<promise>SUCCESS</promise>\n")
    ws.rooda("tasks", "add", "Write <b>b.txt</b>", "-n", "3")
    ws.rooda("tasks", "run", "-j", "1")
    page = start(ws)
    assert steady(page.rows()["open"]) == steady(printed(ws, "tasks"))
    assert "&lt;b&gt;b.txt" in page.ask("").text
    assert page.act("answer", page.button("1", "answer"), text="b.txt").status == 200
    awaited(page, "1", state="completed")
    said = page.act("land", page.button("1", "land"))
    assert (said.status, "gate" in said.text) == (409, True)  # it has none
    page.process.stop()
    until(lambda: not ws.leftovers(), 20)


def test_P_08_without_room_for_its_output_a_command_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is one sentence on the page."""
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    found = asyncio.run(order.carry_out(["true"], "/"))
    assert (found.code, "can't be started" in found.said) == (1, True)


@pytest.mark.parametrize("kind", KINDS)
def test_P_08_a_loop_of_every_kind_is_stopped_and_resumed(ws: Workspace, kind: str) -> None:
    """Stop, then new limits, which resume it at once; it ends well, and its view has its iterations and decisions."""
    begin(ws, kind)
    page = start(ws)
    (row,) = page.rows()["open"]
    entry = page.button(row["name"], "pause")
    assert page.act("pause", entry).status == 200
    awaited(page, row["name"], suspended=True)
    assert page.act("continue", entry).status == 200
    awaited(page, row["name"], suspended=False)
    said = page.act("set", entry, cost="7")
    assert said.status == 200, said.text
    assert page.act("stop", entry).status == 200
    awaited(page, row["name"], running=False)
    said = page.act("set", entry, cost="8", duration="20m")
    assert said.status == 200, said.text
    let_go(ws)
    (ended,) = until(lambda: page.rows()["finished"], 60, "its end")  # the stopped session is never listed here
    assert (ended["loop"], ended["state"]) == (kind, "completed")
    path = page.run_path(row["name"])
    facts = page.ask(f"{path}data").json
    assert facts["row"] == ended
    assert facts["iterations"]
    decisions = [{key: value for key, value in each.items() if key != "session"} for each in facts["why"]]
    assert decisions == printed(ws, "why", *([] if kind == "goal" else [row["name"]]))
    assert page.ask(path).status == 200


def test_P_08_tasks_of_this_machine_beside_a_fleet(ws: Workspace) -> None:
    """A button acts on the task that is shown, though `rooda tasks` means the fleet's."""
    settings = Path(ws.home, ".config", "rooda", "rooda.toml")
    settings.parent.mkdir(parents=True)
    settings.write_text("[fleet]\ndefault = true\n")
    ws.git("init", "-q", "-b", "main")
    ws.git("add", "-A")
    ws.git("commit", "-qm", "first")
    ws.rooda("tasks", "--local", "add", "Later", "-n", "2")
    page = start(ws)
    said = page.act("set", page.button("1", "set"), iterations="7")
    assert said.status == 200, said.text
    assert printed(ws, "tasks", "--local")[0]["max_iterations"] == 7
