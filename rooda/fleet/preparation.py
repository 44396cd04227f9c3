"""Prepares a worker's loop for a task: the target's settings, the clone's folder, the command and environment."""

import os
import threading
from collections.abc import Mapping, Sequence

from rooda.agents.command import IN_TASK
from rooda.base import dirs, files
from rooda.errors import RoodaError
from rooda.fleet import policy
from rooda.fleet.mirror import Mirror
from rooda.fleet.policy import Policy
from rooda.fleet.ticket import Ticket
from rooda.git import command
from rooda.loops import configuration, registry
from rooda.processes import supervise
from rooda.run.budgets import PROJECT
from rooda.settings import agents, layers, setup
from rooda.tasks import model, work
from rooda.tasks.model import Task

KEPT_SETTINGS = 5  # number of checkouts of settings that a mirror keeps
SANDBOX = "ROODA_LOOP_SANDBOX"
EVERYTHING = {"ROODA_TRUST": "all"}  # a repository that the worker's settings allow counts as trusted


def settings_of(mirror: Mirror, base: str, prefix: str) -> str:
    """Check out a commit; return the path of its settings file, or of an empty file if the commit has none.

    The settings come from the target, never from the clone, in which an agent works.
    """
    home = os.path.join(os.path.dirname(os.path.dirname(mirror.folder)), "settings", os.path.basename(mirror.folder))
    folder = os.path.join(home, base)
    if not os.path.isdir(folder):
        _check_out(mirror, base, folder)
    found = layers.workspace_file(os.path.join(folder, prefix))
    if os.path.lexists(found):
        return found
    empty = os.path.join(home, "empty.toml")
    files.write(empty, b"")
    return empty


def _check_out(mirror: Mirror, base: str, folder: str) -> None:
    """Check out a commit as a worktree of the mirror, and keep only the newest checkouts."""
    home, made = os.path.dirname(folder), f"{folder}.{os.getpid()}-{threading.get_ident()}"
    files.make_folder(home)
    done = command.run([f"--git-dir={mirror.folder}", "worktree", "add", "-q", "--detach", "-f", made, base], home)
    if done.code:
        raise RoodaError(f"The settings of {base[:12]} can't be checked out: {command.error_text(done)}")
    try:
        files.rename(made, folder)
    except OSError:  # another leg was faster
        files.remove_tree(made)
    others = sorted(files.list_folder(home), key=lambda name: -os.path.getmtime(os.path.join(home, name)))
    for name in others[KEPT_SETTINGS:]:
        files.remove_tree(os.path.join(home, name))


def refused_agent(own: Policy, task: Task, config: str) -> str:
    """Return why the worker refuses the agent that the task would call; "" if it accepts the agent."""
    found = configuration.load(os.path.dirname(config), config)
    name = task.agent
    if not name:
        kind, loop = (registry.OODA, task.name) if task.kind == model.PROCEDURE else (task.kind, task.kind)
        agent = registry.kind(kind).setup(found, loop).agent
        if agent is None:
            return agents.no_agent_text(found)
        name = agent.name
    return policy.refused_agent(own, name)


def room_for(home: str) -> str:
    """Return the folder for a task's clone. Move aside the clone that an earlier leg left there."""
    folder = os.path.join(home, "work")
    files.make_folder(home)
    files.remove_tree(f"{folder}.old")
    if os.path.isdir(folder):
        files.rename(folder, f"{folder}.old")
    return folder


def branch_of(ticket: Ticket, task: Task) -> str:
    return task.branch or f"{ticket.branch_prefix}/{ticket.number}-{task.slug}"


def start_words(home: str, task: Task, config: str) -> list[str]:
    """Return the arguments with which this machine would start the loop."""
    started = work.start_of(home, task)
    return ["--config", config, *started]


def environment(environ: Mapping[str, str], slot: int, project: str) -> dict[str, str]:
    """Return the environment of the loop. It has no git credentials, so agents and gates have none either.

    `project`: the name under which `[budget] project` adds up costs: the mirror's folder with the workspace's path.
    """
    env = walled(policy.without_credentials(environ))
    return {**env, work.SLOT: str(slot), work.ON_LIMIT: "stop", IN_TASK: "1", PROJECT: project}


def walled(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the repository trusted, and the sandbox on unless this user has set `sandbox`."""
    walls = {} if environ.get(SANDBOX) or _has_own_sandbox(environ) else {SANDBOX: "workspace"}
    return {**environ, **walls, **EVERYTHING}


def _has_own_sandbox(environ: Mapping[str, str]) -> bool:
    """True if the user's own settings on this machine set `sandbox` for all loops."""
    return "sandbox" in layers.users_own("loop", environ)


def prepare(own: Policy, workspace: str, config: str, env: Mapping[str, str]) -> None:
    """Set up a new clone: run the worker's `prepare` command; without one, the repository's `[worktree] setup`."""
    wanted = setup.new_worktree(configuration.load(os.path.dirname(config), config)).setup
    if own.prepare or wanted:
        name = "[fleet.worker] prepare" if own.prepare else "[worktree] setup"
        _set_up(name, own.prepare or wanted, workspace, env)


def _set_up(name: str, text: str, workspace: str, env: Mapping[str, str]) -> None:
    """Run a command in a new clone. Raises RoodaError if it fails."""
    dirs.make_home(os.path.join(workspace, ".rooda"))
    output = os.path.join(workspace, ".rooda", "setup.log")
    if code := run(["/bin/sh", "-c", text], workspace, env, output):
        last = files.to_text(files.tail(output, 400)).strip().rpartition("\n")[2]
        raise RoodaError(f"{name} failed (exit {code}){f': {last}' if last else ''}")


def run(argv: Sequence[str], folder: str, env: Mapping[str, str], output: str) -> int:
    """Run a program whose output is appended to a file; return its exit code, -N if signal N killed it."""
    return wait(start(argv, folder, env, output))


def start(argv: Sequence[str], folder: str, env: Mapping[str, str], output: str) -> int:
    stdin, out = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), files.open_append(output, 0o600)
    try:
        return supervise.spawn(argv, folder, env, (stdin, out, out))
    finally:
        os.close(stdin)
        os.close(out)


def wait(pid: int) -> int:
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)
