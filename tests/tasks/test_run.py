"""Running tasks: T-10 and following of the page on tasks."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchmarks.faults.steps import build
from rooda.cli.status import NO_LOOP
from tests.kit.needed import LINUX, needs
from tests.kit.processes import marked
from tests.kit.workspace import FAKE_AI, Workspace, until, waiting


def test_T_10_tasks_run_in_clones_of_their_own(repo: Workspace) -> None:
    """Each has a clone outside of the repository, a branch, and a slot; the user's checkout stays as it is."""
    repo.rooda("tasks", "add", "Left", "-n", "1")
    repo.rooda("tasks", "add", "Right", "-n", "1")
    for call in (1, 2):
        repo.side(call, 'echo "$ROODA_SLOT" > made; git add made; git commit -qm work')
    done = repo.rooda("tasks", "run", "-j", "2", timeout=60)
    assert done.code == 0, done
    found = json.loads(repo.rooda("tasks", "--json").out)
    assert [task["state"] for task in found] == ["completed", "completed"]
    assert repo.git("status", "--porcelain") == "" and repo.git("branch", "--show-current") == "main\n"
    for task, branch in zip(found, ("rooda/1-left", "rooda/2-right"), strict=True):
        assert task["details"]["branch"] == branch and task["details"]["clone"].startswith(repo.home)
        assert repo.git("log", "-1", "--format=%s", branch) == "work\n"
    slots = {repo.git("show", f"{task['details']['branch']}:made") for task in found}
    assert slots == {"0\n", "1\n"}
    assert "origin\tno-push" in repo.git("-C", found[0]["details"]["clone"], "remote", "-v")


def test_T_01_a_run_without_land_says_what_waits_for_a_landing(repo: Workspace) -> None:
    """It ends with 4, and names the task and the commands."""
    repo.rooda("tasks", "add", "One", "-n", "1")
    repo.rooda("tasks", "add", "Two", "-n", "1", "--after", "1")
    done = repo.rooda("tasks", "run", timeout=60)
    assert done.code == 4 and len(repo.calls) == 1
    to_land = "To land them: rooda tasks land, or rooda tasks run --land"
    assert done.lines[-1] == f"Task 2 waits until others have landed. {to_land}"


def test_T_01_a_run_says_what_waits_for_a_cancelled_task(repo: Workspace) -> None:
    repo.rooda("tasks", "add", "One")
    repo.rooda("tasks", "add", "Two", "--after", "1")
    repo.rooda("tasks", "cancel", "1")
    done = repo.rooda("tasks", "run", "--land", timeout=60)
    assert done.code == 4
    assert done.lines == ["Task 2 waits for cancelled tasks: 1. To change that: rooda tasks edit 2 --after …"]
    assert "task 1, cancelled: rooda tasks edit 2" in repo.rooda("tasks").out


def test_T_11_a_killed_scheduler_loses_nothing(repo: Workspace) -> None:
    """SIGKILL of scheduler and guardian: nothing of its loops stays, and the next `run` goes on where they were."""
    repo.rooda("tasks", "add", "Long", "-n", "2")
    repo.side(1, "echo one >> made; git add made; git commit -qm one")
    repo.side(2, "touch $FAKE/waiting; sleep 60")
    running = repo.start("tasks", "run")
    until(lambda: os.path.exists(f"{repo.fake}/waiting"), what="the second iteration")
    for pid in (
        running.pid,
        *(each.pid for each in psutil.Process(running.pid).children() if "tasks" in each.cmdline()),
    ):
        os.kill(pid, signal.SIGKILL)
    running.finish(30)
    repo.side(3, "echo two >> made; git add made; git commit -qm two")
    done = repo.rooda("tasks", "run", timeout=60)
    assert done.code == 0, done
    assert len(repo.calls) == 3 and repo.git("show", "rooda/1-long:made") == "one\ntwo\n"


