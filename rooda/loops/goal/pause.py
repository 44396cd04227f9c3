"""`rooda goal pause`: a running goal pauses after its iteration."""

import click

from rooda.base.json import Json
from rooda.errors import OK
from rooda.loops.goal.commands import request
from rooda.loops.goal.files import Place
from rooda.processes import lock
from rooda.settings.where import Where


def act(where: Where, typed: Json) -> int:
    place = Place(where.workspace)
    if not lock.is_held(place.lock):
        click.echo("No goal is running here.")
        return OK
    request(place, "pause")
    click.echo("Pause requested: the running iteration finishes first. Go on with: rooda goal continue")
    return OK
