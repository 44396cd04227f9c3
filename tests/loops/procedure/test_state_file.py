"""The state file: its place, its nine keys, what they hold at each moment, and when it comes and goes."""

import os
import re
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from rooda.base.text import format_seconds, format_tenths, parse_seconds
from tests.kit.workspace import SAMPLE, Workspace, masked

TYPES = {
    "iteration": int,
    "max_iterations": int,
    "consecutive_failures": int,
    "failure_threshold": int,
    "started_at": str,
    "last_iteration_at": str,
    "status": str,
    "procedure_name": str,
    "elapsed_per_iteration": list,
}
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


def moment(text: str) -> datetime:
    """The time that such a stamp names."""
    assert re.fullmatch(STAMP, text), text
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def whole_second() -> datetime:
    """Now, as the file would say it."""
    return datetime.fromtimestamp(int(time.time()), UTC)


def found_files(ws: Workspace, ending: str) -> list[str]:
    """Every file of the workspace with this ending, by its place in it."""
    places = (os.path.join(folder, name) for folder, _, names in os.walk(ws.path) for name in names)
    return sorted(os.path.relpath(place, ws.path) for place in places if place.endswith(ending))


def run_with_copies(ws: Workspace, codes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Copies of the state made by each call of a run that ends by its limit."""
    ws.exits(*codes)
    ws.copy_state_at(*range(1, len(codes) + 1))
    assert ws.rooda("build", "-n", str(len(codes))).code == (1 if codes[-1] else 0)
    return [ws.copies[n] for n in range(1, len(codes) + 1)]


def test_O_018_O_028_O_044_written_after_every_iteration(ws: Workspace) -> None:
    """Call N finds N-1 in the file, whether the calls before it failed or not."""
    copies = run_with_copies(ws, (0, 1, 0, 1, 1))
    assert [copy["iteration"] for copy in copies] == [0, 1, 2, 3, 4]


def test_O_029_the_limit_in_the_file(ws: Workspace) -> None:
    """The file has the limit in force; an unlimited run has 0."""
    ws.copy_state_at(1)
    ws.signal_at(1)
    ws.rooda("build", "--max-iterations", "7")
    assert (ws.copies[1]["max_iterations"], ws.state()["max_iterations"]) == (7, 7)
    ws.signal_at(2)
    ws.rooda("build", "--max-iterations", "0", "--fresh")
    assert ws.state()["max_iterations"] == 0


@pytest.mark.parametrize("threshold", [None, 4, 1])
def test_O_031_the_threshold_in_the_file(ws: Workspace, threshold: int | None) -> None:
    """The file has the threshold in force, three by default, and so many failures abort."""
    ws.procedure(loop={"failure_threshold": threshold})
    threshold = threshold or 3
    ws.copy_state_at(1)
    assert ws.rooda("build", env={"FAKE_EXIT": "1"}).code == 1
    assert ws.copies[1]["failure_threshold"] == threshold
    assert ws.state()["failure_threshold"] == threshold
    assert (ws.state()["consecutive_failures"], ws.state()["iteration"]) == (threshold, threshold)


def test_O_032_O_033_times(ws: Workspace) -> None:
    """The start is the time of the start and stays; the last iteration's time lies between it and now."""
    before = whole_second()
    copies = run_with_copies(ws, (0, 1, 0))
    after = whole_second()
    assert len({copy["started_at"] for copy in copies}) == 1
    assert before <= moment(copies[0]["started_at"]) <= after
    lasts = [moment(copy["last_iteration_at"]) for copy in copies[1:]]
    assert lasts == sorted(lasts)
    assert moment(copies[0]["started_at"]) <= lasts[0]
    assert lasts[-1] <= after


@pytest.mark.parametrize("code", [0, 1])
def test_O_033_O_062_the_last_iteration_moves_on(ws: Workspace, code: int) -> None:
    """After an iteration, failed or not, an old time of the last iteration has become the present one."""
    ws.put_state(last_iteration_at="2020-01-02T03:04:05Z", started_at="2020-01-02T03:00:00Z")
    before = whole_second()
    ws.exits(code)
    ws.copy_state_at(1, 2)
    assert ws.rooda("resume", "build", "-n", "5").code == 0
    assert ws.copies[1]["last_iteration_at"] == "2020-01-02T03:04:05Z"
    assert before <= moment(ws.copies[2]["last_iteration_at"]) <= whole_second()
    assert ws.copies[2]["started_at"] == "2020-01-02T03:00:00Z"


def test_O_034_O_041_O_064_statuses(ws: Workspace) -> None:
    """The file says running while the loop runs, then how it ended, and never anything else."""
    assert {copy["status"] for copy in run_with_copies(ws, (0, 1, 0))} == {"running"}
    assert ws.state() is None
    ws.copy_state_at(4, 5, 6)
    assert ws.rooda("build", env={"FAKE_EXIT": "1"}).code == 1
    assert {ws.copies[n]["status"] for n in (4, 5, 6)} == {"running"}
    assert ws.state()["status"] == "aborted"
    ws.signal_at(7, "TERM")
    assert ws.rooda("build").code == 143
    assert ws.state()["status"] == "interrupted"


def test_O_035_O_042_each_procedure_has_its_file(bare: Workspace) -> None:
    """Names of any shape give a file of that name in the one place, with the name inside and in the log."""
    names = ("audit-spec", "X", "v1.2_draft")
    bare.sections["v1.2_draft"] = '[procedures."v1.2_draft"]\nobserve = "O"\norient = "R"\ndecide = "D"\nact = "A"\n'
    bare.procedure("audit-spec")
    bare.procedure("X")
    for n, name in enumerate(names, 1):
        bare.signal_at(n)
        assert bare.rooda(name).code == 130
        assert bare.state(name)["procedure_name"] == name
        assert {record["procedure"] for record in bare.events()} == {name}
    assert found_files(bare, ".json") == sorted(f".rooda/state/{name}.json" for name in names)


def test_O_042_the_workspace_may_be_named(ws: Workspace) -> None:
    """With -C the file is in that folder, not where the command was typed."""
    ws.signal_at(1)
    assert ws.rooda("-C", ws.path, "build", cwd=ws.home).code == 130
    assert ws.state()["iteration"] == 1
    assert not os.path.exists(f"{ws.home}/.rooda")


def test_O_036_O_037_a_duration_for_every_iteration(ws: Workspace) -> None:
    """The file has one duration per closed iteration, the killed one too, each as the screen shows it."""
    ws.exits(0, 1, 0)
    ws.side(1, "sleep 0.3")
    ws.copy_state_at(1, 2, 3, 4)
    ws.signal_at(4)
    before = time.monotonic()
    ran = ws.rooda("build", "-n", "9")
    took = time.monotonic() - before
    states = [*ws.copies.values(), ws.state()]
    assert [len(state["elapsed_per_iteration"]) for state in states] == [0, 1, 2, 3, 4]
    assert [state["iteration"] for state in states] == [0, 1, 2, 3, 4]
    elapsed = states[-1]["elapsed_per_iteration"]
    assert all(re.fullmatch(r"\d+\.\ds", each) for each in elapsed)
    assert elapsed[:3] == re.findall(r"completed in (\S+)", ran.out)
    assert 0.3 <= float(elapsed[0][:-1]) <= took
    assert states[-1]["elapsed_per_iteration"][:3] == states[-2]["elapsed_per_iteration"]


def test_O_038_nine_keys(ws: Workspace) -> None:
    """Every copy is one object with the nine keys, in their order, with their types; only the last time may be null."""
    copies = run_with_copies(ws, (0, 1, 0))
    for copy in copies:
        assert list(copy) == list(SAMPLE)
        nulls = {"last_iteration_at"} if copy["iteration"] == 0 else set()
        assert {key for key, kind in TYPES.items() if type(copy[key]) is not kind} == nulls
    ws.signal_at(4)
    ws.rooda("build")
    assert list(ws.state()) == list(SAMPLE)
    assert ws.read(".rooda/state/build.json").startswith('{\n  "iteration": 1,\n')


@pytest.mark.parametrize("name", ["build", "sweep"])
def test_O_039_the_sample_is_valid(bare: Workspace, name: str) -> None:
    """The specification's sample file can be resumed, for any procedure, and its numbers are shown."""
    bare.procedure(name)
    bare.put_state(name)
    ran = bare.rooda("resume", name)
    assert ran.code == 0
    assert [line[11:] for line in ran.lines[:3]] == [
        f"Resuming procedure: {name} from iteration 3 (max 10)",
        "Previous session: 3 iterations completed in 2m16s",
        "Iteration 4/10 starting...",
    ]
    assert len(bare.calls) == 7


def test_O_043_OA_12_made_before_the_first_call(ws: Workspace) -> None:
    """The first call finds a file that says: running, nothing done yet."""
    ws.copy_state_at(1)
    assert ws.rooda("build", "-n", "2").code == 0
    first = ws.copies[1]
    assert (first["iteration"], first["status"], first["elapsed_per_iteration"]) == (0, "running", [])
    assert (first["consecutive_failures"], first["last_iteration_at"]) == (0, None)


@pytest.mark.parametrize("last", ["null", "missing", "zero"])
def test_OA_12_a_file_from_before_the_first_iteration_ended(ws: Workspace, last: str) -> None:
    """No time of a last iteration, in any of its spellings, is no damage: resume starts with iteration 1."""
    at = "0001-01-01T00:00:00Z" if last == "zero" else None
    ws.put_state(iteration=0, status="running", elapsed_per_iteration=[], max_iterations=2, last_iteration_at=at)
    if last == "missing":
        text = ws.read(".rooda/state/build.json").replace('  "last_iteration_at": null,\n', "")
        assert "last_iteration_at" not in text
        ws.write(".rooda/state/build.json", text)
    ws.copy_state_at(1)
    ran = ws.rooda("resume", "build")
    assert ran.code == 0
    assert ws.copies[1]["last_iteration_at"] is None
    assert masked(ran.lines)[:3] == [
        "[T] Resuming procedure: build from iteration 0 (max 2)",
        "[T] Previous session: 0 iterations completed in D",
        "[T] Iteration 1/2 starting...",
    ]


def test_O_045_gone_after_completion(ws: Workspace) -> None:
    """A completed run, fresh or resumed, leaves no state file, nor scraps of one."""
    assert ws.rooda("build", "-n", "2").code == 0
    assert os.listdir(ws.file(".rooda/state")) == ["build.lock"]
    ws.put_state(max_iterations=4)
    assert ws.rooda("resume", "build").code == 0
    assert os.listdir(ws.file(".rooda/state")) == ["build.lock"]


@pytest.mark.parametrize(
    ("time", "text"),
    [(0, "0.0s"), (42, "42.0s"), (59.96, "1m0.0s"), (75.3, "1m15.3s"), (3599.9, "59m59.9s"), (3723, "1h2m3.0s")],
)
def test_OA_27_durations_of_any_length(time: float, text: str) -> None:
    """Durations of a minute or an hour are written like Go's, with one decimal, and read back."""
    assert format_tenths(time) == text
    assert parse_seconds(text) == pytest.approx(time, abs=0.05)


@pytest.mark.parametrize(("time", "text"), [(45, "45s"), (136, "2m16s"), (155.4, "2m35s"), (3605, "1h0m5s")])
def test_OA_27_totals_of_any_length(time: float, text: str) -> None:
    """Totals are whole seconds in the same style."""
    assert format_seconds(time) == text


def test_OA_27_any_go_duration_is_read(ws: Workspace) -> None:
    """Durations as another writer spells them are read, summed and kept as they are."""
    spelled = ["1h2m3.5s", "1m15.3s", "1500ms", "700000µs", "1.5h", "0s", "2m"]
    ws.put_state(iteration=7, elapsed_per_iteration=spelled)
    ws.copy_state_at(2)
    ran = ws.rooda("resume", "build", "-n", "9")
    assert ran.lines[1].endswith("Previous session: 7 iterations completed in 2h35m21s")
    assert ws.copies[2]["elapsed_per_iteration"][:7] == spelled
    assert len(ws.copies[2]["elapsed_per_iteration"]) == 8
