"""Short programs and their output: whole, limited, silent, and with pipes that somebody else keeps open."""

import os
import time

import pytest

from rooda.processes.capture import TIMED_OUT, TOO_MUCH, capture

SLOW = 60.0  # seconds that a program would run, if it were not ended


@pytest.fixture(autouse=True, params=["told", "asked"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system tells when a program ends, or it must be asked, as on macOS."""
    if request.param == "asked":
        monkeypatch.delattr(os, "pidfd_open", raising=False)


def shell(text: str) -> list[str]:
    return ["/bin/sh", "-c", text]


def test_a_megabyte_goes_in_and_comes_out() -> None:
    data = os.urandom(1_000_000)
    assert capture(["cat"], stdin=data) == (0, data, b"")


def test_a_program_need_not_read_what_it_gets() -> None:
    assert capture(shell("echo out; echo err >&2; exit 3"), stdin=b"x" * 1_000_000) == (3, b"out\n", b"err\n")


def test_closed_pipes_are_not_the_end() -> None:
    began = time.monotonic()
    assert capture(shell("exec >&- 2>&-; sleep 0.3; exit 7")).code == 7
    assert time.monotonic() - began >= 0.3


def test_a_time_limit_kills_a_program_and_its_children() -> None:
    began = time.monotonic()
    done = capture(shell(f"echo before; sleep {SLOW} & sleep {SLOW}"), timeout=0.5)
    assert done == (TIMED_OUT, b"before\n", b"no answer within 0.5s") and time.monotonic() - began < SLOW / 2


def test_a_program_that_goes_quiet_is_ended() -> None:
    done = capture(shell(f"for n in 1 2 3; do echo $n; sleep 0.3; done; sleep {SLOW}"), quiet=1)
    assert done == (TIMED_OUT, b"1\n2\n3\n", b"no progress for 1s")


def test_pipes_that_a_descendant_holds_are_waited_for_but_not_with_a_limit() -> None:
    text = "echo first; (sleep 1; echo second) & exit 0"
    assert capture(shell(text), most=1000) == (0, b"first\n", b"")
    assert capture(shell(text)) == (0, b"first\nsecond\n", b"")


def test_output_over_the_limit_is_not_read() -> None:
    """And it is not waited for; one that says as much as it may is heard to its end."""
    flood = capture(["/bin/sh", "-c", "yes & yes >&2"], timeout=30, most=1000)
    assert flood.code == TOO_MUCH and max(len(flood.out), len(flood.err)) == 1001
    said = capture(["/bin/sh", "-c", "printf %01000d 7; echo no >&2; exit 3"], timeout=30, most=1000)
    assert (said.code, len(said.out), said.err) == (3, 1000, b"no\n")


def test_a_program_that_is_missing() -> None:
    assert capture(["/nowhere/at/all"]).code == 127
