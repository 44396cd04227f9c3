"""A kill between the last writes of an end, or in the first ones of a start, is repaired by the next command."""

import os
import re
import shutil
import stat
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from benchmarks.faults.kinds import KINDS, git
from benchmarks.faults.site import Site
from benchmarks.faults.steps import EIO, KILL, Step, Steps
from tests.kit.needed import LINUX, needs

pytestmark = [LINUX, needs("cc")]
Made = Callable[[str], Steps]
SHIM = """\
#!/bin/sh
# Once something has been written into the work, one `git add` fails.
case " $* " in *" add "*)
    read -r now <"$WORK/work.txt"
    [ "$now" != 0 ] && mkdir "$WORK/../once" 2>/dev/null && exit 128 ;;
esac
exec %s "$@"
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return cache(lambda loop: Steps(KINDS[loop], str(tmp_path_factory.mktemp(loop))))


def killed(made: Steps, folder: Path, step: Step, fault: str = KILL) -> Site:
    """A loop that is killed at this step, found by what it does to which file: the load moves its number."""
    part = re.split(r"\.?\d", os.path.basename(step.path))[0]
    alike = [each for each in made.all if each.name == step.name and part in each.path]
    site = Site(made.kind, str(folder / "site"))
    spot = {"FAULTS_NAME": step.name, "FAULTS_PART": part}
    code = site.ended(site.next(made.env(site, alike.index(step) + 1, fault) | spot)).code
    assert (code == -9) == (fault == KILL), site.heard()
    return site


def last(made: Steps, name: str, end: str) -> Step:
    return [step for step in made.all if step.name == name and step.path.endswith(end)][-1]


@pytest.mark.parametrize(
    ("name", "end"), [("fdatasync", "iterations.jsonl"), ("rename", "state.json"), ("rename", "summary.md")]
)
def test_C_071_a_goal_whose_end_was_cut_off(made: Made, tmp_path: Path, name: str, end: str) -> None:
    """Continue writes what is missing, says so and exits 0; after that there is nothing to continue with."""
    site = killed(made("goal"), tmp_path, last(made("goal"), name, end))
    ended = site.do("goal", "continue")
    assert ended.code == 0 and "The goal has ended: completed." in ended.said
    assert site.kind.over(site.work) and not [path for path in site.files() if path.endswith(".tmp")]
    assert "There is no goal to resume here" in site.do("goal", "continue").said


def test_R_053_a_reflex_loop_whose_pointer_was_left(made: Made, tmp_path: Path) -> None:
    """The next resume removes the pointer to an ended loop."""
    site = killed(made("reflex"), tmp_path, last(made("reflex"), "unlink", "current.json"))
    pointer = os.path.join(site.work, ".ai-factory", "evolution", "current.json")
    assert os.path.exists(pointer)
    assert site.do("reflex", "resume").code == 3
    assert not os.path.exists(pointer)


@pytest.mark.parametrize("loop", ["goal", "flow"])
def test_git_never_sees_rooda_s_files(made: Made, tmp_path: Path, loop: str) -> None:
    """Killed while .rooda/.gitignore is written: after the next start git sees none of our private files."""
    step = next(step for step in made(loop).all if ".gitignore" in step.path and step.name == "write")
    site = killed(made(loop), tmp_path, step)
    assert site.finish().code == 0
    assert ".rooda" not in git(site.work, "status", "--porcelain", "-uall") + git(site.work, "ls-files")


def test_C_071_a_goal_that_is_cut_off_again_and_again(made: Made, tmp_path: Path) -> None:
    """Killed between the seal and each of the files that it vouches for, run.json is still known as ours."""
    writes = [s for s in made("goal").all if s.name == "write" and s.path.endswith("iterations.jsonl")]
    site = killed(made("goal"), tmp_path, writes[1])
    for name, part in [("rename", "run.json")] * 3:
        spot = {"FAULTS_NAME": name, "FAULTS_PART": part}
        assert site.ended(site.next(made("goal").env(site, 1, KILL) | spot)).code == -9, site.heard()
    assert site.do("goal", "continue").code == 0, site.heard()
    assert site.kind.over(site.work)


@pytest.mark.parametrize(
    ("loop", "part"), [("reflex", "courses.seal"), ("reflex", "run.json"), ("goal", "goal.seal"), ("goal", "run.json")]
)
def test_S_02_a_kill_between_seal_and_state(made: Made, tmp_path: Path, loop: str, part: str) -> None:
    """Before the second seal is in its place, and before the state that it vouches for: no question, the same end."""
    renames = [s for s in made(loop).all if s.name == "rename" and s.path.endswith(part)]
    site = killed(made(loop), tmp_path, renames[1])
    ended = site.do(*KINDS[loop].resume(site.work))
    assert ended.code == 0 and "signed" not in ended.said and site.kind.over(site.work), ended


def test_a_failed_state_write_is_not_a_foreign_file(made: Made, tmp_path: Path) -> None:
    """EIO when state.json is renamed: nothing is kept as state.json.agent, and the goal ends as usual."""
    site = killed(made("goal"), tmp_path, [s for s in made("goal").all if s.path.endswith("/state.json")][1], EIO)
    assert site.kind.over(site.work), site.heard()
    assert not [path for path in site.files() if path.endswith(".agent")]


def test_a_failing_git_loses_no_work(tmp_path: Path) -> None:
    """`git add` fails after the actuator has edited: the node ends with an error, and its edit is not put back."""
    site = Site(KINDS["flow"], str(tmp_path / "site"))
    shim = tmp_path / "bin" / "git"
    shim.parent.mkdir()
    shim.write_text(SHIM % shutil.which("git"))
    shim.chmod(shim.stat().st_mode | stat.S_IXUSR)
    env = {"PATH": f"{shim.parent}:{site.env['PATH']}", "WORK": site.work}
    ended = site.ended(site.next(env))
    assert ended.code == 1 and "the work tree can't be compared" in ended.said and "put back" not in ended.said
    assert Path(site.work, "work.txt").read_text() == "1\n"
    (run,) = os.listdir(os.path.join(site.work, ".ai-loop", "runs"))
    assert site.do("flow", "resume", run).code == 0


def test_F_139_a_start_that_was_killed_leaves_nothing_in_a_commit(made: Made, tmp_path: Path) -> None:
    """Killed before its run-state was there, a flow begins again; the half-written file of the first start is gone."""
    step = next(step for step in made("flow").all if step.name == "rename" and step.path.endswith("run-state.md"))
    site = killed(made("flow"), tmp_path, step)
    assert any(path.endswith(".tmp") for path in site.files()) and not site.kind.begun(site.work)
    assert site.finish().code == 0
    assert ".tmp" not in git(site.work, "ls-files") and not [path for path in site.files() if path.endswith(".tmp")]


def test_F_139_a_start_that_cannot_sync_its_state_is_undone(made: Made, tmp_path: Path) -> None:
    """EIO at the sync of its folder: branch and run-state go again, and the next start works."""
    step = next(s for s in made("flow").all if s.name == "fsync" and re.search(r"/runs/run_\d+_001$", s.path))
    site = killed(made("flow"), tmp_path, step, EIO)
    assert not site.kind.begun(site.work), site.heard()
    assert git(site.work, "branch", "--format=%(refname:short)") == "main\n"
    assert site.finish().code == 0
