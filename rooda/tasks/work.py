"""Prepares the clone of a task, in the process that then becomes the task's loop.

A clone is made in `ID.new` and renamed once it is set up, so a kill leaves a whole clone or none.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

from rooda.agents import preflight
from rooda.base import dirs, files
from rooda.errors import ConfigProblem, UsageProblem
from rooda.git import clones
from rooda.git.clones import Loan
from rooda.git.repository import Repo
from rooda.loops import new_worktree, registry
from rooda.run import folder as run_folder
from rooda.run import messages
from rooda.run.setup import NewWorktree
from rooda.settings import agents, layers
from rooda.settings.layers import Settings
from rooda.settings.where import Where
from rooda.tasks import results, waiting
from rooda.tasks.model import PROCEDURE, RUNNING, Task
from rooda.tasks.store import Place, Store

REFS = "refs/rooda/task/"
SLOT = "ROODA_SLOT"
ON_LIMIT = "ROODA_LOOP_ON_LIMIT"
HEADS = "refs/heads/"
LONGEST_ARGUMENT = 100_000  # bytes; a longer text is passed to the loop in a file
NEW = ".new"


class Clone(NamedTuple):
    """The clone of a task: its root, and the folder in it in which the loop works."""

    root: str
    workspace: str


def ref_of(task: Task) -> str:
    return f"{REFS}{task.id}"


def loan_of(place: Place, task: Task) -> Loan:
    """Return the repository from which a task's clone borrows objects, and the ref there that keeps its work."""
    return Loan(place.repo.top, os.path.realpath(place.repo.common), ref_of(task))


def branch_of(found: Settings, task: Task) -> str:
    prefix = str(found.table("tasks").get("branch_prefix", "rooda")).strip("/")
    return task.branch or f"{prefix}/{task.id}-{task.slug}"


def clone_of(found: Settings, place: Place, task: Task) -> Clone:
    """Return where a task's clone is or will be. Raises UsageProblem if there is no folder for clones."""
    root = task.clone or os.path.join(home_of(found, place), str(task.id))
    return Clone(root, os.path.normpath(os.path.join(root, place.repo.prefix)))


def home_of(found: Settings, place: Place) -> str:
    """Return the folder of this repository's clones, by default outside of the repository, so that tools ignore it."""
    own = os.path.basename(place.repo.top) or "repository"
    mark = files.sha256(files.to_bytes(os.path.realpath(place.repo.common)))[:8]
    typed = str(found.table("tasks").get("clones", ""))
    home = os.path.join(place.repo.top, os.path.expanduser(typed)) if typed else dirs.data("tasks")
    if not home:
        raise UsageProblem("There is no folder for the clones of tasks: HOME is not set.", "Name one: [tasks] clones")
    return os.path.join(os.path.normpath(home), f"{own}-{mark}")


def tip_of(repo: Repo, target: str) -> str:
    """Return the commit of a target branch, such as main or origin/main. Raises UsageProblem if it has none."""
    for ref in (f"{HEADS}{target}", f"refs/remotes/{target}"):
        done = repo.run("rev-parse", "--verify", "-q", f"{ref}^{{commit}}")
        if done.code == 0:
            return files.to_text(done.out).strip()
    raise UsageProblem(f"The target branch {target} has no commit.", "Create a first commit, or name another: --target")


def make_clone(found: Settings, wanted: NewWorktree, store: Store, task: Task, say: Callable[[str], None]) -> Task:
    """Make and set up the clone if it is missing; return the task with its clone and branch."""
    place, branch = store.place, branch_of(found, task)
    own = clone_of(found, place, task)
    loan = loan_of(place, task)
    base = _newer(place.repo, tip_of(place.repo, task.target), task.turnings.base)
    tip = waiting.newest(store, task.target, base)
    if not os.path.isdir(own.root):
        unfinished = f"{own.root}{NEW}"
        files.remove_tree(unfinished)
        clones.make(place.repo, unfinished, branch, task.head or base, loan, tip)
        inner = os.path.normpath(os.path.join(unfinished, place.repo.prefix))
        files.make_folder(inner)
        new_worktree.check(wanted, place.repo.workspace)
        new_worktree.prepare(wanted, place.repo.workspace, inner, say)
        files.rename(unfinished, own.root)
        clones.mark(own.root, loan)
        task = task._replace(turnings=task.turnings._replace(base=base))
    else:
        clones.renew(own.root, loan)
        clones.bring(own.root, loan, tip, clones.TARGET)
    noted = task._replace(clone=own.root, branch=branch)
    return store.change(
        task.id,
        lambda now: now._replace(
            clone=own.root, branch=branch, turnings=now.turnings._replace(base=noted.turnings.base)
        ),
        "prepared",
    )


def _newer(repo: Repo, tip: str, base: str) -> str:
    """Return the base of a task's branch if that contains the target's tip, as after a pull request; else the tip."""
    is_ahead = base not in ("", tip) and repo.run("merge-base", "--is-ancestor", tip, base).code == 0
    return base if is_ahead else tip


