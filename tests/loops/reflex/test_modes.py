"""R-001 to R-016: terms and command modes."""

import json
import re
import shutil
from pathlib import Path

import pytest

from rooda.loops.reflex.cli import end
from rooda.loops.reflex.files import Place
from tests.kit.reflex import ALIAS, Kit, words
from tests.kit.reflex_scenarios import by_iteration, play, script
from tests.kit.workspace import until

MODES = ("new", "resume", "status", "stop", "list", "history", "clean")


def test_R_001_one_folder_one_run_id_two_iterations(kit: Kit) -> None:
    """A loop is one alias with one run id; its iterations are counted inside it."""
    play(kit, "T2")
    assert [path.name for path in kit.home.iterdir()] == [ALIAS]
    assert {event["run_id"] for event in kit.history} == {kit.run["run_id"]}
    assert [*dict.fromkeys(event["iteration"] for event in kit.history)] == [1, 2]


def test_R_002_seven_modes(kit: Kit) -> None:
    """The help lists them; an unknown one is a usage error that makes nothing."""
    shown = kit.reflex("--help").out
    assert all(re.search(rf"^  {mode} ", shown, re.MULTILINE) for mode in MODES)
    for words_ in (
        ["new", "x", "--help"],
        ["resume", "abc", "--help"],
        ["stop", "why", "--help"],
        ["history", "abc", "--help"],
        ["clean", "--all", "--help"],
        ["list", "--help"],
        ["status", "--help"],
    ):
        assert kit.reflex(*words_).code == 0
    before = set(Path(kit.ws.path).rglob("*"))
    assert kit.reflex("improve").code == 2
    assert set(Path(kit.ws.path).rglob("*")) == before


def test_R_003_R_006_R_043_R_066_state_before_the_first_phase(kit: Kit) -> None:
    """While PLAN works all files of the start are there, and `status` shows them without changing any."""
    kit.answer("PLAN.1", "", "wait stop-waiting")
    running = kit.start()
    until(lambda: kit.started("PLAN"))
    assert kit.files() == ["current.json", f"{ALIAS}/history.jsonl", f"{ALIAS}/run.json"]
    before = kit.checksums()
    status = kit.reflex("status")
    assert status.code == 0
    assert all(word in status.out for word in (ALIAS, "running", "iteration 1/4", "phase A", "PLAN", "0.00"))
    assert kit.checksums() == before
    current = json.loads((kit.home / "current.json").read_text())
    assert [*current] == ["active_run_id", "task_alias", "status", "updated_at"]
    assert (current["active_run_id"], current["task_alias"], current["status"]) == (
        kit.run["run_id"],
        ALIAS,
        "running",
    )
    (row,) = json.loads(kit.reflex("status", "--json").out)
    assert (row["name"], row["details"]["current_step"], row["running"]) == (ALIAS, "PLAN", True)
    running.stop()


@pytest.mark.parametrize("alias", [[], [ALIAS]], ids=["active", "named"])
@pytest.mark.parametrize("pointer", [True, False], ids=["pointer", "no pointer"])
def test_R_004_R_005_resume_continues(kit: Kit, alias: list[str], pointer: bool) -> None:
    """Without a name the active loop, with one the named, also when the pointer is gone."""
    by_iteration(kit, "T2")
    kit.kill_in("CRITIQUE.1", kit.said("CRITIQUE.1"))
    if not pointer:
        (kit.home / "current.json").unlink()
    ran = kit.reflex("resume", *alias)
    assert ran.code == 0, ran.both
    assert (kit.run["status"], kit.run["iteration"], kit.run["stop"]["reason"]) == ("completed", 2, "threshold_reached")
    assert not (kit.home / "current.json").exists()


def test_R_007_status_without_a_loop(kit: Kit) -> None:
    """It says so, creates no file, and exits with 0."""
    before = sorted(Path(kit.ws.path).rglob("*"))
    ran = kit.reflex("status")
    assert (ran.code, "no active loop" in ran.out) == (0, True)
    assert sorted(Path(kit.ws.path).rglob("*")) == before


