"""After a reboot: what is on disk names another boot and numbers that belong to strangers now. Loops continue.

The power goes while an agent works (everybody is killed); then the files are made what a reboot leaves: the boot they
name is not this one, and every process number in them is that of a live stranger, with its very own start time.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rooda.processes import table
from tests.kit.four import Four
from tests.kit.limits import limited, paid, resting
from tests.kit.workspace import alive, until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
OTHER_BOOT = "00000000-0000-4000-8000-000000000000"
WITNESS = 'for name in TERM INT HUP CONT TSTP QUIT; do trap "exit 1" $name; done; echo ready; while :; do sleep 1; done'


@pytest.fixture
def stranger() -> Iterator["subprocess.Popen[str]"]:
    """A foreign process that ends when it gets any signal."""
    process = subprocess.Popen(["sh", "-c", WITNESS], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


def power_cut(four: Four) -> None:
    """No process of the workspace is left, and none had time to save anything."""
    while left := four.ws.leftovers():
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def rebooted(four: Four, stranger: "subprocess.Popen[str]") -> int:
    """Every file that names this boot names another one, and the stranger; how many there were."""
    changed = 0
    for path in Path(four.ws.root).rglob("*"):
        if path.suffix in (".lock", ".json") and path.is_file() and table.boot() in path.read_text(errors="replace"):
            path.write_text(json.dumps(_of_another_boot(json.loads(path.read_text()), stranger.pid)))
            changed += 1
    return changed


def _of_another_boot(value: Any, pid: int) -> Any:
    if isinstance(value, list):
        return [_of_another_boot(each, pid) for each in value]
    if not isinstance(value, dict):
        return value
    known = {"boot": OTHER_BOOT, "pid": pid, "start": table.start_of(pid)}
    return {key: known.get(key, _of_another_boot(inner, pid)) for key, inner in value.items()}


def cut_off(four: Four, stranger: "subprocess.Popen[str]") -> None:
    """The power fails in a call that leaves something to resume; the machine is up again."""
    four.first(f'[ "$(wc -l <"$HELD/calls")" != {four.kind.first} ] || sleep 1000')
    four.start("--detach")
    four.await_calls(four.kind.first)
    run = four.runs()[0]
    until(
        lambda: any(event["event"] == "agent.started" for event in four.ws.every_event()),
        what="the call in the journal",
    )
    power_cut(four)
    assert rebooted(four, stranger) >= 1, run


def test_a_loop_continues_and_foreign_processes_are_spared(four: Four, stranger: "subprocess.Popen[str]") -> None:
    """Status, pause, continue and stop find nothing that runs; resume ends what was begun."""
    cut_off(four, stranger)
    for words in (("status",), ("pause",), ("stop", "--now")):
        ran = four.ws.rooda(*words)
        assert ran.code == 0 and "running (pid" not in ran.out, ran.both
    ran = four.resume()
    assert ran.code == 0, ran.both
    assert "still alive" not in ran.both
    assert four.done() and four.doubled() == []
    assert alive(stranger.pid)
    assert len(four.calls()) == four.kind.calls + 1


def test_a_limit_is_waited_for_to_the_same_moment(four: Four, stranger: "subprocess.Popen[str]") -> None:
    """The wait for a usage limit is cut off; the next session waits until the same moment, and calls no agent."""
    limited(four, 5 * 3600)
    four.start()
    moment = resting(four)["until"]
    power_cut(four)
    assert rebooted(four, stranger) >= 1
    before = paid(four)
    again = four.ws.start(*(["resume"] if four.kind.first == 1 else four.kind.begin))
    until(lambda: len(four.said("resting")) == 2, what="the second wait")
    assert abs(datetime.fromisoformat(resting(four)["until"]) - datetime.fromisoformat(moment)) <= timedelta(seconds=1)
    again.signal(signal.SIGTERM)
    assert four.ended(again).code == 143
    assert paid(four) == before == 1
    assert alive(stranger.pid)
