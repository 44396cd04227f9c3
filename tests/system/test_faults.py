"""Every system call that touches the state folder fails in turn, and the loop is killed at every one of them."""

import os
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from kit.needed import needs
from kit.workspace import Ran, Workspace

pytestmark = needs("strace")
CALLS = "openat,write,pwrite64,fsync,fdatasync,rename,close,unlink,mkdir,ftruncate,flock"
# How often a run of two iterations makes each call on the state folder and what is in it.
COUNTS = {
    "mkdir": 1,
    "openat": 15,
    "flock": 1,
    "pwrite64": 5,
    "fdatasync": 3,
    "write": 3,
    "fsync": 6,
    "rename": 3,
    "close": 11,
    "unlink": 1,
}
EVERY = [(call, place) for call, count in COUNTS.items() for place in range(1, count + 1)]
SOME = [*COUNTS.items(), ("openat", 3), ("openat", 5), ("fsync", 3), ("close", 4)]
# strace stays in the background (-D), so that pids and parents are as without it. The state's temporary file is named
# by the pid of the loop, one of the next.
STRACED = """\
set --
i=0
while [ $i -lt 80 ]; do
    i=$((i + 1))
    set -- "$@" -P "$STATE/build.json.$(($$ + i)).tmp"
done
exec strace -D -f -qq -o "$LOG" -P "$STATE" -P "$STATE/build.json" -P "$STATE/build.lock" "$@" -e trace=%s $INJECT %s
"""


class Traced:
    """A run of two iterations under strace."""

    def __init__(self, ws: Workspace, inject: str = "") -> None:
        self.ws, self.log = ws, os.path.join(ws.root, "strace.log")
        agent = ws.write("../agent", f"echo call >>{shlex.quote(os.path.join(ws.root, 'called'))}\nsleep 0.1\n")
        ws.procedure("build", loop={"ai_cmd": shlex.join(["sh", agent])})
        script = ws.write("../straced", STRACED % (CALLS, shlex.join(ws.command("build", "-n", "2"))))
        env = {"STATE": ws.file(".rooda/state"), "LOG": self.log, "INJECT": inject}
        real = ws.command
        ws.command = lambda *arguments: ["sh", script]  # type: ignore[method-assign]
        try:
            self.ran: Ran = ws.rooda(env=env)
        finally:
            ws.command = real  # type: ignore[method-assign]
        self.traced = Path(self.log).read_text()

    @property
    def calls(self) -> int:
        path = Path(self.ws.root, "called")
        return len(path.read_text().splitlines()) if path.exists() else 0


def test_the_list_of_calls_is_complete(ws: Workspace) -> None:
    """The places below are all there are: a run makes exactly these calls on the state folder, and ends as usual."""
    traced = Traced(ws)
    assert traced.ran.code == 0
    assert dict(Counter(re.findall(r"^\d+ +(\w+)\(", traced.traced, re.M))) == COUNTS, traced.traced


def one_failure(ws: Workspace, call: str, place: int, error: str) -> None:
    """The loop continues to its end; what is on disk can be read; the next start works and tidies up."""
    traced = Traced(ws, f"-e inject={call}:error={error}:when={place}")
    assert "(INJECTED)" in traced.traced
    assert traced.ran.code == 0, traced.ran.both
    assert "Traceback" not in traced.ran.both
    assert "Reached max iterations: 2" in traced.ran.lines[-1]
    assert traced.calls == 2
    state = ws.state()
    assert state is None or (0 <= state["iteration"] <= 2 and state["iteration"] == len(state["elapsed_per_iteration"]))
    again = ws.rooda("build", "--fresh", "-n", "1")
    assert again.code == 0, again.both
    assert os.listdir(ws.file(".rooda/state")) == ["build.lock"]


def one_kill(ws: Workspace, call: str, place: int) -> None:
    """The state can be read, at most one call is made again, and the next start continues to the end."""
    traced = Traced(ws, f"-e inject={call}:signal=KILL:when={place}")
    assert traced.ran.code == -9, traced.ran.both
    before, state = traced.calls, ws.state()
    assert state is None or (state["status"] == "running" and before - 1 <= state["iteration"] <= before)
    assert state is not None or before in (0, 2)
    again = ws.rooda("resume", "build") if state else ws.rooda("build", "-n", "2")
    assert again.code == 0, again.both
    assert traced.calls == before + 2 - (state["iteration"] if state else 0)
    assert os.listdir(ws.file(".rooda/state")) == ["build.lock"]


@pytest.mark.parametrize(("call", "place"), SOME)
def test_O_082_O_114_a_failing_call_does_not_stop_the_loop(ws: Workspace, call: str, place: int) -> None:
    """A disk error, or a full disk, in the middle of each kind of call."""
    one_failure(ws, call, place, "EIO" if place % 2 else "ENOSPC")


@pytest.mark.parametrize(("call", "place"), SOME)
def test_O_020_a_kill_at_a_call_loses_nothing(ws: Workspace, call: str, place: int) -> None:
    """The loop dies on entering this call; whatever was half done does no harm."""
    one_kill(ws, call, place)


