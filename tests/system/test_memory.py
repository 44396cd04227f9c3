"""Big outputs, big prompts, and agents that don't read: rooda's own memory stays, and nothing hangs."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.kit.workspace import Running, Workspace, until

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="needs /proc/PID/smaps_rollup")
MORE = 5_000_000
WAIT = ': >"$FAKE/waiting"; exec sleep 1000'


def private(pid: int) -> int:
    """What this process alone holds, bytes."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


def weight(ws: Workspace, running: Running) -> int:
    """The private memory of guardian and loop while the agent works; the run is ended then."""
    until(lambda: os.path.exists(os.path.join(ws.fake, "waiting")), 60, "the agent to wait")
    agent = ws.calls[-1]
    assert agent.ppid != running.pid
    weighed = private(running.pid) + private(agent.ppid)
    running.signal(signal.SIGTERM)
    assert running.finish() == 143
    return weighed


def light(bare: Workspace) -> int:
    """The same with hardly any prompt and no output."""
    small = Workspace(os.path.join(bare.root, "small"))
    bare.running += small.running
    small.procedure("build", keys="promise_signals = true\n")
    small.side(2, WAIT)
    return weight(small, small.start("build", "-n", "2", "--verbose"))


@pytest.mark.parametrize("output", ["yes 'said the agent'", "tr '\\0' x </dev/zero"], ids=["lines", "one-line"])
def test_100_MB_of_output(ws: Workspace, output: str) -> None:
    """100 MB printed, shown with --verbose, searched for promises: memory is as after an agent without a word."""
    ws.procedure("build", keys="promise_signals = true\n")
    ws.side(1, f"{output} | head -c 100000000")
    ws.side(2, WAIT)
    running = ws.start("build", "-n", "2", "--verbose")
    assert weight(ws, running) - light(ws) < MORE
    assert os.path.getsize(Path(ws.root, "output-0.out")) > 100_000_000
    assert ws.events()[-1]["event"] == "run.ended"


def test_output_that_grows_while_it_is_watched(ws: Workspace) -> None:
    """100 MB printed by an agent that still works cost nothing either."""
    ws.procedure("build", keys="promise_signals = true\nidle_timeout = 60\n")
    ws.side(2, f"yes 'said the agent' | head -c 100000000; {WAIT}")
    assert weight(ws, ws.start("build", "-n", "2")) - light(ws) < MORE


def test_a_prompt_of_10_MB(ws: Workspace) -> None:
    """It reaches the agent whole, and is not kept in memory while the agent works."""
    text = "Read the task, change the code, and say what is left. é\n" * 180_000
    ws.write("prompts/act_build.md", text)
    ws.side(2, WAIT)
    assert weight(ws, ws.start("build", "-n", "2")) - light(ws) < MORE
    assert ws.calls[0].prompt.decode().endswith(text[-1000:])
    assert len(ws.calls[1].prompt) > 10_000_000


def test_a_resume_after_many_iterations(ws: Workspace) -> None:
    """What the log of a long run says is not kept: a resume has the memory of the session before it."""
    many, waiting = 1500, os.path.join(ws.fake, "waiting")
    agent = ws.write("../agent", f'[ "$ROODA_ITERATION" -ge {many} ] || exit 0; echo $PPID >{waiting}; exec sleep 1000')
    ws.procedure("build", loop={"ai_cmd": f"sh {agent}"})
    weights = list[int]()
    for words in (("build", "-n", "0"), ("resume", "build")):
        running = ws.start(*words)
        until(lambda: os.path.exists(waiting) and Path(waiting).read_text().endswith("\n"), 60, "the agent to wait")
        weights.append(private(int(Path(waiting).read_text())))
        os.remove(waiting)
        running.signal(signal.SIGTERM)
        assert running.finish() == 143
    assert weights[1] - weights[0] < MORE


READERS = {
    "never-reads": "exit 0",
    "closes-stdin": "exec 0<&-; exit 0",
    "reads-a-little": "head -c 10 >/dev/null",
    "slow": f"exec {sys.executable} -IS -c 'import os, time\nwhile os.read(0, 500_000): time.sleep(0.01)'",
    "child-never-reads": "sleep 1000 & exit 0",
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_OA_38_a_slow_reader_delays_nothing(ws: Workspace, reader: str) -> None:
    """An agent that is slow to read 10 MB, reads little, nothing, or closes its stdin delays nothing."""
    ws.write("prompts/act_build.md", "Change the code.\n" * 600_000)
    ws.procedure("build", loop={"ai_cmd": f"sh {ws.write('../reader', reader)}"})
    ran = ws.rooda("build", "-n", "2")
    assert ran.code == 0, ran.both
