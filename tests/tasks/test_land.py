"""Landing: T-20 and following of the page on tasks."""

import json
import shutil
from pathlib import Path

import pytest

from tests.kit.completed import commit_of, complete, settle
from tests.kit.workspace import Workspace


def works(repo: Workspace, *texts: str, gates: tuple[str, ...] = ()) -> None:
    """Add and run tasks; call N runs the shell text N in its clone, and commits."""
    for number, text in enumerate(texts, 1):
        repo.side(number, f"{text}\ngit add -A; git commit -qm 'work {number}'")
        repo.rooda("tasks", "add", f"Task {number}", "-n", "1", *(word for gate in gates for word in ("--gate", gate)))
    done = repo.rooda("tasks", "run", "-j", "1", timeout=60)
    assert done.code == 0, done


def states(repo: Workspace) -> list[str]:
    return [task["state"] for task in json.loads(repo.rooda("tasks", "--json").out)]


def test_T_20_completed_tasks_land_one_after_the_other(repo: Workspace) -> None:
    """Each is rebased onto the target's tip and checked; the checkout follows, since it is clean."""
    works(repo, "echo b > b.txt", "echo c > c.txt", gates=("test -f a.txt",))
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 0, done
    assert states(repo) == ["landed", "landed"]
    assert repo.git("log", "--format=%s", "main") == "work 2\nwork 1\nfirst\n"
    assert repo.read("b.txt") == "b\n" and repo.read("c.txt") == "c\n" and repo.git("status", "--porcelain") == ""


def test_T_22_the_repository_has_every_object_of_what_landed(repo: Workspace) -> None:
    """Also those that a gate had written into the landing clone before; the clone is needed for nothing."""
    works(repo, "echo b > b.txt", "echo c > c.txt", gates=("echo c | git hash-object -w --stdin; git write-tree",))
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 0 and states(repo) == ["landed", "landed"], done
    (clone,) = Path(repo.env["HOME"]).rglob("land-main")
    shutil.rmtree(clone)
    assert repo.git("fsck", "--connectivity-only", "--no-dangling", "main") == ""


def test_T_22_locks_of_a_killed_git_do_not_hold_up_the_next_landing(repo: Workspace) -> None:
    """Also those of refs that only a rebase writes."""
    works(repo, "echo b > b.txt", gates=("true",))
    assert repo.rooda("tasks", "land", timeout=60).code == 0
    (clone,) = Path(repo.env["HOME"]).rglob("land-main")
    for name in ("packed-refs", "CHERRY_PICK_HEAD", "index", "config"):
        Path(clone, ".git", f"{name}.lock").touch()
    repo.side(2, "echo c > c.txt; git add -A; git commit -qm 'work 2'")
    repo.rooda("tasks", "add", "Task 2", "-n", "1", "--gate", "true")
    done = repo.rooda("tasks", "run", "--land", timeout=60)
    assert done.code == 0 and states(repo) == ["landed", "landed"], done


def test_T_20_a_gate_leaves_nothing_for_the_gate_of_the_next_task(repo: Workspace) -> None:
    """Neither a file nor an empty folder."""
    works(repo, "echo b > b.txt", "echo c > c.txt", gates=("mkdir left && touch left.txt",))
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 0 and states(repo) == ["landed", "landed"], done


POISONS = {  # what a gate does to the clone, and the state of its task after that
    "echo bad > a.txt; git update-index --assume-unchanged a.txt": "waiting",
    "echo bad > a.txt; git update-index --skip-worktree a.txt": "waiting",
    "git config core.excludesFile $PWD/.git/own; echo left.txt > .git/own; touch left.txt": "landed",
    "git config core.ignoreStat true; echo bad > a.txt; git update-index --refresh": "waiting",
    "mkdir .git/info; echo '*.txt eol=crlf' > .git/info/attributes; rm a.txt; git checkout -q a.txt": "waiting",
    "git replace $(git rev-parse HEAD:a.txt $(echo bad | git hash-object -w --stdin)); rm a.txt; git checkout -q .": (
        "waiting"
    ),
    "git replace --graft HEAD": "landed",
    "echo /nowhere > .git/objects/info/alternates": "landed",
    "mv .git other; echo 'gitdir: other' > .git": "waiting",
    "true": "landed",
}


