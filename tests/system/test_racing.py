"""Several commands for one loop at the very same moment: one runs, the others say so, and nothing is spoilt."""

import contextlib
import os
import random
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.four import KINDS, Four, is_at
from tests.kit.workspace import Running, until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
NOTHING = re.compile(r"Nothing to resume here|There is no goal to resume here")  # a fresh start has no state yet
ROUNDS = int(os.environ.get("ROODA_ROUNDS", "100"))
FRESH = {  # a start that asks nobody what to do with an earlier run
    "ooda": (*KINDS["ooda"].begin, "--fresh"),
    "reflex": KINDS["reflex"].begin,
    "flow": KINDS["flow"].begin,
    "goal": (*KINDS["goal"].begin, "--fresh"),
}


@contextlib.contextmanager
def looped(kind: str, folder: Path) -> Iterator[Four]:
    four = Four(KINDS[kind], str(folder))
    try:
        yield four
    except BaseException:
        with contextlib.suppress(AssertionError):  # what went wrong counts, not what that left behind
            four.ws.close(0.5)
        raise
    four.ws.close()


def race(four: Four, *commands: tuple[str, ...]) -> list[Running]:
    """All of them are at the start, and begin when a pipe is closed."""
    ws, fifo = four.ws, os.path.join(four.held, "start")
    if not os.path.exists(fifo):
        os.mkfifo(fifo)
    writer = os.open(fifo, os.O_RDWR)
    real = ws.command
    ready = ["sh", "-c", 'read -r word <"$START"; exec "$@"', "sh"]
    ws.command = lambda *words: [*ready, *real(*words)]  # type: ignore[method-assign]
    try:
        started = [ws.start(*words, env={"START": fifo}) for words in commands]
    finally:
        ws.command = real  # type: ignore[method-assign]
    until(lambda: all(is_at(running.pid, fifo) for running in started), what="all at the start")
    os.close(writer)
    return started


def ended(started: list[Running]) -> list[Running]:
    return [running for running in started if running.process.poll() is not None]


def one_goes_on(four: Four, started: list[Running]) -> None:
    """The others have said that they do not; the agents are all of one run; its end is what one alone comes to."""
    until(lambda: len(ended(started)) >= len(started) - 1, 30, "all but one to give up")
    losers = ended(started)
    said = "\n".join(f"{running.process.returncode}: {running.both}" for running in started)
    assert len(losers) == len(started) - 1, said
    assert all(running.process.returncode == 3 or NOTHING.search(running.err) for running in losers), said
    assert all(running.err.strip() and "Traceback" not in running.both for running in losers), said
    before = len(four.calls())
    four.await_calls(max(before, 1))
    four.release()
    (winner,) = [running for running in started if running not in losers]
    ran = four.ended(winner)
    assert ran.code == 0, said + ran.both
    is_whole(four)


def is_whole(four: Four) -> None:
    """Nothing doubled, nothing spoilt, nothing left."""
    assert four.doubled() == []
    assert four.done()
    left = [path for public in (*four.kind.public, ".rooda") for path in Path(four.ws.path, public).rglob("*.tmp")]
    assert left == []
    if four.kind.name == "flow":
        assert four.ws.git("status", "--porcelain") == ""
        assert len(four.ws.git("branch", "--list", "ai-loop/*").splitlines()) == 1
        four.ws.git("fsck", "--strict")
    assert four.ws.leftovers() == []


def interrupted(four: Four) -> None:
    """A run that can be resumed, and agents that wait from now on."""
    four.first(f'[ "$(wc -l <"$HELD/calls")" != {four.kind.first} ] || exec sleep 1000')
    running = four.start()
    four.await_calls(four.kind.first)
    running.signal(signal.SIGTERM)
    assert four.ended(running).code == 143, running.both
    four.hold()


def starts(four: Four, number: int = 3) -> None:
    four.hold()
    one_goes_on(four, race(four, *[four.kind.begin] * number))


def start_and_resume(four: Four) -> None:
    interrupted(four)
    one_goes_on(four, race(four, FRESH[four.kind.name], ("resume",)))


def resumes(four: Four, number: int = 2) -> None:
    interrupted(four)
    one_goes_on(four, race(four, *[("resume",)] * number))


def start_and_stop(four: Four) -> None:
    """`stop` finds the loop or does not; what it stopped is begun again or continues."""
    four.hold()
    start, stop = race(four, four.kind.begin, ("stop",))
    assert stop.finish() == 0, stop.both
    if "Stopped" in stop.out or "has ended" in stop.out:  # the latter: before there was anything to go on with
        assert start.finish() in (143, 4), start.both
        os.unlink(os.path.join(four.held, "gate"))
        ran = four.resume()
        ran = four.run() if NOTHING.search(ran.err) else ran
    else:
        four.await_calls(1)
        four.release()
        ran = four.ended(start)
    assert ran.code == 0, start.both + stop.both + ran.both
    is_whole(four)


def detaches(four: Four) -> None:
    """One starter tells of a run; it is the one that calls agents."""
    four.hold()
    started = race(four, *[(*four.kind.begin, "--detach")] * 2)
    codes = sorted(running.finish() for running in started)
    said = "\n".join(running.both for running in started)
    assert codes == [0, 3], said
    four.await_calls(1)
    four.release()
    until(lambda: four.ws.leftovers() == [], 30, "the end of the loop")
    assert four.runs()[0] in said
    is_whole(four)


WAYS = {each.__name__: each for each in (starts, start_and_resume, resumes, start_and_stop, detaches)}
SHORT = [("starts", kind) for kind in KINDS] + [*zip([*WAYS][1:], ("flow", "reflex", "goal", "ooda"), strict=True)]


@pytest.mark.parametrize(("way", "kind"), SHORT)
def test_two_at_once(tmp_path: Path, way: str, kind: str) -> None:
    """Starts, resumes, stops and detached starts of one loop, released by one closed pipe."""
    with looped(kind, tmp_path) as four:
        WAYS[way](four)


@pytest.mark.long
@pytest.mark.timeout(ROUNDS * 30)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_many_races(tmp_path: Path, way: str, kind: str) -> None:
    """All pairs, $ROODA_ROUNDS times (100), with two to four at the start."""
    for number in range(ROUNDS):
        with looped(kind, tmp_path / str(number)) as four:
            if way in ("starts", "resumes"):
                WAYS[way](four, random.randint(2, 4))
            else:
                WAYS[way](four)
