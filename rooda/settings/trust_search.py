"""Searches a workspace's files for everything that can run, redirect or leak: its facts."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from rooda.agents import project_files
from rooda.base import files
from rooda.base.facts import Fact
from rooda.base.workspace_files import upward
from rooda.settings import layers, trust_facts, trust_watch
from rooda.settings.layers import WORKSPACE, Settings
from rooda.settings.toml import Path

Identity: TypeAlias = tuple[str, str, str]
WORKTREES = f"{os.sep}.rooda{os.sep}worktrees{os.sep}"  # where rooda makes worktrees in a repository
AGENTS_MD = "AGENTS.md"
FILES = "files"  # subfolder of the record for single files with commands that a kind of loop runs


class Source(NamedTuple):
    """A file in which rooda looks for facts: things that run, redirect or leak."""

    path: str
    facts: Callable[[bytes], list[Fact]]
    read: bool = True  # False: don't read the current content, since its facts are already known


class Seen(NamedTuple):
    """Everything in a workspace that can run, redirect or leak (its facts), and the files that were searched."""

    top: str  # the folder that the record applies to: the repository's root, or the workspace
    facts: tuple[Fact, ...]
    sources: Mapping[str, Source]  # keyed by their names in facts
    own_files: tuple[str, ...] = ()  # agents for which the workspace has settings files
    workspace: str = ""
    part: str = ""  # subfolder of the record: FILES for single files with commands that a kind of loop runs

    @property
    def identities(self) -> set[Identity]:
        return {fact.identity for fact in self.facts}

    def covers(self, name: str) -> bool:
        """True if the file was searched, or no longer exists."""
        return name in self.sources or not any(
            os.path.lexists(os.path.join(folder, name)) for folder in (self.top, main_of(self.top)) if folder
        )

    @property
    def hash(self) -> str:
        """Return the value of `ROODA_TRUST` that accepts exactly these facts in this folder."""
        listed = sorted(fact.identity for fact in self.facts if not fact.harmless)
        return files.sha256(files.to_bytes(json.dumps([self.top, *listed])))


def look(settings: Settings) -> Seen:
    """Search the settings, AGENTS.md and the agents' project files of a workspace."""
    folders = upward(settings.workspace)
    top = trust_watch.top_of(settings.workspace)
    sources = {name_of(source.path, top): source for source in _sources(settings, top)}
    found = [fact for layer in settings.layers for _, fact in _of_layer(settings, layer, top)]
    for source in sources.values():
        if source.read:
            found += of_file(source)
    own = [_of_cli(fact, top) for fact in project_files.facts(folders)]
    for path in project_files.files(folders):
        sources[name_of(path, top)] = Source(path, _project_reader(path, top))
    labels = {fact.label for fact in own if not fact.harmless}
    return Seen(top, tuple(dict.fromkeys([*found, *own])), sources, tuple(sorted(labels)), settings.workspace)


def of_file(source: Source) -> list[Fact]:
    """Return the facts in a file's current content; none if it is missing."""
    try:
        return source.facts(files.read_ours(os.path.realpath(source.path)))
    except OSError:
        return []


def of_files(settings: Settings, sources: Iterable[Source]) -> Seen:
    """Return the facts in single files that hold commands for a kind of loop, such as a flow's sensors."""
    top = trust_watch.top_of(settings.workspace)
    named = {name_of(source.path, top): Source(source.path, _naming(source, top)) for source in sources}
    facts = [fact for source in named.values() for fact in of_file(source)]
    return Seen(top, tuple(dict.fromkeys(facts)), named, workspace=settings.workspace, part=FILES)


def _naming(source: Source, top: str) -> Callable[[bytes], list[Fact]]:
    return lambda data: [_renamed(fact, top) for fact in source.facts(data)]


def _of_layer(settings: Settings, layer: layers.Layer, top: str) -> list[tuple[Path, Fact]]:
    if layer.tier != WORKSPACE:
        return []
    reader = trust_facts.reader_of(settings, name_of(layer.path, top), layer.path, _inside(layer.path, top))
    return [*(((), fact) for fact in reader.hidden()), *reader.located(layer.tree, layer.lines)]


def _inside(path: str, top: str) -> str:
    """Return the folder outside of which the prompt files of the settings file at `path` are facts.

    It is the user's checkout if a task uses a settings file from there, else `top`.
    """
    main = main_of(top)
    return main if main and _below(path, main) and not _below(path, top) else top


def _sources(settings: Settings, top: str) -> Iterator[Source]:
    path = next((layer.path for layer in settings.layers if layer.tier == WORKSPACE), "")
    path = path or layers.workspace_file(settings.workspace)
    yield Source(path, trust_facts.reader_of(settings, name_of(path, top), path, _inside(path, top)).read, read=False)
    path = os.path.join(settings.workspace, AGENTS_MD)
    yield Source(path, trust_facts.agents_md_reader(name_of(path, top), _runs_commands(settings)))


def _runs_commands(settings: Settings) -> bool:
    tables = [layer.table("loop") for layer in settings.layers]
    tables += [each for layer in settings.layers for each in layer.table("procedures").values()]
    return any(each.get("gates_from_commands") for each in tables)


def _project_reader(path: str, top: str) -> Callable[[bytes], list[Fact]]:
    return lambda data: [_of_cli(fact, top) for fact in project_files.facts_in(path, data)]


def _renamed(fact: Fact, top: str) -> Fact:
    return fact._replace(file=name_of(fact.file, top))


def _of_cli(fact: Fact, top: str) -> Fact:
    """Rename the file of a fact about an agent CLI, and mark the fact as harmless if it only restricts the agent."""
    return _renamed(fact, top)._replace(harmless=fact.harmless or fact.restrains)


def name_of(path: str, top: str) -> str:
    """Return the file's name in facts, which is the same in a repository and in the worktrees made by rooda.

    A link keeps its own name, so that no two files have the same name.
    """
    path = os.path.abspath(path)
    return _below(path, top) or _below(path, main_of(top)) or path


def _below(path: str, root: str) -> str:
    """Return the path relative to its outermost parent that is `root` or a link to `root`; "" if it has none."""
    found, folder = "", os.path.dirname(path)
    while root and folder != os.path.dirname(folder):
        if os.path.realpath(folder) == root:
            found = os.path.relpath(path, folder)
        folder = os.path.dirname(folder)
    return found


def main_of(top: str) -> str:
    """Return the repository in which rooda made the worktree or clone `top`; "" if `top` is neither."""
    main, found, _ = top.partition(WORKTREES)
    if found:
        return main
    from rooda.git import clones, traces

    loan = clones.loan_of(top) if traces.clone_around(top) == top else None
    return os.path.realpath(loan.lender) if loan else ""
