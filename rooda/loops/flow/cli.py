"""`rooda flow run [TASK]`: a new run, or on with one that was interrupted."""

import os

import click

from rooda.base import files, secrets
from rooda.errors import Undecided, UsageProblem
from rooda.git.repository import position
from rooda.loops import launch, options
from rooda.loops.flow import commits, topology
from rooda.loops.flow import repository as flow_repository
from rooda.loops.flow import runs as flow_runs
from rooda.loops.flow.flow_labels import FLOW_FILE, PREFIX, RUN_ID, numbered, slug
from rooda.loops.flow.go import go
from rooda.loops.flow.inspect import tab_runs
from rooda.loops.flow.resume import named, resumed, taken_up
from rooda.loops.flow.runs import Known
from rooda.loops.flow.start import Ground, Ready, ground, locked, ready, repository, require_clean, warn_of_ignored
from rooda.loops.remembered import has_own
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
    there, asked = relocated(where(ctx), typed), options.asked(typed)
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
    if position(here.repo).branch.startswith(PREFIX):
        launch.warn(here.screen, "This is the branch of another run; it is the base of the new one.")
    shown = secrets.hidden(task, secrets.values({**os.environ, **here.agent.env}, (here.repo.workspace,)))
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
