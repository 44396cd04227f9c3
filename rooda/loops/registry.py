"""Lists the kinds of loops, one row per kind, and defines the interface that each kind implements.

No other module outside of the kinds' own packages names a kind.
"""

import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from rooda.base import dirs, files

if TYPE_CHECKING:
    import click

    from rooda.base.json import Json
    from rooda.errors import ConfigProblem
    from rooda.run.history import Now
    from rooda.run.records import Gate, LoopKind
    from rooda.run.seal import Doubt
    from rooda.run.setup import Setup
    from rooda.settings.check import OwnKeys
    from rooda.settings.layers import Settings
    from rooda.settings.where import Where
    from rooda.views.status_table import Progress
    from rooda.views.why import View

OODA = "ooda"


class Row(NamedTuple):
    """Description of a loop kind that can be read without loading the kind's modules."""

    package: str
    summary: str = ""  # help line of its command in `rooda --help`; procedures have no common command
    starting: tuple[str, ...] = ()  # subcommands that run a loop
    homes: tuple[str, ...] = ()  # rooda loads the kind only if one of these paths exists in the workspace,
    branches: str = ""  # or if the repository has a branch with this prefix,
    git_homes: tuple[str, ...] = ()  # or if one of these paths exists in its git folder
    resume: str = "rooda resume {name}"
    locks: str = ""  # prefix of its lock files in `.rooda`; an agent may delete a running loop's other files
    only_name: str = ""  # name of its loop, if a workspace can have only one of this kind
    explains_pause: bool = False  # its status lines already say why it paused
    on_branch: bool = False  # its state is committed: undo needs its branch, and a resume drops later commits
    hears_notes: bool = False  # its prompts include the notes given with `rooda say`
    demo: str = ""  # module that creates a demo project
    unattended: tuple[str, ...] = ()  # options of its start if no user is there to confirm anything
    gate: tuple[str, str] = ("", "")  # option that adds a command which must succeed, and the form of its value
    text_file: str = ""  # option that reads the task from a file
    commits: bool = True  # its agents are asked to commit their work, or it commits itself


KINDS = {
    OODA: Row(
        "rooda.loops.procedure",
        homes=(".rooda/state",),
        locks="state/",
        hears_notes=True,
        gate=("--gate", "{command}"),
        text_file="--context-file",
    ),
    "reflex": Row(
        "rooda.loops.reflex",
        "Write one artifact and refine it until its rules hold.",
        ("new", "run", "resume"),
        homes=(".ai-factory/evolution",),
        locks="locks/reflex-",
        resume="rooda reflex resume {name}",
        unattended=("--yes",),
        commits=False,
    ),
    "flow": Row(
        "rooda.loops.flow",
        "Run control loops on git: sensors, controllers, actuators.",
        ("run", "resume"),
        homes=(".ai-loop/runs",),
        branches="ai-loop/",
        git_homes=("rooda/locks/flow.lock",),
        resume="rooda flow resume {name}",
        on_branch=True,
        demo="rooda.demo.flow_project",
        unattended=("--yes",),
    ),
    "goal": Row(
        "rooda.loops.goal",
        "Work on a specification until its criteria hold, with evidence.",
        ("run", "continue", "resume", "score", "shape"),
        homes=(".loop", ".rooda/locks/goal-goal.lock"),
        locks="locks/goal-",
        resume="rooda goal continue",
        only_name="goal",
        explains_pause=True,
        hears_notes=True,
        unattended=("--headless",),
        gate=("--criterion", "gate {number}={command}"),
        text_file="--file",
        commits=False,
    ),
}


def own_keys() -> "OwnKeys":
    """Return the settings that only one loop kind has, keyed by kind; settings/schema.py has those of procedures."""
    return {kind: _module(kind, "keys").OWN for kind in KINDS if kind != OODA}


def demo_of(kind: str) -> "Callable[[str], int]":
    """Return the function that creates a demo project for this loop kind in a given folder."""
    scaffold: Callable[[str], int] = importlib.import_module(KINDS[kind].demo).scaffold
    return scaffold


def procedure_command(name: str, where: "Where", words: "Sequence[str]") -> "click.Command":
    """Return the command that runs a procedure. Called for a word that isn't a built-in command."""
    command: click.Command = _module(OODA, "cli").procedure_command(name, where, words)
    return command


def first_prompt(settings: "Settings", name: str) -> str:
    """Return the prompt for the first iteration of the procedure `name`."""
    prompt: str = _module(OODA, "kind").first_prompt(settings, name)
    return prompt


