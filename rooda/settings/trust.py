"""Decides whether the user must be asked before a workspace's files start, redirect or leak something.

Only what somebody else may have written is asked about: what came by git, and what changed while a loop ran here. What
the user wrote is recorded without a question. The record is in the user's state folder, one folder per repository:
`record.json`, and a file for each run that is running or that left doubts: changes that an agent may have made.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from rooda.agents import project_files
from rooda.base import dirs, files
from rooda.base.facts import Fact
from rooda.base.workspace_files import upward
from rooda.git import traces
from rooda.processes import table
from rooda.settings import layers, ownership, trust_facts, trust_watch
from rooda.settings.layers import USER, WORKSPACE, Settings
from rooda.settings.toml import Path
from rooda.settings.trust_watch import RUN

Identity: TypeAlias = tuple[str, str, str]
WORKTREES = f"{os.sep}.rooda{os.sep}worktrees{os.sep}"  # where rooda makes worktrees in a repository
NOT_ASKED = "version unknown: this workspace is not trusted"
AGENTS_MD = "AGENTS.md"
FILES = "files"
PENDING = "pending.json"


class Source(NamedTuple):
    """A file in which rooda looks for facts: things that run, redirect or leak."""

    path: str
    facts: Callable[[bytes], list[Fact]]
    read: bool = True  # False: the facts in its current content are already known


class Seen(NamedTuple):
    """Everything in a workspace that can run, redirect or leak (its facts), and the files that were searched."""

    top: str  # the folder that the record applies to: the repository's root, or the workspace
    facts: tuple[Fact, ...]
    sources: Mapping[str, Source]  # keyed by their names in facts
    own_files: tuple[str, ...] = ()  # agents that the workspace has settings for
    workspace: str = ""
    part: str = ""  # subfolder of the record: FILES for single files with commands that a kind of loop runs

    @property
    def identities(self) -> set[Identity]:
        return {fact.identity for fact in self.facts}

    def covers(self, name: str) -> bool:
        """True if the file was searched, or no longer exists."""
        return name in self.sources or not any(
            os.path.lexists(os.path.join(folder, name)) for folder in (self.top, _main(self.top)) if folder
        )

    @property
    def hash(self) -> str:
        """Return the value of `ROODA_TRUST` that accepts exactly these facts in this folder."""
        listed = sorted(fact.identity for fact in self.facts if not fact.harmless)
        return files.sha256(files.to_bytes(json.dumps([self.top, *listed])))


class Verdict(NamedTuple):
    """The changes that the user must accept before anything of the workspace runs."""

    added: tuple[Fact, ...] = ()
    removed: tuple[Fact, ...] = ()  # facts that restricted the agent
    changed: tuple[Fact, ...] = ()  # the user's own changes since the last start; not asked about
    is_change: bool = False  # something here was trusted before
    versions: Mapping[str, Sequence[str]] = {}  # the newest foreign commits of each judged file

    @property
    def asks(self) -> bool:
        return bool(self.added or self.removed)


def look(settings: Settings) -> Seen:
    """Return what can run, redirect or leak: from the settings, AGENTS.md and the agents' project files."""
    folders = upward(settings.workspace)
    top = trust_watch.top_of(settings.workspace)
    sources = {_name(source.path, top): source for source in _sources(settings, top)}
    found = [fact for layer in settings.layers for _, fact in _of_layer(settings, layer, top)]
    for source in sources.values():
        if source.read:
            found += of_file(source)
    own = [_of_cli(fact, top) for fact in project_files.facts(folders)]
    for path in project_files.files(folders):
        sources[_name(path, top)] = Source(path, _project_reader(path, top))
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
    named = {_name(source.path, top): Source(source.path, _naming(source, top)) for source in sources}
    facts = [fact for source in named.values() for fact in of_file(source)]
    return Seen(top, tuple(dict.fromkeys(facts)), named, workspace=settings.workspace, part=FILES)


