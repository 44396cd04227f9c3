"""The edge-case table: what a start makes of the state file that it finds."""

import json
from pathlib import Path

import pytest

from tests.kit.workspace import SAMPLE, Workspace, masked

BROKEN = {
    "half": b"{broken",
    "empty": b"",
    "blanks": b" \n",
    "list": b"[]",
    "null": b"null",
    "binary": bytes(range(256)),
    "wrong-type": json.dumps(SAMPLE | {"iteration": "3"}).encode(),
    "true-is-no-number": json.dumps(SAMPLE | {"iteration": True}).encode(),
    "bad-duration": json.dumps(SAMPLE | {"elapsed_per_iteration": ["fast"]}).encode(),
    "unknown-status": json.dumps(SAMPLE | {"status": "sleeping"}).encode(),
    "missing-key": json.dumps({k: v for k, v in SAMPLE.items() if k != "iteration"}).encode(),
    "negative": json.dumps(SAMPLE | {"iteration": -1}).encode(),
}


def test_O_074_running_is_warned_of_and_refused(ws: Workspace) -> None:
    """A start beside a file that says running: a warning with both ways on, exit 3, no call, the file unchanged."""
    ws.put_state(status="running")
    before = ws.read(".rooda/state/build.json")
    ran = ws.rooda("build")
    assert (ran.code, ran.out, ws.calls) == (3, "", [])
    assert "WARNING: " in ran.err
    assert "possible concurrent execution" in ran.err
    assert "rooda resume build" in ran.err and "rooda build --fresh" in ran.err
    assert ws.read(".rooda/state/build.json") == before


@pytest.mark.parametrize(("limit", "words"), [(10, "iteration 3 of 10"), (0, "iteration 3 completed")])
def test_O_075_interrupted_is_offered(ws: Workspace, limit: int, words: str) -> None:
    """The offer names the last completed iteration and the limit, and accepting it continues from there."""
    ws.put_state(max_iterations=limit)
    offer = ws.rooda("build")
    assert offer.code == 3
    assert words in offer.err and "2m16s" in offer.err
    ws.exits(0, 1, 1, 1)
    accepted = ws.rooda("build", stdin=b"y\n")
    assert (
        f"Resuming procedure: build from iteration 3 ({f'max {limit}' if limit else 'unlimited iterations'})"
        in (accepted.lines[0])
    )
    assert ws.calls[0].env["ROODA_ITERATION"] == "4"


@pytest.mark.parametrize("name", BROKEN)
def test_O_081_a_broken_file_is_a_warning_and_a_fresh_start(ws: Workspace, name: str) -> None:
    """What can't be understood is said in one sentence, kept aside byte for byte, and the loop starts with 1."""
    ws.write(".rooda/state/build.json", BROKEN[name])
    ran = ws.rooda("build", "--max-iterations", "1")
    assert (ran.code, len(ws.calls)) == (0, 1)
    assert masked(ran.lines)[1] == "[T] Iteration 1/1 starting..."
    (warning,) = ran.notes.splitlines()
    assert "WARNING: State file " in warning and "starting fresh" in warning
    assert Path(ws.state_file() + ".corrupt").read_bytes() == BROKEN[name]
    assert ws.state() is None


def test_O_081_resume_refuses_a_broken_file(ws: Workspace) -> None:
    """Resume does not start over by itself: the bytes are kept aside, exit 2, and the way on is named."""
    ws.write(".rooda/state/build.json", b"{broken")
    ran = ws.rooda("resume", "build")
    assert (ran.code, ran.out, ws.calls) == (2, "", [])
    assert "is damaged" in ran.err and "rooda build" in ran.err
    assert Path(ws.state_file() + ".corrupt").read_bytes() == b"{broken"


def test_O_081_a_folder_in_place_of_the_file(ws: Workspace) -> None:
    """A folder with the state file's name is put aside with all that is in it."""
    ws.write(".rooda/state/build.json/inside", "kept")
    ran = ws.rooda("build", "--max-iterations", "1")
    assert (ran.code, len(ws.calls)) == (0, 1)
    assert "starting fresh" in ran.err
    assert ws.read(".rooda/state/build.json.corrupt/inside") == "kept"
