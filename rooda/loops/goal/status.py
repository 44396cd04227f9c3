"""`rooda goal status`: where the goal stands, with its criteria as a table."""

import click

from rooda.base.json import Json
from rooda.base.text import visible
from rooda.errors import OK
from rooda.loops.goal import kind
from rooda.settings.where import Where


def act(where: Where, typed: Json) -> int:
    found = kind.facts(where.workspace, kind.NAME)
    if typed["as_json"]:
        import json

        click.echo(json.dumps(found[0] if found else {}, indent=2, ensure_ascii=False))
    elif found:
        click.echo("\n".join(map(visible, kind.lines(found[0]))))
    else:
        click.echo("There is no goal here. Start one with: rooda goal run SPEC")
    return OK
