"""Prepares a new worktree as the [worktree] settings say: copies files, links caches, and runs the setup command."""

import os
from collections.abc import Callable, Iterator

from rooda.agents.command import base_environment
from rooda.base import files, workspace_files
from rooda.base.dirs import make_home
from rooda.errors import Interrupted, UsageProblem
from rooda.git import command
from rooda.git.repository import Repo, find, nul_terminated
from rooda.processes import supervise
from rooda.processes.signals import Signals
from rooda.run.setup import NewWorktree

SUBMODULE = "160000"  # the mode of a submodule in git's index


def check(wanted: NewWorktree, workspace: str) -> None:
    """Raise UsageProblem if `wanted` has a path outside of the workspace, or links an editable install of it."""
    for key, names in (("copy", wanted.copy), ("link", wanted.link)):
        for name in names:
            if key not in wanted.may_leave and not _is_inside(workspace, name):
                what = f"[worktree] {key}: {name} is outside of the workspace; nothing was started."
                raise UsageProblem(what, "Only your own settings may name such a path; see: rooda config path")
    for name in wanted.link:
        if _has_editable(os.path.join(workspace, os.path.expanduser(name)), workspace):
            what = f"[worktree] link: {name} has an editable install of this project; tests in the worktree would run"
            hint = 'Remove it from link, and create an environment in the worktree: [worktree] setup = "…"'
            raise UsageProblem(f"{what} the code in {workspace}; nothing was started.", hint)


def _is_inside(workspace: str, name: str) -> bool:
    real = os.path.realpath(os.path.join(workspace, os.path.expanduser(name)))
    return real.startswith(os.path.realpath(workspace) + os.sep)


def _has_editable(folder: str, workspace: str) -> bool:
    """True if a virtual environment imports a package from the workspace or its repository."""
    top = os.path.realpath(workspace_files.upward(workspace)[-1])
    for path in _install_records(folder):
        try:
            text = workspace_files.text(workspace, path)
        except OSError:
            continue
        own = os.path.realpath(folder) + os.sep
        if any(f"{top}{end}" in line and own not in line for line in text.splitlines() for end in (os.sep, '"', "'")):
            return True
        if any(line.strip() == top for line in text.splitlines()):
            return True
    return False


def _install_records(folder: str) -> Iterator[str]:
    """Yield the files of a virtual environment that can point to packages outside of it, such as *.pth."""
    library = os.path.join(folder, "lib")
    for version in files.list_folder(library) if os.path.lexists(os.path.join(folder, "pyvenv.cfg")) else ():
        packages = os.path.join(library, version, "site-packages")
        for name in files.list_folder(packages) if os.path.isdir(packages) else ():
            if name.endswith((".pth", ".egg-link")) or name.startswith("__editable__"):
                yield os.path.join(packages, name)


def prepare(wanted: NewWorktree, workspace: str, there: str, say: Callable[[str], None]) -> None:
    """Prepare the new worktree, whose workspace is `there`. Raises UsageProblem if the setup command fails."""
    for name in (*wanted.copy, *wanted.link):
        source = os.path.join(workspace, os.path.expanduser(name))
        inside = _is_inside(workspace, name) and not os.path.isabs(name)
        target = os.path.join(there, os.path.normpath(name) if inside else os.path.basename(source.rstrip(os.sep)))
        if not os.path.lexists(source):
            say(f"[worktree] {name} does not exist; skipped")
        elif os.path.lexists(target):
            say(f"[worktree] {name} is already in the worktree; not replaced")
        else:
            files.make_folder(os.path.dirname(target))
            files.link(target, os.path.realpath(source)) if name in wanted.link else _copy(source, target)
            _warn_if_tracked(there, target, say)
    if wanted.setup:
        _set_up(wanted.setup, there, say)
    if not os.path.lexists(os.path.join(workspace_files.upward(there)[-1], ".gitmodules")):
        return
    repo = find(there)
    if empty := [path for path in _submodules(repo) if not os.listdir(os.path.join(repo.top, path))]:
        say(f'Empty submodules: {", ".join(empty)}. To fill them: [worktree] setup = "git submodule update --init"')


def _copy(source: str, target: str) -> None:
    if os.path.islink(source):
        files.link(target, os.readlink(source))
    elif os.path.isdir(source):
        files.make_folder(target)
        for name in files.list_folder(source):
            _copy(os.path.join(source, name), os.path.join(target, name))
    elif os.path.isfile(source):
        files.copy(source, target)


def _warn_if_tracked(there: str, target: str, say: Callable[[str], None]) -> None:
    name = os.path.relpath(target, there)
    if not command.run(["check-ignore", "-z", "--stdin"], there, stdin=nul_terminated([name]), literal=False).out:
        say(f"[worktree] git does not ignore {name}, so an agent may commit it; add /{name} to .gitignore")


def _set_up(text: str, there: str, say: Callable[[str], None]) -> None:
    make_home(os.path.join(there, ".rooda"))
    output = os.path.join(there, ".rooda", "worktree-setup.log")
    say(f"Setting up the worktree: {text} (output: {output})")
    spec = supervise.Spec(["/bin/sh", "-c", text], there, base_environment(), output)
    with Signals() as signals:
        done = supervise.run(spec, signals)
        if done.ended == "interrupted":
            raise Interrupted(signals.first)
    if done.code:
        last = files.to_text(files.tail(output, 400)).strip().rpartition("\n")[2]
        what = f"[worktree] setup failed (exit {done.code}){f': {last}' if last else ''}; no loop was started."
        raise UsageProblem(what, f"Its output: {output}. Remove the worktree with: rooda prune")


def _submodules(repo: Repo) -> list[str]:
    rows = repo.text("ls-files", "-s", "-z").split("\0")
    paths = [row.partition("\t")[2] for row in rows if row.startswith(SUBMODULE)]
    return [path for path in paths if os.path.isdir(os.path.join(repo.top, path))]
