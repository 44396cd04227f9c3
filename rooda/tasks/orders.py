"""The user's orders for a task: stop, cancel, retry, answer, clean. Each is safe while the scheduler runs."""

import os

from rooda.base import files
from rooda.errors import RoodaError, UsageProblem
from rooda.git import clones
from rooda.loops import registry
from rooda.processes import lock, signals
from rooda.run import asked
from rooda.run import folder as run_folder
from rooda.tasks import journal, model, results, started, work
from rooda.tasks.model import Process, Task
from rooda.tasks.store import Store

PATIENCE = 60.0  # seconds for a loop to end its agent


def workspace_of(store: Store, task: Task) -> str:
    """Return the folder in the task's clone that its loop works in; "" without a clone."""
    if not task.clone or not os.path.isdir(task.clone):
        return ""
    return os.path.normpath(os.path.join(task.clone, store.place.repo.prefix))


def end_loop(store: Store, task: Task, reason: str = "") -> bool:
    """End the loop of a task as Ctrl+C would, and wait until it is gone; False if none runs."""
    found = False
    if task.process.pid and signals.terminate(task.process._asdict()):
        found = True
    workspace = workspace_of(store, task)
    for loop in registry.known(workspace) if workspace else ():
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
        raise UsageProblem(f"Task {number} is {task.state}; it does not run.", f"See it: rooda tasks show {number}")
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
    """Let the next `run` work on a task again. A failed one, or one parked by a landing, begins a new loop."""

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

    if (task := store.get(number)).parked_by == "clone":
        return publish(store, task)
    return store.change(number, again, "retried")


def answer(store: Store, number: int, text: str) -> Task:
    """Answer the question of a task, which then goes on; the next prompt has question and answer."""

    def answered(task: Task) -> Task:
        if not task.question:
            raise UsageProblem(f"Task {number} has no open question.", f"See it: rooda tasks show {number}")
        said = asked.in_words(task.question, text)
        return task._replace(state=model.WAITING, question="", asked_at="", parked_by="", reason="", prompt=said)

    return store.change(number, answered, "answered")


def end_question(store: Store, number: int, default: str, limit: str) -> Task:
    """Answer a question that waited too long with the default answer; without a default its task fails."""

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
    """Fetch the work of a completed loop into the repository, after that failed before. UsageProblem on failure."""
    commit, problem = results.publish(task.clone, work.loan_of(store.place, task))
    if problem:
        what = f"The work of task {task.id} can't be brought into the repository: {problem}"
        raise UsageProblem(what, f"Repair that, then try again: rooda tasks retry {task.id}")
    if problem := results.set_branch(store.place.repo, task.branch, commit):
        what = f"The branch {task.branch} can't be set: {problem}"
        raise UsageProblem(what, f"Repair that, then try again: rooda tasks retry {task.id}")

    def published(now: Task) -> Task:
        if now.parked_by != "clone":
            return now
        return now._replace(state=model.COMPLETED, head=commit, reason="", parked_by="")

    return store.change(task.id, published, "published")


def stop_run(store: Store) -> None:
    """End `rooda tasks run`, which ends its loops. Raises UsageProblem if it is not running."""
    path = store.place.runner
    if not lock.is_held(path):
        raise UsageProblem("`rooda tasks run` is not running here.", "See the tasks: rooda tasks")
    started.ended(store)  # the user ended it, so that `rooda resume --all` leaves it alone
    signals.terminate(lock.owner(path))
    lock.await_free(path, PATIENCE)


def clean(store: Store, task: Task) -> str:
    """Remove the clone of a task that is over. If it has work that the repository lacks, keep it and return what."""
    loan = work.loan_of(store.place, task)
    try:
        if os.path.isdir(task.clone):
            if left := clones.left_alone(task.clone, loan):
                return left
            files.remove_tree(task.clone)
    except RoodaError as problem:
        return f"a repository that can't be read: {problem.what}"
    store.change(task.id, lambda now: now._replace(clone="") if now.is_over else now, "cleaned")
    return ""