def straced(ws: Workspace, *options: str, turns: int = 1, **loop: object) -> Ran:
    """`rooda build`, with an agent that stays if none is given, under strace; the log is strace.log."""
    ws.procedure("build", loop=loop or {"ai_cmd": "sleep 1000"})
    head = ["strace", "-D", "-f", "-qq", "-s", "1000", "-o", os.path.join(ws.root, "strace.log"), *options]
    real = ws.command
    ws.command = lambda *words: [*head, *real(*words)]  # type: ignore[method-assign]
    try:
        return ws.rooda("build", "-n", str(turns), "--fresh")
    finally:
        ws.command = real  # type: ignore[method-assign]


def loop_calls(ws: Workspace, also: str = "") -> list[str]:
    """What the loop process called, one line each: the one that opened the lock. `also` by others, if one is named."""
    lines = [line.split(maxsplit=1) for line in Path(ws.root, "strace.log").read_text().splitlines()]
    loop = next(pid for pid, call in lines if "build.lock" in call)
    return [call for pid, call in lines if pid == loop or (also and call.startswith(also))]


def test_a_signal_between_the_last_check_and_the_start(ws: Workspace) -> None:
    """SIGTERM while the transcript is created, after the last check before a call: the agent is ended at once."""
    for _ in range(2):  # the second time as ever after: with a warm cache
        straced(ws, "-e", "trace=openat,fdatasync", "-e", "inject=fdatasync:signal=TERM:when=2")
    opened = [line for line in loop_calls(ws) if line.startswith("openat(")]
    written = [place for place, line in enumerate(opened, 1) if "0001-iteration.out" in line and "O_CREAT" in line]
    assert len(written) == 1
    ran = straced(ws, "-e", "trace=openat", "-e", f"inject=openat:signal=TERM:when={written[0]}")
    assert ran.code == 143, ran.both
    assert ws.leftovers() == []


def test_the_run_is_on_disk_before_its_agent_begins(ws: Workspace) -> None:
    """Before the exec run and boot are synced, and the mark is set that all its processes carry; then comes the pid."""
    straced(ws, "-e", "trace=execve,pwrite64,fdatasync,prlimit64", "-e", "inject=fdatasync:signal=TERM:when=2")
    lines = Path(ws.root, "strace.log").read_text().splitlines()
    texts = [line.split(maxsplit=1)[1] for line in lines]
    begun = next(n for n, text in enumerate(texts) if text.startswith("execve(") and '["sleep", "1000"]' in text)
    agent = lines[begun].split()[0]
    marked = next(n for n, text in enumerate(texts) if re.match(r"prlimit64\(0, RLIMIT_RTTIME, \{", text))
    synced = [n for n, text in enumerate(texts) if text.startswith("fdatasync(")]
    noted = [n for n, text in enumerate(texts) if text.startswith("pwrite64(") and '\\"run\\": \\"' in text]
    assert noted[0] < synced[0] < begun
    assert marked < begun
    named = next(n for n in noted if f'{{\\"pid\\": {agent}, ' in texts[n])
    assert named < synced[1]


DONE = '{"type":"result","is_error":false,"result":"done","session_id":"s","num_turns":1}'
BUSY = '{"type":"result","is_error":true,"api_error_status":529,"result":"Overloaded","session_id":"s","num_turns":1}'
FIRST = ["saved", "settled", "begins", "noted"]


@pytest.mark.parametrize(
    ("answer", "code", "then"),
    [
        (DONE, 0, ["saved", "begins", "settled", "noted", "saved", "gone", "ends", "settled"]),
        (BUSY, 1, ["saved", "settled", "rests", "begins", "noted", "saved", "saved", "settled", "ends"]),
    ],
)
def test_a_saved_state_is_soon_safe_from_a_power_cut(ws: Workspace, answer: str, code: int, then: list[str]) -> None:
    """Its new name is synced: the first before an agent starts, others while the next is loaded, or before a rest."""
    ws.write("answer", answer)
    ws.sections["agents"] = '\n[agents.tired]\ncommand = "/bin/cat answer"\noutput = "claude"\n'
    loop = {"ai_cmd": None, "agent": "tired", "retry_wait": 0.01, "failure_threshold": 2}
    ran = straced(ws, "-e", "trace=execve,openat,rename,unlink,write,pwrite64", turns=2, **loop)
    assert ran.code == code, ran.both
    says = {
        "saved": r'rename\(.*/build\.json"',
        "settled": r'openat\(.*/state", O_RDONLY\|O_CLOEXEC(?!\|)',
        "begins": r'execve\("/bin/cat"',
        "noted": r"pwrite64\(.*/bin/cat answer",
        "rests": r'write\(.*\\"event\\": \\"resting\\"',
        "gone": r'unlink\(.*/build\.json"',
        "ends": r'write\(.*\\"event\\": \\"run.ended\\"',
    }
    seen = [what for call in loop_calls(ws, "execve(") for what, text in says.items() if re.match(text, call)]
    assert seen == [*FIRST, *then]


@pytest.mark.long
@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
@pytest.mark.parametrize(("call", "place"), EVERY)
def test_every_call_fails(ws: Workspace, call: str, place: int, error: str) -> None:
    """All of them, with both errors."""
    one_failure(ws, call, place, error)


@pytest.mark.long
@pytest.mark.parametrize(("call", "place"), EVERY)
def test_a_kill_at_every_call(ws: Workspace, call: str, place: int) -> None:
    """All of them."""
    one_kill(ws, call, place)
