"""Files of a run that was cut off, torn, emptied or overwritten: no traceback, and resume continues or says why."""

import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.faults.clings import AGENTS, clinging
from benchmarks.faults.judge import Judge, undisturbed
from benchmarks.faults.kinds import KINDS, Json
from benchmarks.faults.randomly import everybody
from benchmarks.faults.site import Ended, Site

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and a child subreaper")
AT = {"ooda": "iteration 4", "reflex": "critique 1 B", "flow": "sensor 1 outer 1", "goal": "step 2"}
LOOKS = ("status", "status --json", "why", "logs", "usage", "list", "stop")
OWN = {
    "ooda": (),
    "reflex": ("reflex status", "reflex list", "reflex history", "reflex show", "reflex diff", "reflex stop"),
    "flow": ("flow status", "flow log", "flow check"),
    "goal": ("goal status", "goal stop-check", "goal verify", "goal cancel"),
}
FRESH = {  # what is always possible instead
    "ooda": ("build", "--fresh", "-n", "6"),
    "reflex": KINDS["reflex"].start,
    "flow": ("flow", "run", "do it", "--new", "--allow-dirty"),
    "goal": (*KINDS["goal"].start, "--fresh"),
}
COURSES, RUN = ".ai-factory/evolution/courses", ".ai-loop/runs/{run}"
SAME, NEW, PERSON = (
    "same",
    "new",
    "person",
)  # the end of an undisturbed run | start over, it says | a person must sign it
FILES = [
    ("ooda", ".rooda/state/build.json", NEW),
    ("reflex", f"{COURSES}/run.json", SAME),
    ("reflex", f"{COURSES}/history.jsonl", SAME),
    ("reflex", ".ai-factory/evolution/current.json", SAME),
    ("flow", f"{RUN}/run-state.md", SAME),
    ("flow", f"{RUN}/nodes/outer/sensor-suite-output.md", SAME),
    ("flow", f"{RUN}/nodes/outer/inner/orchestrator-output.md", SAME),
    ("goal", ".loop/state.json", SAME),
    ("goal", ".loop/run.json", SAME),
    ("goal", ".loop/iterations.jsonl", SAME),
    ("goal", ".rooda/goal.seal", PERSON),
    *((loop, ".rooda/runs/{events}/events.jsonl", SAME) for loop in KINDS),
]
DAMAGES = ("torn", "empty", "garbage", "list", "object")
SOME = [(row, DAMAGES[place % len(DAMAGES)]) for place, row in enumerate(FILES)]
ALL = [(row, damage) for row in FILES for damage in DAMAGES]
Row = tuple[str, str, str]


class Cut(NamedTuple):
    """A run that was killed with all of its processes, and the end that it should have come to."""

    site: Site
    end: Json


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Cut]:
    def made(loop: str) -> Cut:
        folder = tmp_path_factory.mktemp(loop)
        end = undisturbed(Site(KINDS[loop], str(folder / "whole")))
        site = Site(KINDS[loop], str(folder / "cut"))
        process = clinging(site, AT[loop], AGENTS["good"])
        assert everybody(site)
        site.ended(process)
        os.unlink(os.path.join(site.notes, "clings"))
        return Cut(site, end)

    return cache(made)


def damaged(path: Path, damage: str) -> None:
    data = path.read_bytes()
    whole, _, last = data.rstrip(b"\n").rpartition(b"\n") if path.suffix == ".jsonl" else (b"", b"", data)
    torn = (whole + b"\n" if whole else b"") + last[: len(last) // 2]
    path.write_bytes({"torn": torn, "empty": b"", "garbage": b"\0\xff{]\n", "list": b"[]\n", "object": b"{}\n"}[damage])


def told(ended: Ended, codes: tuple[int, ...] = (0, 1, 2, 3, 4)) -> None:
    assert "Traceback" not in ended.said and ended.code in codes and (ended.code == 0 or ended.said.strip()), ended


def one_case(cut: Cut, folder: Path, row: Row, damage: str, looks: bool) -> None:
    loop, name, expected = row
    site = Site(KINDS[loop], str(folder / "site"), like=cut.site.folder)
    site.do("trust", "--state")  # a copy is a workspace that was moved: the user says once that it is theirs
    (events,) = os.listdir(os.path.join(site.work, ".rooda/runs"))
    runs = os.path.join(site.work, ".ai-loop/runs")
    name = name.format(events=events, run=os.listdir(runs)[0] if loop == "flow" else "")
    judge = Judge(site, cut.end)
    judge.session()
    path = Path(site.work, name)
    damaged(path, damage)
    spoiled = path.read_bytes()
    for words in (*LOOKS, *OWN[loop]) if looks else ():
        look = Site(KINDS[loop], str(folder / words.replace(" ", "-")), like=site.folder)
        told(look.do(*words.split()))
    ended = site.do(*KINDS[loop].resume(site.work))
    if expected == PERSON:
        told(ended, (3,))
        assert "is not signed by you" in ended.said
        told(site.do("trust", "--state"), (0,))
        ended = site.do(*KINDS[loop].resume(site.work))
    if expected in (SAME, PERSON):
        told(ended, (0,))
        judge.session()
        judge.end()
        assert [each for each in judge.problems if name.rpartition("/")[2] not in each.partition("\n")[0]] == []
        return
    told(ended, (2,))
    assert Path(f"{path}.corrupt").read_bytes() == spoiled and "Start over with: rooda build" in ended.said
    told(site.do(*FRESH[loop]), (0,))
    assert site.gone()


@pytest.mark.parametrize(("row", "damage"), SOME)
def test_O_021_R_053_F_139_C_070_a_damaged_file(
    cut: Callable[[str], Cut], tmp_path: Path, row: Row, damage: str
) -> None:
    """Each file with one damage: the same end as of an undisturbed run, or a way to start over."""
    one_case(cut(row[0]), tmp_path, row, damage, looks=False)


@pytest.mark.parametrize("row", [FILES[2], FILES[8]], ids=lambda row: row[0])
def test_every_command_on_a_damaged_file(cut: Callable[[str], Cut], tmp_path: Path, row: Row) -> None:
    """Status, logs, why and the kind's own commands: no traceback."""
    one_case(cut(row[0]), tmp_path, row, "torn", looks=True)


@pytest.mark.long
@pytest.mark.parametrize(("row", "damage"), ALL)
def test_every_damage_and_every_look(cut: Callable[[str], Cut], tmp_path: Path, row: Row, damage: str) -> None:
    """All files, all damages, all commands."""
    one_case(cut(row[0]), tmp_path, row, damage, looks=True)


@pytest.mark.parametrize("loop", ["reflex", "flow", "goal"])
def test_starting_over_is_always_possible(cut: Callable[[str], Cut], tmp_path: Path, loop: str) -> None:
    """With every file of the run damaged the resume says what it can't do, and a new start runs to its end."""
    site = Site(KINDS[loop], str(tmp_path / "site"), like=cut(loop).site.folder)
    site.do("trust", "--state")
    for name in site.files():
        if not name.endswith(("flow.yaml", ".gitignore")):
            damaged(Path(site.work, name), "garbage")
    told(site.do(*KINDS[loop].resume(site.work)))
    if loop == "reflex":
        told(site.do("reflex", "clean", "courses", "--yes"), (0,))
    told(site.do(*FRESH[loop]), (0,))
    assert site.gone()
