"""`rooda goal stop-check`: what a stop hook should say of the state file."""

import json
import os

import click

from rooda.base import files
from rooda.base.json import Json, loads
from rooda.errors import OK
from rooda.loops.goal.files import Place
from rooda.loops.goal.goal_hook import INVALID, decide
from rooda.settings.where import Where


def act(where: Where, typed: Json) -> int:
    """Always valid JSON, and always exit 0: a hook must not fail."""
    path = os.path.join(where.workspace, typed["file"]) if typed["file"] else Place(where.workspace).state
    click.echo(json.dumps(answer(path), ensure_ascii=False))
    return OK


def answer(path: str) -> Json:
    try:
        data = files.read_ours(path)
    except (FileNotFoundError, NotADirectoryError):
        return {"ok": True}
    except OSError:
        return INVALID
    try:
        return decide(loads(data))
    except ValueError:
        return INVALID
