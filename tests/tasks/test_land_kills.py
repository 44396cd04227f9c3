"""Landings that are killed: T-22 of the page on tasks."""

import json
import os
import shutil
from pathlib import Path

import pytest

from rooda.tasks import journal
from rooda.tasks.journal import Landed, Move
from rooda.tasks.store import Store, place_of
from tests.kit.completed import complete
from tests.kit.workspace import Ran, Workspace

MOVES = "fetch|merge|update-ref|rebase|push"  # the commands that change refs or files
KILL = "kill -9 $(ps -o ppid= -p $PPID) $PPID 2>/dev/null"  # the guardian and rooda; this git command goes on
GATE = 'test ! -e red && git rev-parse HEAD >> "$FAKE/green"'


def wrapper(repo: Workspace, when: str, words: str = "") -> str:
    """Put a `git` on PATH that does what `when` says at call $KILL_AT of these commands; return its folder."""
    folder = os.path.join(repo.root, "bin")
    os.makedirs(folder, exist_ok=True)
    chosen = "|".join(f'*" {word} "*' for word in words.split("|")) if words else "*"
    text = f"""#!/bin/sh
real={shutil.which("git")}
case " $* " in {chosen})
  echo "$*" >> "$FAKE/git.log"
  if [ "$(wc -l < "$FAKE/git.log")" = "$KILL_AT" ]; then
    touch "$FAKE/killed"
    {when}
  fi;;
esac
exec $real "$@"
"""
    path = Path(folder, "git")
    path.write_text(text)
    path.chmod(0o755)
    return folder


def land(repo: Workspace, folder: str, number: int) -> Ran:
    for name in ("git.log", "killed"):
        Path(repo.fake, name).unlink(missing_ok=True)
    env = {"PATH": f"{folder}:{repo.env['PATH']}", "KILL_AT": str(number)}
    return repo.rooda("tasks", "land", env=env, timeout=90)


def was_killed(repo: Workspace) -> bool:
    return os.path.exists(f"{repo.fake}/killed")


def check_kills(repo: Workspace, when: str, words: str) -> int:
    """Kill a landing at each call in turn; after each the next landing ends well. Return the number of kills."""
    repo.write("mine.txt", "mine\n")
    folder, at = wrapper(repo, when, words), 0
    while True:
        at += 1
        base, before = repo.git("rev-parse", "main").strip(), set(repo.git("rev-list", "main").split())
        numbers = [complete(repo, {f"made-{at}-{each}.txt": f"{each}\n"}, gate=GATE) for each in (1, 2)]
        done = land(repo, folder, at)
        check_green(repo, base)
        if not was_killed(repo):
            assert done.code == 0, done
            return at - 1
        again = repo.rooda("tasks", "land", timeout=90)
        assert again.code == 0, f"call {at}: {again}"
        found = {task["details"]["id"]: task["state"] for task in json.loads(repo.rooda("tasks", "--json").out)}
        assert [found[number] for number in numbers] == ["landed", "landed"]
        check_green(repo, base)
        assert len(set(repo.git("rev-list", "main").split()) - before) == 2, f"call {at}"
        assert repo.git("status", "--porcelain") == "?? mine.txt\n" and repo.read("mine.txt") == "mine\n"
        assert all(repo.exists(f"made-{at}-{each}.txt") for each in (1, 2))


def check_green(repo: Workspace, base: str) -> None:
    """Gates have passed on exactly the target's commit, and git finds nothing broken."""
    log = Path(repo.fake, "green")
    green = log.read_text().split() if log.exists() else []
    assert repo.git("rev-parse", "main").strip() in {base, *green}
    repo.git("fsck", "--connectivity-only", "--no-dangling")


