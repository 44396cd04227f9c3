"""Makes sure that nothing configured in a workspace's files runs before the user trusts it."""

import os
import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rooda.errors import Undecided, UsageProblem
from rooda.git.traces import may_track
from rooda.loops.options import RunOptions
from rooda.settings import trust_watch
from rooda.settings.layers import Settings
from rooda.settings.trust_watch import Watch
from rooda.views.say import warned

if TYPE_CHECKING:
    from rooda.settings.trust_search import Source

HOME = ".rooda"
_ignored: set[str] = set()  # folders whose settings the user chose to ignore in this process


def checked(found: Settings, asked: RunOptions, config: str | None, resumed: bool = False) -> Settings:
    """Return the settings to run with, after printing their warnings.

    Raises UsageProblem if git tracks `.rooda`, and Undecided if the user does not trust the workspace's own settings.
    """
    warned(found)
    refuse_tracked(found.workspace)
    if found.untrusted:
        return found
    watch = Watch(found, config)
    watched = found._replace(watch=watch)
    ignores = asked.untrusted or trust_watch.top_of(found.workspace) in _ignored
    if not ignores and (facts := trust_watch.unchanged(found, config)) is not None:
        watch.facts = facts
        return watched
    from rooda.loops import trust_question
    from rooda.settings import trust, trust_search

    seen = trust_search.look(found)
    if ignores:
        return trust.ignoring(watched, seen)
    while trust_question.permitted(seen, found, resumed, config):
        before, seen = seen, trust_search.look(found)
        if seen.facts == before.facts:
            return watched
        trust_watch.forget(seen.top)  # files changed while the question was open
    _ignored.add(seen.top)
    return trust.ignoring(watched, seen)


def require_files(found: Settings, sources: "Iterable[Source]") -> None:
    """Ask the user to trust the commands in further files, such as a flow's sensors; raise Undecided if refused."""
    from rooda.loops import trust_question
    from rooda.settings import trust_search

    files_of_loop = [*sources]
    if isinstance(found.watch, Watch):
        found.watch.files += files_of_loop
    seen = trust_search.of_files(found, files_of_loop)
    if seen.facts and (found.untrusted or not trust_question.permitted(seen, found, False, None)):
        raise Undecided(
            f"Untrusted commands in {', '.join(sorted({fact.file for fact in seen.facts}))}; nothing was started.",
            f"See them: rooda trust --show. Trust them: rooda trust -C {shlex.quote(seen.top)}",
        )


def refuse_tracked(workspace: str) -> None:
    """Raise UsageProblem if git tracks `.rooda`: its files came with a checkout, and may change with the next one."""
    if not may_track(workspace, HOME):
        return
    from rooda.git.repository import tracks

    if tracks(workspace, HOME):
        path = os.path.join(workspace, HOME)
        raise UsageProblem(
            f"git tracks {path}, so anyone who can push may have written it; rooda does not trust it.",
            f"Untrack it: git -C {workspace} rm -r -q --cached {HOME}, and commit the change.",
        )
