"""Implements the steps that all loops share at the start: check the agent, lock, end orphans, make a worktree."""

import os
import shlex
from collections.abc import Callable, Sequence

from rooda.agents import preflight
from rooda.agents.records import Agent
from rooda.base.dirs import tighten_home
from rooda.base.json import Json
from rooda.errors import Undecided
from rooda.loops.options import RunOptions
from rooda.processes import detach, ledger, lock, table
from rooda.run import folder, history, messages
from rooda.run.setup import NewWorktree, Setup
from rooda.settings import layers
from rooda.settings.schema import LOOP
from rooda.settings.where import Where
from rooda.views.lines import Line, warning
from rooda.views.screen import Screen, ScreenOptions

LONGEST_WORD = 80  # characters; a longer option is cut for display


def check_agent(agent: Agent, workspace: str, prompt: str) -> str:
    """Check that the agent and its fallbacks can run; return the path of the agent's program."""
    programs = [preflight.find_program(each, workspace) for each in agent.choices]
    preflight.check(agent, prompt)
    for other in agent.choices[1:]:
        preflight.check(other, "")
    for mode in {each.sandbox for each in agent.choices} - {"off"}:
        from rooda.run import walls

        walls.chosen(mode, workspace)
    return programs[0]


def screen_options(setup: Setup, asked: RunOptions) -> ScreenOptions:
    level = "debug" if asked.verbose else "warn" if asked.quiet else setup.log_level
    return ScreenOptions(level, asked.verbose or setup.show_ai_output, asked.json, setup.log_timestamp_format)


def announce_agent(agent: Agent, program: str, screen: Screen, remembered: Sequence[str] = ()) -> None:
    """Print warnings about the agent and, if a user is watching, its version and the account that pays.

    `remembered`: options reused from an earlier start, which are printed as well.
    """
    screen.hide(agent.env)
    if remembered and screen.watched:
        screen.hint(f"Options reused from the earlier start: {' '.join(map(_shown, remembered))}")
    for text in preflight.warnings(agent):
        warn(screen, text)
    for text in preflight.describe(agent, program) if screen.watched else ():
        screen.hint(text)


def take_lock(path: str, who: str, name: str, screen: Screen) -> lock.Lock | None:
    """Take the lock at `path` and return it; warn and return None if it can't be created.

    `who` names the loop in messages. Raises Undecided if another run holds the lock.
    """
    try:
        tighten_home(os.path.dirname(os.path.dirname(path)))
        held = lock.acquire(path) or _after_a_dying_run(path)
    except OSError as problem:
        why = problem.strerror or str(problem)
        warn(screen, f"{path} can't be locked ({why}); rooda can't prevent a second run of '{name}'")
        return None
    if held is None:
        raise already_running(path, who, name)
    if held.problem:
        danger = f"if an agent deletes .rooda, a second run of '{name}' can start"
        warn(screen, f"No lock outside of the workspace ({held.problem}); {danger}")
    _write_owner(held)
    _end_survivors(held, screen)
    return held


def already_running(path: str, who: str, name: str) -> Undecided:
    """Return the error for a loop whose lock another process holds."""
    pid = lock.owner(path).get("pid", "unknown")
    return Undecided(
        f"{who[:1].upper()}{who[1:]} is already running here (pid {pid}); not started a second time.",
        f"Watch it with `rooda status`, or end it with `rooda stop {name}`.",
    )


def _write_owner(held: lock.Lock) -> None:
    try:
        held.write_owner()
    except OSError:
        pass  # the ledger reports this error when it is created


def with_earlier_limits(setup: Setup, workspace: str, kind: str, name: str, typed: Json) -> Setup:
    """Return a resumed run's setup. Each limit comes from `typed`, else the last session, else the settings."""
    before = history.last_limits(workspace, name, kind)._asdict() | limits_set(workspace, kind, name)
    return with_limits(setup, before, typed)


