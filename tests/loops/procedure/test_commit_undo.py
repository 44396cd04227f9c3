"""`commit = "green"`: rooda commits once all gates pass. `on_red = "undo"`: what turned a gate red is undone."""

import os
import subprocess
from typing import Any

import pytest

from tests.kit.snapshots import moments, tree_of
from tests.kit.workspace import Workspace, until

GREEN = {"commit": "green"}
UNDO = {"on_red": "undo", "safety": "snapshot", "baseline": True}


def repository(ws: Workspace, loop: dict[str, Any], gates: dict[str, str] | None = None) -> None:
    ws.procedure(loop=loop, gates={"tests": "test ! -e bad"} if gates is None else gates)
    ws.write("a", "1\n")
    ws.git("init", "-q")
    ws.git("add", "-A")
    ws.git("commit", "-q", "-m", "the beginning")


def log(ws: Workspace, form: str = "%s") -> list[str]:
    return ws.git("log", f"--format={form}").splitlines()


def ended(ws: Workspace) -> list[dict[str, Any]]:
    return [event for event in ws.events() if event["event"] == "iteration.ended"]


def scripted(ws: Workspace) -> None:
    """An agent whose final message is known, as that of claude is."""
    agent = ws.env.get("FAKE_AGENT") or f"{os.path.dirname(os.path.dirname(os.path.dirname(__file__)))}/kit/agent"
    ws.loop["ai_cmd"] = "null"
    ws.loop["agent"] = '"mine"'
    ws.procedure(gates={"tests": "test ! -e bad"})
    ws.config(ws.read("rooda.toml") + f'\n[agents.mine]\ncommand = "{agent}"\noutput = "claude"\n')


def says(ws: Workspace, call: int, text: str) -> None:
    import json

    ws.out(call, json.dumps({"type": "result", "is_error": False, "result": text, "total_cost_usd": 0.01}) + "\n")


def test_E_15_rooda_commits_what_an_iteration_changed(ws: Workspace) -> None:
    """Message from the agent's final message, trailers with run and iteration; names in any script, deletions too."""
    repository(ws, GREEN)
    ws.write("gone", "1\n")
    ws.git("add", "-A")
    ws.git("commit", "-q", "-m", "more")
    scripted(ws)
    ws.git("commit", "-q", "-a", "-m", "settings")
    ws.side(1, "echo 2 >a; rm gone; mkdir -p dir; echo n >'dir/Größe 大.txt'; echo q >'*[x'")
    ws.side(1, "echo t >\"$(printf 'tab\\there')\"")
    says(ws, 1, "## **Fix the parser**\n\nIt read `a` twice.\n\n<promise>SUCCESS</promise>")
    run = ws.rooda("build", "-n", "1")
    assert run.code == 0, run.both
    run_id = ws.events()[0]["run"]
    assert log(ws, "%B")[:7] == [
        "Fix the parser", "", "It read `a` twice.", "", f"Rooda-Run: {run_id}", "Rooda-Iteration: 1", "",
    ]  # fmt: skip
    assert ws.git("status", "--porcelain") == ""
    assert sorted(ws.git("show", "-z", "--name-status", "--format=", "HEAD").strip("\0").split("\0")) == sorted(
        ["M", "a", "D", "gone", "A", "dir/Größe 大.txt", "A", "*[x", "A", "tab\there"]
    )
    assert ended(ws)[0]["commit"] == ws.git("rev-parse", "HEAD").strip()
    assert ws.git("log", "-1", "--format=%(trailers:key=Rooda-Iteration,valueonly)").strip() == "1"


