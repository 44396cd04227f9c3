"""Pull requests: T-23 of the page on tasks, with a scripted `gh` and `glab` on PATH."""

import json
import os
from pathlib import Path

import pytest

from tests.kit.completed import commit_of, complete
from tests.kit.workspace import Ran, Workspace, until

FORGE = """#!/bin/sh
printf '%s\\n' "$(basename "$0") $*" >> "$FAKE/asked"
head=$(git -C "$FAKE/upstream.git" rev-parse rooda/1-task 2>/dev/null)
case "$*" in
    "pr list"*|"mr list"*) echo '[]' ;;
    "pr create"*) echo "Creating…"; echo https://github.com/o/r/pull/5 ;;
    "mr create"*) echo https://gitlab.com/o/r/-/merge_requests/5 ;;
    "pr view"*) sed "s/HEAD/$head/" "$FAKE/seen" ;;
    "mr view"*) sed "s/HEAD/$head/" "$FAKE/seen" ;;
    "run view --job 22 --log-failed"|*jobs/22/trace) echo "the log: test_login FAILED" ;;
    *"jobs?scope"*) echo '[{"id": 22, "name": "unit"}]' ;;
    "pr merge"*|"mr merge"*) sed -i 's/OPEN/MERGED/; s/opened/merged/' "$FAKE/seen" ;;
    *) echo "unknown: $*" >&2; exit 1 ;;
esac
"""
GH = {"state": "OPEN", "headRefOid": "HEAD", "mergeCommit": None}
RUN = {"__typename": "CheckRun", "name": "ci", "status": "COMPLETED",
       "detailsUrl": "https://github.com/o/r/actions/runs/11/job/22"}  # fmt: skip
CHECKS = {
    "gh": {
        "pending": {**GH, "statusCheckRollup": [{**RUN, "status": "IN_PROGRESS", "conclusion": ""}]},
        "red": {**GH, "statusCheckRollup": [{"context": "lint", "state": "SUCCESS"}, {**RUN, "conclusion": "FAILURE"}]},
        "green": {**GH, "statusCheckRollup": [{**RUN, "conclusion": "SUCCESS"}], "mergeable": "MERGEABLE"},
        "conflict": {**GH, "statusCheckRollup": [], "mergeable": "CONFLICTING"},
    },
    "glab": {
        **{
            verdict: {"state": "opened", "sha": "HEAD", "head_pipeline": {"id": 11, "status": word}}
            for verdict, word in (("pending", "running"), ("red", "failed"), ("green", "success"))
        },
        "conflict": {"state": "opened", "sha": "HEAD", "head_pipeline": None, "has_conflicts": True},
    },
}


@pytest.fixture(params=["gh", "glab"])
def forge(repo: Workspace, request: pytest.FixtureRequest) -> str:
    """A repository with a remote of this forge; git reaches it in a folder."""
    name: str = request.param
    os.mkdir(f"{repo.root}/bin")
    program = Path(repo.root, "bin", name)
    program.write_text(FORGE)
    program.chmod(0o755)
    repo.git("clone", "-q", "--bare", repo.path, f"{repo.fake}/upstream.git")
    url = f"https://git{'hub' if name == 'gh' else 'lab'}.com/o/r.git"
    repo.git("remote", "add", "origin", url)
    repo.git("config", "--global", f"url.{repo.fake}/upstream.git.insteadOf", url)
    return name


def land(repo: Workspace, *words: str) -> Ran:
    return repo.rooda("tasks", "land", "--pr", *words, env={"PATH": f"{repo.root}/bin:{repo.env['PATH']}"}, timeout=60)


def says(repo: Workspace, forge: str, verdict: str) -> None:
    Path(repo.fake, "seen").write_text(json.dumps(CHECKS[forge][verdict]))


def state(repo: Workspace) -> str:
    return str(json.loads(repo.rooda("tasks", "--json").out)[0]["state"])


def test_T_23_a_pull_request_is_opened_watched_and_merged(repo: Workspace, forge: str) -> None:
    """One pass each: pushed and opened with evidence; waits for checks; nothing is merged without --merge."""
    complete(repo, {"b.txt": "b\n"})
    before = repo.git("rev-parse", "main")
    done = land(repo)
    assert done.code == 4 and "Task 1: opened https://" in done.out, done
    assert repo.git("-C", f"{repo.fake}/upstream.git", "log", "-1", "--format=%s", "rooda/1-task") == "write b.txt\n"
    asked = Path(repo.fake, "asked").read_text()
    assert "## Evidence" in asked and "| Iterations | 0 |" in asked and "Write b.txt" in asked
    for verdict, words, said in (("pending", ("--merge",), "checks pending"), ("green", (), "checks green")):
        says(repo, forge, verdict)
        done = land(repo, *words)
        assert done.code == 4 and said in done.out and state(repo) == "completed", done
    done = land(repo, "--merge", "--watch", "--every", "100ms")
    assert done.code == 0 and state(repo) == "landed", done
    assert Path(repo.fake, "asked").read_text().count("create") == 1 and repo.git("rev-parse", "main") == before


