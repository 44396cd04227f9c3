"""The wall clock jumps while a loop runs: no timeout, no wait, no duration and no order of runs is the worse for it."""

import json
import os
import signal
import struct
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.kit.clocks import HOUR, YEAR, Clock, jumped, sleep_through
from tests.kit.four import KINDS, Four
from tests.kit.goal import claim
from tests.kit.limits import limited, paid, resting, speaks
from tests.kit.needed import LINUX, needs
from tests.kit.swarm import loop_of
from tests.kit.workspace import until

pytestmark = [LINUX, needs("cc")]
JUMPS = (10 * HOUR, -10 * HOUR, 10 * YEAR, -27 * YEAR, 0)
SPRING, AUTUMN = 1_806_195_600, 1_792_890_000  # in Berlin the clocks are set, forward and back
BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3"
HANGS = "trap '' TERM; while :; do sleep 1000; done"


@pytest.fixture
def clock(four: Four) -> Clock:
    return Clock(four.ws)


def jumps_at_every_call(four: Four, clock: Clock, jumps: tuple[float, ...] = JUMPS) -> str:
    """Each agent call sets the clock to the next of these."""
    for number, jump in enumerate(jumps):
        Path(four.held, f"jump-{number}").write_bytes(struct.pack("=qqq", *jumped(jump)))
    return (
        f'cp "$HELD/jump-$(($(wc -l <"$HELD/calls") % {len(jumps)}))" "{clock.path}.$$"\n'
        f'mv "{clock.path}.$$" "{clock.path}"\n'
    )


def durations(value: Any) -> Iterator[float]:
    """Every number in these events that says how long something took."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "limits":
                continue
            if key in ("elapsed", "seconds", "session") and isinstance(inner, int | float):
                yield inner
            yield from durations(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from durations(inner)


def test_the_clock_jumps_at_every_call(four: Four, clock: Clock) -> None:
    """Hours and years, forward, back, before 2000: the loop ends as usual, and what it says of times makes sense."""
    four.config(iteration_timeout=500, idle_timeout=500)
    four.first(jumps_at_every_call(four, clock))
    ran = four.run("--max-duration", "600")
    assert ran.code == 0, ran.both
    assert four.done()
    assert {event["ended"] for event in four.said("agent.ended")} == {"exit"}
    stamps = [event["ts"] for event in four.ws.every_event()]
    assert stamps != sorted(stamps)  # the clock did jump
    assert all(0 <= seconds < 600 for seconds in durations(four.ws.every_event()))
    usage = json.loads(four.ws.rooda("usage", "--json").out)
    assert 0 <= usage["total"]["seconds"] < 600, usage


def test_the_age_of_a_running_loop(ooda: Four) -> None:
    """Ten years ahead, ten hours back: a loop is as old as it is."""
    clock = Clock(ooda.ws)
    ooda.hold()
    running = ooda.start()
    ooda.await_calls(1)
    for jump in (10 * YEAR, -10 * HOUR):
        clock.jump(jump)
        shown_now = [*durations(json.loads(ooda.ws.rooda("status", "--json").out))]
        assert shown_now and all(0 < seconds < 600 for seconds in shown_now)
    ooda.release()
    assert ooda.ended(running).code == 0


def test_daylight_saving_time_begins_and_ends(four: Four, clock: Clock) -> None:
    """The first call crosses the hour that is missing in spring, the second the one that comes twice in autumn."""
    four.ws.env["TZ"] = BERLIN
    moments = (SPRING - 1, SPRING + 1, AUTUMN - 1, AUTUMN + 1)
    four.first(jumps_at_every_call(four, clock, tuple(moment - time.time() for moment in moments)))
    clock.set(SPRING - 60)
    ran = four.run("--max-duration", "600")
    assert ran.code == 0, ran.both
    assert four.done()
    assert all(0 <= seconds < 600 for seconds in durations(four.ws.every_event()))


def test_limits_of_time_hold(four: Four, clock: Clock) -> None:
    """The clock goes back, an agent hangs and ignores TERM: timeout and grace are as long as usual."""
    four.config(iteration_timeout=0.3, kill_grace=0.1)
    four.first(jumps_at_every_call(four, clock) + HANGS)
    ran = four.run()
    assert ran.code in (0, 1, 3), ran.both
    ended = four.said("agent.ended")
    assert {event["ended"] for event in ended} == {"timeout"} and all(event["seconds"] < 30 for event in ended)


@pytest.fixture
def ooda(tmp_path: Path) -> Iterator[Four]:
    made = Four(KINDS["ooda"], str(tmp_path))
    yield made
    made.ws.close()


def test_limits_of_silence_and_of_gates_hold(ooda: Four) -> None:
    """Over a clock that goes back too: an idle agent and a gate that hangs are ended."""
    clock, ws = Clock(ooda.ws), ooda.ws
    Path(ooda.held, "back").write_bytes(struct.pack("=qqq", *jumped(-5 * HOUR)))
    hang = f'cp "$HELD/back" {clock.path}; {HANGS}'
    ws.side(2, hang)
    gate = '\n[[procedures.build.quality_gates]]\nname = "slow"\ntimeout = 0.3\ncommand = ' + json.dumps(hang) + "\n"
    ws.sections["build"] += gate
    ooda.config(idle_timeout=0.4, kill_grace=0.1)
    ran = ooda.run()
    assert ran.code == 1, ran.both
    assert "slow (timeout 0.3s)" in ran.out
    assert [event["ended"] for event in ooda.said("agent.ended")] == ["exit", "idle"]


def test_a_wait_ends_when_the_clock_shows_its_end(ooda: Four) -> None:
    """The machine slept over the end of a limit, or the clock was set: the wait is over, the iteration made once."""
    clock = Clock(ooda.ws)
    limited(ooda, 5 * HOUR)
    running = ooda.start()
    assert 5 * HOUR - 600 < resting(ooda)["seconds"] < 5 * HOUR + 600
    sleep_through(clock, running, 6 * HOUR)
    ran = ooda.ended(running)
    assert ran.code == 0, ran.both
    assert paid(ooda) == 3 and len(ooda.said("rested")) == 1
    assert len(ooda.said("iteration.ended")) == 2


def record(ooda: Four) -> Path:
    """The note of the account's limit, made by a run that stops at it."""
    limited(ooda, 5 * HOUR, on_limit="stop")
    assert ooda.run().code == 4
    ooda.config(on_limit="wait")
    return next(Path(ooda.ws.env["XDG_STATE_HOME"]).rglob("limits/*.json"))


