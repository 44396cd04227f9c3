"""`rooda init`: writes a commented rooda.toml for a project."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import click

from rooda.base.text import escape_line
from rooda.errors import RoodaError, UsageProblem
from rooda.loops.options import Value
from rooda.settings.schema import LOOP
from rooda.settings.toml import toml_value
from rooda.settings.types import Key
from rooda.settings.where import where


@click.command("init")
@click.option("--print", "show", is_flag=True, help="Print the file instead of writing it.")
@click.option("--demo", metavar="DIR", help="Create a small project to try rooda on, with a scripted agent.")
@click.option("--tasks", is_flag=True, help="With --demo: a project with eight tasks for `rooda tasks run`.")
@click.option("--max-cost", metavar="N", type=Value(LOOP["max_cost"].type), help="Limit to write: dollars per run.")
@click.option(
    "--iteration-timeout",
    metavar="N",
    type=Value(LOOP["iteration_timeout"].type),
    help="Limit to write: seconds per agent call.",
)
@click.option("--from", "older", metavar="FILE", help="Convert the rooda-config.yml of an older version.")
@click.option("--try-gates/--no-try-gates", default=None, help="Run the gates in the sandbox, to find what they need.")
@click.pass_context
def init(
    ctx: click.Context,
    /,
    show: bool,
    demo: str | None,
    tasks: bool,
    older: str | None,
    try_gates: bool | None,
    **limits: float | None,
) -> int:
    """Write a commented rooda.toml for the project in this folder."""
    if tasks:
        return _tasks_demo(demo)
    if demo is not None:
        from rooda.demo.project import scaffold

        _show_demo(demo, scaffold(demo))
        return 0
    here = where(ctx)
    if older is not None:
        return _convert(older, here.current or here.workspace, show)
    return _write(here.current or here.workspace, show, limits, try_gates)


QUESTIONS = {
    "max_cost": "Dollars after which a run starts no further agent call (Enter: no limit): ",
    "iteration_timeout": "Seconds after which an agent call is ended (Enter: no limit): ",
}


def _asked(limits: Mapping[str, float | None]) -> dict[str, float]:
    """Return the limits to write: those given as options and, at a terminal, the user's answers to QUESTIONS."""
    from rooda.run import questions

    found = {key: value for key, value in limits.items() if value is not None}
    for key, question in QUESTIONS.items() if questions.at_terminal() else ():
        while key not in found and (answer := (questions.typed_answer(question) or "").strip()):
            try:
                value = LOOP[key].type.read(answer)
                problems = [fault.text for fault in LOOP[key].type.faults(value)]
            except ValueError:
                value, problems = None, [LOOP[key].type.expected]
            if problems:
                click.echo(f"{key} {problems[0]}", err=True)
            else:
                found[key] = value
    return found


def _write(workspace: str, show: bool, limits: Mapping[str, float | None], try_gates: bool | None) -> int:
    from rooda.settings import detect

    projects = detect.gates(workspace)
    gates = [command for project in projects for command in project.commands]
    path = os.path.join(workspace, "rooda.toml")
    known = {key: value for key, value in limits.items() if value is not None}
    wanted = known if show or os.path.lexists(path) else _asked(limits)
    found = Findings(detect.installed_agents(), gates, [project.because for project in projects])
    found = found._replace(limits=wanted, setup=detect.worktree_setup(workspace))
    if not show and not os.path.lexists(path) and _wants_trial(workspace, gates, try_gates):
        found = found._replace(opened=_tried(workspace, gates))
    content = text(found, _defaults())
    if show:
        click.echo(content, nl=False)
        return 0
    _create(path, content)
    _report(workspace, path, found.agents, found.gates)
    return 0


def _convert(name: str, workspace: str, show: bool) -> int:
    """Convert a rooda-config.yml to rooda.toml; if `show`, only print the result.

    The new file is in the user's settings folder if the old one is there, else in the workspace.
    """
    from rooda.base import files, workspace_files
    from rooda.settings import layers, older

    near = name if os.path.lexists(name) else os.path.join(workspace, name)
    try:
        text = files.to_text(workspace_files.read_typed(workspace, near))
    except OSError as problem:
        raise UsageProblem(f"{name} can't be read: {problem.strerror or problem}.") from None
    user = os.path.dirname(layers.user_file(os.environ))
    target = user if os.path.dirname(os.path.realpath(near)) == os.path.realpath(user) else workspace
    found = older.convert(text, near, target, _shipped())
    if show:
        click.echo(found.toml, nl=False)
        return 0
    path = os.path.join(target, "rooda.toml")
    _create(path, found.toml)
    click.echo(f"Wrote {path}")
    for what, names in (("Agents", found.agents), ("Procedures", found.procedures)):
        if names:
            click.echo(escape_line(f"{what}: {', '.join(names)}"))
    for row in found.left:
        click.echo(escape_line(f"Not converted, {row}"))
    click.echo(f"{name} is no longer read. Next: rooda {(*found.procedures, 'build')[0]} --dry-run")
    return 0


