"""`rooda flow run [TASK]`: a new run, or on with one that was interrupted."""

import os
from collections.abc import Sequence

import click

from rooda.base import files, secrets
from rooda.base.json import Json
from rooda.errors import ConfigProblem, Undecided, UsageProblem
from rooda.git.repository import Repo, read_head
from rooda.loops import launch, options
from rooda.loops.flow import artifacts, commits, topology
from rooda.loops.flow import repository as flow_repository
from rooda.loops.flow import runs as flow_runs
from rooda.loops.flow.artifacts import RunFiles
from rooda.loops.flow.inspect import check, log, status, tab_runs
from rooda.loops.flow.model import (
    ERROR,
    FLOW_FILE,
    LIMIT,
    PREFIX,
    RUN_ID,
    RUNNING,
    in_chain,
    numbered,
    run_folder,
    slug,
)
from rooda.loops.flow.runs import Known
from rooda.loops.flow.setup import setup
from rooda.loops.flow.start import Ground, Ready, go, ground, locked, ready, repository, require_clean, warn_of_ignored
from rooda.loops.options import DASH_H, InOrder
from rooda.loops.remembered import has_own, taken_over, whole
from rooda.processes import lock
from rooda.run import questions
from rooda.settings.where import Where, relocated, where

BRANCHES = 999  # tried names


@click.pass_context
def _run(
    ctx: click.Context, /, task: tuple[str, ...], going: str | None, new: bool, allow_dirty: bool, **typed: object
) -> int:
    if going and not RUN_ID.fullmatch(going):  # `--resume the task`
        going, task = "", (going, *task)
    if going is not None and new:
        raise UsageProblem("--resume and --new are mutually exclusive.")
    if going is not None and typed["worktree"]:
        raise UsageProblem("--resume and --worktree are mutually exclusive: a new worktree has no earlier run.")
    there, asked = relocated(where(ctx), typed), options.run_options(typed)
    if going is not None:
        runs = flow_runs.known(repository(there.workspace))
        return resumed(_meant(runs, going, asked.json).id, there, typed)
    under = ground(there, asked)
    if under.asked.worktree:
        return _apart(ready(under), under, " ".join(task))
    open_ = [] if new else flow_runs.running(flow_runs.known(under.repo))
    own = any(has_own(there.workspace, "flow", run.id) for run in open_)
    here = None if own else ready(under)  # an open run has options of its own
    held = locked(under.repo, under.screen)
    if old := None if new else _earlier(flow_runs.known(under.repo), asked.json):
        return taken_up(old, there, typed, held)
    return _begin(here or ready(under), " ".join(task), allow_dirty, held)


def _apart(here: Ready, under: Ground, task: str) -> int:
    """A new run in a worktree; whatever is open here is not asked about."""
    from rooda.loops import launch

    if commits.committed(under.repo, "HEAD", FLOW_FILE) is None:
        what = f"{FLOW_FILE} is not committed, and a worktree begins at the last commit."
        raise UsageProblem(what, "Commit it first.")

    def work(there: Where) -> int:
        moved = here._replace(repo=flow_repository.found(there.workspace), topology=topology.load(there.workspace))
        return _begin(moved, task, False, locked(moved.repo, here.screen))

    return launch.inside(under.where, "flow", "flow", under.screen, work)


def _begin(here: Ready, words: str, allow_dirty: bool, held: lock.Lock | None) -> int:
    require_clean(here, allow_dirty)
    warn_of_ignored(here)
    task = files.to_bytes(words).decode("utf-8", "replace").strip("\n") if words.strip() else _asked_for(here.as_json)
    if read_head(here.repo).branch.startswith(PREFIX):
        launch.warn(here.screen, "This is the branch of another run; it is the base of the new one.")
    shown = secrets.hide(task, secrets.forms({**os.environ, **here.agent.env}, (here.repo.workspace,)))
    names = [PREFIX + numbered(slug(shown), number) for number in range(1, BRANCHES + 1)]
    state = flow_runs.begin(here.repo, here.topology.root, shown, names, here.topology.sha256)
    return go(here, state, [], held, task)


def _asked_for(aside: bool) -> str:
    """The task, from whoever is there. `aside`: stdout is for programs."""
    if questions.at_terminal():
        answer = questions.typed_answer("What is the task? ")
    else:
        click.echo("What is the task?", err=aside)
        answer = questions.waiting_answer()
    if not (answer or "").strip():
        hint = 'Give it one: rooda flow run "make the tests pass"'
        raise UsageProblem("A flow needs a task; nothing was started.", hint)
    return str(answer).strip()


