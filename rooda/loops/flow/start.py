"""Starts a new run of a flow, or resumes an open run."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from rooda.base import files, secrets
from rooda.base.json import Json
from rooda.base.text import counted
from rooda.errors import ConfigProblem, Undecided, UsageProblem
from rooda.git.repository import Repo, read_head
from rooda.loops import launch, options
from rooda.loops.flow import artifacts, commits, repository, runs, topology
from rooda.loops.flow.artifacts import LIMIT_KEY, RunFiles
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
from rooda.loops.flow.runs import FlowRun
from rooda.loops.flow.session import (
    Invocation,
    Prepared,
    commit_setup,
    invocation,
    prepare,
    require_clean,
    require_repository,
    run_session,
    take_lock,
    warn_of_git,
)
from rooda.loops.remembered import has_remembered, task_with_secrets, with_remembered
from rooda.processes import lock
from rooda.run import questions
from rooda.settings.agents import with_programs
from rooda.settings.where import Where
from rooda.views.say import say

BRANCHES = 999  # names to try for a new branch


class RunArguments(NamedTuple):
    """The arguments and flags of `rooda flow run`."""

    task: tuple[str, ...]
    resume: str | None  # None: no --resume; "": --resume without a run id
    new: bool
    allow_dirty: bool
    commit_setup: bool


def run(where: Where, typed: Json, arguments: RunArguments) -> int:
    """Run `rooda flow run`: start a new run, or resume an open one if the user chooses to."""
    if arguments.resume and not RUN_ID.fullmatch(arguments.resume):  # `--resume the task`
        arguments = arguments._replace(resume="", task=(arguments.resume, *arguments.task))
    if arguments.resume is not None and arguments.new:
        raise UsageProblem("--resume and --new are mutually exclusive.")
    if arguments.resume is not None and typed["worktree"]:
        raise UsageProblem("--resume and --worktree are mutually exclusive: a new worktree has no earlier run.")
    asked = options.run_options(typed)
    if arguments.resume is not None:
        known = runs.find_all(require_repository(where.workspace))
        return resume(_run_to_resume(known, arguments.resume, asked.json).id, where, typed)
    call, task = invocation(where, asked, typed["max_iterations"] or 0), " ".join(arguments.task)
    if call.asked.worktree:
        return _in_worktree(prepare(call), call, task)
    open_runs = [] if arguments.new else runs.open_runs(runs.find_all(call.repo))
    has_options = any(has_remembered(where.workspace, "flow", run.id) for run in open_runs)
    prepared = None if has_options else prepare(call)  # else prepared later, with the open run's remembered options
    held = take_lock(call.repo, call.screen)
    with repository.parked_hidden(call.repo):
        if not arguments.new and (earlier := _ask_for_run(runs.open_runs(runs.find_all(call.repo)), True, asked.json)):
            return _resume_locked(_with_options(where, typed, earlier.id), earlier, held)
        prepared = prepared or prepare(call)
        require_clean(prepared, arguments.allow_dirty)
        commit_setup(prepared, arguments.commit_setup)
        return _begin(prepared, task, held)


def resume(name: str | None, where: Where, typed: Json) -> int:
    """Resume the run NAME, or the only open run, with the options that it was started with."""
    name = choose(runs.find_all(require_repository(where.workspace)), name).id
    call = _with_options(where, typed, name)
    held = take_lock(call.repo, call.screen)
    with repository.parked_hidden(call.repo):
        return _resume_locked(call, find_resumable(runs.find_all(call.repo), name), held)


def _in_worktree(prepared: Prepared, call: Invocation, task: str) -> int:
    """Start a new run in a new worktree, regardless of open runs in this one."""
    if commits.committed(call.repo, "HEAD", FLOW_FILE) is None:
        what = f"{FLOW_FILE} is not committed, and a worktree begins at the last commit."
        raise UsageProblem(what, "Commit it first.")

    def work(worktree: Where) -> int:
        own = repository.find(worktree.workspace)
        agent = with_programs(prepared.agent, worktree.workspace, call.where.workspace)
        moved = prepared._replace(repo=own, topology=topology.load(worktree.workspace), agent=agent)
        require_clean(moved, False)
        return _begin(moved, task, take_lock(moved.repo, prepared.screen))

    return launch.in_worktree(call.where, "flow", call.screen, work, call.setup.worktree)


def _begin(prepared: Prepared, words: str, held: lock.Lock | None) -> int:
    warn_of_git(prepared)
    task = (
        files.to_bytes(words).decode("utf-8", "replace").strip("\n")
        if words.strip()
        else _ask_for_task(prepared.as_json)
    )
    if read_head(prepared.repo).branch.startswith(PREFIX):
        launch.warn(prepared.screen, "The current branch is the branch of another run; the new run is based on it.")
    shown = secrets.hide(task, secrets.forms({**os.environ, **prepared.agent.env}, (prepared.repo.workspace,)))
    names = [PREFIX + numbered(slug(shown), number) for number in range(1, BRANCHES + 1)]
    more = {"flow-sha256": prepared.topology.sha256} | ({LIMIT_KEY: prepared.limit} if prepared.limit else {})
    state = runs.begin(prepared.repo, prepared.topology.root, shown, names, more)
    return run_session(prepared, state, [], held, task)


def _ask_for_task(to_stderr: bool) -> str:
    """Ask the user for the task; print the question to stderr if stdout is reserved for JSON."""
    if questions.at_terminal():
        answer = questions.typed_answer("What is the task? ")
    else:
        say("What is the task?", to_stderr)
        answer = questions.waiting_answer()
    if not (answer or "").strip():
        hint = 'Give it one: rooda flow run "make the tests pass"'
        raise UsageProblem("A flow needs a task; nothing was started.", hint)
    return str(answer).strip()


def _run_to_resume(known: list[FlowRun], name: str, to_stderr: bool) -> FlowRun:
    """Return the run that --resume names, or the open run that the user chooses."""
    if name:
        return find_resumable(known, name)
    open_ = runs.open_runs(known)
    if not open_:
        raise UsageProblem("Nothing to resume here.", 'Start a new run: rooda flow run "TASK"')
    return open_[0] if len(open_) == 1 else _ask_for_run(open_, False, to_stderr) or open_[0]


def _ask_for_run(open_: list[FlowRun], may_begin: bool, to_stderr: bool) -> FlowRun | None:
    """Return the open run that the user chooses; None for a new run, or if no run is open."""
    if not open_:
        return None
    for run in open_:
        say(_about(run), to_stderr)
    which = "r" if len(open_) == 1 else "its number in the list, or its id"
    rows = [f"  {number}: {run.id}" for number, run in enumerate(open_, 1)] if len(open_) > 1 else []
    question = "\n".join([*rows, f"Resume it ({which}), or start a new run (n)?"])
    answers: dict[str, FlowRun | None] = {run.id: run for run in open_}
    answers |= {"n": None, "new": None} if may_begin else {}
    answers |= {str(number): run for number, run in enumerate(open_, 1)}
    if len(open_) == 1:
        answers |= dict.fromkeys(("r", "resume", "y", "yes"), open_[0])
    answer = _answer(question, to_stderr)
    while answer is not None:
        if (word := answer.strip().lower()) in answers:
            return answers[word]
        if not questions.at_terminal():
            break
        answer = _answer("Please enter one of these answers.", to_stderr)
    rows = [f"Resume with: rooda flow run --resume {run.id}" for run in open_]
    rows.append("or start a new run: rooda flow run --new …")
    raise Undecided("A run is unfinished; nothing was started.", "\n".join(rows))


def _answer(question: str, to_stderr: bool) -> str | None:
    say(question, to_stderr)
    return questions.typed_answer("> ") if questions.at_terminal() else questions.waiting_answer()


def _about(run: FlowRun) -> str:
    stack = ", ".join(map(str, run.state["execution-stack"]))
    return (
        f"A previous run is still in progress: {run.id}\n"
        f"  active node: {run.state['active-node-path']}\n"
        f"  execution stack: {stack}\n"
        f"  branch: {run.branch}\n"
        f"  task: {run.state['task']}"
    )


def _with_options(where: Where, typed: Json, name: str) -> Invocation:
    """Return the invocation with the run's original options, overridden by those given on this command line."""
    where, typed = with_remembered(where, typed, "flow", name)
    return invocation(where, options.run_options(typed), typed.get("max_iterations") or 0, resumed=True)