def _shipped() -> dict[str, Any]:
    """Return the tables of the shipped settings."""
    import tomllib

    from rooda.base import files
    from rooda.base.dirs import shipped

    names = ("rooda.toml", "procedures.toml")
    return {key: table for name in names for key, table in tomllib.loads(files.text(shipped("config", name))).items()}


def _wants_trial(workspace: str, gates: list[str], wanted: bool | None) -> bool:
    """True if the gates are to run in the sandbox, as `wanted` says or, if it is None, as the user answers."""
    from rooda.run import questions, walls

    if not gates or wanted is False or walls.chosen(walls.AUTO, workspace).mode == walls.OFF:
        return False
    if wanted is None and questions.at_terminal():
        answer = questions.typed_answer(TRIAL)
        wanted = answer is not None and answer.strip().lower() in ("", "y", "yes")
    return bool(wanted)


TRIAL = "Run the gates once, in the sandbox and, if they fail there, outside of it, to find what they need? [Y/n] "


def _tried(workspace: str, gates: list[str]) -> tuple[str, ...]:
    """Run the gates in the sandbox; for gates that are red only there, return the [sandbox] lines that help."""
    from rooda.agents.command import base_environment
    from rooda.processes.signals import Signals
    from rooda.run import red_inside
    from rooda.run.setup import Sandbox
    from rooda.settings.detect import missing

    found: list[str] = []
    inside = Sandbox("workspace")
    with Signals() as signals:
        trial = red_inside.Trial(workspace, inside, base_environment(), signals)
        for gate in gates:
            if missing(workspace, gate) or trial.passes(gate, inside):
                continue
            lines = trial.helping(gate)
            click.echo(red_inside.sentence(gate, lines) if lines else f"The gate {gate} fails outside the sandbox too.")
            found += [line for line in lines or () if line not in found]
    return red_inside.joined(found)


def _create(path: str, content: str) -> None:
    from rooda.base import files

    try:
        files.create(path, files.to_bytes(content))
    except FileExistsError:
        hint = "To see what rooda would write: rooda init --print"
        raise UsageProblem(f"{path} already exists; nothing was written.", hint) from None
    except OSError as problem:
        raise RoodaError(f"{path} can't be written: {problem.strerror}") from None


def _defaults() -> dict[str, Any]:
    defaults: dict[str, Any] = _shipped()["loop"]
    return defaults


def _report(workspace: str, path: str, agents: list[str], gates: list[str]) -> None:
    from rooda.settings.detect import missing

    click.echo(f"Wrote {path}")
    click.echo(
        f"Agent: {agents[0]} (the line: agent = {toml_value(agents[0])})"
        if agents
        else "Agent: none found on PATH; name one in the file"
    )
    for gate in gates:
        note = "  (not found: install it, or change the gate)" if missing(workspace, gate) else ""
        click.echo(f"Quality gate: {gate}{note}")
    if not gates:
        click.echo("Quality gates: none found; add commands to the file, else nothing checks the agent's work")
    click.echo("Next: rooda build --dry-run" if agents else "Next: rooda init --demo DIR (try a loop without an AI)")


def _show_demo(folder: str, git: str) -> None:
    """Print the files of the demo and the next command."""
    import shlex

    from rooda.demo.project import MADE

    click.echo(f"Created a small Python project in {folder}:")
    for name, _, about in MADE:
        click.echo(f"  {name:<16} {about}")
    click.echo(git)
    here = os.path.abspath(folder) == os.getcwd()
    click.echo("Next: rooda build" if here else f"Next: cd {shlex.quote(folder)} && rooda build")


def _tasks_demo(folder: str | None) -> int:
    """Create the demo project for tasks; print its tasks and the next command."""
    import shlex

    from rooda.demo.tasks_project import scaffold

    if folder is None:
        raise UsageProblem("--tasks belongs to --demo.", "Name a new folder: rooda init --demo my-demo --tasks")
    added = scaffold(folder)
    click.echo(f"Created a small Python project in {folder}, with {len(added)} tasks:")
    for task in added:
        click.echo(f"  {task.id}  {task.title}")
    click.echo("Tasks 2 and 3 break a gate only together; tasks 7 and 8 change the same line.")
    click.echo(f"Next: cd {shlex.quote(folder)} && rooda tasks run -j 4 --land")
    return 0