def _meant(runs: list[Known], going: str, aside: bool) -> Known:
    """The run that --resume speaks of."""
    open_ = flow_runs.running(runs)
    if going:
        return named(runs, going)
    if not open_:
        raise UsageProblem("Nothing to resume here.", 'Start a new run: rooda flow run "TASK"')
    return open_[0] if len(open_) == 1 else _chosen(open_, False, aside) or open_[0]


def _earlier(runs: list[Known], aside: bool) -> Known | None:
    """The run to go on with, if one is open; None for a new one."""
    open_ = flow_runs.running(runs)
    return _chosen(open_, True, aside) if open_ else None


def _chosen(open_: list[Known], may_begin: bool, aside: bool) -> Known | None:
    for run in open_:
        click.echo(_about(run), err=aside)
    which = "r" if len(open_) == 1 else "its number of the list, or its id"
    rows = [f"  {number}: {run.id}" for number, run in enumerate(open_, 1)] if len(open_) > 1 else []
    question = "\n".join([*rows, f"Resume it ({which}), or start a new run (n)?"])
    answers: dict[str, Known | None] = {run.id: run for run in open_}
    answers |= {"n": None, "new": None} if may_begin else {}
    answers |= {str(number): run for number, run in enumerate(open_, 1)}
    if len(open_) == 1:
        answers |= dict.fromkeys(("r", "resume", "y", "yes"), open_[0])
    answer = _answer(question, aside)
    while answer is not None:
        if (word := answer.strip().lower()) in answers:
            return answers[word]
        if not questions.at_terminal():
            break
        answer = _answer("Please answer with one of them.", aside)
    rows = [f"Go on with: rooda flow run --resume {run.id}" for run in open_]
    rows.append("or start anew: rooda flow run --new …")
    raise Undecided("A run is not finished; nothing was started.", "\n".join(rows))


def _answer(question: str, aside: bool) -> str | None:
    click.echo(question, err=aside)
    return questions.typed_answer("> ") if questions.at_terminal() else questions.waiting_answer()


def _about(run: Known) -> str:
    stack = ", ".join(map(str, run.state["execution-stack"]))
    return (
        f"A previous run is still in progress: {run.id}\n"
        f"  active node: {run.state['active-node-path']}\n"
        f"  execution stack: {stack}\n"
        f"  branch: {run.branch}\n"
        f"  task: {run.state['task']}"
    )


run = click.Command(
    "run",
    callback=_run,
    params=[
        click.Argument(["task"], nargs=-1),
        click.Option(
            ["--resume", "going"],
            is_flag=False,
            flag_value="",
            metavar="[RUN]",
            shell_complete=tab_runs,
            help="Go on with that run.",
        ),
        click.Option(["--new"], is_flag=True, help="Start anew whatever is unfinished; it stays as it is."),
        click.Option(["--allow-dirty"], is_flag=True, help="Take what is not committed into the first commit."),
        options.worktree(),
        *options.for_kind(),
    ],
    help="Work at TASK until the target is met or a limit is reached: on a branch of its own, one commit per step.",
    short_help="Work at a task until the target is met.",
)


# `rooda flow resume [RUN]`: go on with an interrupted run, on its branch.


@click.pass_context
def _resume(ctx: click.Context, /, name: str | None, **typed: object) -> int:
    return resumed(name, relocated(where(ctx), typed), typed)


def resumed(name: str | None, there: Where, typed: Json) -> int:
    """Go on with the run of this name, or with the only one that is open, as it was started."""
    name = chosen(flow_runs.known(repository(there.workspace)), name).id
    under = _ground(there, typed, name)
    held = locked(under.repo, under.screen)
    return _begun(under, named(flow_runs.known(under.repo), name), held)


def taken_up(run: Known, there: Where, typed: Json, held: lock.Lock | None) -> int:
    """The same with the lock in hand."""
    return _begun(_ground(there, typed, run.id), run, held)


def _ground(there: Where, typed: Json, name: str) -> Ground:
    there, typed = taken_over(there, typed, "flow", name)
    return ground(there, options.run_options(typed))


def _begun(under: Ground, run: Known, held: lock.Lock | None) -> int:
    run = to_branch(under.repo, run)  # the flow may lie there only
    setup = launch.kept(under.setup, under.where.workspace, "flow", run.id, under.asked.flags)
    return go_on(ready(under._replace(setup=setup)), run, held)


def chosen(runs: Sequence[Known], name: str | None) -> Known:
    """The run of this name, or the only one that is open."""
    if name:
        return named(runs, name)
    open_ = flow_runs.running(runs)
    if not open_:
        ended = next((run for run in runs if run.status in (ERROR, LIMIT)), None)
        more = f"\nGo on with the one that ended, {ended.status}: rooda flow resume {ended.id}" if ended else ""
        raise UsageProblem("Nothing to resume here.", f'Start with: rooda flow run "TASK"{more}')
    if len(open_) > 1:
        rows = "\n".join(f"  rooda flow resume {run.id}  ({run.branch})" for run in open_)
        raise Undecided("Several runs can be resumed; name one.", rows)
    return open_[0]