def _naming(source: Source, top: str) -> Callable[[bytes], list[Fact]]:
    return lambda data: [_renamed(fact, top) for fact in source.facts(data)]


def _of_layer(settings: Settings, layer: layers.Layer, top: str) -> list[tuple[Path, Fact]]:
    if layer.tier != WORKSPACE:
        return []
    reader = trust_facts.reader_of(settings, _name(layer.path, top), layer.path, top)
    return [*(((), fact) for fact in reader.hidden()), *reader.located(layer.tree, layer.lines)]


def _sources(settings: Settings, top: str) -> Iterator[Source]:
    path = next((layer.path for layer in settings.layers if layer.tier == WORKSPACE), "")
    path = path or layers.workspace_file(settings.workspace)
    yield Source(path, trust_facts.reader_of(settings, _name(path, top), path, top).read, read=False)
    path = os.path.join(settings.workspace, AGENTS_MD)
    yield Source(path, trust_facts.agents_md_reader(_name(path, top), _runs_commands(settings)))


def _runs_commands(settings: Settings) -> bool:
    tables = [layer.table("loop") for layer in settings.layers]
    tables += [each for layer in settings.layers for each in layer.table("procedures").values()]
    return any(each.get("gates_from_commands") for each in tables)


def _project_reader(path: str, top: str) -> Callable[[bytes], list[Fact]]:
    return lambda data: [_of_cli(fact, top) for fact in project_files.facts_in(path, data)]


def _renamed(fact: Fact, top: str) -> Fact:
    return fact._replace(file=_name(fact.file, top))


def _of_cli(fact: Fact, top: str) -> Fact:
    """Return a fact of a CLI's own file, renamed; it is harmless if it only restricts the agent."""
    return _renamed(fact, top)._replace(harmless=fact.harmless or fact.restrains)


def _name(path: str, top: str) -> str:
    """Return the file's name in facts, which is the same in a repository and in the worktrees made by rooda.

    A link keeps its own name, so that no two files have the same one.
    """
    path, found = os.path.abspath(path), ""
    roots = {top, _main(top)}
    folder = os.path.dirname(path)
    while folder != os.path.dirname(folder):
        if os.path.realpath(folder) in roots:
            found = os.path.relpath(path, folder)
        folder = os.path.dirname(folder)
    return found or path


def _main(top: str) -> str:
    """Return the repository in which rooda made the worktree `top`; "" if `top` isn't one."""
    main, found, _ = top.partition(WORKTREES)
    return main if found else ""


# The record of a repository


