"""`rooda config`: shows the settings in force, where each comes from, and which files rooda reads."""

import click

from rooda.settings.where import where
from rooda.views.say import warned


@click.group("config", invoke_without_command=True)
@click.option("--origin", "--show-origin", is_flag=True, hidden=True)
@click.option("--json", "as_json", is_flag=True, hidden=True)
@click.pass_context
def config(ctx: click.Context, origin: bool, as_json: bool) -> int:
    """Show the settings in force; with `show --origin`, also where each comes from."""
    if ctx.invoked_subcommand is None:
        return _show(ctx, "", origin, as_json)
    return 0


@config.command()
@click.argument("key", default="")
@click.option("--origin", is_flag=True, help="Also show where each value comes from.")
@click.option("--show-origin", "origin_too", is_flag=True, hidden=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def show(ctx: click.Context, key: str, origin: bool, origin_too: bool, as_json: bool) -> int:
    """Show all settings, or those whose names begin with KEY (loop, agents.claude).

    Without KEY, shipped agents that are not in use are left out; --json has them.
    """
    return _show(ctx, key, origin or origin_too, as_json)


@config.command()
@click.pass_context
def path(ctx: click.Context) -> int:
    """List the files that rooda reads, highest precedence first."""
    import os

    from rooda.settings import layers

    place = where(ctx)
    for source in layers.find(place.workspace, place.config, os.environ):
        click.echo(f"{source.tier:16}  {source.path}{'' if source.exists else '  (missing)'}")
    return 0


@config.command()
def schema() -> int:
    """Print the JSON Schema of rooda.toml, for editors."""
    from rooda.base import files
    from rooda.base.dirs import shipped

    click.echo(files.text(shipped("config", "rooda.schema.json")), nl=False)
    return 0


def _show(ctx: click.Context, key: str, origin: bool, as_json: bool) -> int:
    from rooda.base import secrets
    from rooda.base.text import counted
    from rooda.cli.common import keys
    from rooda.errors import UsageProblem
    from rooda.loops import configuration, registry
    from rooda.settings import lookup
    from rooda.settings.check import dotted

    place = where(ctx)
    found = warned(configuration.load(place.workspace, place.config))
    rows = [
        row for row in lookup.origins(found) if not key or row[0] == key or row[0].startswith((f"{key}.", f"{key}["))
    ]
    hidden = keys()
    rows = [(name, _shown(secrets.hide_in(value, hidden)), source) for name, value, source in rows]
    if key and not rows:
        raise UsageProblem(f"Setting {key!r} is not set.", "List all settings: rooda config show")
    gates = [described for _, described, _ in registry.gates(found, "build")] if not key else []
    if as_json:
        click.echo(_json(rows, origin, gates))
        return 0
    others = [] if key else sorted({*found.table("agents")} - lookup.agents_in_use(found))
    prefixes = tuple(f"{dotted(('agents', name))}." for name in others)
    click.echo(_lines([row for row in rows if not row[0].startswith(prefixes)], origin))
    for gate in gates:
        click.echo(f"# quality gate of build: {gate}")
    if others:
        click.echo(f"# {counted(len(others), 'shipped agent')} not in use; show all: rooda config show agents")
    return 0


def _shown(value: object) -> object:
    from rooda.base import secrets

    return secrets.hide_password(value) if isinstance(value, str) else value


def _lines(rows: list[tuple[str, object, str]], origin: bool) -> str:
    from rooda.settings.toml import toml_value

    return "\n".join(f"{key} = {toml_value(value)}{f'  # {source}' if origin else ''}" for key, value, source in rows)


def _json(rows: list[tuple[str, object, str]], origin: bool, gates: list[str]) -> str:
    import json

    shown: dict[str, object] = {
        key: {"value": value, "origin": source} if origin else value for key, value, source in rows
    }
    shown |= {"quality gates of build": gates} if gates else {}
    return json.dumps(shown, indent=2, ensure_ascii=False, default=str)