def _resume_locked(call: Invocation, run: FlowRun, held: lock.Lock | None) -> int:
    run = _check_out(call.repo, run)  # before flow.yaml is read, which may exist only on that branch
    setup = launch.with_earlier_limits(call.setup, call.where.workspace, "flow", run.id, call.asked.flags)
    set_ = launch.limits_set(call.where.workspace, "flow", run.id).get("iterations", 0)
    limit = call.limit or int(set_) or _known_limit(run)
    return _continue(prepare(call._replace(setup=setup, limit=limit)), run, held)


def _known_limit(run: FlowRun) -> int:
    """Return the limit that run-state.md records; 0 if there is none, so that flow.yaml decides."""
    limit = run.state.get(LIMIT_KEY)
    return limit if type(limit) is int and limit > 0 else 0


def choose(known: Sequence[FlowRun], name: str | None) -> FlowRun:
    """Return the run NAME, or the only open run; raise an error if no run or more than one is open."""
    if name:
        return find_resumable(known, name)
    open_ = runs.open_runs(known)
    if not open_:
        ended = next((run for run in known if run.status in (ERROR, LIMIT)), None)
        more = f"\nResume the one that ended, {ended.status}: rooda flow resume {ended.id}" if ended else ""
        raise UsageProblem("Nothing to resume here.", f'Start with: rooda flow run "TASK"{more}')
    if len(open_) > 1:
        rows = "\n".join(f"  rooda flow resume {run.id}  ({run.branch})" for run in open_)
        raise Undecided("Several runs can be resumed; name one.", rows)
    return open_[0]


