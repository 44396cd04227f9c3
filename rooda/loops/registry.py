"""The kinds of loops: one row each, and the contract that each kind keeps.

No other module outside of the slices names a kind.
"""

import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from rooda.base import dirs, files
from rooda.processes import lock

if TYPE_CHECKING:
    import click

    from rooda.base.json import Json
    from rooda.run.history import Now
    from rooda.run.seal import Doubt
    from rooda.run.setup import Setup
    from rooda.settings.check import OwnKeys
    from rooda.settings.layers import Settings
    from rooda.settings.where import Where
    from rooda.views.status_table import Progress
    from rooda.views.why import View

OODA = "ooda"


class Row(NamedTuple):
    """A kind of loop, as far as rooda knows it before it loads the kind's modules."""

    package: str
    summary: str = ""  # of its command in `rooda --help`; procedures have no common command
    starting: tuple[str, ...] = ()  # subcommands that run a loop
    homes: tuple[str, ...] = ()  # paths in a workspace; the kind is loaded only if one of them exists,
    branches: str = ""  # or if the repository has a branch below this prefix,
    git_homes: tuple[str, ...] = ()  # or one of these paths in its git folder
    resume: str = "rooda resume {name}"
    locks: str = ""  # begins the names of its lock files in `.rooda`, which may be all that is left of a running loop
    only_name: str = ""  # of the only loop that a workspace can have of this kind
    explains_pause: bool = False  # its status lines say why it paused
    on_branch: bool = False  # its state is committed: undo needs its branch, and a resume drops later commits
    demo: str = ""  # module that creates a demo project


KINDS = {
    OODA: Row("rooda.loops.procedure", homes=(".rooda/state",), locks="state/"),
    "reflex": Row(
        "rooda.loops.reflex",
        "Write one artifact and refine it until its rules hold.",
        ("new", "resume"),
        homes=(".ai-factory/evolution",),
        locks="locks/reflex-",
        resume="rooda reflex resume {name}",
    ),
    "flow": Row(
        "rooda.loops.flow",
        "A hierarchy of control loops on git: sensors, controllers, actuators.",
        ("run", "resume"),
        homes=(".ai-loop/runs",),
        branches="ai-loop/",
        git_homes=("rooda/locks/flow.lock",),
        resume="rooda flow resume {name}",
        on_branch=True,
        demo="rooda.demo.flow_project",
    ),
    "goal": Row(
        "rooda.loops.goal",
        "Work on a specification until its criteria hold, with evidence.",
        ("run", "continue", "score", "shape"),
        homes=(".loop", ".rooda/locks/goal-goal.lock"),
        locks="locks/goal-",
        resume="rooda goal continue",
        only_name="goal",
        explains_pause=True,
    ),
}


def own_keys() -> "OwnKeys":
    """Return the settings that one kind of loop has alone, by its table; those of procedures are in the schema."""
    return {kind: _module(kind, "keys").OWN for kind in KINDS if kind != OODA}


def demo_of(kind: str) -> "Callable[[str], int]":
    """Return the function that creates a demo project for this kind of loop in a folder."""
    scaffold: Callable[[str], int] = importlib.import_module(KINDS[kind].demo).scaffold
    return scaffold


def procedure_command(name: str, where: "Where", words: "Sequence[str]") -> "click.Command":
    """Return the command of a word that is not in the table of commands: it names a procedure."""
    command: click.Command = _module(OODA, "cli").procedure_command(name, where, words)
    return command


def first_prompt(settings: "Settings", name: str) -> str:
    """Return the prompt of the first iteration of the procedure NAME."""
    prompt: str = _module(OODA, "kind").first_prompt(settings, name)
    return prompt


def view(kind: object) -> "View":
    """Return the lines and reasons of KIND; those of a procedure for a kind that rooda doesn't know."""
    return cast("View", _module(kind if isinstance(kind, str) and kind in KINDS else OODA, "view"))


