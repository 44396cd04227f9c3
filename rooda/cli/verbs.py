"""Adds the shared verbs (stop, cancel, list, logs) to the command group of a kind of loop that lacks them."""

import importlib
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import click

from rooda.cli import common
from rooda.cli.words import WORDS
from rooda.errors import OK, Undecided, UsageProblem
from rooda.loops import registry
from rooda.loops.options import SYNONYMS
from rooda.processes import lock
from rooda.run import folder
from rooda.settings.where import Where, where


class Verb(NamedTuple):
    """A shared verb. `names` returns the loops of a kind that the verb can act on if the user names none."""

    names: Callable[[Where, str], list[str]]
    word: str = ""  # the command for all kinds of loops, if its name differs


def complete(group: click.Command, kind: str) -> None:
    """Add the shared verbs that the group of this kind lacks."""
    assert isinstance(group, click.Group)
    for name, verb in VERBS.items():
        if name not in group.commands and SYNONYMS.get(name, name) not in group.commands:
            group.add_command(_of_kind(kind, name, verb))


def _of_kind(kind: str, name: str, verb: Verb) -> click.Command:
    """Return the command for all kinds, restricted to loops of this kind."""
    module, _, attribute = WORDS[verb.word or name].target.partition(":")
    shared = getattr(importlib.import_module(module), attribute)

    def act(**typed: Any) -> Any:
        here = where(click.get_current_context())
        typed["name"] = _name(here, kind, name, verb, typed["name"])
        if typed["name"] is None:
            click.echo(f"{_NOTHING.get(name, 'No runs recorded')}: {kind}.")
            return OK
        return shared.callback(**typed)

    return click.Command(name, params=[*shared.params], callback=act, help=shared.help, short_help=shared.short_help)


_NOTHING = {"stop": "Nothing to stop here", "cancel": "Nothing to cancel here"}


def _name(here: Where, kind: str, word: str, verb: Verb, typed: str | None) -> str | None:
    """Return the loop to act on; None if there is none.

    Raises UsageProblem if `typed` names a loop of another kind, and Undecided if several loops match.
    """
    if typed:
        other = common.kind_of(here, common.loop_of(here, typed))
        if other != kind:
            hint = f"For any kind of loop, try: rooda {verb.word or word} {typed}"
            raise UsageProblem(f"'{typed}' is not a {kind}.", hint)
        return typed
    found = verb.names(here, kind)
    if len(found) > 1:
        rows = "\n".join(f"  rooda {kind} {word} {name}" for name in found)
        raise Undecided("Several loops match; name one.", rows)
    return found[0] if found else None


def _running(here: Where, kind: str) -> list[str]:
    return [loop.name for loop in registry.known(here.workspace) if loop.kind == kind and lock.is_held(loop.lock)]


def _open(here: Where, kind: str) -> list[str]:
    from rooda.cli.cancel import open_loops

    return [loop.name for loop in open_loops(here) if loop.kind == kind]


def _newest(here: Where, kind: str) -> list[str]:
    """Return the name of the loop of this kind that ran last, as a list; [] if none did."""
    folders = reversed(folder.all_of(here.workspace, None))
    own = (path for path in folders if folder.origin_of(path).get("loop") == kind)
    return [folder.loop_of(os.path.basename(path)) for path in own][:1]


VERBS = {
    "stop": Verb(_running),
    "cancel": Verb(_open),
    "list": Verb(_newest, "runs"),
    "logs": Verb(_newest),
}