def test_E_15_red_iterations_are_committed_with_the_first_green_one(ws: Workspace) -> None:
    """Nothing is committed while a gate is red; what was dirty before the start is never committed, nor unstaged."""
    repository(ws, GREEN)
    ws.write("mine", "by hand\n")
    ws.write("staged", "by hand\n")
    ws.git("add", "staged")
    ws.side(1, "touch bad; echo 1 >one")
    ws.side(2, "rm bad; echo 2 >two")
    ws.side(3, "true")
    run = ws.rooda("build", "-n", "3")
    assert run.code == 0 and log(ws) == ["Iteration 2", "the beginning"]
    assert ws.git("show", "--name-only", "--format=", "HEAD").split() == ["one", "two"]
    assert ws.git("status", "--porcelain").splitlines() == ["A  staged", "?? mine"]
    assert [bool(event.get("commit")) for event in ended(ws)] == [False, True, False]


def test_E_15_the_message_of_a_raw_command(ws: Workspace) -> None:
    """It is the last paragraph of the output, without colours and promise."""
    repository(ws, GREEN)
    ws.side(1, "echo 1 >one")
    ws.out(1, "Reading 3 files\n\n\x1b[1mAdd the parser\x1b[0m\nIt is small.\n\n<promise>SUCCESS</promise>\n")
    assert ws.rooda("build", "-n", "1").code == 0
    assert log(ws, "%B")[:3] == ["Add the parser", "", "It is small."]


def test_E_15_a_hook_of_git_may_refuse(ws: Workspace) -> None:
    """As it may for a user: the iteration fails with the hook's words, and the next green one commits all of it."""
    repository(ws, GREEN)
    ws.write(".git/hooks/pre-commit", "#!/bin/sh\ntest -e tidy || { echo make it tidy; exit 1; }\n", 0o755)
    ws.side(1, "echo 2 >a")
    ws.side(2, "echo 3 >a; touch tidy")
    run = ws.rooda("build", "-n", "2")
    assert run.code == 0 and "WARNING: Commit refused: make it tidy, consecutive failures: 1/3" in run.out
    assert log(ws) == ["Iteration 2", "the beginning"] and ws.git("status", "--porcelain") == ""


def test_E_15_an_unfinished_merge_is_not_concluded(ws: Workspace) -> None:
    """Files with conflicts would count as resolved; the iteration fails with the reason."""
    repository(ws, GREEN)
    ws.git("checkout", "-q", "-b", "other")
    ws.write("a", "other\n")
    ws.git("commit", "-q", "-am", "other")
    ws.git("checkout", "-q", "main")
    ws.write("a", "main\n")
    ws.git("commit", "-q", "-am", "main")
    ws.side(1, "git merge -q other; true")
    run = ws.rooda("build", "-n", "1")
    assert run.code == 1 and "Commit refused: a merge is not finished" in run.out
    assert log(ws)[0] == "main" and ws.git("status", "--porcelain").startswith("UU a")


def test_E_15_a_detached_head_and_a_first_commit(ws: Workspace) -> None:
    """A detached HEAD gets the commit, with a warning; a repository without commits gets its first."""
    repository(ws, GREEN)
    ws.git("checkout", "-q", "--detach")
    ws.side(1, "echo 2 >a")
    run = ws.rooda("build", "-n", "1")
    assert run.code == 0 and "HEAD is detached" in run.err and log(ws)[0] == "Iteration 1"
    ws.git("checkout", "-q", "--orphan", "new")
    ws.git("rm", "-rq", "--cached", ".")
    ws.side(2, "echo 3 >a")
    assert ws.rooda("build", "-n", "1").code == 0
    assert log(ws) == ["Iteration 1"] and ws.git("show", "--name-only", "--format=", "HEAD").split() == ["a"]


def test_E_15_the_agents_own_commit_is_left_alone(ws: Workspace) -> None:
    """An agent that commits nevertheless leaves nothing to commit."""
    repository(ws, GREEN)
    ws.side(1, "echo 2 >a; git commit -qam mine")
    assert ws.rooda("build", "-n", "1").code == 0
    assert log(ws) == ["mine", "the beginning"] and "commit" not in ended(ws)[0]