# The rooda.toml that `rooda init` writes
_HEAD = """\
# How rooda runs its loops in this project. Every line is optional; without it the default applies.
# The settings in force, and where each comes from: rooda config show --origin
"""
_TAIL = """
# A procedure of your own: `rooda review` would run it. A phase is a string, a file, builtin:NAME, or an array of them.
# It may also have the keys of [loop].
#
# [procedures.review]
# summary = "Read the newest commit and report what is wrong with it"
# default_iterations = 1
# observe = "Read the newest commit and the code around it."
# orient = "Compare it with what AGENTS.md asks for."
# decide = "Pick the worst problem."
# act = "Write it to REVIEW.md, with file and line."

# An agent of your own; rooda writes the prompt to its stdin.
#
# [agents.mine]
# command = "my-agent --model {model}"
"""
_LEFT_OUT = (
    "agent",
    "ai_cmd",
    "ai_cmd_alias",
    "quality_gates",
    "model",
    "safety",
    "sandbox",
    "count_failures",
    "blocked_threshold",
)


class Findings(NamedTuple):
    """Facts that rooda found on this machine and in the project, and the limits to write."""

    agents: list[str]
    gates: list[str]
    because: list[str]  # what each kind of gate was derived from
    opened: tuple[str, ...] = ()  # lines of [sandbox] that the gates need
    setup: str = ""  # the command that prepares a new worktree
    limits: Mapping[str, float] = {}  # limits that the user gave, by setting


def text(found: Findings, defaults: dict[str, Any]) -> str:
    parts = (
        _agent(found),
        _gates(found),
        _progress(),
        _safety(),
        _sandbox(),
        _limits(found),
        _others(defaults, found),
    )
    return _HEAD + "\n[loop]\n" + "\n".join(parts) + _opened(found) + _worktree(found) + _TAIL


def _agent(found: Findings) -> str:
    here = f"On this machine: {', '.join(found.agents)}." if found.agents else "None was found on this machine."
    line = f"agent = {toml_value(found.agents[0])}" if found.agents else '# agent = "claude"'
    return (
        f"{_comment('agent')}. {here}\n{line}\n"
        f'{_comment("ai_cmd")}.\n# ai_cmd = "my-agent --flag"\n'
        f'{_comment("model")}.\n# model = "sonnet"\n'
    )


def _gates(found: Findings) -> str:
    if not found.gates:
        none = "No check of this project was found."
        return f'{_comment("quality_gates")}. {none}\n# quality_gates = ["make test"]\n'
    gates = "".join(f"    {toml_value(gate)},\n" for gate in found.gates)
    return f"{_comment('quality_gates')}. From: {', '.join(found.because)}.\nquality_gates = [\n{gates}]\n"


def _progress() -> str:
    stuck = "# no-progress fits a project whose gates are red at the start; stuck_after ends a run without progress."
    blocked = "# An agent that says twice that it is blocked, and changes nothing, is not asked a third time."
    return f'{stuck}\ncount_failures = "no-progress"  # or "red"\n{blocked}\nblocked_threshold = 2  # or 0\n'


def _safety() -> str:
    more = "# Needs a git repository. What an iteration changed: rooda diff. To undo it: rooda undo."
    return f'{_comment("safety")}.\n{more}\nsafety = "snapshot"  # or "off"\n'


def _sandbox() -> str:
    about = "# auto: agents and gates can change this project only, where bubblewrap works (see rooda doctor)."
    more = "# For a command of your own (ai_cmd) the sandbox stays off until you set hosts in [sandbox], below."
    return f'{about}\n{more}\nsandbox = "auto"  # or "workspace", "read-only", "off"\n'


def _opened(found: Findings) -> str:
    about = (
        "# What agents and gates may reach in the sandbox; also read, write, hide, environment, allow, max_memory.\n"
    )
    if found.opened:
        return f"\n{about}[sandbox]\n" + "".join(f"{line}\n" for line in found.opened)
    return f'\n{about}# [sandbox]\n# hosts = ["packages.example.org", "localhost:5432"]\n# gate_network = "hosts"\n'


def _limits(found: Findings) -> str:
    return "".join(f"{_comment(key)}.\n{key} = {_number(value)}\n" for key, value in found.limits.items())


def _worktree(found: Findings) -> str:
    about = "# What --worktree prepares in a new worktree; also copy = [...] and link = [...].\n"
    if found.setup:
        return f"\n{about}[worktree]\nsetup = {toml_value(found.setup)}\n"
    return f'\n{about}# [worktree]\n# setup = "make deps"\n'


def _number(value: float) -> str:
    return toml_value(int(value) if value == int(value) else value)


def _comment(key: str) -> str:
    what = LOOP[key].what
    return f"# {what[0].upper()}{what[1:]}"


def _others(defaults: dict[str, Any], found: Findings) -> str:
    """Return a commented line for each remaining setting."""
    lines = [
        (f"# {key} = {toml_value(defaults.get(key, True))}", row)
        for key, row in LOOP.items()
        if key not in (*_LEFT_OUT, *found.limits)
    ]
    width = max(len(line) for line, _ in lines)
    return "".join(f"{line:{width}}  # {row.what}{_choices(row)}\n" for line, row in lines)


def _choices(row: Key) -> str:
    return f" ({' | '.join(row.type.choices)})" if row.type.choices else ""
