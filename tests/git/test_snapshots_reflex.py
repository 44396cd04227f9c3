"""Snapshots of a reflex loop: an undo restores the loop's state and its artifact."""

import json

from tests.kit.reflex import ALIAS, Kit, words
from tests.kit.snapshots import moments, tree_of
from tests.kit.workspace import Workspace, until

HOME = f".ai-factory/evolution/{ALIAS}"
SAFE = ("--safety", "snapshot")


def worked(kit: Kit) -> None:
    """A loop of three iterations, each with another artifact; the last one passes both levels."""
    for number, letters in enumerate(("N", "", "ENAD"), 1):
        kit.answer(f"PRODUCE.i{number}.1", words(letters))
        kit.answer(f"REFINE.i{number}.1", words(letters, "refined\n"))
    done = kit.new(4, *SAFE)
    assert done.code == 0, done.both
    assert kit.run["iteration"] == 3


def test_each_iteration_has_its_snapshots(kit: Kit) -> None:
    """Snapshots before and after each iteration hold the loop's files of that moment; an event reports each."""
    worked(kit)
    assert moments(kit.ws) == [f"{number}-{moment}" for number in (1, 2, 3) for moment in ("after", "before")]
    assert not any(name.startswith(".ai-factory") for name in tree_of(kit.ws, "1-before"))
    two = json.loads(tree_of(kit.ws, "2-before")[f"{HOME}/run.json"])
    assert (two["iteration"], two["current_step"], two["status"]) == (2, "PLAN", "running")
    assert ".ai-factory/evolution/current.json" in tree_of(kit.ws, "2-before")
    assert ".ai-factory/evolution/current.json" not in tree_of(kit.ws, "3-after")
    told = [each for each in kit.ws.events() if each["event"] == "snapshot.taken"]
    assert [(each["display"], each["moment"], each["number"]) for each in told] == [
        *((1, "before", 1), (1, "after", 2), (2, "before", 3), (2, "after", 4), (3, "before", 5), (3, "after", 6)),
    ]
    for each in told:
        assert kit.ws.git("rev-parse", each["ref"]).strip() == each["commit"]


def test_undo_restores_the_loop_and_resume_continues_there(kit: Kit) -> None:
    """An undo of iteration 2 returns to the state before it, and a resume ends as the first run did."""
    worked(kit)
    end = kit.artifact
    assert "-NAMING\n" in kit.ws.rooda("diff", "2", ALIAS).out
    undone = kit.ws.rooda("undo", ALIAS, "2", "--yes")
    assert undone.code == 0, undone.both
    assert (kit.run["iteration"], kit.run["current_step"], kit.run["status"]) == (2, "PLAN", "running")
    assert kit.artifact == words("N", "refined\n")
    assert kit.history[-1]["event"] == "iteration_advanced"
    status = kit.reflex("status")
    assert status.code == 0 and ALIAS in status.out
    resumed = kit.ws.rooda("resume", ALIAS)
    assert resumed.code == 0, resumed.both
    assert kit.artifact == end and kit.run["iteration"] == 3
    assert [each["event"] for each in kit.history].count("run_started") == 1


def test_undo_can_be_undone(kit: Kit) -> None:
    """--redo restores the completed loop byte for byte."""
    worked(kit)
    before = kit.checksums()
    assert kit.ws.rooda("undo", "1", "--yes").code == 0
    assert not kit.ws.exists(HOME) and kit.reflex("resume", ALIAS).code == 2
    assert kit.ws.rooda("undo", "--redo", "--yes").code == 0
    assert kit.checksums() == before
    assert kit.reflex("resume", ALIAS).code == 3


def test_another_loops_state_stays(kit: Kit) -> None:
    """Another loop's later changes are undone, but not its state."""
    worked(kit)
    kit.again()
    other = kit.ws.rooda(*kit.arguments(1, "--alias", "other-page"), stdin=b"y\ny\n")
    assert other.code == 4, other.both
    kept = kit.path("run.json", "other-page").read_bytes()
    undone = kit.ws.rooda("undo", ALIAS, "2", "--yes")
    assert undone.code == 0 and "other-page/run.json (state of another loop)" in undone.out
    assert kit.path("run.json", "other-page").read_bytes() == kept
    assert kit.run["iteration"] == 2


def test_an_undo_of_a_procedure_leaves_a_reflex_loop_alone(kit: Kit) -> None:
    """A reflex loop that started after a procedure's iteration survives the undo and can be resumed."""
    ws = kit.ws
    ws.rooda("build", "-n", "1", "--ai-cmd", "sh -c 'echo made >made'", *SAFE)
    kit.kill_in("PLAN.1", "x")
    assert ws.rooda("undo", "build", "--yes").code == 0
    assert not ws.exists("made") and kit.run["status"] == "running"


def test_undo_is_refused_while_a_reflex_loop_runs(kit: Kit) -> None:
    """An undo during the loop exits with 3 and names the loop; a signal saves the interrupted iteration."""
    kit.answer("REFINE.i1.1", words("EN"), "touch here", "sleep 30")
    kit.answer("PRODUCE.1", words("N"))
    loop = kit.start(4, *SAFE)
    until(lambda: kit.ws.exists("here"))
    refused = kit.ws.rooda("undo", "--yes")
    assert refused.code == 3 and ALIAS in refused.err
    loop.signal(15)
    assert loop.finish() == 143
    assert moments(kit.ws) == ["1-after", "1-before"] and "here" in tree_of(kit.ws, "1-after")
    assert kit.ws.rooda("undo", "--yes").code == 0 and not kit.ws.exists("here")


def test_the_setting_in_the_reflex_table(kit: Kit) -> None:
    """[reflex] overrides [loop]; options override both."""
    kit.config('[procedures.x]\nact = "x"\n', table='safety = "snapshot"\n')
    assert kit.new(1).code in (0, 4)
    assert len(moments(kit.ws)) == 2
    assert kit.new(1, "--safety", "off", "--alias", "off").code in (0, 4)
    assert len(moments(kit.ws)) == 2


def test_without_a_repository(bare: Workspace) -> None:
    """Without git there is one warning, and the loop runs to its end."""
    kit = Kit(bare)
    done = kit.new(4, *SAFE)
    assert done.code == 0 and done.err.count("is not in a git work tree; the loop continues without snapshots") == 1