def test_T_11_stop_leaves_a_task_for_the_next_run(repo: Workspace) -> None:
    """`stop 1` and `cancel 2` while they run: the first goes on in the next `run`, the second never."""
    for title in ("Stopped", "Cancelled"):
        repo.rooda("tasks", "add", title, "-n", "1")
    for call in (1, 2):
        repo.side(call, "sleep 60")
    running = repo.start("tasks", "run")
    repo.wait_calls(2)
    assert "`rooda tasks run` is running here (pid " in repo.rooda("status").out
    assert repo.rooda("tasks", "stop", "1").code == 0
    assert repo.rooda("tasks", "cancel", "2").code == 0
    assert running.finish(30) == 4
    found = [task["state"] for task in json.loads(repo.rooda("tasks", "--json").out)]
    assert found == ["waiting", "cancelled"]
    to_continue = "There are open tasks (rooda tasks). To continue: rooda tasks run"
    assert repo.rooda("status").lines == [NO_LOOP, to_continue]
    assert to_continue in repo.rooda("resume").err
    assert repo.rooda("tasks", "run", timeout=60).code == 0 and len(repo.calls) == 3
    found = [task["state"] for task in json.loads(repo.rooda("tasks", "--json").out)]
    assert found == ["completed", "cancelled"]


def test_T_10_pause_without_an_id_suspends_the_run_and_all_its_loops(repo: Workspace) -> None:
    """No agent works and nothing starts until `continue`; a stop ends a paused run, too."""
    for title in ("One", "Two", "Three"):
        repo.rooda("tasks", "add", title, "-n", "1")
    for call in (1, 2):
        repo.side(call, f"echo $$ >> $FAKE/pids; {waiting(f'{repo.fake}/go')}")
    assert repo.rooda("tasks", "pause").code == 2
    running = repo.start("tasks", "run")
    repo.wait_calls(2)
    assert repo.rooda("tasks", "pause").code == 0
    pids = [int(pid) for pid in Path(repo.fake, "pids").read_text().split()]
    still = {psutil.STATUS_STOPPED, psutil.STATUS_DISK_SLEEP}  # the latter: a shell whose vforked child is stopped
    until(lambda: {psutil.Process(pid).status() for pid in pids} <= still, what="the suspension")
    Path(repo.fake, "go").touch()
    repo.rooda("tasks", "add", "Four", "-n", "1")
    assert len(repo.calls) == 2
    assert repo.rooda("tasks", "continue").code == 0
    assert running.finish(60) == 0 and len(repo.calls) == 4
    repo.rooda("tasks", "add", "Five", "-n", "1")
    repo.side(5, "sleep 60")
    running = repo.start("tasks", "run")
    repo.wait_calls(5)
    assert repo.rooda("tasks", "pause").code == 0
    assert repo.rooda("tasks", "stop").code == 0 and running.finish(30) == 143


def test_T_13_a_failed_task_is_tried_again_once(repo: Workspace) -> None:
    repo.procedure(loop={"failure_threshold": 1})
    repo.git("commit", "-qam", "settings")
    repo.rooda("tasks", "add", "Fails", "-n", "2")
    repo.exits(1, 1, 0)
    assert repo.rooda("tasks", "run", timeout=60).code == 1 and len(repo.calls) == 2
    assert repo.rooda("tasks", "retry", "1").code == 0
    assert repo.rooda("tasks", "run", "--retries", "0", timeout=60).code == 0


def test_T_11_a_second_run_names_the_first(repo: Workspace) -> None:
    repo.rooda("tasks", "add", "One", "-n", "1")
    repo.side(1, "touch $FAKE/waiting; until [ -e $FAKE/go ]; do sleep 0.05; done")
    running = repo.start("tasks", "run", "-j", "2")
    until(lambda: os.path.exists(f"{repo.fake}/waiting"), what="the first task")
    second = repo.rooda("tasks", "run")
    assert second.code == 3 and "already running here (pid " in second.err
    repo.rooda("tasks", "add", "Added later", "-n", "1")
    repo.wait_calls(2)
    Path(repo.fake, "go").touch()
    assert running.finish(30) == 0


def board(repo: Workspace) -> list[dict[str, Any]]:
    return [{**task, **task["details"]} for task in json.loads(repo.rooda("tasks", "--json").out)]