def words_of(home: str, task: Task, workspace: str, config: str) -> list[str]:
    """Return the command line of the task's loop: a resume if the loop can be resumed, else a start.

    `home`: the folder for texts that are too long for a command line.
    """
    words = ["-C", workspace, "--config", config]
    if _goes_on(task, workspace):
        more = results.higher_limit(workspace, task.name) if task.kind == PROCEDURE else 0
        return [*words, "resume", *(["--max-iterations", str(more)] if more else [])]
    return [*words, *start_of(home, task)]


def start_of(home: str, task: Task) -> list[str]:
    """Return the words that start the task's loop, after the common options."""
    row = row_of(task)
    begin = [task.name] if task.kind == PROCEDURE else [task.kind, row.starting[0]]
    return [*begin, "--fresh", *row.unattended, *_limits(task), *task.options, *_text(home, task)]


def row_of(task: Task) -> registry.Row:
    """Return the registry's description of the task's kind of loop."""
    return registry.KINDS[kind_of(task)]


def kind_of(task: Task) -> str:
    """Return the registry's name for the kind of the task's loop."""
    return registry.OODA if task.kind == PROCEDURE else task.kind


def _goes_on(task: Task, workspace: str) -> bool:
    """True if the task's current loop has begun and can be resumed; an earlier loop of the task does not count."""
    newest = run_folder.latest(workspace, None)
    if not newest or os.path.basename(newest) == task.turnings.ended:
        return False
    return next(registry.resumable(workspace), None) is not None


def _hand_over(store: Store, task: Task, workspace: str) -> None:
    """Leave the task's `prompt`, such as an answer to a question, as a note for the loop that is resumed."""
    if not task.prompt or not _goes_on(task, workspace):
        return
    newest = run_folder.latest(workspace, None)
    loop = next(registry.resumable(workspace))
    if newest and registry.KINDS[loop.kind].hears_notes:
        messages.leave(workspace, os.path.basename(newest), loop.kind, messages.NOTE, task.prompt[: messages.LONGEST])
        store.change(task.id, lambda now: now._replace(prompt="") if now.prompt == task.prompt else now, "given")


def check(found: Settings, task: Task, workspace: str) -> None:
    """Raise RoodaError for an error that affects every task, such as an agent that is not installed."""
    if task.agent:
        return
    kind, name = (registry.OODA, task.name) if task.kind == PROCEDURE else (task.kind, task.kind)
    agent = registry.kind(kind).setup(found, name).agent
    if agent is None:
        hint = (
            "Set agent or ai_cmd under [loop] of rooda.toml, or give each task one: rooda tasks edit ID --agent NAME."
        )
        raise ConfigProblem("No agent is configured.", f"{hint} {agents.on_this_machine(found)}")
    preflight.find_program(agent, workspace)


def _limits(task: Task) -> list[str]:
    limits, found = task.limits, list[str]()
    found += ["--max-iterations", str(limits.iterations)] if limits.iterations else []
    found += ["--max-cost", f"{limits.cost:g}"] if limits.cost else []
    found += ["--max-duration", f"{limits.seconds:g}"] if limits.seconds else []
    found += ["--agent", task.agent] if task.agent else []
    option, form = row_of(task).gate
    for number, command in enumerate(task.gates if option else (), 1):
        found += [option, form.format(number=number, command=command)]
    return found


def _text(home: str, task: Task) -> list[str]:
    text = "\n\n".join(part for part in (task.text, task.prompt) if part)
    option = row_of(task).text_file
    if len(files.to_bytes(text)) < LONGEST_ARGUMENT or not option:
        return ["--", text]
    path = os.path.join(home, f"{task.id}.md")
    files.replace(path, files.to_bytes(text))
    return [option, path]


def settings_file(store: Store, here: Where) -> str:
    """Return the settings file of the user's checkout; if it has none, an empty file. Ignores the clone's own file."""
    found = here.config or layers.workspace_file(here.workspace)
    if os.path.lexists(found):
        return os.path.abspath(found)
    empty = os.path.join(store.place.folder, "empty.toml")
    if not os.path.exists(empty):
        files.make_folder(store.place.folder)
        files.write(empty, b"")
    return empty


def prepare(
    store: Store,
    found: Settings,
    wanted: NewWorktree,
    here: Where,
    number: int,
    say: Callable[[str], None],
) -> list[str]:
    """Prepare the clone and return the command line of its loop. Raises UsageProblem if the task is not `running`."""
    task = store.get(number)
    if task.state != RUNNING:
        raise UsageProblem(f"Task {number} is {task.state}; nothing was started.")
    task = make_clone(found, wanted, store, task, say)
    if task.state != RUNNING:
        raise UsageProblem(f"Task {number} is {task.state}; nothing was started.")
    workspace = clone_of(found, store.place, task).workspace
    _hand_over(store, task, workspace)
    return words_of(store.place.folder, task, workspace, settings_file(store, here))
