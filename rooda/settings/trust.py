"""Decides whether the user must be asked before a workspace's files start, redirect or leak something.

rooda asks only about content that somebody else may have written: content that came by git, and content that changed
while a loop ran here. Content that the user wrote is recorded without a question.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rooda.base import files
from rooda.base.facts import Fact
from rooda.settings import layers, ownership, trust_facts, trust_record, trust_watch
from rooda.settings.layers import USER, WORKSPACE, Settings
from rooda.settings.trust_doubts import Doubts
from rooda.settings.trust_record import Record
from rooda.settings.trust_search import Identity, Seen, look, main_of, name_of

NOT_ASKED = "version unknown: this workspace is not trusted"


class Verdict(NamedTuple):
    """The changes that the user must accept before anything of the workspace runs."""

    added: tuple[Fact, ...] = ()
    removed: tuple[Fact, ...] = ()  # facts that restricted the agent
    changed: tuple[Fact, ...] = ()  # the user's own changes since the last start; not asked about
    is_change: bool = False  # something here was trusted before
    versions: Mapping[str, Sequence[str]] = {}  # the newest commits by others, for each file that git was asked about

    @property
    def asks(self) -> bool:
        return bool(self.added or self.removed)


def judge(seen: Seen, record: Record) -> Verdict:
    """Return the changes that the user must be asked about; runs git only for facts that aren't in the record."""
    known = record.known | _shared(seen.top)
    if record.revoked:
        return Verdict(tuple(fact for fact in seen.facts if not fact.harmless), is_change=False)
    doubts = Doubts(seen)
    appeared, vanished = doubts.changes()
    new = [fact for fact in seen.facts if fact.identity not in known]
    gone = [*{fact.identity: fact for fact in (*vanished, *record.restraints) if _is_gone(fact, seen)}.values()]
    if not new and not gone:
        return Verdict(is_change=record.exists, changed=_changed(seen, record))
    doubtful = [fact for fact in new if fact.identity in appeared and not fact.harmless]
    lost = [fact for fact in gone if fact.identity in {each.identity for each in vanished}]
    ask_git = [fact for fact in (*new, *gone) if fact not in doubtful and fact not in lost]
    ran = doubts.times()
    doubtful += [fact for fact in ask_git if fact in new and not fact.harmless and _changed_in(seen, fact, ran)]
    ask_git = [fact for fact in ask_git if fact not in doubtful]
    foreign = _foreign(seen, {fact.file for fact in ask_git})
    for fact in ask_git:
        theirs = foreign.get(fact.file)
        if theirs is None:
            continue
        if fact in new:
            doubtful += [fact] if theirs.hold(fact) and not fact.harmless else []
        elif theirs.commits != record.versions(fact.file) and theirs.commits:
            lost += [fact] if not theirs.hold(fact) else []
    versions = {name: theirs.commits for name, theirs in foreign.items() if theirs}
    return Verdict(tuple(doubtful), tuple(lost), _changed(seen, record), record.exists and bool(known), versions)


def _is_gone(fact: Fact, seen: Seen) -> bool:
    return seen.covers(fact.file) and fact.identity not in seen.identities


class Theirs(NamedTuple):
    """The newest versions of a file that somebody else wrote: their commits and facts."""

    commits: tuple[str, ...]
    facts: frozenset[Identity]

    def hold(self, fact: Fact) -> bool:
        """True if somebody else wrote the fact. A fact without a name covers a whole file: any change counts."""
        whole = any(not name for _, name, _ in self.facts)
        return whole or fact.identity in self.facts or (not fact.name and bool(self.facts))


def _foreign(seen: Seen, names: Iterable[str]) -> dict[str, Theirs | None]:
    """Return the versions of these files that others wrote; None for a file that can't have come by git."""
    from rooda.git import provenance

    sources = {name: seen.sources[name] for name in names if name in seen.sources}
    found: dict[str, Theirs | None] = {
        name: Theirs(("",), frozenset({("", "", "")}))
        for name, source in sources.items()
        if ownership.is_foreign(os.path.abspath(source.path), os.environ)
    }
    sources = {name: source for name, source in sources.items() if name not in found}
    paths = {name: os.path.abspath(source.path) for name, source in sources.items()}  # links are not resolved
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


def _changed_in(seen: Seen, fact: Fact, ran: Sequence[tuple[float, float]]) -> bool:
    """True if the file of the fact last changed while a loop ran, even one that did not read this file."""
    source = seen.sources.get(fact.file)
    changed = files.fingerprint(source.path)[-1:] if source else ()
    return any(began <= changed[0] / 1e9 <= ended for began, ended in ran) if changed else False


def _shared(top: str) -> set[Identity]:
    """Return the facts that are trusted in the main repository, if `top` is a worktree that rooda made."""
    main = main_of(top)
    return Record(main).known if main else set()


def may_be_started(settings: Settings, agent: str, program: str) -> bool:
    """True if rooda may start the agent's program just to inspect it, as `rooda doctor` does.

    The agent's command, version option and environment must come from the shipped or the user's settings, and the
    program must be outside of the workspace, unless the user trusts the workspace.
    """
    top = trust_watch.top_of(settings.workspace)
    named = any(
        layer.tier == WORKSPACE
        and (_STARTS & {*layer.table("agents").get(each, {})} or each in layer.table("ai_cmd_aliases"))
        for layer in settings.layers
        for each in (agent, *layers.ancestors(settings.table("agents"), agent))
    )
    if not named and not trust_facts.is_below(os.path.realpath(program), top):
        return True
    seen = look(settings)
    return not judge(seen, Record(seen.top, seen.part)).asks


_STARTS = {"command", "like", "version", "env", "env_deny", "read_only"}


def remember(settings: Settings, config: str | None, seen: Seen) -> None:
    """Save the facts and file stats with which the next start detects cheaply that nothing has changed."""
    links = [
        path
        for layer in settings.layers
        if layer.tier == WORKSPACE
        for path in trust_facts.reader_of(settings, "", layer.path, seen.top).prompt_files(layer.tree)
    ]
    trust_watch.remember(settings, config, seen, trust_record.rows(seen.facts), links)


def is_trusted_folder(top: str, settings: Settings) -> bool:
    """True if `[trust] folders` in the user's settings covers the folder."""
    trees = (layer.tree for layer in settings.layers if layer.tier == USER)
    return any(ownership.trusted_folder(top, {}, tree) for tree in trees)


def ignoring(settings: Settings, seen: Seen) -> Settings:
    """Return the settings without the workspace's settings that need trust."""
    kept = []
    for layer in settings.layers:
        if layer.tier == WORKSPACE:
            reader = trust_facts.reader_of(settings, name_of(layer.path, seen.top), layer.path, seen.top)
            layer = trust_facts.without(layer, reader)
        kept.append(layer)
    return settings._replace(layers=tuple(kept), untrusted=True, own_files=seen.own_files)
