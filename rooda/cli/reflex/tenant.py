"""What reflex loops tell of their runs: see `cli/kinds.py`."""

import click

from rooda.cli.reflex import status
from rooda.cli.where import Where
from rooda.model import Json
from rooda.policy.reflex_names import is_alias
from rooda.stores import reflex_files
from rooda.stores.reflex_files import Place


def locks(workspace: str) -> dict[str, str]:
    return {alias: Place(workspace, alias).lock for alias in reflex_files.aliases(workspace)}


def lock_of(workspace: str, name: str) -> str:
    return Place(workspace, name).lock


def resumable(workspace: str) -> list[str]:
    return reflex_files.running(workspace)


def facts(workspace: str, name: str | None) -> list[Json]:
    """Of NAME whatever it is; else of those that run or can go on."""
    known = reflex_files.aliases(workspace) if name else reflex_files.running(workspace)
    return [status.facts_of(Place(workspace, alias)) for alias in known if name in (None, alias)]


def lines(facts: Json) -> list[str]:
    return status.lines(facts)


def options() -> list[click.Parameter]:
    from rooda.cli.reflex.new import new

    return new.params


def resume(name: str, where: Where, typed: Json) -> int:
    from rooda.cli.reflex.resume import go_on

    assert is_alias(name)
    return go_on(Place(where.workspace, name), where, typed)