def test_T_20_a_gate_hides_nothing_from_the_gate_of_the_next_task(repo: Workspace) -> None:
    """Neither in git's index nor with git's settings; what is restored is reported."""
    good = '{ test "$(cat a.txt)" = one && test ! -e left.txt; } || exit 9'
    for number, poison in enumerate(POISONS):
        complete(repo, {f"new{number}": "new\n"}, gate=f"{good}; {poison}; true")
    done = repo.rooda("tasks", "land", timeout=60)
    assert states(repo) == [*POISONS.values()] and "(exit 9)" not in done.out, done
    assert "changed git's own files; put back: .git/config" in done.out
    assert repo.git("show", "main:a.txt") == "one\n"


def test_T_21_a_conflict_goes_back_to_its_agent(repo: Workspace) -> None:
    """The owning task reopens with the conflict in its prompt, resolves it, and lands."""
    works(repo, "echo left > a.txt", "echo right > a.txt", gates=("true",))
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 4 and states(repo) == ["landed", "waiting"], done
    resolve = "git merge -q rooda/target; echo both > a.txt; git add -A; git commit -qm resolved"
    repo.side(3, resolve)
    assert repo.rooda("tasks", "run", timeout=60).code == 0
    assert "conflicts with what has landed on main" in repo.calls[2].text and "right" in repo.calls[2].text
    assert repo.rooda("tasks", "land", timeout=60).code == 0 and states(repo) == ["landed", "landed"]
    assert repo.read("a.txt") == "both\n"
    parents = repo.git("log", "-1", "--format=%P", "main").split()
    assert len(parents) == 2 and repo.git("log", "-1", "--format=%s", parents[0]) == "work 1\n"


def test_T_21_the_output_of_a_red_gate_may_be_binary(repo: Workspace) -> None:
    """No program takes a NUL in an argument; the rest reaches the agent."""
    complete(repo, {"b.txt": "b\n"}, gate=r"printf 'caf\000\351\n'; exit 1")
    assert repo.rooda("tasks", "land", timeout=60).code == 4 and states(repo) == ["waiting"]
    repo.rooda("tasks", "edit", "1", "--gate", "true")
    assert repo.rooda("tasks", "run", timeout=60).code == 0
    assert b"caf\xe9\n" in repo.calls[0].prompt


def test_T_21_a_gate_that_is_red_on_the_target_goes_back(repo: Workspace) -> None:
    works(repo, "echo b > b.txt", "echo c > c.txt", gates=("test ! -f b.txt -o ! -f c.txt",))
    assert repo.rooda("tasks", "land", timeout=60).code == 4
    assert states(repo) == ["landed", "waiting"] and not repo.exists("c.txt")
    for _ in range(2):  # it is attempted twice more, then a person decides
        repo.rooda("tasks", "run", timeout=60)
        repo.rooda("tasks", "land", timeout=60)
    assert states(repo) == ["landed", "parked"]


@pytest.mark.parametrize("dirt", ["echo mine >> a.txt", "echo mine > b.txt"])
def test_T_20_nothing_of_the_user_is_touched(repo: Workspace, dirt: str) -> None:
    """With changes or an untracked file in the way the result waits on rooda/next; the next `land` finishes it."""
    import subprocess

    works(repo, "echo b > b.txt", "echo c > c.txt", gates=("true",))
    subprocess.run(dirt, shell=True, cwd=repo.path, check=True)
    before = repo.git("rev-parse", "main")
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 4 and states(repo) == ["completed", "completed"], done
    assert repo.git("rev-parse", "main") == before
    assert done.lines[-1] == f"git -C {repo.path} merge --ff-only rooda/next"
    assert repo.git("log", "--format=%s", "rooda/next") == "work 2\nwork 1\nfirst\n"
    repo.git("stash", "-u", "-q")
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 0 and states(repo) == ["landed", "landed"] and repo.read("b.txt") == "b\n", done
    assert "rooda/next" not in repo.git("branch", "-a")


def test_T_20_a_branch_that_changes_gates_is_shown_and_asked_for(repo: Workspace) -> None:
    works(repo, "printf '## Quality Gates\\n\\n- tests: `true`\\n' > AGENTS.md", gates=("true",))
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 3 and "AGENTS.md" in done.out and states(repo) == ["completed"]
    assert repo.rooda("tasks", "land", "--yes", timeout=60).code == 0 and states(repo) == ["landed"]


