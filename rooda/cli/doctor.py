"""`rooda doctor`: checks whether a loop can run here, and who pays for it."""

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, TypeAlias

import click

from rooda import __version__
from rooda.agents import preflight
from rooda.agents.records import Agent
from rooda.base import files
from rooda.base.json import Json
from rooda.base.text import escape_line
from rooda.errors import FAILED, OK, RoodaError
from rooda.git import command
from rooda.git.repository import GitProblem, find
from rooda.loops import configuration, registry
from rooda.processes import table
from rooda.run import tokens
from rooda.run.setup import Setup
from rooda.settings import agents, layers, older, trust
from rooda.settings.lookup import lookup
from rooda.settings.where import Where, where
from rooda.views.live import is_terminal
from rooda.views.say import folded

GOOD, WARN, BAD, INFO = "ok", "warn", "fail", "info"


OLDEST_GIT = (2, 34)  # the first one with `git add --sparse`


class Finding(NamedTuple):
    """The result of a check. Status `fail`: no loop can run; `warn`: loops can run, but something is missing."""

    what: str
    status: str
    detail: str
    do: str = ""


class Subject(NamedTuple):
    """The workspace to check; `settings` is None if its settings are invalid."""

    where: Where
    settings: layers.Settings | None
    problem: str = ""
    agents: tuple[Json, ...] = ()  # installed agents, with their versions


Check: TypeAlias = Callable[[Subject], Iterator[Finding]]


def written_settings(subject: Subject) -> Iterator[Finding]:
    if subject.settings is None:
        yield Finding("settings", BAD, subject.problem.partition("\n")[0], subject.problem.partition("\n")[2])
        return
    files_read = [layer.path for layer in subject.settings.written if layer.path]
    status = WARN if subject.settings.warnings else GOOD
    yield Finding("settings", status, ", ".join(files_read) or "defaults only", "\n".join(subject.settings.warnings))
    for path in older.lying(subject.where.workspace, os.environ):
        yield Finding("settings", INFO, f"{path} is from an older version of rooda and is ignored", older.advice(path))
    for name in _written(subject.settings):
        try:
            prompt = registry.first_prompt(subject.settings, name)
            if agent := registry.kind(registry.OODA).setup(subject.settings, name).agent:
                preflight.check_size(agent, prompt)
        except RoodaError as problem:
            yield Finding(f"procedure {name}", BAD, problem.what, problem.hint)


def quality_gates(subject: Subject) -> Iterator[Finding]:
    """Check the quality gates of `build` and of the procedures that the user wrote or changed, each gate once."""
    seen = set[str]()
    for name in dict.fromkeys(["build", *_written(subject.settings)]) if subject.settings else ():
        try:
            found = registry.gates(subject.settings, name) if subject.settings else []
        except RoodaError as problem:
            if name == "build" and _is_about_gates(subject, name):  # other checks report other errors
                yield Finding("gates", BAD, problem.what, problem.hint)
            continue
        for gate, described, refusal in found:
            if described not in seen:
                seen.add(described)
                what = f"gate {' '.join(gate.split())[:30]}"
                yield Finding(what, BAD, refusal.what, refusal.hint) if refusal else Finding(what, GOOD, described)
        for line in registry.gates_left(subject.settings, name) if subject.settings and name == "build" else ():
            yield Finding("gates", INFO, line)


def undone_iterations(subject: Subject) -> Iterator[Finding]:
    """Check each procedure with `on_red = "undo"`, which needs snapshots and does not undo commits."""
    found = subject.settings
    for name in sorted({"build", *_written(found)}) if found else ():
        look = lookup(found, name, {}) if found else None
        if look is None or look.value("on_red") != "undo":
            continue
        what = f"on_red of {name}"
        if look.value("safety") != "snapshot":
            yield Finding(what, BAD, 'on_red = "undo" needs snapshots, and they are off', 'Set safety = "snapshot".')
        elif look.value("commit") != "green":
            detail = "an undo only restores files; it keeps the agent's commits"
            yield Finding(what, WARN, detail, 'Let rooda commit green iterations: commit = "green".')