class Kind(Protocol):
    """The contract of a kind of loop, which mypy checks at the end of its kind.py. NAME is the name of one loop."""

    def locks(self, workspace: str) -> "dict[str, str]":
        """Return the lock's path of every loop that ever ran in the workspace, by name."""

    def lock_of(self, workspace: str, name: str) -> str:
        """Return the path of NAME's lock, whether or not it exists."""

    def resumable(self, workspace: str) -> "list[str]":
        """Return the names of the loops that can be resumed."""

    def facts(self, workspace: str, name: str | None) -> "list[Json]":
        """Return everything the files say about NAME, or about all that run or can be resumed.

        Each has `running` and `pid`.
        """

    def facts_of_running(self, workspace: str, name: str) -> "Json":
        """Return what the files say about NAME, which is running, or {} if that costs too much for a refresh."""

    def name_of(self, facts: "Json") -> str:
        """Return the loop's name in its facts."""

    def progress(self, facts: "Json", now: "Now") -> "Progress":
        """Return how far the loop is, from its facts and its latest events."""

    def lines(self, facts: "Json") -> "list[str]":
        """Return the facts as lines of text."""

    def options(self) -> "list[click.Parameter]":
        """Return the options of the command that starts a loop."""

    def resume_options(self) -> "set[str]":
        """Return the names of the options that `rooda resume` accepts for this kind."""

    def resume(self, name: str, where: "Where", typed: "Json") -> int:
        """Resume NAME and return the exit code."""

    def doubt(self, workspace: str, name: str) -> "Doubt | None":
        """Return NAME's saved words that would run or reach an agent, unless this user signed them."""

    def is_name(self, name: str) -> bool:
        """True if the form of NAME alone shows that it is of this kind."""

    def close(self, workspace: str, name: str, reason: str) -> bool:
        """Record that NAME must not be resumed; False if loops of this kind stay resumable."""

    def work_paths(self, workspace: str, name: str) -> "list[str]":
        """Return NAME's files and folders in the work tree, seen from the workspace: an undo of NAME restores them."""

    def setup(self, settings: "Settings", name: str) -> "Setup":
        """Return the settings that NAME runs with."""


class Loop(NamedTuple):
    """A loop in a workspace."""

    kind: str
    name: str
    lock: str = ""


def kind(name: str) -> Kind:
    """Load a kind of loop."""
    return cast(Kind, _module(name, "kind"))


def _module(kind: str, name: str) -> ModuleType:
    return importlib.import_module(f"{KINDS[kind].package}.{name}")


def kinds_in(workspace: str) -> list[str]:
    """Return the kinds that may have left a loop in the workspace. Loads none of them. UsageProblem for links."""
    refuse_links(workspace)
    locks = lock.recorded(workspace)
    return [kind for kind, row in KINDS.items() if _has_left(row, workspace, locks)]


def refuse_links(workspace: str) -> None:
    """UsageProblem if a link is in the place of a folder of rooda: nothing is read or written through it."""
    files.refuse_links(workspace, ".rooda", *(os.path.join(".rooda", name) for name in dirs.FOLDERS))
    for row in KINDS.values():
        files.refuse_links(workspace, *filter(None, map(os.path.dirname, row.homes)), *row.homes)


def _has_left(row: Row, workspace: str, locks: list[str]) -> bool:
    if any(os.path.lexists(os.path.join(workspace, home)) for home in row.homes):
        return True
    if row.locks and any(name.startswith(row.locks) for name in locks):
        return True
    if not row.branches:
        return False
    from rooda.git.traces import has_left

    return has_left(workspace, row.branches, row.git_homes)


def known(workspace: str) -> Iterator[Loop]:
    """Yield every loop that ever ran in the workspace."""
    for each in kinds_in(workspace):
        for name, path in kind(each).locks(workspace).items():
            yield Loop(each, name, path)


def resumable(workspace: str) -> Iterator[Loop]:
    """Yield every loop that can be resumed."""
    for each in kinds_in(workspace):
        for name in kind(each).resumable(workspace):
            yield Loop(each, name)


def noun(kind: str) -> str:
    """Return the word for a loop of this kind in messages and tables."""
    return "procedure" if kind == OODA else kind


def title(kind: str, name: str) -> str:
    """Return the name of a loop, after its kind unless it is a procedure."""
    return name if kind == OODA else f"{kind} {name}"