def test_T_20_without_gates_nothing_lands_unless_told(repo: Workspace) -> None:
    works(repo, "echo b > b.txt")
    assert repo.rooda("tasks", "land", timeout=60).code == 3 and states(repo) == ["completed"]
    assert repo.rooda("tasks", "land", "--no-gates", timeout=60).code == 0 and states(repo) == ["landed"]


def test_T_20_a_task_waits_on_rooda_next_for_each_target(repo: Workspace) -> None:
    """Two targets, one of them checked out in another worktree, both with changes: each has its own branch."""
    other = f"{repo.root}/other"
    repo.git("worktree", "add", "-q", "-b", "dev", other)
    for number, target in enumerate(("main", "main", "dev", "dev"), 1):
        complete(repo, {f"{number}.txt": "x\n"}, target=target)
    repo.write("a.txt", "mine\n")
    Path(other, "3.txt").write_text("in the way\n")
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 4 and states(repo) == ["completed"] * 4, done
    assert done.lines[-2:] == [
        f"git -C {other} merge --ff-only rooda/next",
        f"git -C {repo.path} merge --ff-only rooda/next-main",
    ]
    assert repo.read("a.txt") == "mine\n" and Path(other, "3.txt").read_text() == "in the way\n"
    repo.git("checkout", "-q", "a.txt")
    assert repo.rooda("tasks", "land", timeout=60).code == 4
    assert states(repo) == ["landed", "landed", "completed", "completed"]
    Path(other, "3.txt").unlink()
    repo.git("-C", other, "merge", "-q", "--ff-only", "rooda/next")  # by hand
    assert repo.rooda("tasks", "land", timeout=60).code == 0 and states(repo) == ["landed"] * 4
    assert "rooda/next" not in repo.git("branch", "-a")


def test_T_20_what_waits_is_made_again_when_the_target_moves(repo: Workspace) -> None:
    """The user commits to the target, and cancels one of the tasks that wait: only the other one lands, on top."""
    complete(repo, {"b.txt": "b\n"})
    complete(repo, {"c.txt": "c\n"})
    repo.write("a.txt", "mine\n")
    assert repo.rooda("tasks", "land", timeout=60).code == 4
    assert repo.rooda("tasks", "cancel", "1").code == 0
    repo.git("commit", "-qam", "mine")
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 0 and states(repo) == ["cancelled", "landed"], done
    assert repo.git("log", "--format=%s", "main") == "write c.txt\nmine\nfirst\n"


def test_T_20_a_remote_target_is_pushed_with_a_lease(repo: Workspace) -> None:
    """Another one pushes while the gates run: the task lands on top of that; the gates run again."""
    bare = f"{repo.root}/upstream.git"
    repo.git("clone", "-q", "--bare", repo.path, bare)
    repo.git("remote", "add", "origin", bare)
    repo.git("fetch", "-q", "origin")
    theirs = commit_of(repo, {"theirs.txt": "t\n"}, "main")
    race = f'echo >> "$FAKE/gates"; git -C {repo.path} push -q origin {theirs}:main || true'
    complete(repo, {"b.txt": "b\n"}, target="origin/main", gate=race)
    before = repo.git("rev-parse", "main")
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 0 and states(repo) == ["landed"], done
    assert repo.git("-C", bare, "log", "--format=%s", "main") == "write b.txt\nwrite theirs.txt\nfirst\n"
    assert repo.git("rev-parse", "main") == before and not repo.exists("b.txt")
    assert len(Path(repo.fake, "gates").read_text().splitlines()) == 2


@pytest.mark.parametrize("place", ["remote", "local"])
def test_T_20_a_refused_push_says_why(repo: Workspace, place: str) -> None:
    """The words of the remote's rule, or of the user's own hook; not only that the push failed."""
    bare = f"{repo.root}/upstream.git"
    repo.git("clone", "-q", "--bare", repo.path, bare)
    repo.git("remote", "add", "origin", bare)
    repo.git("fetch", "-q", "origin")
    hook = Path(f"{bare}/hooks/pre-receive" if place == "remote" else repo.file(".git/hooks/pre-push"))
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'error: Signed commits are required.' >&2\nexit 1\n")
    hook.chmod(0o755)
    complete(repo, {"b.txt": "b\n"}, target="origin/main")
    done = repo.rooda("tasks", "land", timeout=60)
    (line,) = (row for row in done.out.splitlines() if "git push failed" in row)
    assert done.code == 4 and "error: Signed commits are required." in line and "failed to push" not in line, done
    assert ("[remote rejected]" in line and "(pre-receive hook declined)" in line) == (place == "remote")