def _is_about_gates(subject: Subject, name: str) -> bool:
    """True if the procedure's other settings are valid, so that only its gates cause the error."""
    try:
        return subject.settings is not None and bool(registry.kind(registry.OODA).setup(subject.settings, name))
    except RoodaError:
        return False


def _written(found: layers.Settings) -> list[str]:
    """Return the procedures that the user wrote or changed."""
    return sorted({name for layer in found.written for name in layer.table("procedures")})


def chosen_agents(subject: Subject) -> Iterator[Finding]:
    """Check that the agents chosen in the settings, and their fallbacks, can start."""
    if subject.settings is None:
        return
    agents: dict[str, Agent] = {}
    refused = False
    for name, setup in _setups(subject.settings):
        try:
            agent = setup().agent
        except RoodaError as problem:
            refused = True
            if name not in _written(subject.settings):  # `written_settings` reports the errors of those
                yield Finding("agent" if name == "build" else f"agent of {name}", BAD, problem.what, problem.hint)
            continue
        for each in (agent, *(agent.fallback if agent.on_limit == "switch" else ())) if agent else ():
            agents.setdefault(each.command, each)
    for each in agents.values():
        yield _startable(each, subject.where.workspace)
    if not agents and not refused:
        yield _none_chosen(subject)


def _setups(found: layers.Settings) -> Iterator[tuple[str, Callable[[], Setup]]]:
    """Yield the name of each procedure or kind to check, and a function that returns its Setup.

    These are `build` and everything that the user configured.
    """
    written = _written(found)
    for name in [*written, *(["build"] if "build" not in written else [])]:
        yield name, partial(registry.kind(registry.OODA).setup, found, name)
    for kind in registry.KINDS:
        if kind != registry.OODA and any(layer.table(kind) for layer in found.written):
            yield kind, partial(registry.kind(kind).setup, found, "")


def _startable(agent: Agent, workspace: str) -> Finding:
    what = f"agent {agent.name}" if agent.name else "ai_cmd"
    try:
        program = preflight.find_program(agent, workspace)
        preflight.check(agent, "")
    except RoodaError as problem:
        return Finding(what, BAD, problem.what, problem.hint)
    warnings = preflight.warnings(agent)
    return Finding(what, WARN if warnings else GOOD, f"chosen; {program}", "\n".join(warnings))


def _none_chosen(subject: Subject) -> Finding:
    known = [row["name"] for row in subject.agents if row["name"] != "demo"]
    if known and subject.settings:
        line = agents.line_to_write(subject.settings, known[0])
        do = f"{line}\nOr choose one for a run: rooda build --agent {known[0]}"
        return Finding("agent", WARN, "none is chosen", do)
    do = "\n".join(
        (
            "Install one; rooda agents lists them.",
            'Or set any command that reads the prompt on stdin, under [loop] of rooda.toml: ai_cmd = "COMMAND"',
            "Or try a loop without an AI: rooda init --demo DIR",
        )
    )
    return Finding("agent", BAD, "none is chosen, and none is installed", do)


def timeouts(subject: Subject) -> Iterator[Finding]:
    """Warn about loops whose agent calls have no time limit."""
    found = []
    for name, setup in _setups(subject.settings) if subject.settings else ():
        try:
            bounds = setup().bounds
        except RoodaError:
            continue
        if not bounds.iteration_timeout and not bounds.idle_timeout:
            found.append(name)
    if found:
        do = "Set one under [loop] of rooda.toml: iteration_timeout = 1800 (seconds)"
        yield Finding("timeouts", WARN, f"an agent call may take forever: {', '.join(found)}", do)


def installed_agents(subject: Subject) -> Iterator[Finding]:
    """Yield the installed agents with their versions and who is billed."""
    for row in subject.agents:
        version = row["version"] or ("installed" if row["asked"] else trust.NOT_ASKED)
        yield Finding(f"  {row['name']}", INFO, f"{version} ({row['program']}); billed: {row['billed'] or 'no one'}")


def installed(found: layers.Settings, workspace: str) -> Iterator[Json]:
    for name in agents.agents(found):
        agent = agents.agent_named(found, name)
        try:
            program = preflight.find_program(agent, workspace) if agent else ""
        except RoodaError:
            continue
        if agent and program:
            billed = preflight.who_pays(agent, preflight.agent_environment(agent))
            trusted = trust.may_be_started(found, name, program)
            version = preflight.version_of(agent, program) if trusted else ""
            yield {"name": name, "program": program, "version": version, "billed": billed, "asked": trusted}