def test_T_10_each_turn_is_in_the_repository_before_it_counts(repo: Workspace) -> None:
    """While the second iteration runs, HEAD of the first and its snapshot are refs of the repository."""
    repo.procedure(loop={"safety": "snapshot"})
    repo.git("commit", "-qam", "settings")
    repo.rooda("tasks", "add", "Long", "-n", "2")
    repo.side(1, "echo one > made; git add made; git commit -qm one; echo two > loose")
    repo.side(2, waiting(f"{repo.fake}/go"))
    running = repo.start("tasks", "run")
    repo.wait_calls(2)
    assert repo.git("log", "-1", "--format=%s", "refs/rooda/task/1") == "one\n"
    assert repo.git("show", "refs/rooda/task-snapshot/1:loose") == "two\n"
    assert not any("rooda/tasks" in path.read_text() for path in Path(repo.home).glob(".state/rooda/workspaces/*.json"))
    Path(repo.fake, "go").touch()
    assert running.finish(30) == 0


def test_T_10_submodules_are_borrowed_and_their_commits_kept(repo: Workspace) -> None:
    """A clone checks out submodules without a network; a commit in one of them is in the repository, too."""
    repo.git("init", "-q", "-b", "main", "../sub")
    repo.git("-C", "../sub", "commit", "-q", "--allow-empty", "-m", "sub")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", f"{repo.root}/sub", "inner")
    repo.git("commit", "-qm", "with a submodule")
    repo.rooda("tasks", "add", "Inner", "-n", "1")
    repo.side(1, "cd inner && git commit -q --allow-empty -m deeper && cd .. && git commit -qam up")
    assert repo.rooda("tasks", "run", timeout=60).code == 0
    assert repo.git("--git-dir=.git/modules/inner", "log", "-1", "--format=%s", "refs/rooda/task/1") == "deeper\n"
    repo.rooda("tasks", "cancel", "1")
    assert repo.rooda("tasks", "clean").out == "Removed 1 clone.\n"


def test_T_13_work_that_is_not_in_the_repository_parks_its_task(repo: Workspace) -> None:
    """Nothing completes with an older commit; once the repository takes the work, `retry` completes the task."""
    repo.rooda("tasks", "add", "Work", "-n", "1")
    lock = f"{repo.path}/.git/refs/rooda/task/1.lock"
    repo.side(1, f"echo b > b; git add b; git commit -qm work; touch {lock}")
    assert repo.rooda("tasks", "run", timeout=60).code == 4
    task = board(repo)[0]
    assert task["state"] == "parked" and "could not be brought into" in task["reason"]
    os.remove(lock)
    assert repo.rooda("tasks", "retry", "1").out == "Task 1 is completed.\n"
    assert repo.git("log", "-1", "--format=%s", "rooda/1-work") == "work\n"


def test_T_16_a_clone_with_unpublished_work_is_kept(repo: Workspace) -> None:
    """`clean` removes clones of tasks that are over, unless they have what the repository lacks."""
    repo.rooda("tasks", "add", "Loose", "-n", "1")
    repo.side(1, "echo b > loose")
    repo.rooda("tasks", "run", timeout=60)
    repo.rooda("tasks", "cancel", "1")
    assert "clone has  1 uncommitted file" in repo.rooda("tasks", "show", "1").out
    kept = repo.rooda("tasks", "clean")
    assert "it has 1 uncommitted file." in kept.out and "Removed 0 clones." in kept.out
    os.remove(f"{board(repo)[0]['clone']}/loose")
    assert repo.rooda("tasks", "clean").out == "Removed 1 clone.\n" and board(repo)[0]["clone"] is None


def test_T_16_what_stops_all_tasks_is_said_once(repo: Workspace) -> None:
    """A branch in the way, or an agent that is missing, ends the run; no task is parked."""
    repo.rooda("tasks", "add", "One", "-n", "1")
    repo.rooda("tasks", "add", "Two", "-n", "1")
    repo.git("branch", "rooda")
    done = repo.rooda("tasks", "run")
    assert done.code == 2 and "branch_prefix" in done.err
    repo.git("branch", "-D", "rooda")
    done = repo.rooda("tasks", "run", "-j", "1", env={"ROODA_LOOP_AI_CMD": "no-such-program"}, timeout=60)
    assert done.code == 2 and (done.out + done.err).count("no-such-program") == 1, done.out
    assert [task["state"] for task in board(repo)] == ["waiting", "waiting"] and not repo.calls
    settings = repo.read("rooda.toml")
    repo.procedure(loop={"ai_cmd": None})
    done = repo.rooda("tasks", "run", "-j", "1", timeout=60)
    assert done.code == 2 and "Error: No agent is configured. Set agent or ai_cmd under [loop]" in done.err, done
    repo.write("rooda.toml", settings)
    repo.write("rooda.toml", repo.read("rooda.toml") + '\n[tasks]\nmin_free = "9000TB"\n')
    done = repo.rooda("tasks", "run")
    assert done.code == 4 and "min_free" in done.out and not repo.calls