def test_T_23_a_failed_check_goes_back_with_its_log(repo: Workspace, forge: str) -> None:
    """Its log is in the next prompt; the new work is pushed to the same pull request."""
    complete(repo, {"b.txt": "b\n"})
    land(repo)
    says(repo, forge, "red")
    done = land(repo)
    assert done.code == 4 and state(repo) == "waiting" and "failed: https://" in done.out, done
    repo.side(1, "echo more > c.txt; git add -A; git commit -qm repaired")
    assert repo.rooda("tasks", "run", timeout=60).code == 0
    assert "the log: test_login FAILED" in repo.calls[0].text
    task = json.loads(repo.rooda("tasks", "--json").out)[0]
    assert repo.git("log", "--format=%s", task["details"]["branch"]) == "repaired\nwrite b.txt\nfirst\n"
    says(repo, forge, "green")
    assert land(repo, "--merge", "--watch", "--every", "100ms").code == 0 and state(repo) == "landed"
    assert Path(repo.fake, "asked").read_text().count("create") == 1


def test_T_23_a_pull_request_that_conflicts_goes_back(repo: Workspace, forge: str) -> None:
    """The agent gets the target's tip at the forge, which the user's checkout lacks; its merge is pushed."""
    complete(repo, {"a.txt": "mine\n"})
    land(repo)
    theirs = commit_of(repo, {"a.txt": "theirs\n"}, "main")
    repo.git("push", "-q", "origin", f"{theirs}:refs/heads/main")
    says(repo, forge, "conflict")
    done = land(repo)
    assert done.code == 4 and state(repo) == "waiting", done
    assert "Task 1: waiting: its pull request conflicts with main in a.txt: https://" in done.out
    repo.side(1, "git merge -q rooda/target || { echo both > a.txt; git commit -qam merged; }")
    assert repo.rooda("tasks", "run", timeout=60).code == 0
    assert "conflicts with main in a.txt" in repo.calls[0].text
    says(repo, forge, "green")
    assert land(repo, "--merge", "--watch", "--every", "100ms").code == 0 and state(repo) == "landed"
    pushed = repo.git("-C", f"{repo.fake}/upstream.git", "log", "-1", "--format=%P", "rooda/1-task").split()
    assert theirs in pushed and repo.git("-C", f"{repo.fake}/upstream.git", "show", "rooda/1-task:a.txt") == "both\n"


def test_T_23_what_a_forge_prints_is_not_believed(repo: Workspace, forge: str) -> None:
    """JSON in another form, garbage or a failure changes no task and is said; a watch goes on after a failure."""
    complete(repo, {"b.txt": "b\n"})
    land(repo)
    for text in ("[]", "null", "7", "garbage", '{"state": [], "head_pipeline": 7, "mergeCommit": "x"}'):
        Path(repo.fake, "seen").write_text(text)
        done = land(repo)
        assert done.code == 4 and "Task 1: " in done.out and state(repo) == "completed", done
    Path(repo.fake, "seen").unlink()
    done = land(repo)
    assert done.code == 2 and " view failed: " in done.err, done
    says(repo, forge, "pending")
    words = ("tasks", "land", "--pr", "--merge", "--watch", "--every", "50ms")
    watching = repo.start(*words, env={"PATH": f"{repo.root}/bin:{repo.env['PATH']}"})
    until(lambda: "checks pending" in watching.out, what="the first poll")
    Path(repo.fake, "seen").unlink()
    until(lambda: " view failed: " in watching.out, what="a poll that fails")
    says(repo, forge, "green")
    assert watching.finish(30) == 0 and state(repo) == "landed"


def test_T_23_without_a_remote_nothing_is_opened(repo: Workspace) -> None:
    complete(repo, {"b.txt": "b\n"})
    done = repo.rooda("tasks", "land", "--pr")
    assert done.code == 2 and "This repository has no remote, so rooda can't open a pull request." in done.err
