"""Decides the order of landings, how a branch is brought onto its target, and what follows a refusal. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rooda.tasks import model
from rooda.tasks.model import Task

WATCHED = ("rooda.toml", "AGENTS.md", ".gitlab-ci.yml", ".travis.yml", "azure-pipelines.yml", "Jenkinsfile")
WATCHED_FOLDERS = (".github/workflows/", ".circleci/", ".buildkite/", ".woodpecker/", ".forgejo/workflows/")
NOTHING = "No completed task is waiting to land. To list all tasks: rooda tasks"
OUTPUT = 6_000  # characters of a red gate's output in the next prompt


class Refusal(NamedTuple):
    """The reason why a task can't land as it is."""

    kind: str  # conflict | gate | check | nothing | submodule
    text: str  # reason for the user, in one line
    prompt: str  # text for the agent


class History(NamedTuple):
    """The relation between a task's branch and the tip of its target."""

    is_merged: bool  # the target contains the whole branch
    has_merges: bool  # the branch has merge commits that the target lacks
    is_ahead: bool  # the branch contains the target's tip


def due(tasks: Iterable[Task], target: str) -> list[Task]:
    """Return the completed tasks of a target, in the order in which they land."""
    found = [task for task in tasks if task.state == model.COMPLETED and task.target == target]
    return sorted(found, key=lambda task: (model.PRIORITIES.index(task.priority), task.id))


def targets(tasks: Iterable[Task]) -> list[str]:
    return sorted({task.target for task in tasks if task.state == model.COMPLETED})


def way(history: History, squash: bool) -> str:
    """Return the way in which a branch is brought onto its target: as-is, rebase, merge or squash."""
    if squash:
        return "squash"
    if history.has_merges:
        return "merge"
    return "as-is" if history.is_ahead else "rebase"


def watched(paths: Iterable[str]) -> list[str]:
    """Return those changed paths that decide what is run or checked. The user must allow changes to them."""
    return [path for path in paths if path.rpartition("/")[2] in WATCHED or path.startswith(WATCHED_FOLDERS)]


def reopened(task: Task, refusal: Refusal, attempts: int, tip: str) -> Task:
    """Return a task after a refusal: it waits for its agent or, once `attempts` are used up, is parked for the user."""
    before = task.turnings
    turnings = before._replace(reopened=before.reopened + 1, loop=before.loop + 1, ended=task.session, base=tip)
    if task.turnings.reopened >= attempts:
        return task._replace(state=model.PARKED, parked_by="landing", reason=refusal.text, prompt=refusal.prompt)
    return task._replace(
        state=model.WAITING, reason=f"reopened: {refusal.text}", prompt=refusal.prompt, iteration=0, turnings=turnings
    )


def conflict(target: str, files: Sequence[str], hunks: str) -> Refusal:
    """Return the refusal for a task whose branch conflicts with its target."""
    names = _listed(files)
    prompt = (
        f"Your work conflicts with what has landed on {target} since you began. Its tip is rooda/target.\n"
        f"Merge it (git merge rooda/target), resolve the conflicts so that both changes keep their meaning, run the "
        f"gates, and commit.\nConflicting files: {names}\n\n{model.clean(hunks[:OUTPUT])}"
    )
    return Refusal("conflict", f"conflicts with {target} in {names}", prompt)


def red(target: str, gate: str, verdict: str, output: str) -> Refusal:
    """Return the refusal of a branch that, combined with its target, fails a gate."""
    prompt = (
        f"Your work passed its gates alone, but on top of {target} as it is now a gate is red: {gate} ({verdict}).\n"
        f"The tip of {target} is rooda/target: merge it (git merge rooda/target), repair what is red, "
        f"and commit.\nThe end of the gate's output:\n\n{model.clean(output[-OUTPUT:])}"
    )
    return Refusal("gate", f"{gate} is red on {target} ({verdict})", prompt)


def red_check(target: str, name: str, url: str, log: str) -> Refusal:
    """Return the refusal of a pull request on which a check of the forge failed."""
    prompt = (
        f"Your work is in the pull request {url}, and a check of the forge failed on it: {name}.\n"
        f"Repair that, run the gates, and commit. The tip of {target} is rooda/target.\n"
        f"The end of the check's log:\n\n{model.clean(log[-OUTPUT:])}"
    )
    return Refusal("check", f"the check {name} failed: {url}", prompt)


def pull_conflict(target: str, url: str, files: Sequence[str]) -> Refusal:
    """Return the refusal for a task whose pull request the forge can't merge, because it conflicts with the target."""
    names = f" in {_listed(files)}" if files else ""
    prompt = (
        f"Your work is in the pull request {url}, which conflicts with {target}{names}.\n"
        f"The tip of {target} is rooda/target: merge it (git merge rooda/target), resolve the conflicts so that both "
        "changes keep their meaning, run the gates, and commit."
    )
    return Refusal("conflict", f"its pull request conflicts with {target}{names}: {url}", prompt)


def _listed(files: Sequence[str]) -> str:
    return ", ".join(files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else "")


def uncommitted(target: str, left: str) -> Refusal:
    """Return the refusal of a branch without commits whose clone has uncommitted work."""
    prompt = f"Nothing of your work can land on {target}: you left {left}. Check it, run the gates, and commit it."
    return Refusal("nothing", f"nothing is committed; its clone has {left}", prompt)


def lost_submodule(target: str, path: str) -> Refusal:
    """Return the refusal of a branch that sets a submodule to a commit that only the task's clone has."""
    prompt = (
        f"Your work can't land on {target}: it sets the submodule {path} to a commit that exists only here. "
        f"Set {path} to a commit of its own repository again, solve the task without that, and commit."
    )
    return Refusal("submodule", f"the submodule {path} is at a commit that only its clone has", prompt)


def message(task: Task, run: str) -> str:
    """Return the message of a squashed commit."""
    return f"{task.title}\n\n{task.text}\n\nRooda-Task: {task.id}\nRooda-Run: {run}\n"
