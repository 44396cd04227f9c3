"""`rooda tasks take --fleet`: claims a task and clones it into a subfolder of the current one. Needs no worker."""

import os
import shlex

from rooda import __version__
from rooda.base import clock, files
from rooda.errors import OK, Interrupted, RoodaError, UsageProblem
from rooda.fleet import chain, publish, restore
from rooda.fleet import ticket as tickets
from rooda.fleet.desk import Desk
from rooda.fleet.remote import DONE, Update
from rooda.git import command
from rooda.loops import registry, signed
from rooda.tasks import work
from rooda.views.say import say


def require_room(folder: str) -> None:
    """Raise UsageProblem if the folder exists."""
    if os.path.lexists(folder):
        raise UsageProblem(f"{folder} already exists; nothing was done.", "Move it, then take the task again.")


def take(desk: Desk, number: int, folder: str, yes: bool) -> int:
    """Claim a task, clone it into `folder`, and print how to continue."""
    ticket = tickets.decode(desk.find(number).ticket)
    task = desk.get(number)
    mirror, remote = desk.git()
    tip = mirror.fetch(number)
    if not tip:
        raise RoodaError(f"The ref {ticket.ref} is not in {ticket.state}.")
    stamp = clock.rfc3339(clock.now())
    made = publish.claim(mirror, tip, chain.claim_after(remote.entries(tip), os.uname().nodename, __version__, stamp))
    result = remote.push(Update(number, tip, made), lambda seconds: clock.sleep(seconds) or False)
    if result.kind != DONE:
        raise RoodaError(f"Task {number} could not be claimed: {result.words or result.kind}.", "Try again.")
    branch = task.branch or f"{ticket.branch_prefix}/{number}-{task.slug}"
    base = mirror.branch(task.target.removeprefix("origin/"))
    words = work.start_of(os.path.dirname(folder), task)
    restored = restore.restore(
        mirror,
        remote.entries(tip),
        folder,
        base=base,
        branch=branch,
        prefix=ticket.prefix,
        start=lambda *_: {"words": words, "kept": [f"--context={task.text}"] if task.kind == "procedure" else []},
        sign=yes,
    )
    _cut_loose(folder, ticket.repository)
    say(f"Task {number} is in {restored.workspace}")
    if restored.turn is None:
        there = shlex.quote(os.path.relpath(restored.workspace))
        say(f"No worker has completed an iteration yet. Start the task: cd {there} && {shlex.join(['rooda', *words])}")
        return OK
    return _say_next(restored.workspace, yes)


def _cut_loose(folder: str, url: str) -> None:
    """Make the clone independent: copy the objects that it borrows, and set its remote to the repository's URL."""
    _git(folder, "repack", "-a", "-d", "-q")
    files.remove(os.path.join(folder, ".git", "objects", "info", "alternates"))
    _git(folder, "config", "remote.origin.url", url)
    _git(folder, "config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
    command.run(["config", "--unset-all", "remote.origin.pushurl"], folder)


def _git(folder: str, *words: str) -> None:
    done = command.run([*words], folder, timeout=1800.0)
    if done.code:
        raise RoodaError(f"git {words[0]} in {folder}: {command.error_text(done)}")


def _say_next(workspace: str, yes: bool) -> int:
    loop = next(registry.resumable(workspace), None)
    if loop is None:
        say("Its loop has ended; the work is in the clone.")
        return OK
    if not yes:
        try:
            signed.require(workspace, loop.kind, loop.name)
        except (RoodaError, Interrupted) as problem:
            say(str(problem), True)
    row = registry.KINDS[loop.kind]
    say(f"Continue: cd {os.path.relpath(workspace)} && {row.resume.format(name=loop.name)}")
    return OK