@pytest.mark.parametrize("when", [KILL, f'$real "$@"; code=$?; {KILL}; exit $code'], ids=["before", "after"])
def test_T_22_a_landing_survives_sigkill_at_each_move(repo: Workspace, when: str) -> None:
    """The target is green, nothing is lost or doubled, and the user's files stay; the git command itself goes on."""
    assert check_kills(repo, when, MOVES) >= 4


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("when", [KILL, f'$real "$@"; code=$?; {KILL}; exit $code'], ids=["before", "after"])
def test_T_22_a_landing_survives_sigkill_at_every_git_call(repo: Workspace, when: str) -> None:
    assert check_kills(repo, when, "") >= 20


HALF = f"""
    for commit; do :; done
    $real show $commit:b.txt > b.txt; : > c.txt; rm a.txt; touch .git/index.lock; {KILL}; exit 1"""


@pytest.mark.parametrize("edit", ["", "other", "same"])
def test_T_22_a_checkout_that_git_left_half_done_is_completed(repo: Workspace, edit: str) -> None:
    """git died inside of its merge: one file is new, one empty, one gone, the index locked. What the user did stays."""
    repo.write("d.txt", "user's\n")
    repo.git("add", "-A")
    repo.git("commit", "-qm", "d")
    complete(repo, {"a.txt": "new\n", "b.txt": "b\n", "c.txt": "c\n"}, gate=GATE)
    land(repo, wrapper(repo, HALF, "merge"), 1)
    assert was_killed(repo) and repo.exists(".git/index.lock")
    if edit:
        repo.write("d.txt" if edit == "other" else "b.txt", "edited\n")
    done = repo.rooda("tasks", "land", timeout=60)
    if edit == "same":
        assert done.code == 4 and repo.file("b.txt") in done.err and repo.read("b.txt") == "edited\n"
        repo.write("b.txt", "b\n")
        done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 0, done
    assert repo.git("status", "--porcelain") == (" M d.txt\n" if edit == "other" else "")
    assert [repo.read(name) for name in ("a.txt", "b.txt", "c.txt")] == ["new\n", "b\n", "c\n"]
    assert repo.read("d.txt") == ("edited\n" if edit == "other" else "user's\n")


def test_T_22_a_git_that_died_after_its_move_leaves_no_lock(repo: Workspace) -> None:
    """Its merge has moved the target and not yet removed HEAD.lock: the task has landed, and the next one does."""
    complete(repo, {"b.txt": "b\n"}, gate=GATE)
    complete(repo, {"c.txt": "c\n"}, gate=GATE)
    die = '$real "$@"; touch .git/HEAD.lock; kill -9 $$'
    done = land(repo, wrapper(repo, die, "merge"), 1)
    assert was_killed(repo) and done.code == 0 and not repo.exists(".git/HEAD.lock"), done
    assert repo.read("b.txt") + repo.read("c.txt") == "b\nc\n" and repo.git("status", "--porcelain") == ""


def test_T_22_a_lock_of_the_users_checkout_stays_if_the_target_is_elsewhere(repo: Workspace) -> None:
    """A landing on a branch that is not checked out was killed; only the lock of this branch can be its own."""
    repo.git("branch", "dev")
    number = complete(repo, {"b.txt": "b\n"}, target="dev")
    tips = [repo.git("rev-parse", name).strip() for name in ("dev", f"rooda/{number}-task")]
    journal.begin(Store(place_of(repo.path)), Move((Landed(number, tips[1]),), "refs/heads/dev", *tips))
    for name in ("index", "refs/heads/dev"):
        Path(repo.path, ".git", f"{name}.lock").touch()
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 0 and repo.git("rev-parse", "dev").strip() == tips[1], done
    assert repo.exists(".git/index.lock")


def test_T_22_a_task_in_a_landing_that_was_cut_off_is_not_cancelled(repo: Workspace) -> None:
    number = complete(repo, {"b.txt": "b\n"}, gate=GATE)
    land(repo, wrapper(repo, KILL, "merge"), 1)
    done = repo.rooda("tasks", "cancel", str(number))
    assert done.code == 2 and "A landing of task 1 has begun." in done.err
