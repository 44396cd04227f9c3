"""[hooks] of every kind of loop: which moments there are, and that nothing waits for a hook."""

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.kit.endings import DONE, LIMITED, SHORT, hooked, makes_nothing, never_holds, scripted, writes_nothing
from tests.kit.loops import Loops
from tests.kit.workspace import Ran, Workspace, until

REFUSED = '{"type":"result","is_error":true,"api_error_status":401,"result":"Invalid API key"}\n'


def told(ws: Workspace) -> list[tuple[str, str]]:
    path = Path(ws.fake, "told")
    lines = path.read_text().splitlines() if path.exists() else []
    return [(record["event"], record["moment"]) for record in map(json.loads, lines)]


def fails(ws: Workspace) -> Ran:
    ws.exits(*[1] * 9)
    return hooked(ws).ooda()


def breaks_its_contract(ws: Workspace) -> Ran:
    ws.out("plan", "no plan")
    return hooked(ws).reflex()


def planned(ws: Workspace, said: str) -> Ran:
    """A goal whose plan an agent has to make."""
    scripted(ws, said).settings()
    return ws.rooda("goal", "run", "Make it", "--yes")


def refused_flow(ws: Workspace) -> Ran:
    loops = scripted(ws, REFUSED)
    flow = loops.flow_ready("S1")
    loops.settings()
    flow.commit("its settings")
    return flow.run("do it")


ENDS: list[tuple[str, Callable[[Workspace], Ran], int, list[str]]] = [
    ("ooda done", lambda ws: hooked(ws).ooda("-n", "1"), 0, ["done"]),
    ("ooda stuck", fails, 1, ["failed", "stuck"]),
    ("ooda budget", lambda ws: hooked(ws).ooda(*SHORT), 4, ["paused", "budget"]),
    ("ooda limit", lambda ws: scripted(ws, LIMITED % 4_000_000_000).ooda(), 4, ["paused", "limit"]),
    ("ooda refused", lambda ws: scripted(ws, REFUSED).ooda(), 1, ["failed", "needs_person"]),
    ("reflex done", lambda ws: hooked(ws).reflex(), 0, ["done"]),
    ("reflex stuck", breaks_its_contract, 1, ["failed", "stuck"]),
    ("reflex paused", never_holds, 4, ["paused"]),
    ("reflex budget", lambda ws: hooked(ws).reflex(*SHORT), 4, ["paused", "budget"]),
    ("reflex limit", lambda ws: scripted(ws, LIMITED % 4_000_000_000).reflex(), 4, ["paused", "limit"]),
    ("reflex refused", lambda ws: scripted(ws, REFUSED).reflex(), 1, ["failed", "needs_person"]),
    ("goal refused", lambda ws: scripted(ws, REFUSED).goal("--yes"), 1, ["failed", "needs_person"]),
    ("goal refused, no plan", lambda ws: planned(ws, REFUSED), 1, ["failed", "needs_person"]),
    ("goal limit, no plan", lambda ws: planned(ws, LIMITED % 4_000_000_000), 4, ["paused", "limit"]),
    ("goal unclear, no plan", lambda ws: planned(ws, DONE), 3, ["needs_person"]),
    ("flow refused", refused_flow, 1, ["failed", "stuck", "needs_person"]),
    ("goal done", lambda ws: hooked(ws).goal("--yes"), 0, ["done"]),
    ("goal stuck", makes_nothing, 4, ["paused", "stuck"]),
    ("goal gate", lambda ws: hooked(ws).goal(), 4, ["paused", "needs_person"]),
    ("flow done", lambda ws: hooked(ws).flow(), 0, ["done"]),
    ("flow paused", lambda ws: hooked(ws).flow(scenario="S3"), 4, ["paused"]),
    ("flow stuck", writes_nothing, 1, ["failed", "stuck"]),
    ("flow budget", lambda ws: hooked(ws).flow(*SHORT, "do it"), 4, ["paused", "budget"]),
]


@pytest.mark.parametrize(("end", "code", "moments"), [each[1:] for each in ENDS], ids=[each[0] for each in ENDS])
def test_the_moments_of_an_end(bare: Workspace, end: Callable[[Workspace], Ran], code: int, moments: list[str]) -> None:
    """Each end is a moment of its exit code, and of its cause where one is named; each hook gets the event once."""
    ran = end(bare)
    assert ran.code == code, ran.both
    assert told(bare) == [("run.ended", moment) for moment in moments]


def test_a_question_on_the_terminal(bare: Workspace) -> None:
    """A hook calls the user; the question appears at once even if the hook hangs."""
    loops = hooked(bare, needs_person={"command": 'cat >>"$FAKE/told"; sleep 1000', "timeout": 60})
    check = {"rule_id": "a.correctness.one", "type": "executable", "expected": "it is there"}
    check["command"] = "grep one .ai-factory/evolution/page/artifact.md"
    bare.out("prepare", json.dumps({"checks": [check]}))
    terminal = bare.terminal(*loops.words("reflex", "--exec-checks", "ask"), columns=160)
    until(lambda: "Run them? [y/N]" in terminal.out, what="the question of the checks")
    until(lambda: told(bare) == [("question.asked", "needs_person")], what="the hook")


class Server(http.server.ThreadingHTTPServer):
    """Keeps what is posted; answers with its status, or never."""

    daemon_threads = True

    def __init__(self) -> None:
        self.posted: list[dict[str, Any]] = []
        self.status: int | None = 204
        self.over = threading.Event()
        super().__init__(("127.0.0.1", 0), Keeper)
        self.url = f"http://127.0.0.1:{self.server_port}/"


