"""Lands completed tasks of the fleet: a worker runs the merge queue of `rooda tasks land` in a separate repository.

Agents and gates never touch that repository. It borrows the objects of the mirror, and pushes to the task's repository.
"""

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rooda.agents.command import HIDDEN
from rooda.base import dirs, files
from rooda.base.json import Json
from rooda.base.text import counted
from rooda.errors import OK, UNFINISHED, RoodaError
from rooda.fleet import chain, policy, preparation
from rooda.fleet import ticket as tickets
from rooda.fleet.mirror import Mirror
from rooda.fleet.options import FleetSettings
from rooda.fleet.remote import Remote
from rooda.git import command
from rooda.processes import detach
from rooda.tasks import model, queue
from rooda.tasks.model import Task
from rooda.tasks.store import Store, place_of

REMOTE = "origin"
LONGEST = 200_000  # bytes of output that are sent to the user


class Landing(NamedTuple):
    """Context of one landing: the worker's name, settings and environment, and its access to the list of tasks."""

    name: str  # of the worker
    own: FleetSettings
    environ: Mapping[str, str]
    board: Callable[[], list[Json]]  # the tasks of the repository, as the engine knows them
    order: Callable[[str, Json], None]


def land(wish: Json, on: Landing) -> Json:
    """Land a target's completed tasks; return the merge queue's exit code and output, or why this worker refuses."""
    repository, target = str(wish["repository"]), str(wish["target"])
    places = (tickets.normalised(repository), tickets.normalised(on.own.state or repository))
    is_own = tickets.normalised(str(wish["state"])) in places or policy.allows(on.own.policy, str(wish["state"]))
    if not policy.allows(on.own.policy, repository) or not is_own:
        return {"kind": "refused", "worker": on.name, "why": "its [fleet.worker] repositories do not allow it"}
    try:
        return _land(wish, repository, target, on)
    except RoodaError as problem:
        return {"kind": "done", "code": problem.code, "text": problem.what}


def _land(wish: Json, repository: str, target: str, on: Landing) -> Json:
    mirror = Mirror(
        dirs.data("fleet"),
        tickets.key_of(repository),
        repository,
        str(wish["state"]),
        prefix=str(wish["ref_prefix"]),
        insecure=on.own.insecure,
        environ=on.environ,
    )
    due, told = _due(on.board(), target), list[str]()
    for workflow, task in [*due.items()]:
        if left := _uncommitted(mirror, task, target):
            refusal = queue.uncommitted(target, left)
            after = queue.reopened(task, refusal, int(wish.get("attempts", 2)), mirror.branch(target))
            on.order(workflow, {"order": "change", "when": [model.COMPLETED], "fields": _fields(after)})
            told.append(f"Task {task.id} {after.state}: {refusal.text}")
            del due[workflow]
    if told and not due:
        return {"kind": "done", "code": UNFINISHED, "text": "\n".join(told)}
    workspace, store = _prepared(mirror, wish, due, on)
    before = {task.id: store.get(task.id) for task in due.values()}
    code, text = _run(mirror, workspace, target, wish, on)
    for workflow, task in due.items():
        if (after := store.get(task.id)) != before[task.id]:
            on.order(workflow, {"order": "change", "when": [model.COMPLETED], "fields": _fields(after)})
    return {"kind": "done", "code": code or (UNFINISHED if told else OK), "text": "\n".join([*told, text])}


def _prepared(mirror: Mirror, wish: Json, due: Mapping[str, Task], on: Landing) -> tuple[str, Store]:
    """Prepare the workspace for landings; return it and its task list, to which the `due` tasks were added."""
    repository, target = str(wish["repository"]), str(wish["target"])
    folder = os.path.join(dirs.data("fleet"), "landing", on.name, f"{wish['key']}-{tickets.key_of(repository)}")
    _make(mirror, folder, repository)
    workspace = os.path.join(folder, str(wish.get("prefix", "")))
    files.make_folder(workspace)
    store = Store(place_of(workspace))
    for task in due.values():
        store.put(task._replace(target=f"{REMOTE}/{target}", clone="", after=()))
    return workspace, store


def _uncommitted(mirror: Mirror, task: Task, target: str) -> str:
    """Describe the uncommitted work of a task that has no commits; "" if it has commits, or no uncommitted work."""
    last = chain.last_turn(Remote(mirror).entries(mirror.fetch(task.id)))
    if last is None or not last.record.head:
        return ""
    if mirror.run("merge-base", "--is-ancestor", last.record.head, mirror.branch(target)).code:
        return ""
    names = mirror.run("diff", "--name-only", "-z", last.record.head, last.record.work).out.split(b"\0")[:-1]
    return f"{counted(len(names), 'uncommitted file')}" if names else ""


def _due(board: list[Json], target: str) -> dict[str, Task]:
    """Return the completed tasks of a target, keyed by workflow."""
    tasks = {each["workflow"]: model.decode(each["task"]) for each in board if each["open"] and each["task"]}
    return {
        workflow: task
        for workflow, task in tasks.items()
        if task.state == model.COMPLETED and task.target.removeprefix(f"{REMOTE}/") == target
    }


def _fields(task: Task) -> Json:
    """Return the fields of a task after a landing: it has landed, goes back to its agent, or waits for the user."""
    keys = ("state", "prompt", "reason", "parked_by", "turnings", "iteration")
    encoded = model.encode(task)
    return {key: encoded[key] for key in keys}


def _make(mirror: Mirror, folder: str, url: str) -> None:
    """Create the repository for landings if it is missing, and fetch the mirror's branches into it."""
    if not os.path.isdir(folder):
        unfinished = f"{folder}.new"
        files.remove_tree(unfinished)
        files.make_folder(os.path.dirname(folder))
        words = ("clone", "-q", "--shared", "--no-checkout", "--template=", mirror.folder, unfinished)
        _git(os.path.dirname(folder), *words)
        files.rename(unfinished, folder)
    _git(folder, "config", f"remote.{REMOTE}.url", url)
    _git(folder, "config", f"remote.{REMOTE}.fetch", f"+refs/heads/*:refs/remotes/{REMOTE}/*")
    _git(folder, "fetch", "-q", mirror.folder, f"+refs/remotes/origin/*:refs/remotes/{REMOTE}/*")


def _git(folder: str, *words: str) -> None:
    done = command.run([*words], folder, timeout=1800.0, protocols="file")
    if done.code:
        raise RoodaError(f"git {words[0]} in {folder}: {command.error_text(done)}")


def _run(mirror: Mirror, workspace: str, target: str, wish: Json, on: Landing) -> tuple[int, str]:
    """Run the merge queue, whose gates get no credentials; return its exit code and its output."""
    base = mirror.branch(target)
    if not base:
        raise RoodaError(f"The repository has no branch {target}.")
    config = preparation.settings_of(mirror, base, str(wish.get("prefix", "")))
    options = ["--target", f"{REMOTE}/{target}", "--attempts", str(int(wish.get("attempts", 2)))]
    options += [f"--{name}" for name in ("no-gates", "yes") if wish.get(name)]
    argv = [*detach.rooda_command(), "-C", workspace, "--config", config, "tasks", "land", *options]
    hidden = [name for name in on.environ if name in policy.CREDENTIALS or name.startswith(policy.ENGINE)]
    env = {**preparation.walled(on.environ), HIDDEN: ",".join(hidden)}
    output = f"{workspace.rstrip('/')}.out"
    files.remove(output)
    code = preparation.run(argv, os.getcwd(), env, output)
    return code, files.to_text(files.tail(output, LONGEST))
