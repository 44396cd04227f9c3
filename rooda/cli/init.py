"""`rooda init`: a commented rooda.toml for the project at hand."""

import os
from typing import Any

import click

from rooda.errors import RoodaError, UsageProblem
from rooda.settings.where import where


@click.command("init")
@click.option("--print", "show", is_flag=True, help="Show what would be written; write nothing.")
@click.option("--demo", metavar="DIR", help="Make a small project to try rooda on, agent included.")
@click.pass_context
def init(ctx: click.Context, show: bool, demo: str | None) -> int:
    """Write a commented rooda.toml for the project in this folder."""
    if demo is not None:
        from rooda.demo.project import scaffold

        _show_demo(demo, scaffold(demo))
        return 0
    return _write(where(ctx).workspace, show)


def _write(workspace: str, show: bool) -> int:
    from rooda.cli.init_text import Findings, text
    from rooda.settings import detect

    projects = detect.gates(workspace)
    gates = [command for project in projects for command in project.commands]
    found = Findings(detect.agents_here(), gates, [project.because for project in projects])
    content = text(found, _defaults())
    if show:
        click.echo(content, nl=False)
        return 0
    path = os.path.join(workspace, "rooda.toml")
    _create(path, content)
    _tell(workspace, path, found.agents, found.gates)
    return 0


def _create(path: str, content: str) -> None:
    from rooda.base import files

    try:
        files.create(path, files.to_bytes(content))
    except FileExistsError:
        hint = "What would be written: rooda init --print"
        raise UsageProblem(f"{path} is already there; nothing was written.", hint) from None
    except OSError as problem:
        raise RoodaError(f"{path} can't be written: {problem.strerror}") from None


def _defaults() -> dict[str, Any]:
    import tomllib

    from rooda.base import files
    from rooda.base.dirs import shipped

    defaults: dict[str, Any] = tomllib.loads(files.text(shipped("config", "rooda.toml")))["loop"]
    return defaults


def _tell(workspace: str, path: str, agents: list[str], gates: list[str]) -> None:
    from rooda.settings.detect import missing

    click.echo(f"Wrote {path}")
    click.echo(f"Agent: {agents[0]}" if agents else "Agent: none found on PATH; name one in the file")
    for gate in gates:
        note = "  (not found: install it, or change the gate)" if missing(workspace, gate) else ""
        click.echo(f"Quality gate: {gate}{note}")
    if not gates:
        click.echo("Quality gates: none found; add the commands that check this project")
    click.echo(
        "Next: rooda build --dry-run" if agents else "Next: rooda init --demo DIR (a loop without an AI, to look at)"
    )


def _show_demo(folder: str, git: str) -> None:
    """Say what was made and what to type next."""
    import shlex

    from rooda.demo.project import MADE

    click.echo(f"Made a small Python project in {folder}:")
    for name, _, about in MADE:
        click.echo(f"  {name:<16} {about}")
    click.echo(git)
    here = os.path.abspath(folder) == os.getcwd()
    click.echo("Next: rooda build" if here else f"Next: cd {shlex.quote(folder)} && rooda build")
