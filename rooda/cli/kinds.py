"""The kinds of loops, one row each, for the commands that take the name of any loop."""

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    import click

    from rooda.cli.where import Where
    from rooda.model import Json

OODA = "ooda"
KINDS = {
    OODA: "rooda.cli.tenant",
    "reflex": "rooda.cli.reflex.tenant",
    "flow": "rooda.cli.flow.tenant",
    "goal": "rooda.cli.goal.tenant",
}


class Tenant(Protocol):
    """What a kind of loop tells of its runs in a workspace."""

    def locks(self, workspace: str) -> "dict[str, str]":
        """The lock's path of each that ever ran here, by its name."""

    def lock_of(self, workspace: str, name: str) -> str:
        """The lock's path of NAME, whether or not it is there."""

    def resumable(self, workspace: str) -> "list[str]":
        """Those that can go on."""

    def facts(self, workspace: str, name: str | None) -> "list[Json]":
        """What there is to tell of NAME, or of all that run or can go on; a row has `running` and `pid`."""

    def lines(self, facts: "Json") -> "list[str]":
        """One row in readable lines."""

    def options(self) -> "list[click.Parameter]":
        """Of the commands that start one."""

    def resume(self, name: str, where: "Where", typed: "Json") -> int:
        """Go on."""


class Loop(NamedTuple):
    """One loop of some kind."""

    kind: str
    name: str
    lock: str = ""


def tenant(kind: str) -> Tenant:
    return cast(Tenant, importlib.import_module(KINDS[kind]))


def known(workspace: str) -> Iterator[Loop]:
    """Every loop that ever ran here."""
    for kind in KINDS:
        for name, path in tenant(kind).locks(workspace).items():
            yield Loop(kind, name, path)


def resumable(workspace: str) -> Iterator[Loop]:
    """Every loop that can go on here."""
    for kind in KINDS:
        for name in tenant(kind).resumable(workspace):
            yield Loop(kind, name)