def test_T_20_a_branch_that_merged_its_target_becomes_a_merge_on_top(repo: Workspace) -> None:
    """Its first parent is the target's tip, also when the branch is ahead of it; without merges it is as it is."""
    base = repo.git("rev-parse", "main").strip()
    complete(repo, {"b.txt": "b\n"})
    assert repo.rooda("tasks", "land", timeout=60).code == 0
    number = complete(repo, {"c.txt": "c\n"}, base=base)
    merged = commit_of(repo, {"b.txt": "b\n"}, f"refs/rooda/task/{number}", "main")
    settle(repo, number, merged)
    tip = repo.git("rev-parse", "main").strip()
    assert repo.rooda("tasks", "land", timeout=60).code == 0
    assert repo.git("log", "-1", "--format=%P", "main").split() == [tip, merged]


def test_T_20_squash_makes_one_commit_a_task_without_an_identity(repo: Workspace) -> None:
    """Also for a user without an identity; the message names task and run."""
    repo.write("rooda.toml", f"{repo.read('rooda.toml')}\n[tasks]\nsquash = true\n")
    repo.git("commit", "-qam", "squash")
    number = complete(repo, {"b.txt": "b\n"})
    settle(repo, number, commit_of(repo, {"c.txt": "c\n"}, f"refs/rooda/task/{number}"))
    Path(repo.home, ".gitconfig").unlink()
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 0, done
    assert repo.git("log", "-2", "--format=%s", "main") == "Write b.txt\nsquash\n"
    assert f"Rooda-Task: {number}" in repo.git("log", "-1", "--format=%b", "main")


def test_T_20_a_gate_that_changes_tracked_files_is_red(repo: Workspace) -> None:
    complete(repo, {"b.txt": "b\n"}, gate="echo more >> a.txt")
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 4 and "it changed a.txt" in done.out and states(repo) == ["waiting"], done


def test_T_20_gates_are_those_of_the_targets_tip(repo: Workspace) -> None:
    """A branch can't leave them out: the gate that it removes runs on it."""
    repo.write("AGENTS.md", "## Quality Gates\n\n- tests: `test ! -e b.txt`\n")
    repo.git("add", "-A")
    repo.git("commit", "-qm", "gates")
    complete(repo, {"b.txt": "b\n", "AGENTS.md": "nothing\n"}, gate="true")
    done = repo.rooda("tasks", "land", "--yes", timeout=60)
    assert done.code == 4 and "tests is red on main (exit 1)" in done.out and states(repo) == ["waiting"], done


def test_T_20_a_landing_clone_that_is_unusable_is_made_again(repo: Workspace) -> None:
    complete(repo, {"b.txt": "b\n"})
    assert repo.rooda("tasks", "land", timeout=60).code == 0
    clone = next(Path(repo.home, ".data", "rooda", "tasks").glob("*/land-main"))
    shutil.rmtree(clone / ".git" / "refs")
    complete(repo, {"c.txt": "c\n"})
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 0 and "makes it again" in done.out and states(repo) == ["landed"] * 2, done


def test_T_20_a_branch_that_the_user_has_moved_stays(repo: Workspace) -> None:
    """What the user commits on rooda/next is not overwritten: the results go on under another name."""
    complete(repo, {"b.txt": "b\n"})
    repo.write("a.txt", "mine\n")
    assert repo.rooda("tasks", "land", timeout=60).code == 4
    theirs = commit_of(repo, {"x.txt": "x\n"}, "rooda/next")
    repo.git("update-ref", "refs/heads/rooda/next", theirs)
    complete(repo, {"c.txt": "c\n"})
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 4 and done.lines[-1].endswith("merge --ff-only rooda/next-main"), done
    repo.git("checkout", "-q", "a.txt")
    assert repo.rooda("tasks", "land", timeout=60).code == 0 and states(repo) == ["landed"] * 2
    assert repo.git("rev-parse", "rooda/next").strip() == theirs


def test_T_20_work_that_was_not_committed_goes_back(repo: Workspace) -> None:
    """A completed task whose clone has only uncommitted files has nothing to land; it does not count as landed."""
    works(repo, "echo b > b.txt; exit", gates=("true",))
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 4 and "its clone has 1 uncommitted file" in done.out and states(repo) == ["waiting"], done


