"""Restores the options with which a run was started or last resumed, so that a resume reuses them."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from rooda.base.json import Json
from rooda.base.secret_forms import HIDDEN
from rooda.base.secrets import fill_references, hide_references
from rooda.errors import UsageProblem
from rooda.loops import registry
from rooda.loops.options import cast, context_of, is_omitted, parsed
from rooda.run import folder, history
from rooda.settings.agents import with_program
from rooda.settings.schema import PROCEDURE
from rooda.settings.types import PHASE, TEXTS
from rooda.settings.where import Where

if TYPE_CHECKING:
    import click

AGENT = ("agent", "ai_cmd", "ai_cmd_alias")  # giving one of them now replaces all three


GROUPS = ("agent", "prompt", "way", "screen", "config", "call", "steps")  # groups of options, in the order of display


def _kept() -> tuple[str, ...]:
    """Return the names of the options that a resume reuses: those of settings marked `kept`, and --config.

    Limits and counts come from the run's own files; output options must be given again.
    """
    rows = [item for keys in (PROCEDURE, *registry.own_keys().values()) for item in keys.items()]
    kept = [(row.group, row.flag.parameter(key)) for key, row in rows if row.flag and row.kept]
    kept.append(("config", "config"))
    kept.sort(key=lambda each: GROUPS.index(each[0]) if each[0] in GROUPS else len(GROUPS))
    return tuple(dict.fromkeys(name for _, name in kept))


def _files() -> tuple[str, ...]:
    """Return the names of the options whose values can be file paths."""
    rows = PROCEDURE.items()
    return tuple(row.flag.parameter(key) for key, row in rows if row.flag and row.type in (PHASE, TEXTS))


KEPT, FILES = _kept(), _files()


class Option(NamedTuple):
    """An option reused from an earlier start, with the value that the user gave."""

    parameter: "click.Parameter"
    value: Any

    @property
    def name(self) -> str:
        return str(self.parameter.name)

    @property
    def words(self) -> list[str]:
        """Return the option as command-line words."""
        flag = max(self.parameter.opts, key=len)
        if isinstance(self.value, bool):
            return [flag if self.value else self.parameter.secondary_opts[0]]
        return [f"{flag}={each}" for each in (self.value if isinstance(self.value, list) else [self.value])]


def with_remembered(here: Where, typed: Mapping[str, Any], kind: str, name: str, begun: str = "") -> tuple[Where, Json]:
    """Return the workspace and options of a resume. Options given now override those of the earlier start.

    The reused options are also listed under `remembered`. `begun`: ID of the session that started the run, if known.
    """
    from rooda.loops import signed

    signed.require(here.workspace, kind, name, begun)
    known, context = _known(here.workspace, kind, name, begun), _context(kind)
    before = _options(context, known)
    found, words = dict(typed), list[str]()
    for each in before.values():
        if _replaced(each.name, here, typed, before):
            continue
        option = _from_here(_with_secrets(each), known["folder"], here.workspace)
        try:
            value = cast(context, option.parameter, option.value)
        except ValueError:  # recorded by another version of rooda, or edited
            continue
        found[each.name] = (*value, *typed.get("param", ())) if each.name == "param" else value
        words += option.words
    config = here.config or found.pop("config", None)
    return here._replace(config=config), {**found, "remembered": tuple(words)}


def has_remembered(workspace: str, kind: str, name: str) -> bool:
    """True if the run was started with options that a resume reuses."""
    return bool(words_of(kind, _known(workspace, kind, name)))


def words_of(kind: str, origin: Json) -> list[str]:
    """Return the recorded options that a resume reuses, as command-line words. `origin`: the record of the start."""
    return [word for option in _options(_context(kind), origin).values() for word in option.words]


def _known(workspace: str, kind: str, name: str, begun: str = "") -> Json:
    session = history.newest(workspace, name, kind, begun)
    return folder.origin_of(session.folder) if session else {}


def _context(kind: str) -> "click.Context":
    return context_of(registry.kind(kind).options())


def task_with_secrets(workspace: str, kind: str, name: str, shown: str, begun: str = "") -> tuple[str, str]:
    """Return a task with its secrets filled in, and a warning if they are unknown. `shown`: the masked task."""
    if HIDDEN not in shown:
        return shown, ""
    from rooda.loops import signed

    session = history.newest(workspace, name, kind, begun)
    task = signed.believed(session, workspace, kind).get("task", "") if session else ""
    if hide_references(task) != shown:
        doubt = f"The task of {name} may have contained a secret where it shows {HIDDEN}."
        return shown, f"{doubt} rooda does not know that secret here, so agents get {HIDDEN}."
    text, missing = fill_references(task, os.environ)
    if missing:
        held = f"the value of {missing[0]}, which is not set now" if missing[0] else "an encoded secret"
        hint = (
            f"Set {missing[0]}."
            if missing[0]
            else "Start a new run, and refer to the secret by the name of an environment variable."
        )
        raise UsageProblem(f"The task of {name} contains {held}; nothing was started.", hint)
    return text, ""


def _options(context: "click.Context", known: Json) -> dict[str, Option]:
    """Return the options that a resume reuses, keyed by name; {} if none are known or they can't be parsed."""
    typed = parsed(context, [*known.get("kept", ()), *known.get("words", ())])
    parameters = {parameter.name: parameter for parameter in context.command.params}
    return {name: Option(parameters[name], typed[name]) for name in KEPT if typed.get(name) is not None}


def _replaced(name: str, here: Where, typed: Mapping[str, Any], before: Mapping[str, Option]) -> bool:
    """True if an option given now replaces the earlier option `name`.

    A new agent drops the old model; --param values are merged.
    """
    if name == "model":
        agent, was = typed.get("agent") or typed.get("ai_cmd_alias"), [each.value for each in before.values()]
        return bool(typed.get("model")) or (agent is not None and agent not in was)
    if name in AGENT:
        return any(typed.get(each) for each in AGENT)
    if name in ("config", "param"):
        return name == "config" and here.config is not None
    value = typed.get(name)
    return not is_omitted(value, bool(before[name].parameter.secondary_opts))


def _with_secrets(option: Option) -> Option:
    """Fill in an option's secrets from the environment; raise UsageProblem if one is missing."""
    if isinstance(option.value, bool):
        return option
    values = option.value if isinstance(option.value, list) else [option.value]
    found, flag = [fill_references(value, os.environ) for value in values], max(option.parameter.opts, key=len)
    if missing := [name for _, names in found for name in names]:
        held = f"the value of {missing[0]}, which is not set now" if missing[0] else "an encoded secret"
        hint = f"Set it, or give {flag} again." if missing[0] else f"Give {flag} again."
        raise UsageProblem(f"At the start of this run, {flag} contained {held}; nothing was resumed.", hint)
    texts = [text for text, _ in found]
    return option._replace(value=texts if isinstance(option.value, list) else texts[0])


def _from_here(option: Option, folder: str, workspace: str) -> Option:
    """Return the option with absolute paths, except for paths that name a file relative to the workspace.

    The given paths are relative to `folder`, where the earlier command was run.
    """
    if option.name == "config":
        return option._replace(value=os.path.abspath(os.path.join(folder, option.value)))
    if option.name == "ai_cmd":
        return option._replace(value=with_program(option.value, workspace, folder))
    if option.name not in FILES:
        return option
    found = []
    for text in option.value:
        there = os.path.join(folder, text)
        away = len(text) < 4096 and not os.path.isfile(os.path.join(workspace, text)) and os.path.isfile(there)
        found.append(os.path.abspath(there) if away else text)
    return option._replace(value=found)