class Record:
    """The facts that the user trusts in a folder, and doubts: changes of facts while loops ran there."""

    def __init__(self, top: str, part: str = "") -> None:
        self.top = top
        self.folder = os.path.join(home, part) if (home := trust_watch.record_folder(top)) else ""
        self.data = _read(os.path.join(self.folder, "record.json")) if self.folder else {}
        self.known: set[Identity] = _identities(self.data.get("known"))
        self.runs = {name: _read(os.path.join(self.folder, name)) for name in self._names()}

    def _names(self) -> list[str]:
        return [name for name in files.list_folder(self.folder) if name.startswith(RUN)] if self.folder else []

    @property
    def exists(self) -> bool:
        return bool(self.data)

    @property
    def revoked(self) -> bool:
        return bool(self.data.get("revoked"))

    @property
    def restraints(self) -> list[Fact]:
        """Return the facts that restricted the agent at the last start."""
        return [fact for fact in _facts(self.data.get("last")) if fact.restrains]

    @property
    def last(self) -> list[Fact]:
        return _facts(self.data.get("last"))

    def doubts(self, seen: Seen) -> tuple[set[Identity], set[Identity]]:
        """Return the facts that appeared and disappeared while loops ran here, or since a running loop started."""
        appeared = {each for run in self.runs.values() for each in _identities(run.get("appeared"))}
        vanished = {each for run in self.runs.values() for each in _identities(run.get("vanished"))}
        for run in self.runs.values():
            if "facts" in run and run.get("workspace", "") == seen.workspace:
                before = _facts(run["facts"])
                appeared |= seen.identities - {fact.identity for fact in before}
                vanished |= {fact.identity for fact in before if fact.restrains} - seen.identities
        return appeared - self.known, vanished

    def consolidate(self, seen: Seen) -> None:
        """Turn what killed runs saved at their start into doubts, and drop doubts about changes that were undone."""
        for name, run in [*self.runs.items()]:
            if "facts" in run:
                if table.is_alive(_table(run.get("process"))) or run.get("workspace", "") != seen.workspace:
                    continue
                trust_watch.add_time(self.top, files.fingerprint(os.path.join(self.folder, name))[3] / 1e9)
                self.end(name.removeprefix(RUN).removesuffix(".json"), seen)
            else:
                appeared = _identities(run.get("appeared")) & (seen.identities | self._elsewhere(run, seen))
                vanished = _identities(run.get("vanished")) - seen.identities
                self._keep(name, appeared, vanished)
            self.runs[name] = _read(os.path.join(self.folder, name))

    def _elsewhere(self, run: dict[str, Any], seen: Seen) -> set[Identity]:
        """Return a run's doubts about facts in files that were not searched this time."""
        return {each for each in _identities(run.get("appeared")) if not seen.covers(each[0])}

    def settle(self, seen: Seen, versions: Mapping[str, Sequence[str]], revoked: bool = False) -> str:
        """Record that these facts are trusted; return an error if the state folder can't be written."""
        known = sorted(self.known | seen.identities)
        elsewhere = [fact for fact in self.last if not seen.covers(fact.file)]
        new = {
            "folder": self.top,
            "known": [] if revoked else [list(each) for each in known],
            "last": rows((*elsewhere, *seen.facts)),
            "versions": {**_table(self.data.get("versions")), **{name: [*each] for name, each in versions.items()}},
            "revoked": revoked,
        }
        if revoked:
            trust_watch.forget(self.top)
        if new == self.data:
            return ""
        return self._write("record.json", new)

    def ask_later(self, seen: Seen) -> None:
        """Save the facts that the user was asked about, so that `rooda trust` can show and accept them."""
        self._write(PENDING, {"facts": rows(seen.facts)})

    def pending(self) -> list[Fact]:
        """Return the facts that the user was last asked about and has not answered."""
        return _facts(_read(os.path.join(self.folder, PENDING)).get("facts")) if self.folder else []

    def forget_pending(self) -> None:
        self._remove(PENDING)

    def accept_pending(self) -> None:
        self.known |= {fact.identity for fact in self.pending()}
        self.settle(Seen(self.top, tuple(self.pending()), {}, part=FILES), {})
        self._remove(PENDING)

    def forget_doubts(self) -> None:
        """Delete the doubts that ended runs left."""
        for name, run in self.runs.items():
            if "facts" not in run:
                self._remove(name)

    def begin(self, run: str, seen: Seen, workspace: str) -> None:
        """Save the facts at the start of a run."""
        note = {"process": table.identity_of(os.getpid()), "workspace": workspace, "facts": rows(seen.facts)}
        self._write(f"{RUN}{run}.json", note)

    def end(self, run: str, seen: Seen) -> None:
        """Save the changes of facts during a run as doubts."""
        name = f"{RUN}{run}.json"
        note = _read(os.path.join(self.folder, name)) if self.folder else {}
        if "facts" not in note:
            return
        before = _facts(note["facts"])
        appeared = seen.identities - {fact.identity for fact in before} - self.known
        vanished = {fact.identity for fact in before if fact.restrains and seen.covers(fact.file)} - seen.identities
        self._keep(name, appeared, vanished)

    def doubt_all(self, run: str, seen: Seen) -> None:
        """Save all facts as doubts, since the facts trusted here were unknown when the run began."""
        self._keep(f"{RUN}{run}.json", seen.identities - self.known, set())

    def _keep(self, name: str, appeared: set[Identity], vanished: set[Identity]) -> None:
        if appeared or vanished:
            self._write(name, {"appeared": sorted(appeared), "vanished": sorted(vanished)})
        else:
            self._remove(name)

    def _write(self, name: str, data: Any) -> str:
        return trust_watch.write(self.folder, name, data)

    def _remove(self, name: str) -> None:
        try:
            files.remove(os.path.join(self.folder, name))
        except OSError:
            pass