def gates(settings: "Settings", name: str) -> "list[tuple[str, str, ConfigProblem | None]]":
    """Return each quality gate of a procedure: its name, its description, and an error if its program is missing."""
    found: list[tuple[str, str, ConfigProblem | None]] = _module(OODA, "kind").gates_in_force(settings, name)
    return found


def gates_to_run(settings: "Settings", name: str) -> "tuple[Gate, ...]":
    """Return the quality gates of a procedure."""
    found: tuple[Gate, ...] = _module(OODA, "kind").gates_to_run(settings, name)
    return found


def gates_left(settings: "Settings", name: str) -> list[str]:
    """Return a message for each line of AGENTS.md that looks like a quality gate but is not used as one."""
    found: list[str] = _module(OODA, "kind").gates_left(settings, name)
    return found


def view(kind: object) -> "View":
    """Return the view of a loop kind: its screen lines and reasons. An unknown kind gets the view of procedures."""
    return cast("View", _module(kind if isinstance(kind, str) and kind in KINDS else OODA, "view"))


def turns(kind: str) -> "LoopKind":
    """Return the properties of a kind of loop, such as the events that begin and end an iteration."""
    found: LoopKind = _module(kind if kind in KINDS else OODA, "events").KIND
    return found


class Kind(Protocol):
    """The interface that each loop kind's kind.py implements; mypy checks that. NAME is the value of `name`."""

    def locks(self, workspace: str) -> "dict[str, str]":
        """Return the lock paths of all loops that ever ran in the workspace, keyed by loop name."""

    def lock_of(self, workspace: str, name: str) -> str:
        """Return the path of NAME's lock, whether or not it exists."""

    def resumable(self, workspace: str) -> "list[str]":
        """Return the names of the loops that can be resumed."""

    def facts(self, workspace: str, name: str | None) -> "list[Json]":
        """Return the details in NAME's files; without a name, for each loop that runs or can be resumed.

        Each has the keys `running` and, unless its state file is damaged, `pid`.
        """

    def facts_of_running(self, workspace: str, name: str) -> "Json":
        """Return the details in the files of NAME, which is running; {} if reading them at each refresh is too slow."""

    def name_of(self, facts: "Json") -> str:
        """Return the loop's name from its details."""

    def progress(self, facts: "Json", now: "Now") -> "Progress":
        """Return the loop's progress, from its details and latest events."""

    def lines(self, facts: "Json") -> "list[str]":
        """Format a loop's details as lines of text."""

    def options(self) -> "list[click.Parameter]":
        """Return the options of the command that starts a loop."""

    def resume_options(self) -> "set[str]":
        """Return the names of the options that `rooda resume` accepts for this kind."""

    def resume(self, name: str, where: "Where", typed: "Json") -> int:
        """Resume NAME and return the exit code."""

    def doubt(self, workspace: str, name: str) -> "Doubt | None":
        """Return a Doubt about commands and prompts that a resume of NAME would use; None if this user signed all."""

    def is_name(self, name: str) -> bool:
        """True if `name` has a form that only names of this kind's loops have."""

    def cancel(self, workspace: str, name: str, reason: str) -> str:
        """End NAME, which does not run, for good. Return a sentence about what is kept; "" if it has ended already."""

    def work_paths(self, workspace: str, name: str) -> "list[str]":
        """Return the paths in the work tree that an undo of NAME restores, relative to the workspace."""

    def setup(self, settings: "Settings", name: str) -> "Setup":
        """Return the settings with which NAME runs."""


class Loop(NamedTuple):
    """A loop in a workspace."""

    kind: str
    name: str
    lock: str = ""


def kind(name: str) -> Kind:
    """Load and return the kind.py of a loop kind."""
    return cast(Kind, _module(name, "kind"))


def _module(kind: str, name: str) -> ModuleType:
    return importlib.import_module(f"{KINDS[kind].package}.{name}")


def kinds_in(workspace: str) -> list[str]:
    """Return the loop kinds that may have left files in the workspace, without loading them."""
    refuse_links(workspace)
    from rooda.processes import lock

    locks = lock.recorded(workspace)
    return [kind for kind, row in KINDS.items() if _has_left(row, workspace, locks)]


def refuse_links(workspace: str) -> None:
    """Raise UsageProblem if one of rooda's folders is a symlink: rooda never reads or writes through one."""
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
    """Return the display name of a loop: kind and name, such as "flow main"; for a procedure only the name."""
    return name if kind == OODA else f"{kind} {name}"
