"""`rooda doctor`: can a loop run here, who pays for it, and what should be put right."""

import os
import sys
from collections.abc import Iterator

import click

from rooda import __version__
from rooda.base import files
from rooda.base.json import Json
from rooda.base.text import visible
from rooda.cli.choices import chosen, here, installed, written_settings
from rooda.cli.finding import BAD, GOOD, INFO, WARN, Finding, Look, Patient
from rooda.errors import FAILED, OK, RoodaError
from rooda.git import command
from rooda.git.repository import GitProblem, around
from rooda.processes import table
from rooda.run import tokens
from rooda.settings import layers
from rooda.settings.where import Where, where
from rooda.views.live import is_terminal

_SHOWN = {GOOD: "ok  ", WARN: "warn", BAD: "FAIL", INFO: "    "}
LITTLE_ROOM = 50 << 20  # bytes


@click.command(short_help="Can a loop run here, who pays for it, what to put right.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> int:
    """Look at Python, git, the settings, the agents and who is billed, terminal and disk.

    Exit 0 when a loop can run, 1 when something that it needs is broken. Nothing is written into the workspace,
    and nobody is charged.
    """
    patient = _patient(where(ctx))
    found = [finding for look in _LOOKS for finding in look(patient)]
    good = all(finding.status != BAD for finding in found)
    if as_json:
        import json

        rows: list[Json] = [finding._asdict() for finding in found]
        click.echo(json.dumps({"ok": good, "checks": rows, "agents": patient.agents}, indent=2))
    else:
        _show(found, good)
    return OK if good else FAILED


def _show(found: list[Finding], good: bool) -> None:
    width = max(len(finding.what) for finding in found)
    for finding in found:
        click.echo(f"{_SHOWN[finding.status]}  {finding.what:<{width}}  {visible(finding.detail)}".rstrip())
        for line in finding.do.splitlines():
            click.echo(f"      {'':<{width}}  {visible(line)}")
    click.echo("A loop can run here." if good else "Something that a loop needs is broken: see FAIL.")


def _patient(place: Where) -> Patient:
    try:
        found = layers.load(place.workspace, place.config)
    except RoodaError as problem:
        return Patient(place, None, str(problem))
    return Patient(place, found, agents=tuple(installed(found, place.workspace)))


def _python(patient: Patient) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("rooda", GOOD, __version__)
    yield Finding("python", GOOD, f"{version} ({sys.executable}), {sys.platform}")
    _, exact = tokens.count("How many are these?", "o200k_base")
    do = "" if exact else "Install tiktoken again: pip install --force-reinstall tiktoken"
    yield Finding("tokens", GOOD if exact else WARN, "counted exactly" if exact else "can only be estimated", do)


def _git(patient: Patient) -> Iterator[Finding]:
    said = command.run(["--version"], patient.where.workspace)
    if said.code:
        do = "Install git: without it there are no snapshots, no --worktree and no rooda flow."
        yield Finding("git", WARN, "is not on this machine", do)
        return
    yield Finding("git", GOOD, files.to_text(said.out).strip().removeprefix("git version "))
    try:
        yield Finding("repository", GOOD, around(patient.where.workspace).top)
    except GitProblem as problem:
        do = "Make it one (git init): then snapshots, rooda undo and --worktree work."
        yield Finding("repository", WARN, problem.what, do)


def _terminal(patient: Patient) -> Iterator[Finding]:
    encoding = (getattr(sys.stdout, "encoding", "") or "unknown").lower()
    shown = f"TERM={os.environ.get('TERM') or 'not set'}, {encoding}"
    if not sys.stdout.isatty():
        yield Finding("terminal", INFO, f"not one: plain lines ({encoding})")
    elif not is_terminal(sys.stdout):
        yield Finding("terminal", WARN, shown, "For a status line it must be able to more: export TERM=xterm-256color")
    elif "utf" not in encoding:
        yield Finding("terminal", WARN, shown, "Some characters are shown as ?: export LANG=C.UTF-8")
    else:
        yield Finding("terminal", GOOD, shown)


def _disk(patient: Patient) -> Iterator[Finding]:
    workspace = patient.where.workspace
    facts = os.statvfs(workspace)
    free = facts.f_bavail * facts.f_frsize
    do = "Make room: prompts, transcripts and snapshots need some. rooda prune, git gc" if free < LITTLE_ROOM else ""
    yield Finding("disk", BAD if do else GOOD, f"{free / 1e9:.1f} GB free at {workspace}", do)
    home = os.path.join(workspace, ".rooda")
    place = home if os.path.lexists(home) else workspace
    if os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK):
        yield Finding("state", GOOD, f"{home} can be written")
    else:
        do = f"Make it a folder that you may write: a run's state would be lost, no resume. ls -ld {place}"
        yield Finding("state", BAD, f"{home} can't be written", do)


def _proc(patient: Patient) -> Iterator[Finding]:
    """Without it rooda can't find what an agent leaves behind."""
    if not sys.platform.startswith("linux"):
        return
    do = "" if table.PROC else "Mount /proc: descendants can't be found without it."
    yield Finding("proc", WARN if do else GOOD, "not there" if do else "/proc is there", do)


_LOOKS: tuple[Look, ...] = (_python, _git, written_settings, chosen, here, _terminal, _disk, _proc)
