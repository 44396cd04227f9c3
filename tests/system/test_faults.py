"""Every system call that touches the state folder fails in turn, and the loop is killed at every one of them."""

import errno
import os
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.faults import steps
from tests.kit.needed import LINUX, needs
from tests.kit.workspace import Ran, Workspace

pytestmark = [LINUX, needs("cc")]
# How often a run of two iterations makes each call on the state folder and what is in it.
COUNTS = {
    "mkdir": 1,
    "open": 10,
    "list": 1,
    "close": 10,
    "open-to-write": 4,
    "flock": 1,
    "pwrite": 5,
    "fdatasync": 3,
    "write": 3,
    "fsync": 6,
    "rename": 3,
    "unlink": 1,
}
EVERY = [(call, place) for call, count in COUNTS.items() for place in range(1, count + 1)]
SOME = [*COUNTS.items(), ("open", 3), ("open-to-write", 2), ("fsync", 3), ("close", 4)]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    return steps.build(str(tmp_path_factory.mktemp("library")))


def fault_at(ws: Workspace, library: str, call: str, place: int, part: str, what: str) -> dict[str, str]:
    """The environment of a loop with a fault at its call number `place` of this name on a path with this part."""
    return {
        "LD_PRELOAD": library,
        "FAULTS_ROOTS": ws.file(".rooda"),
        "FAULTS_NAME": call,
        "FAULTS_PART": part,
        "FAULTS_AT": str(place),
        "FAULTS_DO": what,
        "FAULTS_LOG": os.path.join(ws.root, "steps"),
    }


class Faulty:
    """A run of two iterations with a fault at one of its calls on the state folder and what is in it."""

    def __init__(self, ws: Workspace, library: str, call: str = "", place: int = 0, what: str = "KILL") -> None:
        self.ws = ws
        agent = ws.write("../agent", f"echo call >>{shlex.quote(os.path.join(ws.root, 'called'))}\nsleep 0.1\n")
        ws.procedure("build", loop={"ai_cmd": shlex.join(["sh", agent])})
        env = fault_at(ws, library, call, place, "/.rooda/state", what)
        self.ran: Ran = ws.rooda("build", "-n", "2", env=env)
        made = [line.split(maxsplit=3) for line in Path(env["FAULTS_LOG"]).read_text().splitlines()]
        self.made = Counter(name for _, _, name, path in made if "/.rooda/state" in path)

    @property
    def calls(self) -> int:
        path = Path(self.ws.root, "called")
        return len(path.read_text().splitlines()) if path.exists() else 0


def test_the_list_of_calls_is_complete(ws: Workspace, library: str) -> None:
    """The places below are all there are: a run makes exactly these calls on the state folder, and ends as usual."""
    faulty = Faulty(ws, library)
    assert faulty.ran.code == 0
    assert faulty.made == COUNTS, Path(ws.root, "steps").read_text()


def one_failure(ws: Workspace, library: str, call: str, place: int, error: int) -> None:
    """The loop continues to its end; what is on disk can be read; the next start works and tidies up."""
    faulty = Faulty(ws, library, call, place, str(error))
    assert faulty.made[call] >= place
    assert faulty.ran.code == 0, faulty.ran.both
    assert "Traceback" not in faulty.ran.both
    assert "Reached max iterations: 2" in faulty.ran.lines[-1]
    assert faulty.calls == 2
    state = ws.state()
    assert state is None or (0 <= state["iteration"] <= 2 and state["iteration"] == len(state["elapsed_per_iteration"]))
    again = ws.rooda("build", "--fresh", "-n", "1")
    assert again.code == 0, again.both
    assert os.listdir(ws.file(".rooda/state")) == ["build.lock"]


def one_kill(ws: Workspace, library: str, call: str, place: int) -> None:
    """The state can be read, at most one call is made again, and the next start continues to the end."""
    faulty = Faulty(ws, library, call, place)
    assert faulty.ran.code == -9, faulty.ran.both
    before, state = faulty.calls, ws.state()
    assert state is None or (state["status"] == "running" and before - 1 <= state["iteration"] <= before)
    assert state is not None or before in (0, 2)
    again = ws.rooda("resume", "build") if state else ws.rooda("build", "-n", "2")
    assert again.code == 0, again.both
    assert faulty.calls == before + 2 - (state["iteration"] if state else 0)
    assert os.listdir(ws.file(".rooda/state")) == ["build.lock"]


@pytest.mark.parametrize(("call", "place"), SOME)
def test_O_082_O_114_a_failing_call_does_not_stop_the_loop(ws: Workspace, library: str, call: str, place: int) -> None:
    """A disk error, or a full disk, in the middle of each kind of call."""
    one_failure(ws, library, call, place, errno.EIO if place % 2 else errno.ENOSPC)


@pytest.mark.parametrize(("call", "place"), SOME)
def test_O_020_a_kill_at_a_call_loses_nothing(ws: Workspace, library: str, call: str, place: int) -> None:
    """The loop dies on entering this call; whatever was half done does no harm."""
    one_kill(ws, library, call, place)


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


@pytest.mark.parametrize("place", [1, 2, 5])
def test_a_folder_that_the_disk_cannot_list_is_not_empty(ws: Workspace, library: str, place: int) -> None:
    """A resume without its earlier sessions would forget their limits: it ends with the disk's error."""
    ws.procedure("build")
    ws.signal_at(1)
    assert ws.rooda("build", "-n", "2", "--max-cost", "1").code == 130
    before = ws.state()
    ran = ws.rooda("resume", "build", env=fault_at(ws, library, "list", place, "/.rooda/runs", str(errno.EIO)))
    assert ran.code == 1 and ".rooda/runs: Input/output error" in ran.err, ran.both
    assert len(ws.calls) == 1 and ws.state() == before


def loop_calls(ws: Workspace, also: str = "") -> list[str]:
    """What the loop process called, one line each: the one that opened the lock. `also` by others, if one is named."""
    lines = [line.split(maxsplit=1) for line in Path(ws.root, "strace.log").read_text().splitlines()]
    loop = next(pid for pid, call in lines if "build.lock" in call)
    return [call for pid, call in lines if pid == loop or (also and call.startswith(also))]


def test_a_signal_between_the_last_check_and_the_start(ws: Workspace, library: str) -> None:
    """SIGTERM while the transcript is created, after the last check before a call: the agent is ended at once."""
    ws.procedure("build", loop={"ai_cmd": "sleep 1000"})
    ran = ws.rooda("build", "-n", "1", env=fault_at(ws, library, "open-to-write", 1, "/0001-iteration.out", "TERM"))
    assert ran.code == 143, ran.both
    assert ws.leftovers() == []


@needs("strace")
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


@needs("strace")
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
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize(("call", "place"), EVERY)
def test_every_call_fails(ws: Workspace, library: str, call: str, place: int, error: int) -> None:
    """All of them, with both errors."""
    one_failure(ws, library, call, place, error)


@pytest.mark.long
@pytest.mark.parametrize(("call", "place"), EVERY)
def test_a_kill_at_every_call(ws: Workspace, library: str, call: str, place: int) -> None:
    """All of them."""
    one_kill(ws, library, call, place)