class Keeper(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.server.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        if self.server.status is None:
            self.server.over.wait()
            return
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield found
        found.over.set()
        found.shutdown()


@pytest.mark.parametrize("kind", ["ooda", "reflex", "goal", "flow"])
def test_a_web_hook_of_each_kind(bare: Workspace, server: Server, kind: str) -> None:
    """The body of the POST is the event as it is on disk, with the moment and the facts of E-31."""
    loops = hooked(bare, done={"url": server.url})
    ran = {"ooda": lambda: loops.ooda("-n", "1"), "goal": lambda: loops.goal("--yes")}.get(kind, getattr(loops, kind))()
    assert ran.code == 0, ran.both
    (posted,) = server.posted
    added = {key: posted.pop(key) for key in ("moment", "workspace", "host", "branch", "cost", "text")}
    kept = {key: value for key, value in bare.events()[-1].items() if key not in added}
    assert added["moment"] == "done" and added["workspace"] == bare.path and posted == kept


@pytest.mark.parametrize(("status", "said"), [(None, "timed out after 0.5s"), (500, "500")])
def test_a_server_that_hangs_or_refuses(bare: Workspace, server: Server, status: int | None, said: str) -> None:
    """A server that never answers times out, one that refuses is reported; the exit code is the run's."""
    server.status = status
    ran = hooked(bare, done={"url": server.url, "timeout": 0.5 if status is None else 30}).ooda("-n", "1")
    assert ran.code == 0 and "the hook 'done' failed" in ran.err and said in ran.err
    assert (len(server.posted) == 1 or status is None) and not bare.leftovers()


def waiting(ws: Workspace, hook: object) -> Loops:
    """An agent whose account is free again in a moment; the hook is called when the wait begins."""
    assert scripted(ws, LIMITED % 4_000_000_000, done="true").ooda("-n", "1").code == 4
    (note,) = Path(ws.home).rglob("limits/*.json")
    free = datetime.now(UTC) + timedelta(seconds=1.5)
    note.write_text(json.dumps(json.loads(note.read_text()) | {"until": free.isoformat(), "boot": "another"}))
    loops = scripted(ws, '{"type":"result","is_error":false,"result":"done"}\n', limit=hook)
    loops.agent = 'agent = "mine"\non_limit = "wait"'
    return loops


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ('cat >>"$FAKE/told"; trap "" TERM; sleep 1000', "timed out after 1.5s"),
        ('cat >>"$FAKE/told"; echo no such channel; exit 3', "exit 3): no such channel"),
        ('cat >>"$FAKE/told"; exec yes', "timed out after 1.5s"),
        ('cat >>"$FAKE/told"; (setsid sleep 1000 &) </dev/null >/dev/null 2>&1', ""),
    ],
    ids=["hangs", "fails", "floods", "leaves a daemon"],
)
def test_a_hook_never_blocks_a_loop(bare: Workspace, command: str, said: str) -> None:
    """The loop continues while a hook hangs, fails or floods; then it is ended and reported, with no process left."""
    ran = waiting(bare, {"command": command, "timeout": 1.5}).ooda("-n", "1", "--fresh")
    assert ran.code == 0 and told(bare) == [("resting", "limit")]
    assert ("the hook 'limit' failed" in ran.err) == bool(said) and said in ran.err
    assert not bare.leftovers()
    outputs = Path(bare.path).glob(".rooda/runs/*/hook-limit.out")
    assert all(path.stat().st_size <= 65_536 for path in outputs)


def test_a_hook_outlives_calls(bare: Workspace) -> None:
    """Ending the leftover processes of an agent spares a running hook."""
    hook = 'cat >>"$FAKE/told"; until [ -e "$FAKE/last" ]; do sleep 0.02; done; echo >>"$FAKE/whole"'
    loops = waiting(bare, {"command": hook, "timeout": 60})
    gate = '\nquality_gates = [\'[ "$ROODA_ITERATION" != 3 ] || touch "$FAKE/last"\']'
    loops.agent += gate
    ran = loops.ooda("-n", "3", "--fresh")
    assert ran.code == 0 and ran.err.count("hook") == 0, ran.err
    assert Path(bare.fake, "whole").exists()


def test_a_hooks_work_is_not_the_agents(bare: Workspace) -> None:
    """A sleeping agent is idle even if a hook is busy."""
    hook = """until grep -qs '"agent.ended"' ".rooda/runs/$ROODA_RUN/events.jsonl"; do :; done"""
    loops = waiting(bare, {"command": hook, "timeout": 60})
    loops.more = loops.more.replace("cat said.out", "sleep 1000")
    loops.agent += "\nidle_timeout = 0.6\nkill_grace = 0.2\niteration_timeout = 10"
    ran = loops.ooda("-n", "1", "--fresh")
    assert "timed out after 0.6s without output" in ran.out, ran.both
    assert ran.err.count("hook") == 0, ran.err


def test_a_goal_that_was_refused_while_it_was_planned_has_an_end(bare: Workspace) -> None:
    """The log says how the run ended, and `why` repeats it; it was not killed."""
    assert planned(bare, REFUSED).code == 1
    why = bare.rooda("why", "goal")
    assert why.code == 0 and "The plan call failed: auth: Invalid API key" in why.out and "cut off" not in why.out
