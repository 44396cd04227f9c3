"""The kinds of loops, one row each, for the commands that take the name of any loop."""

import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    import click

    from rooda.base.json import Json
    from rooda.loops.flow import kind as flows
    from rooda.loops.goal import kind as goals
    from rooda.loops.procedure import kind as procedures
    from rooda.loops.reflex import kind as reflexes
    from rooda.run.setup import Setup
    from rooda.settings.check import OwnKeys
    from rooda.settings.layers import Settings
    from rooda.settings.where import Where
    from rooda.views.why import View

OODA = "ooda"
KINDS = {
    OODA: "rooda.loops.procedure.kind",
    "reflex": "rooda.loops.reflex.kind",
    "flow": "rooda.loops.flow.kind",
    "goal": "rooda.loops.goal.kind",
}
_PROCEDURES = "rooda.loops.procedure.cli"
_DEMOS = {"flow": "rooda.demo.flow_project"}


def own_keys() -> "OwnKeys":
    """The settings that one kind of loop has alone, by its table."""
    from rooda.loops.flow import keys as of_flows
    from rooda.loops.goal import keys as of_goals
    from rooda.loops.reflex import keys as of_reflexes

    return {"reflex": of_reflexes.OWN, "flow": of_flows.OWN, "goal": of_goals.OWN}


def demo_of(kind: str) -> "Callable[[str], int]":
    """What makes a project to try this kind of loop on, in a folder."""
    scaffold: Callable[[str], int] = importlib.import_module(_DEMOS[kind]).scaffold
    return scaffold


def procedure_command(name: str, where: "Where", words: "Sequence[str]") -> "click.Command":
    """The command that a word which names no command stands for."""
    command: click.Command = importlib.import_module(_PROCEDURES).procedure_command(name, where, words)
    return command


def first_prompt(settings: "Settings", name: str) -> str:
    """What the agent of the procedure NAME would read first."""
    prompt: str = importlib.import_module(KINDS[OODA]).first_prompt(settings, name)
    return prompt


def view(kind: object) -> "View":
    """Return the lines and reasons of KIND; those of a procedure for a kind that rooda doesn't know."""
    package = KINDS[kind if isinstance(kind, str) and kind in KINDS else OODA].rpartition(".")[0]
    return cast("View", importlib.import_module(f"{package}.view"))


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

    def is_name(self, name: str) -> bool:
        """True if the form of NAME alone shows that it is of this kind."""

    def close(self, workspace: str, name: str, reason: str) -> bool:
        """Record that NAME is over for good; False if loops of this kind stay resumable."""

    def work_paths(self, workspace: str, name: str) -> "list[str]":
        """Files and folders of NAME, seen from the workspace, that git sees: an undo of NAME puts them back."""

    def setup(self, settings: "Settings", name: str) -> "Setup":
        """What NAME is run with."""


if TYPE_CHECKING:  # each kind keeps the contract
    _PROCEDURE: Tenant = procedures
    _REFLEX: Tenant = reflexes
    _FLOW: Tenant = flows
    _GOAL: Tenant = goals


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
