"""Carries out the user's orders for a task (stop, cancel, retry, answer, clean), even while the scheduler runs."""

import os

from rooda.base import clock, files
from rooda.errors import RoodaError, UsageProblem
from rooda.git import clones
from rooda.loops import registry
from rooda.processes import lock, signals, table
from rooda.run import asked, private_homes
from rooda.run import folder as run_folder
from rooda.run.past_runs import newest_run
from rooda.tasks import journal, model, results, started, work
from rooda.tasks.model import Process, Task
from rooda.tasks.queue import message
from rooda.tasks.store import Store

SUSPENDING = 5.0  # seconds for the scheduler to suspend itself
PATIENCE = 60.0  # seconds for a loop to end its agent


def workspace_of(store: Store, task: Task) -> str:
    """Return the folder in the task's clone in which its loop works; "" without a clone."""
    if not task.clone or not os.path.isdir(task.clone):
        return ""
    return os.path.normpath(os.path.join(task.clone, store.place.repo.prefix))


def end_loop(store: Store, task: Task, reason: str = "") -> bool:
    """End the loop of a task as Ctrl+C would, and wait until it has ended; return False if no loop was running."""
    found = False
    if task.process.pid and signals.terminate(task.process._asdict()):
        found = True
    workspace = workspace_of(store, task)
    return bool(workspace and end_loops(workspace, reason)) or found


def end_loops(workspace: str, reason: str = "") -> bool:
    """End all loops of a workspace as `rooda stop` does, and wait for their end; return False if none was running."""
    found = False
    for loop in registry.known(workspace):
        if lock.is_held(loop.lock):
            found = True
            run = lock.owner(loop.lock).get("run")
            if isinstance(run, str) and run_folder.is_id(run):
                run_folder.leave_order(run_folder.folder_of(workspace, run), run_folder.STOP, reason)
            signals.terminate(lock.owner(loop.lock))
            lock.await_free(loop.lock, PATIENCE)
    return found


def stop(store: Store, number: int, reason: str = "") -> Task:
    """Stop a running task; the next `run` resumes it. Raises UsageProblem if it is not running."""
    task = store.get(number)
    if task.state != model.RUNNING:
        raise UsageProblem(f"Task {number} is {task.state}; it is not running.", f"See it: rooda tasks show {number}")
    end_loop(store, task, reason)
    return task


def cancel(store: Store, number: int) -> Task:
    """Cancel a task for good: once this returns, it never runs or lands."""

    def cancelled(task: Task) -> Task:
        if task.state == model.LANDED:
            raise UsageProblem(f"Task {number} has landed; it can't be cancelled.", "To undo its work: git revert")
        if (move := journal.current(store)) and move.has(number):
            raise UsageProblem(f"A landing of task {number} has begun.", "See whether it landed: rooda tasks land")
        return task._replace(state=model.CANCELLED, reason="", question="", until="", process=Process())

    before = store.get(number)
    after = store.change(number, cancelled, "cancelled")
    end_loop(store, before)
    return after


def retry(store: Store, number: int) -> Task:
    """Let the next `run` work on a task again. A task that failed, or was parked by a landing, begins a new loop.

    A parked task becomes completed if the user has run its loop to the end in the clone.
    """

    def again(task: Task) -> Task:
        if task.state not in (model.FAILED, model.PARKED, model.WAITING):
            what = f"Task {number} is {task.state}; only a failed, parked or waiting task can be retried."
            raise UsageProblem(what, f"See it: rooda tasks show {number}")
        if task.question:
            raise UsageProblem(f"Task {number} asks: {task.question}", f'Answer it: rooda answer {number} "…"')
        turnings = task.turnings._replace(tries=0, reopened=0, kills=0, killed_at=-1)
        if task.state == model.FAILED or task.parked_by == "landing":
            turnings = turnings._replace(loop=turnings.loop + 1, ended=task.session)
        return task._replace(state=model.WAITING, reason="", until="", account="", parked_by="", turnings=turnings)

    if (task := store.get(number)).parked_by == "clone" or _is_completed(store, task):
        return publish(store, task)
    return store.change(number, again, "retried")


def _is_completed(store: Store, task: Task) -> bool:
    """True if the loop of a parked task has completed since the task was parked."""
    may_be = task.state == model.PARKED and task.parked_by not in ("landing", "question")
    workspace = workspace_of(store, task) if may_be else ""
    newest = newest_run(workspace) if workspace else None
    return bool(newest and newest.last.run != task.turnings.ended and newest.state(False) == model.COMPLETED)