def test_R_008_R_046_R_183_R_209_R_212_stop_from_another_shell(kit: Kit) -> None:
    """The loop is over at once; the process at work on it ends at its phase boundary and writes nothing more."""
    script(kit, "T2")
    kit.answer("PLAN.1", kit.said("PLAN.1"), "wait go")
    running = kit.start()
    until(lambda: kit.started("PLAN"))
    stopped = kit.reflex("stop")
    assert stopped.code == 0
    assert (kit.run["status"], kit.run["stop"]["reason"], kit.ev[-1]) == ("stopped", "user_stop", "stopped")
    assert not (kit.home / "current.json").exists()
    for key in ("iteration: 1", "max_iterations: 4", "phase: A", "final_score: unavailable", "stop_reason: user_stop"):
        assert key in stopped.out.splitlines()
    before = kit.checksums()
    kit.ws.write("go", "")
    assert running.finish() == 4
    assert kit.checksums() == before
    assert "stop_reason: user_stop" in running.lines
    assert kit.counts() == {"PLAN": 1}


def test_R_008_a_loop_that_ended_just_before_is_not_stopped(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    """It was active when it was looked for, and is over when it is to be ended: said, and no error."""
    kit.kill_in("PLAN.1", "x")
    assert kit.reflex("stop", "enough").code == 0
    before = kit.checksums()
    assert end(Place(kit.ws.path, ALIAS), "late") == 0
    assert "has already ended; nothing to stop." in capsys.readouterr().out
    assert kit.checksums() == before


def test_R_008_R_209_stop_shows_the_artifact(kit: Kit) -> None:
    """What there is of the artifact is at the end of what `stop` says."""
    kit.answer("PRODUCE.1", words("N", "MARK-OF-THE-ARTIFACT\n"))
    kit.kill_in("CRITIQUE.1", "x")
    out = kit.reflex("stop").out
    assert out.index("stop_reason: user_stop") < out.index("MARK-OF-THE-ARTIFACT")
    assert "final_score: 0.33" in out.splitlines()


@pytest.mark.parametrize("said", ["enough", "two words", "stagnation", "threshold_reached", "phase_error", "running"])
def test_R_009_a_reason_is_kept(kit: Kit, said: str) -> None:
    """The user's words are the reason in run.json and the event's detail next to `user_stop`; they decide nothing."""
    kit.kill_in("PLAN.1", "x")
    assert kit.reflex("stop", *said.split()).code == 0
    assert kit.run["stop"] == {"passed": False, "reason": said}
    assert kit.run["status"] == "stopped"
    assert kit.ev == ["run_started", "stopped"]
    payload = kit.history[-1]["payload"]
    assert (payload["reason"], payload["detail"], payload["status"]) == ("user_stop", said, "stopped")


def test_R_010_nothing_to_stop(kit: Kit) -> None:
    """On a completed loop, and without any: a message, and everything as it was."""
    assert "no active loop" in kit.reflex("stop").out
    play(kit, "T1")
    before = kit.checksums()
    ran = kit.reflex("stop", "please")
    assert (ran.code, "no active loop" in ran.out) == (0, True)
    assert kit.checksums() == before


def test_R_011_R_014_R_015_list_and_clean(kit: Kit) -> None:
    """Four loops in four states, each with its word; --all leaves the running one, and says so."""
    assert play(kit, "T1", "--alias", "done").code == 0
    assert play(kit, "T3", "--alias", "short").code == 4
    plan = kit.said("PLAN.1")
    kit.answer("PLAN.1", "not json")
    assert kit.new(4, "--alias", "broken").code == 1
    kit.kill_in("PLAN.1", plan, 4, "--alias", "alive")
    rows = {line.split()[0]: line.split()[1] for line in kit.reflex("list").lines}
    assert rows == {"done": "completed", "short": "paused", "broken": "failed", "alive": "interrupted"}
    assert {row["task_alias"]: row["status"] for row in json.loads(kit.reflex("list", "--json").out)} == rows
    refused = kit.reflex("clean", "alive", stdin=b"y\n")
    assert (refused.code, "running" in refused.err) == (3, True)
    assert (kit.home / "alive" / "run.json").exists()
    ran = kit.reflex("clean", "--all", stdin=b"y\n")
    assert ran.code == 0 and "'alive' is running" in ran.err
    assert sorted(path.name for path in kit.home.iterdir()) == ["alive", "current.json"]


def test_R_012_history_in_order(kit: Kit) -> None:
    """Every event with time, iteration, phase and step; without a name those of the active loop."""
    play(kit, "T2")
    lines = kit.reflex("history", ALIAS).lines
    assert len(lines) == len(kit.history)
    for line, event in zip(lines, kit.history, strict=True):
        cells = line.split()
        wanted = [event["ts"], str(event["iteration"]), event["phase"], event["step"], event["event"]]
        assert cells[:5] == wanted
    raw = kit.reflex("history", ALIAS, "--json").lines
    assert [json.loads(line) for line in raw] == kit.history
    refused = kit.reflex("history")
    assert refused.code == 3 and "See the ended ones: rooda reflex list." in refused.err
    shutil.rmtree(kit.home)
    kit.kill_in("PLAN.2", "x")
    assert "run_started" in kit.reflex("history").out


@pytest.mark.parametrize(
    "said, stays", [(b"n\n", True), (b"", True), (b"\n", True), (b"y\n", False), (b"yes\n", False)]
)
def test_R_013_clean_asks(kit: Kit, said: bytes, stays: bool) -> None:
    """Only a yes removes the files; the end of the input is not a yes."""
    play(kit, "T1")
    ran = kit.reflex("clean", ALIAS, stdin=said)
    assert (kit.home / ALIAS).exists() == stays
    assert ran.code == (3 if stays else 0)


def test_R_013_clean_needs_a_name_and_stays_in_its_folder(kit: Kit) -> None:
    """Without a name on a pipe, with a path, or for a loop that there is not: a usage error."""
    kit.ws.write("keep/me.txt", "x")
    for said in ([], ["../../keep"], ["nobody"], [ALIAS, "--all"], ["a/b"], ["."], [".."]):
        assert kit.reflex("clean", *said, stdin=b"y\n").code == 2, said
    assert kit.ws.exists("keep/me.txt")


def test_RQ_24_clean_removes_a_link_and_nothing_behind_it(kit: Kit) -> None:
    """A loop's folder that was moved and linked: its files stay where they are; nothing new is written there either."""
    play(kit, "T1")
    away = Path(kit.ws.root, "away")
    (kit.home / ALIAS).rename(away)
    (kit.home / ALIAS).symlink_to(away)
    ran = kit.reflex("clean", ALIAS, "--yes")
    assert (ran.code, str(away) in ran.out, (kit.home / ALIAS).is_symlink()) == (0, True, False), ran.both
    assert sorted(path.name for path in away.iterdir()) == ["artifact.md", "history.jsonl", "run.json"]
    other = Path(kit.ws.root, "other")
    other.mkdir()
    (kit.home / ALIAS).symlink_to(other)
    kit.again()
    assert kit.new().code == 0 and (kit.home / f"{ALIAS}-2" / "run.json").exists()
    assert (kit.home / ALIAS).is_symlink() and not [*other.iterdir()]


def test_R_016_only_new_and_resume_call_the_agent(kit: Kit) -> None:
    """Everything else leaves the log of calls as it is."""
    play(kit, "T2")
    before = len(kit.log_lines())
    for said in (["status"], ["list"], ["history", ALIAS], ["stop"], ["show"], ["diff"], ["clean", ALIAS, "--yes"]):
        assert kit.reflex(*said).code == 0
    assert len(kit.log_lines()) == before