def test_E_16_T_16_a_run_or_landing_with_nothing_to_do_says_so(repo: Workspace) -> None:
    """The program of a task's gate is missing: the task is parked, and its reason names `tasks edit`."""
    repo.rooda("tasks", "add", "One", "-n", "1", "--gate", "no-such-program -q")
    done = repo.rooda("tasks", "run", timeout=60)
    assert done.code == 4 and "or correct the task's gates: rooda tasks edit ID --gate COMMAND" in done.out, done
    done = repo.rooda("tasks", "run", timeout=60)
    assert (done.code, done.out) == (4, "No task could start. See what they wait for: rooda tasks\n")
    done = repo.rooda("tasks", "land")
    assert (done.code, done.out) == (0, "No completed task is waiting to land. To list all tasks: rooda tasks\n")
    assert repo.rooda("tasks", "land", "--pr").code == 2


def test_T_15_a_question_parks_its_task_until_the_answer(repo: Workspace) -> None:
    """No process waits; the answer is in the next prompt, and the running scheduler goes on; the hook comes once."""
    hook = f'[hooks]\nneeds_person = "echo asked >> {repo.fake}/asked"\n'
    repo.write("rooda.toml", repo.read("rooda.toml") + hook)
    repo.rooda("tasks", "add", "Choose", "-n", "1")
    repo.rooda("tasks", "add", "Other", "-n", "1")
    repo.out(1, "I need this:\n<question>SQLite or files?</question>\n")
    repo.side(2, waiting(f"{repo.fake}/go"))
    running = repo.start("tasks", "run", "-j", "1")
    repo.wait_calls(2)
    assert "<question>your question</question>" in repo.calls[0].text
    asked = board(repo)[0]
    assert (asked["state"], asked["question"]) == ("parked", "SQLite or files?")
    assert repo.rooda("tasks", "retry", "1").code == 2
    assert repo.rooda("answer", "1", "Files.").out == "Task 1 goes on.\n"
    Path(repo.fake, "go").touch()
    assert running.finish(30) == 0, running.out
    assert "You asked: SQLite or files? The answer: Files." in repo.calls[2].text
    assert [task["state"] for task in board(repo)] == ["completed", "completed"]
    assert Path(repo.fake, "asked").read_text() == "asked\n"


def test_T_15_a_question_without_an_answer_ends(repo: Workspace) -> None:
    """After `question_timeout` the default is the answer; without one the task fails."""
    settings = repo.read("rooda.toml")
    repo.write("rooda.toml", settings + '[tasks]\nquestion_timeout = "1ms"\nquestion_default = "You decide."\n')
    repo.rooda("tasks", "add", "Choose", "-n", "1")
    repo.out(1, "<question>Which?</question>\n")
    assert repo.rooda("tasks", "run", "--wait", timeout=60).code == 0
    assert "The answer: You decide." in repo.calls[1].text
    repo.write("rooda.toml", settings + '[tasks]\nquestion_timeout = "1ms"\n')
    repo.rooda("tasks", "add", "Choose again", "-n", "1")
    repo.out(3, "<question>Which?</question>\n")
    assert repo.rooda("tasks", "run", "--wait", timeout=60).code == 1
    assert board(repo)[1]["state"] == "failed"


def test_T_15_a_question_outside_of_tasks(ws: Workspace) -> None:
    """With promise signals a question parks the run: exit 4; `answer` stores the answer, `resume` goes on."""
    ws.procedure(keys="promise_signals = true\n")
    ws.out(1, "so:\n<question>SQLite or files?</question>\n<promise>SUCCESS</promise>\n")
    asked = ws.rooda("build", "-n", "1")
    assert asked.code == 4 and 'rooda answer build "…"' in asked.err
    assert json.loads(ws.rooda("status", "--json").out)[0]["state"] == "parked"
    assert '  resume with: rooda answer build "…"\n' in ws.rooda("status").out
    refused = ws.rooda("resume", "build")
    assert refused.code == 3 and "'build' asks: SQLite or files?" in refused.err
    assert ws.rooda("answer", "build", "Files.").out == "Go on: rooda resume build\n"
    assert ws.rooda("answer", "build", "Again").code == 2
    assert ws.rooda("resume", "build").code == 0 and len(ws.calls) == 2
    assert "The answer: Files." in ws.calls[1].text


