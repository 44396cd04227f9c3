"""Snapshots of a goal: files are restored, its state stays, and criteria that no longer hold are noticed."""

from tests.kit.goal import SPEC, Goals
from tests.kit.snapshots import moments, refs, tree_of
from tests.kit.workspace import until

SAFE = ("--safety", "snapshot")


def test_each_iteration_has_its_snapshots(g: Goals) -> None:
    """Snapshots before and after each iteration; the goal's state is not in them."""
    g.succeeds()
    done = g.run(*SAFE)
    assert done.code == 0, done.both
    assert moments(g) == [f"{number}-{moment}" for number in (1, 2, 3) for moment in ("after", "before")]
    assert not any(name.startswith(".loop/") for name in tree_of(g, "3-before"))
    assert "a.ok" in tree_of(g, "1-after") and "a.ok" not in tree_of(g, "1-before")
    assert "a.ok" in g.rooda("diff", "goal", "1", "--name-only").out


def test_after_an_undo_the_goal_checks_again(g: Goals) -> None:
    """Paused, undone and continued, a goal meets the criterion of the missing file again before it ends."""
    g.side("step-1", "touch a.ok")
    g.out("step", "nothing")
    assert g.run("-n", "2", *SAFE).code == 4
    assert g.public["criteria"]
    assert g.rooda("undo", "1", "goal", "--yes").code == 0 and not g.exists("a.ok")
    for number in range(3, 8):
        g.side(f"step-{number}", "touch a.ok b.ok")
    g.claims(True)
    done = g.rooda("resume", "goal")
    assert done.code == 0, done.both
    assert g.exists("a.ok") and g.exists("b.ok")
    said = g.rooda("resume", "goal")
    assert said.code == 2 and "Traceback" not in said.err


def test_an_undo_does_not_reopen_a_completed_goal(g: Goals) -> None:
    """A completed goal stays completed; the undo restores files only, and can be reverted."""
    g.succeeds()
    assert g.run(*SAFE).code == 0
    assert g.rooda("undo", "--yes").code == 0 and not g.exists("b.ok")
    assert g.go_on().code == 2
    assert g.rooda("undo", "--redo", "--yes").code == 0 and g.exists("b.ok")


def test_checkpoints_are_snapshots_too(g: Goals) -> None:
    """Type 2B has its refs with and without snapshots; prune counts them as runs of goals."""
    g.planned(reversibility="2B")
    g.succeeds()
    assert g.run(*SAFE).code == 0
    points = [ref for ref in refs(g) if ref.startswith("refs/rooda/checkpoint/")]
    assert [ref.rpartition("/")[2] for ref in points] == ["1", "2", "3"]
    for ref in points:
        number = ref.rpartition("/")[2]
        before = next(each for each in refs(g) if each.endswith(f"/{number}-before"))
        assert g.git("rev-parse", f"{ref}^{{tree}}") == g.git("rev-parse", f"{before}^{{tree}}")
    assert g.rooda("prune", "--keep", "1").code == 0 and len(refs(g)) > 3
    assert g.rooda("prune", "--keep", "0").code == 0 and refs(g) == []


def test_an_interrupted_goal_has_its_after(g: Goals) -> None:
    """A signal during a step: its changes so far are saved before the run ends."""
    g.side("step-1", "touch half; sleep 30")
    run = g.start("goal", "run", SPEC, *SAFE)
    until(lambda: g.exists("half"))
    run.signal(15)
    assert run.finish() == 143
    assert moments(g) == ["1-after", "1-before"] and "half" in tree_of(g, "1-after")


def test_a_rollback_leaves_nested_repositories_alone(g: Goals) -> None:
    """A nested repository is listed and not changed."""
    g.planned(reversibility="2B")
    g.side("step-1", "git init -q inner; cd inner; git commit -q --allow-empty -m x; echo 1 >f")
    assert g.run("-n", "2").code == 4
    done = g.rooda("goal", "rollback", "1")
    assert done.code == 0 and "left alone  inner (a repository of its own)" in done.out
    assert g.read("inner/f") == "1\n"