def shown(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def test_a_wait_never_gets_longer(ooda: Four) -> None:
    """The clock is set back during the wait for a limit: after the time that was left, the agent is called."""
    clock, noted = Clock(ooda.ws), record(ooda)
    now, uptime = time.time(), time.clock_gettime(time.CLOCK_BOOTTIME)
    fresh = {"until": shown(now + 2), "noted": shown(now), "uptime": uptime}
    noted.write_text(json.dumps(json.loads(noted.read_text()) | fresh))
    running = ooda.ws.start("resume", "build")
    assert 0 < resting(ooda)["seconds"] <= 2
    clock.jump(-10 * HOUR)
    assert ooda.ended(running).code == 0
    assert paid(ooda) == 3 and len(ooda.said("rested")) == 1


@pytest.mark.parametrize("ahead", [10 * YEAR, -10 * YEAR])
def test_a_limit_recorded_by_a_wrong_clock(ooda: Four, ahead: int) -> None:
    """Its five hours are five by the machine's own time, however the clock is repaired, and shown with a zone."""
    clock = Clock(ooda.ws)
    clock.jump(ahead)
    ooda.ws.env["TZ"] = "IST-5:30"
    noted = record(ooda)
    assert json.loads(noted.read_text())["until"].endswith("+05:30")
    clock.jump(0)
    ooda.config(on_limit="stop")
    ran = ooda.resume("build")
    if ahead < 0:  # the clock shows a time long after it
        assert ran.code == 0, ran.both
        return
    assert ran.code == 4 and paid(ooda) == 1
    until_then = datetime.fromisoformat(ran.lines[-1].split(" until ")[1].split()[0].rstrip("."))
    assert 0 < until_then.timestamp() - time.time() <= 5 * HOUR
    assert "+05:30" in ran.lines[-1]
    clock.jump(0, slept=5 * HOUR)
    assert ooda.resume("build").code == 0


def test_a_limit_of_another_boot_recorded_by_a_wrong_clock(ooda: Four) -> None:
    """After a reboot the time left is unknown, so the agent is called."""
    clock = Clock(ooda.ws)
    clock.jump(10 * YEAR)
    noted = record(ooda)
    clock.jump(0)
    noted.write_text(json.dumps(json.loads(noted.read_text()) | {"boot": "another"}))
    assert ooda.resume("build").code == 0


def test_a_back_off_ignores_clock_jumps(ooda: Four) -> None:
    """A back-off is a time, not a moment: the clock may jump ahead in it, and it does not get shorter."""
    clock = Clock(ooda.ws)
    limited(ooda, 0, "Overloaded", retry_wait=1.5)
    speaks(ooda, 'cd "$HELD"\nif rm limit 2>&-; then sed s/429/529/ limited.out; else cat done.out; fi\n')
    running = ooda.start()
    assert resting(ooda)["seconds"] == 1.5
    began = time.monotonic()
    clock.jump(10 * HOUR)
    os.kill(loop_of(running.pid), signal.SIGCONT)
    until(lambda: ooda.said("rested"), what="the end of the pause")
    assert time.monotonic() - began > 1
    assert ooda.ended(running).code == 0
    assert ooda.said("run.ended")[-1]["iterations"] == 2


def test_runs_keep_their_order(ooda: Four) -> None:
    """The clock stops, then is set back a year: names are unique, and the latest run is the one started last."""
    clock, moment = Clock(ooda.ws), 1_790_000_000
    names = []
    for number in range(3):
        clock.stand(moment)
        names.append(run_of(ooda))
        if number == 1:
            clock.jump(-YEAR)
            names.append(run_of(ooda))
    clock.jump(-2 * YEAR)
    names.append(run_of(ooda))
    assert len(set(names)) == 5 and names == sorted(names)
    assert json.loads(ooda.ws.rooda("events", "build").lines[0])["run"] == names[-1]
    assert sorted(os.listdir(ooda.ws.file(".rooda/runs"))) == names


def run_of(four: Four) -> str:
    """A run, and its name."""
    assert four.run().code == 0
    return four.runs()[-1]


def test_used_time_counts_although_the_clock_went_back(four: Four, clock: Clock) -> None:
    """Cut off in a call of a second and a half, resumed years earlier by the clock: no further call is paid for."""
    early = f'[ "$(wc -l <"$HELD/calls")" -lt {four.kind.first} ]'
    four.first(early + ' || { sleep 1.5; touch "$HELD/long"; sleep 1000; }')
    running = four.start()
    until(lambda: os.path.exists(os.path.join(four.held, "long")), what="the long call")
    running.signal(signal.SIGTERM)
    assert four.ended(running).code == 143
    clock.jump(-10 * YEAR)
    before = len(four.calls())
    ran = four.resume("--max-duration", "1.2")
    assert ran.code == 4, ran.both
    assert "Time limit reached: " in ran.both and " of 1.2s" in ran.both
    assert len(four.calls()) == before


@pytest.mark.parametrize(
    ("moment", "said", "expected"),
    [
        (AUTUMN - 2700, "2:10am", "2026-10-25T02:10:15+01:00"),  # it is 2:15 for the first time
        (AUTUMN - 2700, "2:20am", "2026-10-25T02:20:15+02:00"),
        (AUTUMN + 900, "2:20am", "2026-10-25T02:20:15+01:00"),
        (AUTUMN + 900, "2:10am", "2026-10-26T02:10:15+01:00"),
        (SPRING - 1800, "2:30am", "2027-03-28T03:30:15+02:00"),  # there is no such time
    ],
)
def test_a_reset_time_on_the_night_of_a_clock_change(ooda: Four, moment: int, said: str, expected: str) -> None:
    """What a CLI says as a time of day is the next moment at which a clock there shows it."""
    ooda.ws.env["TZ"] = BERLIN
    Clock(ooda.ws).set(moment)
    limited(ooda, 0, f"5-hour limit reached ∙ resets {said}", on_limit="stop")
    speaks(ooda, 'cat "$HELD/limited.out"\n')
    ran = ooda.run()
    assert ran.code == 4, ran.both
    assert expected in ran.lines[-1]


@pytest.mark.parametrize("fresh", [True, False])
def test_fresh_evidence_is_that_of_the_last_call(tmp_path: Path, fresh: bool) -> None:
    """The clock goes back an hour while a goal's agent takes a picture: fresh; one of before that hour is not."""
    goal = Four(KINDS["goal"], str(tmp_path))
    clock = Clock(goal.ws)
    clock.jump(HOUR)  # files have the real time: as if the clock had been put right in the call
    goal.ws.write(".loop/shape/SHAPE.md", "criteria:\n- UI renders\nverification:\n  UI renders: observation\n")
    Path(goal.held, "right").write_bytes(struct.pack("=qqq", *jumped(0)))
    goal.first(f'[ "$ROODA_CALL$ROODA_ITERATION" != step3 ] || cp "$HELD/right" {clock.path}\n')
    picture = goal.ws.write("picture.png", "old")
    os.utime(picture, (time.time() - 2 * HOUR,) * 2)
    goal.ws.side("step-3", "touch picture.png\n" if fresh else "")
    goal.ws.out("step", claim(True, EVIDENCE="picture.png"))
    goal.config(observation_evidence="file")
    goal.ws.config(goal.ws.read("rooda.toml").replace("observation_evidence", "[goal]\nobservation_evidence"))
    ran = goal.run()
    goal.ws.close()
    assert ("needs observation: UI renders" in ran.out) == (not fresh), ran.both