RESULT = {"type": "result", "is_error": False, "result": "done", "total_cost_usd": 0.5}
LIMIT = """\
{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%d,"rateLimitType":"five_hour"}}
{"type":"result","is_error":true,"api_error_status":429,"result":"You've hit your limit"}
"""


def paid(repo: Workspace) -> None:
    """The scripted agent reports $0.50 for each call, in the form of claude."""
    repo.sections["agents"] = f'[agents.mine]\ncommand = "{FAKE_AI}"\noutput = "claude"\n'
    repo.procedure(loop={"ai_cmd": None, "agent": "mine"})
    repo.out("iteration", json.dumps(RESULT))
    repo.git("commit", "-qam", "settings")


LONG = (pytest.mark.long, pytest.mark.timeout(1800))


@pytest.mark.parametrize(("count", "limited"), [(6, 3), pytest.param(100, 20, marks=LONG)])
def test_T_12_no_call_starts_after_a_usage_limit(repo: Workspace, count: int, limited: int) -> None:
    """All other tasks wait, none fails; after the reset `run` finishes them."""
    paid(repo)
    for number in range(count):
        repo.rooda("tasks", "add", f"Task {number}", "-n", "1")
    repo.out(limited, LIMIT % (time.time() + 3600))
    done = repo.rooda("tasks", "run", "-j", "1", timeout=600)
    assert done.code == 4 and len(repo.calls) == limited, done.out
    found = board(repo)
    assert [task["state"] for task in found] == ["completed"] * (limited - 1) + ["waiting"] * (count - limited + 1)
    assert all("mine" in task["account"] and task["until"] for task in found[limited - 1 :])
    assert repo.rooda("tasks", "run", timeout=60).code == 4 and len(repo.calls) == limited
    for path in Path(repo.home).rglob("limits/*.json"):
        path.unlink()  # the reset
    for number in range(limited, count + 1):
        repo.rooda("tasks", "retry", str(number))
    assert repo.rooda("tasks", "run", "-j", "4", timeout=600).code == 0 and len(repo.calls) == count + 1


def test_T_12_a_run_has_a_cost_limit_of_its_own(repo: Workspace) -> None:
    """All loops together spend at most that much, and the calls that ran; the rest waits for the next run."""
    paid(repo)
    for number in range(5):
        repo.rooda("tasks", "add", f"Task {number}", "-n", "1")
    done = repo.rooda("tasks", "run", "-j", "2", "--max-cost", "1", timeout=60)
    assert done.code == 4 and 2 <= len(repo.calls) <= 3 and "nothing more starts" in done.out, done.out
    assert {task["state"] for task in board(repo)} == {"completed", "waiting"}
    assert repo.rooda("tasks", "run", timeout=60).code == 0 and len(repo.calls) == 5


def test_E_42_T_12_tasks_and_worktrees_belong_to_the_project_of_their_repository(repo: Workspace) -> None:
    """Runs in the checkout, in a worktree and in the clones of two tasks share one `[budget] project`."""
    paid(repo)
    repo.sections["budget"] = "\n[budget]\nproject = 2.0\n"
    repo.procedure(loop={"ai_cmd": None, "agent": "mine"})
    repo.git("commit", "-qam", "budget")
    assert repo.rooda("build", "-n", "1").code == 0
    assert repo.rooda("build", "-n", "1", "--worktree").code == 0
    for number in range(2):
        repo.rooda("tasks", "add", f"Task {number}", "-n", "4")
    done = repo.rooda("tasks", "run", "-j", "1", timeout=60)
    assert done.code == 4 and len(repo.calls) == 4, done
    assert done.out.count("parked: Project budget reached: $2.00 of $2.00; raise [budget] project") == 2
    assert repo.rooda("build", "-n", "1", "--fresh").code == 4 and len(repo.calls) == 4
    lines = [line for path in Path(repo.home).rglob("ledger/*.jsonl") for line in path.read_text().splitlines()]
    assert {json.loads(line)["project"] for line in lines} == {os.path.realpath(repo.path)}
    own = repo.rooda("usage")
    left_out = "3 calls elsewhere in this repository (tasks, worktrees), $1.50"
    assert own.err == f"Not included: {left_out}. To include them: rooda usage --project\n"
    assert json.loads(repo.rooda("usage", "--project", "--json").out)["total"]["cost"] == 2.0
    tasks, worktrees = "runs of tasks (rooda tasks)", "runs in worktrees (rooda -C .rooda/worktrees/NAME runs)"
    assert repo.rooda("runs").err == f"Not listed: {tasks} and {worktrees}\n"