@pytest.mark.parametrize("where", ["gate", "hook", "after"])
def test_E_15_a_kill_around_the_commit_loses_and_doubles_nothing(ws: Workspace, where: str) -> None:
    """SIGKILL in the last gate, in git's hook, or after the commit: the resume commits everything exactly once."""
    kill = 'test -e "$FAKE/killed" || { touch "$FAKE/killed"; kill -9 $(cat "$FAKE/loop"); sleep 30; }'
    repository(ws, GREEN, {"tests": f"test $ROODA_ITERATION = 1 || {kill}" if where == "gate" else "true"})
    if where != "gate":
        name = "pre-commit" if where == "hook" else "post-commit"
        guard = "git log -1 --format=%s | grep -q 'Iteration 2' || exit 0\n" if where == "after" else ""
        guard = guard or "test -e two || exit 0\n"
        ws.write(f".git/hooks/{name}", f"#!/bin/sh\n{guard}{kill}\n", 0o755)
    ws.side(1, 'echo $PPID >"$FAKE/loop"; echo 1 >one')
    ws.side(2, 'echo $PPID >"$FAKE/loop"; echo 2 >two')
    ws.start("build", "-n", "3").finish()
    until(lambda: not ws.leftovers(), what="all processes to be gone")
    assert os.path.exists(os.path.join(ws.fake, "killed"))
    ws.side(3, "echo 3 >three")
    run = ws.rooda("resume", "build")
    assert run.code == 0, run.both
    assert ws.git("status", "--porcelain") == ""
    names = ws.git("log", "--name-only", "--format=").split()
    assert sorted(name for name in names if name in ("one", "two", "three")) == ["one", "three", "two"]


def test_E_15_without_git_nothing_starts(ws: Workspace) -> None:
    """Both settings need a repository, and undo needs snapshots: exit 2, and what to do."""
    for loop, words in (
        (GREEN, 'commit = "green" needs git'),
        ({"on_red": "undo"}, "--safety snapshot"),
        (UNDO, 'on_red = "undo" needs git'),
    ):
        ws.procedure(loop={"commit": None, "on_red": None, "safety": None, "baseline": None} | loop)
        run = ws.rooda("build", "-n", "1")
        assert run.code == 2 and words in run.err and not ws.calls


def test_E_15_what_turned_a_gate_red_is_undone(ws: Workspace) -> None:
    """The files are those of the iteration's start, the snapshot keeps the others, and --redo brings them back."""
    repository(ws, UNDO)
    ws.side(1, "echo 2 >a; touch bad; mkdir new; echo n >new/n")
    ws.side(2, "cat a >seen; ls >>seen; echo 3 >a")
    run = ws.rooda("build", "-n", "2")
    assert run.code == 0, run.both
    assert ws.read("seen").split() == ["1", "a", "prompts", "rooda.toml", "seen"] and ws.read("a") == "3\n"
    assert "The changes of iteration 1 were undone" in run.err
    assert moments(ws) == ["1-after", "1-before", "2-after", "2-before", "undo-3"]
    assert tree_of(ws, "1-after")["a"] == "2\n" and "bad" in tree_of(ws, "undo-3")
    assert ended(ws)[0]["undone"].endswith("/undo-3")
    redo = ws.rooda("undo", "--redo", "--yes")
    assert redo.code == 0 and ws.read("a") == "2\n" and ws.exists("new/n")
    assert ws.rooda("undo", "--redo", "--yes").code == 0 and ws.read("a") == "3\n"


def test_E_15_redo_right_after_the_run(ws: Workspace) -> None:
    """Where the last iteration was undone; the run ends red. `rooda diff` shows what was undone."""
    repository(ws, UNDO)
    ws.side(1, "echo 2 >a; touch bad")
    run = ws.rooda("build", "-n", "1")
    assert run.code == 1 and ws.read("a") == "1\n" and not ws.exists("bad")
    assert "+2" in ws.rooda("diff", "1").out
    assert ws.rooda("undo", "--redo", "--yes").code == 0 and ws.exists("bad")