def answer(store: Store, number: int, text: str) -> Task:
    """Answer the question of a task, which then continues with the question and the answer in the next prompt."""

    def answered(task: Task) -> Task:
        if not task.question:
            raise UsageProblem(f"Task {number} has no open question.", f"See it: rooda tasks show {number}")
        said = asked.in_words(task.question, text)
        return task._replace(state=model.WAITING, question="", asked_at="", parked_by="", reason="", prompt=said)

    return store.change(number, answered, "answered")


def end_question(store: Store, number: int, default: str, limit: str) -> Task:
    """Give the default answer to a question that has waited too long; without a default, the task fails."""

    def failed(task: Task) -> Task:
        if not task.question:
            return task
        why = f"no answer within {limit} to: {task.question}"
        return task._replace(state=model.FAILED, question="", asked_at="", parked_by="", reason=why)

    try:
        return answer(store, number, default) if default else store.change(number, failed, "unanswered")
    except UsageProblem:
        return store.get(number)  # the user has answered or cancelled in the meantime


def publish(store: Store, task: Task) -> Task:
    """Try again to fetch the work of a completed loop into the repository. Raises UsageProblem if that fails."""
    commit, problem = bring(store, task, True)
    if problem:
        what = f"The work of task {task.id} can't be brought into the repository: {problem}"
        raise UsageProblem(what, f"Repair that, then try again: rooda tasks retry {task.id}")
    if problem := results.set_branch(store.place.repo, task.branch, commit):
        what = f"The branch {task.branch} can't be set: {problem}"
        raise UsageProblem(what, f"Repair that, then try again: rooda tasks retry {task.id}")

    def published(now: Task) -> Task:
        if now.state != model.PARKED:
            return now
        return now._replace(state=model.COMPLETED, head=commit, reason="", parked_by="")

    return store.change(task.id, published, "published")


def bring(store: Store, task: Task, is_completed: bool) -> tuple[str, str]:
    """Fetch a task's work into the repository; return the commit, and git's error, "" if there was none.

    If the loop is completed and its kind does not commit, the agents' changes are committed first.
    """
    problem, loan = "", work.loan_of(store.place, task)
    try:
        clones.renew(task.clone, loan)
    except OSError as error:
        return "", str(error)
    if is_completed and not work.row_of(task).commits:
        problem = results.commit_rest(task.clone, message(task, task.session))
    return ("", problem) if problem else results.publish(task.clone, loan)


def stop_run(store: Store) -> None:
    """End `rooda tasks run`, which ends its loops. Raises UsageProblem if it is not running."""
    path = store.place.runner
    if not lock.is_held(path):
        raise UsageProblem("`rooda tasks run` is not running here.", "See the tasks: rooda tasks")
    started.ended(store)  # the user ended it, so `rooda resume --all` does not start it again
    signals.terminate(lock.owner(path))
    lock.await_free(path, PATIENCE)


def pause_run(store: Store) -> None:
    """Suspend `rooda tasks run` and its loops, as Ctrl+Z does. Raises UsageProblem if it is not running."""
    _signal_run(store, signals.suspend, True)


def continue_run(store: Store) -> None:
    """Continue a suspended run and its loops. Raises UsageProblem if it is not running."""
    _signal_run(store, signals.resume, False)


def _signal_run(store: Store, send: signals.SignalSender, still: bool) -> None:
    """Send the run a signal, and wait a few seconds until it is suspended (`still`) or continued."""
    path = store.place.runner
    if not lock.is_held(path):
        raise UsageProblem("`rooda tasks run` is not running here.", "See the tasks: rooda tasks")
    owner = lock.owner(path)
    last = clock.monotonic() + SUSPENDING
    send(owner)
    while lock.is_held(path) and table.stopped_states(owner.get("pid")) != {still} and clock.monotonic() < last:
        clock.sleep(0.02)


def left_in_clone(store: Store, task: Task) -> str:
    """Describe work that only a task's clone has, such as uncommitted files; "" if none or while the task runs."""
    if task.state == model.RUNNING or not task.clone or not os.path.isdir(task.clone):
        return ""
    loan = work.loan_of(store.place, task)
    try:
        clones.renew(task.clone, loan)
        return clones.left_alone(task.clone, loan)
    except (RoodaError, OSError) as problem:
        return f"a repository that can't be read: {problem.what if isinstance(problem, RoodaError) else problem}"


def clean(store: Store, task: Task) -> str:
    """Remove the clone of a landed or cancelled task, and return "".

    If the clone has work that the repository lacks, keep the clone and return a description of the work instead.
    """
    if left := left_in_clone(store, task):
        return left
    if os.path.isdir(task.clone):
        files.remove_tree(task.clone)
        private_homes.forget(os.path.realpath(task.clone), os.path.join(os.path.realpath(task.clone), ".git"))
    store.change(task.id, lambda now: now._replace(clone="") if now.is_over else now, "cleaned")
    return ""