def folders() -> Iterator[tuple[str, bool]]:
    """Yield each folder with a record, and whether it is trusted; False if trust was revoked."""
    home = dirs.state("trust")
    for name in sorted(files.list_folder(home)) if home else ():
        data = _read(os.path.join(home, name, "record.json"))
        if isinstance(data.get("folder"), str):
            yield data["folder"], not data.get("revoked")


def _read(path: str) -> dict[str, Any]:
    try:
        found = json.loads(files.read_ours(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def rows(facts: Iterable[Fact]) -> list[Any]:
    """Return the facts as JSON rows, to be stored."""
    return [[*fact.identity, fact.restrains, fact.label] for fact in facts]


def _table(found: Any) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


def _identities(found: Any) -> set[Identity]:
    listed = found if isinstance(found, list) else []
    return {(str(row[0]), str(row[1]), str(row[2])) for row in listed if isinstance(row, list) and len(row) >= 3}


def _facts(found: Any) -> list[Fact]:
    listed = found if isinstance(found, list) else []
    whole = [row for row in listed if isinstance(row, list) and len(row) == 5]
    return [Fact(str(row[0]), str(row[1]), str(row[2]), str(row[4]), restrains=bool(row[3])) for row in whole]


# Questions for the user


def judge(seen: Seen, record: Record) -> Verdict:
    """Return what the user must be asked about; git is consulted only for facts that aren't in the record."""
    known = record.known | _shared(seen.top)
    appeared, vanished = record.doubts(seen)
    for other in traces.work_trees(seen.top):
        appeared |= Record(other).doubts(seen._replace(workspace=""))[0] - known
    if record.revoked:
        return Verdict(tuple(fact for fact in seen.facts if not fact.harmless), is_change=False)
    new = [fact for fact in seen.facts if fact.identity not in known]
    gone = [fact for fact in record.restraints if seen.covers(fact.file) and fact.identity not in seen.identities]
    if not new and not gone:
        return Verdict(is_change=record.exists, changed=_changed(seen, record))
    doubtful = [fact for fact in new if fact.identity in appeared and not fact.harmless]
    lost = [fact for fact in gone if fact.identity in vanished]
    ask_git = [fact for fact in (*new, *gone) if fact not in doubtful and fact not in lost]
    ran = [each for top in (seen.top, *traces.work_trees(seen.top)) for each in trust_watch.times(top)]
    doubtful += [fact for fact in ask_git if fact in new and not fact.harmless and _changed_in(seen, fact, ran)]
    ask_git = [fact for fact in ask_git if fact not in doubtful]
    foreign = _foreign(seen, {fact.file for fact in ask_git})
    for fact in ask_git:
        theirs = foreign.get(fact.file)
        if theirs is None:
            continue
        if fact in new:
            doubtful += [fact] if theirs.hold(fact) and not fact.harmless else []
        elif theirs.commits != tuple(_table(record.data.get("versions")).get(fact.file, ())) and theirs.commits:
            lost += [fact] if not theirs.hold(fact) else []
    versions = {name: theirs.commits for name, theirs in foreign.items() if theirs}
    return Verdict(tuple(doubtful), tuple(lost), _changed(seen, record), record.exists and bool(known), versions)


class Theirs(NamedTuple):
    """The newest versions of a file by somebody else: their commits and facts."""

    commits: tuple[str, ...]
    facts: frozenset[Identity]

    def hold(self, fact: Fact) -> bool:
        """True if somebody else wrote the fact; a fact without a name is a whole file, theirs if they wrote in it."""
        whole = any(not name for _, name, _ in self.facts)
        return whole or fact.identity in self.facts or (not fact.name and bool(self.facts))


def _foreign(seen: Seen, names: Iterable[str]) -> dict[str, Theirs | None]:
    """Return what others wrote into these files; None for a file that can't have come by git."""
    from rooda.git import provenance

    sources = {name: seen.sources[name] for name in names if name in seen.sources}
    found: dict[str, Theirs | None] = {
        name: Theirs(("",), frozenset({("", "", "")}))
        for name, source in sources.items()
        if ownership.is_foreign(os.path.abspath(source.path), os.environ)
    }
    sources = {name: source for name, source in sources.items() if name not in found}
    paths = {name: os.path.abspath(source.path) for name, source in sources.items()}  # links unresolved
    versions = provenance.foreign_versions_of(seen.top, paths.values())
    found |= dict.fromkeys(sources)
    if versions is None:
        return found
    for name, source in sources.items():
        theirs = versions[paths[name]]
        facts = {fact.identity for content in theirs.contents for fact in source.facts(content)}
        found[name] = Theirs(theirs.commits, frozenset(facts))
    return found


def _changed(seen: Seen, record: Record) -> tuple[Fact, ...]:
    before = {fact.identity for fact in record.last}
    if not record.exists or before == seen.identities:
        return ()
    gone = (fact for fact in record.last if fact.identity not in seen.identities and seen.covers(fact.file))
    return tuple(fact for fact in seen.facts if fact.identity not in before) + tuple(gone)


def _changed_in(seen: Seen, fact: Fact, ran: list[list[float]]) -> bool:
    """True if the fact's file last changed while a loop ran, also one that did not look at this file."""
    source = seen.sources.get(fact.file)
    changed = files.fingerprint(source.path)[-1:] if source else ()
    return any(began <= changed[0] / 1e9 <= ended for began, ended in ran) if changed else False


def _shared(top: str) -> set[Identity]:
    """Return the facts trusted in the repository in which rooda made the worktree `top`."""
    main = _main(top)
    return Record(main).known if main else set()


def may_be_started(settings: Settings, agent: str, program: str) -> bool:
    """True if the agent's program may be started just to inspect it, as `rooda doctor` does.

    Its command, version option and environment must come from the shipped or the user's settings, and the program must
    be outside of the workspace, unless the user trusts the workspace.
    """
    top = trust_watch.top_of(settings.workspace)
    named = any(
        layer.tier == WORKSPACE
        and (_STARTS & {*layer.table("agents").get(agent, {})} or agent in layer.table("ai_cmd_aliases"))
        for layer in settings.layers
    )
    if not named and not trust_facts.is_below(os.path.realpath(program), top):
        return True
    seen = look(settings)
    return not judge(seen, Record(seen.top, seen.part)).asks


_STARTS = {"command", "version", "env", "env_deny", "read_only"}


def remember(settings: Settings, config: str | None, seen: Seen) -> None:
    """Save what the next start needs to detect cheaply that nothing has changed."""
    links = [
        path
        for layer in settings.layers
        if layer.tier == WORKSPACE
        for path in trust_facts.reader_of(settings, "", layer.path, seen.top).prompt_files(layer.tree)
    ]
    trust_watch.remember(settings, config, seen, rows(seen.facts), links)


def is_trusted_folder(top: str, settings: Settings) -> bool:
    """True if `[trust] folders` in the user's settings covers the folder."""
    trees = (layer.tree for layer in settings.layers if layer.tier == USER)
    return any(ownership.trusted_folder(top, {}, tree) for tree in trees)


def ignoring(settings: Settings, seen: Seen) -> Settings:
    """Return the settings without those of the workspace that need trust."""
    kept = []
    for layer in settings.layers:
        if layer.tier == WORKSPACE:
            reader = trust_facts.reader_of(settings, _name(layer.path, seen.top), layer.path, seen.top)
            layer = trust_facts.without(layer, reader)
        kept.append(layer)
    return settings._replace(layers=tuple(kept), untrusted=True, own_files=seen.own_files)