def test_E_15_a_red_repository_is_repaired_step_by_step(ws: Workspace) -> None:
    """An iteration that changes a red gate's result is kept; one that changes nothing about it is undone."""
    gate = 'n=$(cat broken); echo "$n failed"; test "$n" = 0'
    repository(ws, UNDO | {"count_failures": "no-progress"}, {"tests": gate})
    ws.write("broken", "3\n")
    ws.side(1, "echo 2 >broken")
    ws.side(2, "echo useless >useless")
    ws.side(3, "echo 0 >broken")
    run = ws.rooda("build", "-n", "3")
    assert run.code == 0 and not ws.exists("useless") and ws.read("broken") == "0\n"
    assert [bool(event.get("undone")) for event in ended(ws)] == [False, True, False]


def test_E_15_commits_of_the_agent_stay(ws: Workspace) -> None:
    """Undo moves files only: HEAD stays where the agent left it."""
    repository(ws, UNDO)
    ws.side(1, "echo 2 >a; touch bad; git add -A; git commit -qm bad")
    assert ws.rooda("build", "-n", "1").code == 1
    assert log(ws)[0] == "bad" and ws.read("a") == "1\n" and not ws.exists("bad")


def test_E_15_both_together(ws: Workspace) -> None:
    """With commit = "green" history and files agree after an undo."""
    repository(ws, UNDO | GREEN)
    ws.side(1, "echo 2 >a")
    ws.side(2, "touch bad")
    ws.side(3, "echo 4 >a")
    assert ws.rooda("build", "-n", "3").code == 0
    assert log(ws) == ["Iteration 3", "Iteration 1", "the beginning"] and ws.git("status", "--porcelain") == ""


def test_E_15_a_kill_before_the_undo_keeps_the_work(ws: Workspace) -> None:
    """SIGKILL in the last gate: the iteration runs again on the files as the agent left them, and is judged then."""
    kill = 'test -e "$FAKE/killed" || { touch "$FAKE/killed"; kill -9 $(cat "$FAKE/loop"); sleep 30; }'
    repository(ws, UNDO, {"tests": "test ! -e bad", "last": f"test $ROODA_ITERATION = 0 || {{ {kill}; }}"})
    ws.side(1, 'echo $PPID >"$FAKE/loop"; echo 2 >a; touch bad')
    ws.start("build", "-n", "1").finish()
    until(lambda: not ws.leftovers(), what="all processes to be gone")
    ws.side(2, "rm bad")
    run = ws.rooda("resume", "build")
    assert run.code == 0 and ws.read("a") == "2\n", run.both
    fsck = subprocess.run(["git", "fsck", "--no-dangling"], cwd=ws.path, env=ws.env, capture_output=True, text=True)
    assert fsck.returncode == 0, fsck.stderr


def test_E_15_an_undo_goes_back_to_before_a_kill(ws: Workspace) -> None:
    """SIGKILL in iteration 1, twice: its half-done work is no start to go back to. `--redo` brings all of it back."""
    repository(ws, UNDO)
    for call, change in ((1, "echo 2 >a"), (2, "echo half >new")):
        ws.side(call, f"{change}; kill -9 $PPID; sleep 30")
        ws.start(*(("build", "-n", "1") if call == 1 else ("resume", "build"))).finish()
        until(lambda: not ws.leftovers(), what="all processes to be gone")
    ws.side(3, "cat a new >seen; touch bad")
    run = ws.rooda("resume", "build")
    assert run.code == 1 and "The changes of iteration 1 were undone" in run.err, run.both
    assert ws.read("a") == "1\n" and not ws.exists("new") and not ws.exists("bad")
    assert ws.rooda("undo", "--redo", "--yes").code == 0
    assert ws.read("seen") == "2\nhalf\n" and ws.exists("bad")


def test_E_15_what_a_kill_in_iteration_1_left_is_committed(ws: Workspace) -> None:
    """The first green iteration commits everything that the run has changed since its start."""
    repository(ws, GREEN)
    ws.write("mine", "by hand\n")
    ws.side(1, "echo 2 >a; kill -9 $PPID; sleep 30")
    ws.start("build", "-n", "1").finish()
    until(lambda: not ws.leftovers(), what="all processes to be gone")
    assert ws.rooda("resume", "build").code == 0
    assert ws.git("show", "--name-only", "--format=", "HEAD").split() == ["a"]