def test_T_10_a_run_that_was_cut_off_is_resumed_with_all(repo: Workspace) -> None:
    """`resume --all` starts the scheduler, never its loops; `tasks stop` ends it, and then it stays ended."""
    repo.rooda("tasks", "add", "Long", "-n", "1")
    repo.side(1, "sleep 60")
    assert "Started in the background: rooda tasks run" in repo.rooda("tasks", "run", "--detach").out
    repo.wait_calls(1)
    owner = json.loads(Path(repo.path, ".git/rooda/tasks/run.lock").read_text())["pid"]
    for pid in (owner, psutil.Process(owner).ppid()):
        if pid > 1:
            os.kill(pid, signal.SIGKILL)
    until(lambda: not marked(repo.mark), what="the end of the loop")
    repo.side(2, "sleep 60")
    again = repo.rooda("resume", "--all", timeout=60)
    assert again.code == 0 and again.out == f"Resumed tasks run in {repo.path}\n", again.out + again.err
    repo.wait_calls(2)
    assert repo.rooda("tasks", "stop").code == 0
    assert "nothing to resume" in repo.rooda("resume", "--all").out
    assert repo.rooda("tasks", "run", timeout=60).code == 0 and len(repo.calls) == 3


def test_T_10_logs_and_why_of_a_task(repo: Workspace) -> None:
    repo.rooda("tasks", "add", "One", "-n", "1")
    assert repo.rooda("tasks", "logs", "1").code == 2
    repo.out(1, "the agent's words\n")
    repo.rooda("tasks", "run", timeout=60)
    assert "Reached max iterations" in repo.rooda("tasks", "logs", "1").out
    assert "the agent's words" in repo.rooda("tasks", "logs", "1", "--agent").out
    assert "Task 1 is completed." in repo.rooda("tasks", "why", "1").out


def test_S_06_changed_gates_park_their_task(repo: Workspace) -> None:
    """A resume in a clone whose AGENTS.md gained a gate is refused; the task shows the difference, and can go on."""
    repo.rooda("tasks", "add", "Sly", "-n", "2")
    gate = "# Agents\\n\\n## Quality Gates\\n\\n- test: \\`sh -c true\\`\\n"
    repo.side(1, f'printf "{gate}" > AGENTS.md; git add -A; git commit -qm sly')
    repo.side(2, "kill -INT $PPID; sleep 30 & wait")
    repo.rooda("tasks", "run", timeout=60)
    assert repo.rooda("tasks", "run", timeout=60).code == 4
    task = board(repo)[0]
    assert (task["state"], task["parked_by"]) == ("parked", "trust") and "AGENTS.md" in task["reason"], task["reason"]
    repo.rooda("tasks", "retry", "1")
    assert repo.rooda("tasks", "run", env={"ROODA_TRUST": "all"}, timeout=60).code == 0


def test_T_10_a_task_is_paused_and_a_shallow_repository_said(repo: Workspace) -> None:
    """`pause` and `continue` suspend the loop of a task; a shallow repository is said, and its clones work."""
    repo.git("commit", "-q", "--allow-empty", "-m", "second")
    Path(repo.path, ".git/shallow").write_text(repo.git("rev-parse", "main"))
    repo.rooda("tasks", "add", "One", "-n", "1")
    repo.side(1, waiting(f"{repo.fake}/go"))
    running = repo.start("tasks", "run")
    repo.wait_calls(1)
    assert repo.rooda("tasks", "pause", "1").code == 0
    assert repo.rooda("tasks", "continue", "1").code == 0
    Path(repo.fake, "go").touch()
    assert running.finish(30) == 0 and "The repository is shallow" in running.out