def test_T_20_a_new_commit_in_a_submodule_lands(repo: Workspace) -> None:
    """The gates see it at that commit, and the repository's own copy of the submodule has it."""
    repo.git("init", "-q", "-b", "main", "../sub")
    repo.git("-C", "../sub", "commit", "-q", "--allow-empty", "-m", "sub")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", f"{repo.root}/sub", "inner")
    repo.git("commit", "-qm", "with a submodule")
    commit = "echo deep > deep && git add deep && git commit -qm deeper"
    works(repo, f"cd inner && {commit} && cd .. && git commit -qam up; exit", gates=("test -e inner/deep",))
    complete(repo, {"b.txt": "b\n"}, gate="test -e b.txt")
    done = repo.rooda("tasks", "land", timeout=90)
    assert done.code == 0 and states(repo) == ["landed"] * 2, done
    link = repo.git("ls-tree", "main", "inner").split()[2]
    assert repo.git("-C", "inner", "log", "-1", "--format=%s", link) == "deeper\n"


def test_T_20_a_gate_that_deletes_git_of_the_clone_reaches_no_repository_around_it(repo: Workspace) -> None:
    """The clones lie in the user's checkout here, whose files stay; the task goes back, and the next one lands."""
    repo.config(f'{repo.read("rooda.toml")}\n[tasks]\nclones = ".clones"\n')
    repo.write(".gitignore", ".clones\n")
    repo.git("add", "-A")
    repo.git("commit", "-qm", "settings")
    complete(repo, {"b.txt": "b\n"}, gate="rm -rf .git")
    complete(repo, {"c.txt": "c\n"})
    repo.write("a.txt", "mine\n")
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 4 and states(repo) == ["waiting", "completed"], done
    assert repo.read("a.txt") == "mine\n" and repo.git("symbolic-ref", "HEAD") == "refs/heads/main\n"
    repo.git("checkout", "-q", "a.txt")
    assert repo.rooda("tasks", "land", timeout=60).code == 0 and states(repo) == ["waiting", "landed"]


@pytest.mark.parametrize("gate", ["git update-ref -d HEAD", "git commit -q --allow-empty -m x", "rm -rf .git"])
def test_T_21_a_gate_that_damages_the_landing_clone_is_red(repo: Workspace, gate: str) -> None:
    """Its task goes back to its agent, and the tasks after it land."""
    complete(repo, {"b.txt": "b\n"}, gate=gate)
    complete(repo, {"c.txt": "c\n"})
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 4 and states(repo) == ["waiting", "landed"], done
    assert f"{gate} is red on main" in done.out


def test_T_20_a_repository_that_a_gate_leaves_is_not_in_the_way_of_the_next_task(repo: Workspace) -> None:
    complete(repo, {"b.txt": "b\n"}, gate="git init -q sub && touch sub/x")
    complete(repo, {"sub/x": "c\n"})
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 0 and states(repo) == ["landed", "landed"], done


def test_T_20_a_checkout_in_the_middle_of_a_revert_stays(repo: Workspace) -> None:
    """Its files are clean, but `git merge` would delete the message of the revert's commit."""
    repo.write("a.txt", "two\n")
    repo.git("commit", "-qam", "two")
    complete(repo, {"b.txt": "b\n"})
    repo.git("revert", "--no-commit", "HEAD")
    repo.git("checkout", "-q", "HEAD", "a.txt")
    message = repo.read(".git/MERGE_MSG")
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 4 and "in the middle of" in done.out, done
    assert repo.read(".git/MERGE_MSG") == message and not repo.exists("b.txt")
    repo.git("revert", "--quit")
    assert repo.rooda("tasks", "land", timeout=60).code == 0 and repo.exists("b.txt")


def test_T_21_a_conflict_in_bytes_that_are_no_text_goes_back(repo: Workspace) -> None:
    """The agent gets them as they are; so it is with the output of a gate."""
    repo.write("a.txt", b"caf\xe9\n")
    repo.git("commit", "-qam", "latin-1")
    works(repo, r"printf 'caf\351 1\n' > a.txt", r"printf 'caf\351 2\n' > a.txt", gates=(r"printf 'caf\351\n'",))
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 4 and states(repo) == ["landed", "waiting"], done
    repo.side(3, "git merge -q rooda/target; echo both > a.txt; git commit -qam resolved")
    done = repo.rooda("tasks", "run", "--land", timeout=60)
    assert done.code == 0 and states(repo) == ["landed", "landed"], done
    assert b"caf\xe9 2" in repo.calls[2].prompt