def test_E_15_status_says_what_rooda_does_with_the_changes(ws: Workspace) -> None:
    """That rooda commits, that an iteration was undone, and what git refused; the baseline is in it, too (E-10)."""
    repository(ws, UNDO | GREEN, {"tests": "test ! -e bad", "lint": "echo ugly; test -e fine"})
    ws.write(".git/hooks/pre-commit", "#!/bin/sh\ntest -e tidy || { echo make it tidy; exit 1; }\n", 0o755)
    ws.side(1, "touch bad")
    ws.side(2, "touch fine")
    ws.side(3, "touch tidy")
    run = ws.rooda("build", "-n", "4")
    assert run.code == 0, run.both
    first, second, third, fourth = (str(call.prompt, "utf-8") for call in ws.calls)
    assert "rooda commits your changes once all gates pass: do not commit." in first
    assert "(passed before iteration 1)" in first and "(failed before iteration 1: exit 1)" in first
    assert "End of the output of lint" in first and "ugly" in first
    assert "The files that iteration 1 changed are again as they were before it" in second
    assert "The gates' results below are from before the undo" in second
    assert "Iteration 2 failed: git refused to commit its changes: make it tidy." in third
    assert "Iteration 3 succeeded." in fourth and "again as they were" not in fourth


def test_E_15_doctor_recommends_green_commits_with_undo(ws: Workspace) -> None:
    """An undo moves files only, and needs snapshots."""
    repository(ws, {"on_red": "undo"})
    assert "needs snapshots, and they are off" in ws.rooda("doctor").out
    ws.procedure(loop=UNDO)
    assert 'commit = "green"' in ws.rooda("doctor").out
    ws.procedure(loop=UNDO | GREEN)
    assert "on_red" not in ws.rooda("doctor").out


def test_E_15_an_undo_that_was_cut_off_is_finished(ws: Workspace) -> None:
    """SIGKILL as git restores the files: the resume restores the rest, but what the user has changed since stays."""
    kill = 'kill -9 $(cat "$FAKE/loop"); sleep 30'
    script = f'*" read-tree -m -u "*) test -e "$FAKE/killed" || {{ touch "$FAKE/killed"; {kill}; }};;'
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    repository(ws, UNDO)
    ws.write(".git/bin/git", f'#!/bin/sh\ncase " $* " in {script} esac\nexec {real} "$@"\n', 0o755)
    path = {"PATH": ws.file(".git/bin") + os.pathsep + ws.env["PATH"]}
    ws.side(1, 'echo $PPID >"$FAKE/loop"; echo 2 >a; echo 2 >b; touch bad')
    ws.start("build", "-n", "1", env=path).finish()
    until(lambda: not ws.leftovers(), what="all processes to be gone")
    assert os.path.exists(os.path.join(ws.fake, "killed")) and ws.read("a") == "2\n"
    ws.write("b", "by hand\n")
    ws.side(2, "cat a b >seen")
    run = ws.rooda("resume", "build")
    assert run.code == 0 and "Finished undoing iteration 1" in run.err, run.both
    assert ws.read("seen") == "1\nby hand\n" and not ws.exists("bad")


def test_E_15_a_start_that_git_has_deleted(ws: Workspace) -> None:
    """The agent prunes git's objects: what differs from the start is not known any more, which is said once."""
    repository(ws, GREEN)
    ws.write("mine", "by hand\n")
    ws.side(1, "git gc -q --prune=now; echo 1 >one")
    ws.side(2, "echo 2 >two")
    run = ws.rooda("build", "-n", "2")
    assert run.code == 0 and run.err.count("is no longer in git") == 1
    assert ws.git("show", "--name-only", "--format=", "HEAD").split() == ["two"]