def test_T_13_untrusted_settings_of_the_checkout_are_said_once(repo: Workspace) -> None:
    """In a clone of another's repository `run` ends with 3 before any task begins; then one `trust` is enough."""
    repo.git("clone", "-q", repo.path, "../theirs")
    theirs = f"{repo.root}/theirs"
    for title in ("One", "Two"):
        repo.rooda("-C", theirs, "tasks", "add", title, "-n", "1")
    done = repo.rooda("-C", theirs, "tasks", "run")
    assert done.code == 3 and "you have not trusted them" in done.err and not repo.calls, done
    terminal = repo.terminal("-C", theirs, "trust")
    terminal.type("y\n")
    assert terminal.finish() == 0
    assert repo.rooda("-C", theirs, "tasks", "run", timeout=60).code == 0 and len(repo.calls) == 2


@LINUX
@needs("cc")
def test_T_11_a_stopped_iteration_is_run_again_although_its_resume_is_killed(repo: Workspace) -> None:
    """SIGKILL before the state has the higher limit: the task is not completed without any work."""
    repo.rooda("tasks", "add", "Stopped", "-n", "1")
    repo.side(1, "sleep 60")
    running = repo.start("tasks", "run")
    repo.wait_calls(1)
    repo.rooda("tasks", "stop", "1")
    running.finish(30)
    clone = json.loads(repo.rooda("tasks", "--json").out)[0]["details"]["clone"]
    fault = {"LD_PRELOAD": build(repo.root), "FAULTS_ROOTS": os.path.join(clone, ".rooda"), "FAULTS_AT": "1"}
    fault |= {"FAULTS_NAME": "rename", "FAULTS_PART": "build.json", "FAULTS_DO": "KILL"}
    fault |= {"FAULTS_ONCE": os.path.join(repo.root, "met"), "FAULTS_LOG": os.path.join(repo.root, "steps")}
    repo.side(2, "echo two > made; git add made; git commit -qm two")
    done = repo.rooda("tasks", "run", env=fault, timeout=60)
    assert done.code == 0 and len(repo.calls) == 2 and repo.git("show", "rooda/1-stopped:made") == "two\n", done


def test_T_01_tasks_go_on_after_their_repository_was_moved(repo: Workspace) -> None:
    """The clones borrow the objects of the repository where it is now."""
    for text in ("Left", "Right"):
        repo.rooda("tasks", "add", text, "-n", "1", "--gate", "true")
    repo.side(1, "echo b > b.txt; git add b.txt; git commit -qm b")
    repo.exits(0, 1)
    assert repo.rooda("tasks", "run", "-j", "1", "--retries", "0", timeout=60).code == 1
    moved = f"{repo.root}/moved"
    os.rename(repo.path, moved)
    assert "can't be read" not in repo.rooda("tasks", "show", "1", cwd=moved).out
    repo.rooda("tasks", "retry", "2", cwd=moved)
    repo.side(3, "echo c > c.txt; git add c.txt; git commit -qm c")
    done = repo.rooda("tasks", "run", "--land", timeout=60, cwd=moved)
    assert done.code == 0 and os.path.exists(f"{moved}/b.txt") and os.path.exists(f"{moved}/c.txt"), done


def test_T_13_a_clone_whose_repository_was_deleted_stays(repo: Workspace) -> None:
    """Even if a clean repository around it has all its commits."""
    repo.config(f'{repo.read("rooda.toml")}\n[tasks]\nclones = ".clones"\n')
    repo.write(".gitignore", ".clones\n")
    repo.git("add", "-A")
    repo.git("commit", "-qm", "settings")
    repo.rooda("tasks", "add", "Left", "-n", "1")
    repo.side(1, "echo b > b.txt; rm -rf .git")
    repo.rooda("tasks", "run", timeout=60)
    clone = board(repo)[0]["clone"]
    assert repo.rooda("tasks", "cancel", "1").code == 0
    kept = repo.rooda("tasks", "clean")
    assert "Removed 0 clones" in kept.out and Path(clone, "b.txt").read_text() == "b\n", kept
    assert repo.git("log", "--format=%s") == "settings\nfirst\n" and repo.git("status", "--porcelain") == ""