def with_limits(setup: Setup, before: Json, typed: Json) -> Setup:
    """Return a resumed run's setup. Each limit comes from `typed`, else from `before`, else from the settings."""
    fields = {row.into.removeprefix("budget."): key for key, row in LOOP.items() if row.into.startswith("budget.")}
    going_on = {field: before[field] for field, key in fields.items() if typed.get(key) is None and before[field]}
    return setup._replace(budget=setup.budget._replace(**going_on))


def limits_set(workspace: str, kind: str, name: str) -> dict[str, float]:
    """Return the limits that the user changed with `rooda set` during the last session of a run."""
    session = history.newest(workspace, name, kind)
    return messages.limits_in(session.folder) if session else {}


def warn(screen: Screen, text: str) -> None:
    screen.line(warning(text, to_stderr=True))


def _shown(word: str) -> str:
    import shlex

    line = folder.readable(" ".join(word.split()))
    return shlex.quote(f"{line[:LONGEST_WORD]}…" if len(line) > LONGEST_WORD else line)


def _after_a_dying_run(path: str) -> lock.Lock | None:
    """Take a dead process's lock once it is free; None if the process that the lock names is alive or unknown.

    A run that has just started has not written its PID yet, so the lock may still name a dead process.
    """
    if not lock.owner(path) or not lock.await_free(path, unless=lambda: table.is_alive(lock.owner(path))):
        return None
    return lock.acquire(path)


def _end_survivors(held: lock.Lock, screen: Screen) -> None:
    """End the processes that an earlier run left behind, so that they don't interfere with this run."""
    found = ledger.end_survivors(held.before, folder.is_id)
    if found is None:
        return
    who = ", ".join(found.commands) or "its agent"
    end = "ended" if found.ended else "NOT ended, they can't be killed"
    pids = ", ".join(map(str, found.pids))
    warn(screen, f"Processes of the earlier run {found.run} ({who}) were still alive: {pids}; {end}.")


# `--worktree`: run the loop in a new git worktree


def in_worktree(where: Where, name: str, screen: Screen, work: Callable[[Where], int], wanted: NewWorktree) -> int:
    """Create a worktree for the loop `name`, call `work` in it, and return the exit code of `work`."""
    there = _make_worktree(where, name, screen, wanted)
    config = f" --config {shlex.quote(there.config)}" if there.config else ""
    screen.place = f"-C {shlex.quote(there.workspace)}{config}"
    try:
        return work(there)
    finally:
        _say_next(there, screen)


def _make_worktree(where: Where, name: str, screen: Screen, wanted: NewWorktree) -> Where:
    """Create and return a worktree that uses the settings of the current workspace."""
    from rooda.git import command, worktrees

    repo = worktrees.require_repository(where.workspace)
    for text in filter(None, (worktrees.lfs_trouble(repo), command.warning(where.workspace))):
        warn(screen, text)
    left = worktrees.count_uncommitted(repo)
    from rooda.loops import new_worktree

    new_worktree.check(wanted, where.workspace)
    own = worktrees.create(repo, name)
    _say(screen, f"Worktree: {own.root} on the new branch {own.branch}")
    if left:
        _say(screen, f"It starts at the last commit, without your {left} uncommitted change{'s' * (left > 1)}")
    for text in detach.access_hints(own.workspace):
        _say(screen, text)
    new_worktree.prepare(wanted, where.workspace, own.workspace, lambda text: _say(screen, text))
    config = where.config or layers.workspace_file(where.workspace)
    return Where(own.workspace, config if os.path.lexists(config) else None)


def _say_next(where: Where, screen: Screen) -> None:
    """Print the commands that show and merge the work in a worktree."""
    from rooda.git import worktrees
    from rooda.git.repository import read_head

    repo = worktrees.require_repository(where.workspace)
    branch = read_head(repo).branch or f"rooda/{os.path.basename(repo.top)}"
    there = shlex.quote(where.workspace)
    _say(screen, f"See its commits: git log -p HEAD..{branch}; see uncommitted changes: git -C {there} status")
    _say(screen, f"Keep the work: git merge {branch}. Once it is merged, rooda prune removes the worktree.")


def _say(screen: Screen, text: str) -> None:
    screen.line(Line("info", text, to_stderr=True))