def find_resumable(known: Sequence[FlowRun], name: str) -> FlowRun:
    """Return the run NAME; raise UsageProblem if it can't be resumed."""
    found = runs.find(known, name)
    if found.status not in (RUNNING, ERROR, LIMIT):
        raise UsageProblem(f"{name} has ended: {found.status}.", 'Start a new run: rooda flow run "TASK"')
    return found


def _continue(prepared: Prepared, run: FlowRun, held: lock.Lock | None) -> int:
    """Resume the run, whose branch is checked out, at the position that its files and commits record."""
    root = prepared.topology.root
    if run.status == LIMIT:
        _require_higher_limit(prepared, run)
    missing = [path for path in run.state["execution-stack"] if in_chain(root, str(path)) is None]
    if missing:
        what = f"{run.id} is at {missing[-1]}, which .ai-loop/flow.yaml no longer has; nothing was started."
        raise ConfigProblem(what, "Restore the node there, or start a new run: rooda flow run --new …")
    if run.state.get("flow-sha256", prepared.topology.sha256) != prepared.topology.sha256:
        text = f".ai-loop/flow.yaml has changed since {run.id} began; the run continues with the new one."
        launch.warn(prepared.screen, text)
    if undone := runs.undone(prepared.repo, run, root):
        commits.uncommit(prepared.repo, undone[0].commit)
        what = f"removed {counted(len(undone), 'commit')} from {run.branch}; the last was {undone[-1].commit}"
        launch.warn(prepared.screen, f"{run.id} was undone: {what}")
    if prepared.limit:
        run = run._replace(state={**run.state, LIMIT_KEY: prepared.limit})
    task, doubt = task_with_secrets(prepared.repo.workspace, "flow", run.id, str(run.state["task"]))
    if doubt:
        launch.warn(prepared.screen, doubt)
    state, boundaries = runs.reopen(prepared.repo, run, root)
    return run_session(prepared, state, boundaries, held, task, resumed=True)


def _require_higher_limit(prepared: Prepared, run: FlowRun) -> None:
    """Raise UsageProblem unless the user has raised the limit at which the run ended."""
    root = prepared.topology.root
    reached, _ = artifacts.progress(RunFiles(prepared.repo.workspace, run.id), root)
    if root.max_iterations <= reached:
        hint = f"To resume it: rooda flow resume {run.id} -n {reached + 3}\n"
        hint += f"or raise max_iterations of {root.id} in .ai-loop/flow.yaml on the branch {run.branch}."
        what = f"{run.id} has ended: {LIMIT}, and the limit is still {root.max_iterations}."
        raise UsageProblem(what, f'{hint}\nOr start a new run: rooda flow run "TASK"')


def _check_out(repo: Repo, run: FlowRun) -> FlowRun:
    """Check out the run's branch and unpark its files; raise Undecided if the user has uncommitted changes."""
    elsewhere = read_head(repo).branch != run.branch
    others = runs.other_open_runs_here(runs.find_all(repo), repository.branches(repo), run.id)
    if elsewhere:
        _require_no_changes(repo, run, [run.id, *(other.id for other in others)])
    for other in others:
        repository.park(repo, other.id, other.branch)
    if elsewhere:
        repository.check_out(repo, run.branch)
    if run.parked:
        repository.unpark(repo, run.parked)
    return find_resumable(runs.find_all(repo), run.id) if elsewhere or run.parked else run


def _require_no_changes(repo: Repo, run: FlowRun, ids: Sequence[str]) -> None:
    """Raise Undecided for uncommitted changes outside the folders of these runs."""
    own = tuple(repo.inside(run_folder(each)) + "/" for each in ids)
    foreign = [path for _, path in repository.dirty(repo) if not path.startswith(own)]
    if foreign:
        raise Undecided(
            f"{run.id} works on {run.branch}, and the work tree has uncommitted changes: {foreign[0]!r}"
            + (f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""),
            "Commit or stash them first.",
        )