def named(runs: Sequence[Known], name: str) -> Known:
    """A run that can go on; UsageProblem says why one can't."""
    found = flow_runs.named(runs, name)
    if found.status not in (RUNNING, ERROR, LIMIT):
        raise UsageProblem(f"{name} has ended: {found.status}.", 'Start a new run: rooda flow run "TASK"')
    return found


def go_on(here: Ready, run: Known, held: lock.Lock | None) -> int:
    """From where the run's files and commits say. We are on its branch."""
    root = here.topology.root
    if run.status == LIMIT:
        _require_room(here, run)
    gone = [path for path in run.state["execution-stack"] if in_chain(root, str(path)) is None]
    if gone:
        what = f"{run.id} stands in {gone[-1]}, which .ai-loop/flow.yaml no longer has; nothing was started."
        raise ConfigProblem(what, "Put the node back, or start a new run.")
    if run.state.get("flow-sha256", here.topology.sha256) != here.topology.sha256:
        text = f".ai-loop/flow.yaml is not as it was when {run.id} began; it goes on with the new one."
        launch.warn(here.screen, text)
    if undone := flow_runs.undone(here.repo, run, root):
        commits.take_back(here.repo, undone[0].commit)
        what = f"{len(undone)} commits are taken off {run.branch}, the last was {undone[-1].commit}"
        launch.warn(here.screen, f"{run.id} was undone: {what}")
    task, doubt = whole(here.repo.workspace, "flow", run.id, str(run.state["task"]))
    if doubt:
        launch.warn(here.screen, doubt)
    state, boundaries = flow_runs.reopen(here.repo, run, root)
    return go(here, state, boundaries, held, task, resumed=True)


def _require_room(here: Ready, run: Known) -> None:
    """A run that ended at its limit goes on under a higher one."""
    root = here.topology.root
    reached, _ = artifacts.progress(RunFiles(here.repo.workspace, run.id), root)
    if root.max_iterations <= reached:
        hint = f"To go on, raise max_iterations of {root.id} in .ai-loop/flow.yaml on the branch {run.branch}."
        what = f"{run.id} has ended: {LIMIT}, and the limit is still {root.max_iterations}."
        raise UsageProblem(what, f'{hint}\nOr start a new run: rooda flow run "TASK"')


def to_branch(repo: Repo, run: Known) -> Known:
    """To the run's branch, with its files as they were left; never with changes of somebody else's."""
    away = read_head(repo).branch != run.branch
    others = flow_runs.in_the_way(flow_runs.known(repo), flow_repository.branches(repo), run.id)
    if away:
        _require_no_changes(repo, run, [run.id, *(other.id for other in others)])
    for other in others:
        flow_repository.put_aside(repo, other.id, other.branch)
    if away:
        flow_repository.check_out(repo, run.branch)
    if run.aside:
        flow_repository.bring_back(repo, run.aside)
    return named(flow_runs.known(repo), run.id) if away or run.aside else run


def _require_no_changes(repo: Repo, run: Known, runs: Sequence[str]) -> None:
    """But in the folders of these runs."""
    own = tuple(repo.inside(run_folder(each)) + "/" for each in runs)
    foreign = [path for _, path in flow_repository.dirty(repo) if not path.startswith(own)]
    if foreign:
        raise Undecided(
            f"{run.id} works on {run.branch}, and the work tree has changes that are not committed: {foreign[0]!r}"
            + (f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""),
            "Commit or stash them first.",
        )


resume = click.Command(
    "resume",
    callback=_resume,
    params=[click.Argument(["name"], required=False, metavar="[RUN]", shell_complete=tab_runs), *options.for_kind()],
    help="Go on with an interrupted run, on its branch. RUN is its id; without it the only one that is open is taken. "
    "A run that ended with an error goes on at the step that failed, one that ended at its limit under a higher one, "
    "if it is named.",
    short_help="Go on with an interrupted run.",
)


# The words behind `rooda flow`.
HELP = """A hierarchy of control loops on git.

Sensors measure, a controller compares that with the target and decides, an actuator or a loop inside it acts; then the
sensors measure again. Each step is one commit on the run's own branch. The topology is in .ai-loop/flow.yaml.
"""
flow = InOrder(
    "flow",
    commands=[setup, check, run, resume, status, log],
    help=HELP,
    short_help="A hierarchy of control loops on git.",
    context_settings=DASH_H,
)