_SHOWN = {GOOD: "ok  ", WARN: "warn", BAD: "FAIL", INFO: "    "}
LITTLE_ROOM = 50 << 20  # bytes; the check of the disk fails below this


@click.command(short_help="Check whether a loop can run here, and who pays for it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--paths", is_flag=True, help="List what rooda keeps outside of workspaces, and how to remove it.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool, paths: bool) -> int:
    """Check Python, git, the settings, the agents and who is billed, terminal and disk.

    Exit code 0 if a loop can run, 1 if something that it needs is broken. rooda writes nothing into the workspace
    and makes no calls that cost money.
    """
    if paths:
        return _paths(as_json)
    subject = _subject(where(ctx))
    found = [finding for check in _CHECKS for finding in check(subject)]
    good = all(finding.status != BAD for finding in found)
    if as_json:
        import json

        rows: list[Json] = [finding._asdict() for finding in found]
        click.echo(json.dumps({"ok": good, "checks": rows, "agents": subject.agents}, indent=2))
    else:
        _show(found, good)
    return OK if good else FAILED


def _paths(as_json: bool) -> int:
    from rooda.cli import paths

    rows = paths.kept()
    if as_json:
        import json

        click.echo(json.dumps([row._asdict() for row in rows], indent=2))
    else:
        for line in paths.in_words(rows):
            click.echo(escape_line(line))
    return OK


def _show(found: list[Finding], good: bool) -> None:
    width = max(len(finding.what) for finding in found)
    for finding in found:
        head = f"{_SHOWN[finding.status]}  {finding.what:<{width}}  "
        margin = " " * len(head)
        click.echo(folded(f"{head}{escape_line(finding.detail)}".rstrip(), margin))
        for line in finding.do.splitlines():
            click.echo(folded(f"{margin}{escape_line(line)}", margin))
    click.echo("A loop can run here." if good else "Something that a loop needs is broken: see FAIL.")


def _subject(place: Where) -> Subject:
    try:
        found = configuration.load(place.workspace, place.config)
    except RoodaError as problem:
        return Subject(place, None, str(problem))
    return Subject(place, found, agents=tuple(installed(found, place.workspace)))


def _python(subject: Subject) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("rooda", GOOD, __version__)
    yield Finding("python", GOOD, f"{version} ({sys.executable}), {sys.platform}")
    _, exact = tokens.count("How many are these?", "o200k_base")
    do = "" if exact else "Install tiktoken again: pip install --force-reinstall tiktoken"
    yield Finding("tokens", GOOD if exact else WARN, "counted exactly" if exact else "can only be estimated", do)


def _git(subject: Subject) -> Iterator[Finding]:
    said = command.run(["--version"], subject.where.workspace)
    if said.code:
        do = "Install git: without it there are no snapshots, no --worktree and no rooda flow."
        yield Finding("git", WARN, "is not installed", do)
        return
    version = files.to_text(said.out).strip().removeprefix("git version ")
    numbers = [int(number) for number in version.split(".")[:2] if number.isdecimal()]
    if numbers < [*OLDEST_GIT]:
        do = "Install a newer one: flows may fail in sparse checkouts, and before 2.31 a repository can start programs."
        yield Finding("git", WARN, f"{version} is older than {'.'.join(map(str, OLDEST_GIT))}", do)
    else:
        yield Finding("git", GOOD, version)
    try:
        yield Finding("repository", GOOD, find(subject.where.workspace).top)
    except GitProblem as problem:
        do = "Create one (git init); then snapshots, rooda undo and --worktree work."
        yield Finding("repository", WARN, problem.what, problem.hint if "safe.directory" in problem.hint else do)


def _terminal(subject: Subject) -> Iterator[Finding]:
    encoding = (getattr(sys.stdout, "encoding", "") or "unknown").lower()
    shown = f"TERM={os.environ.get('TERM') or 'not set'}, {encoding}"
    if not sys.stdout.isatty():
        yield Finding("terminal", INFO, f"stdout isn't a terminal: plain lines ({encoding})")
    elif not is_terminal(sys.stdout):
        yield Finding("terminal", WARN, shown, "For a status line, set another type: export TERM=xterm-256color")
    elif "utf" not in encoding:
        yield Finding("terminal", WARN, shown, "Some characters are shown as ?: export LANG=C.UTF-8")
    else:
        yield Finding("terminal", GOOD, shown)


def _disk(subject: Subject) -> Iterator[Finding]:
    workspace = subject.where.workspace
    facts = os.statvfs(workspace)
    free = facts.f_bavail * facts.f_frsize
    do = "Free space for prompts, transcripts and snapshots: rooda prune, git gc" if free < LITTLE_ROOM else ""
    yield Finding("disk", BAD if do else GOOD, f"{free / 1e9:.1f} GB free at {workspace}", do)
    home = os.path.join(workspace, ".rooda")
    place = home if os.path.lexists(home) else os.path.realpath(workspace)
    if files.is_folder(place) and os.access(place, os.W_OK | os.X_OK):
        yield Finding("state", GOOD, f"{home} can be written")
    else:
        do = f"Make it a writable folder; a run's state would be lost and could not be resumed. See: ls -ld {place}"
        yield Finding("state", BAD, f"{home} can't be written", do)


def _proc(subject: Subject) -> Iterator[Finding]:
    """Check /proc, without which rooda can't find processes that an agent leaves behind."""
    if not sys.platform.startswith("linux"):
        return
    do = "" if table.PROC else "Mount /proc: descendants can't be found without it."
    yield Finding("proc", WARN if do else GOOD, "/proc is missing" if do else "/proc is mounted", do)


def _sandbox(subject: Subject) -> Iterator[Finding]:
    """Check for a sandbox, try a hostile agent's attempts in it, and report agents that start outside of it."""
    import tempfile

    from rooda.cli import attempts
    from rooda.processes import sandbox
    from rooda.run import project_walls

    where = subject.where.workspace
    if why := sandbox.problem() or project_walls.refusal(project_walls.project_of(where, os.environ)):
        yield Finding("sandbox", INFO, f"none: {why}", "" if sandbox.program() else sandbox.INSTALL)
        return
    with tempfile.TemporaryDirectory(prefix="rooda-") as folder:
        found = attempts.succeeding(os.path.realpath(folder), "workspace", {})
    made = [each for each in attempts.ATTEMPTS if not each.needs]
    wrong = [each.name for each in made if (each.name in found) != each.wanted]
    stopped = sum(not each.wanted for each in made) - sum(not each.wanted and each.name in found for each in made)
    detail = f"available; stops {stopped} of {sum(not each.wanted for each in made)} attempts of a hostile agent"
    do = f"Not as it should be: {', '.join(wrong)}" if wrong else ""
    yield Finding("sandbox", WARN if wrong else GOOD, detail, do)
    yield from _outside(subject)


def _outside(subject: Subject) -> Iterator[Finding]:
    """Report agents that start outside of a sandbox although one is available here."""
    from rooda.run import walls

    found: dict[str, list[str]] = {}
    for name, setup in _setups(subject.settings) if subject.settings else ():
        try:
            made = setup()
        except RoodaError:
            continue
        for agent in made.agent.choices if made.agent else ():
            chosen = walls.chosen_for(agent, made.sandbox, subject.where.workspace)
            if chosen.mode == walls.OFF:
                found.setdefault(chosen.why, []).append(name)
    for why, names in found.items():
        loops = ", ".join(dict.fromkeys(names))
        do = why[:1].upper() + why[1:] if why else 'To switch it on, set sandbox = "auto" under [loop] of rooda.toml.'
        yield Finding("sandbox in use", WARN if why else INFO, f"not for the agents of {loops}", do)


def _keys(subject: Subject) -> Iterator[Finding]:
    from rooda.cli.service import environment_file, readable_by_others

    if warning := readable_by_others(environment_file()):
        detail, _, do = warning.partition(". ")
        yield Finding("keys", WARN, detail, do)


_CHECKS: tuple[Check, ...] = (
    *(_python, _git, written_settings, quality_gates, undone_iterations, chosen_agents, timeouts, installed_agents),
    *(_terminal, _disk, _proc, _sandbox, _keys),
)
