"""Builds a Procedure from the settings: its phases, context, quality gates and promise signals."""

import os
import stat
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rooda.agents.command import IN_TASK
from rooda.base.dirs import shipped
from rooda.errors import ConfigProblem, PromptProblem, RoodaError, UsageProblem
from rooda.loops.procedure.model import NO_PROGRESS, PHASES, Context, Fragment, Phase, Procedure
from rooda.loops.procedure.progress import commits
from rooda.run.records import Gate
from rooda.settings.layers import BUILT_IN, FLAG, Settings
from rooda.settings.lookup import Found, Lookup, lookup
from rooda.settings.procedures import own, require, summary
from rooda.settings.schema import LOOP, flag_of
from rooda.settings.setup import filled, setup_of

if TYPE_CHECKING:
    from rooda.loops.options import RunOptions
    from rooda.settings.where import Where

PREFIX = "builtin:"
_TEXT_FILES = (".md", ".txt", ".markdown", ".prompt")
_HINT = "Paths in a settings file are relative to that file; paths on the command line, to the workspace."


class _Parameters(NamedTuple):
    """Values for {{name}} placeholders. --param wins over the fragment's value, the fragment's over the procedure's."""

    procedure: Mapping[str, str]
    typed: Mapping[str, str]


def phases_of(look: Lookup) -> tuple[Phase, ...]:
    """Return all four phases; raise one error that lists every missing phase or file."""
    found = {name: phase for name in PHASES if (phase := look.find(name))}
    if len(found) < len(PHASES):
        raise _missing(look, [name for name in PHASES if name not in found])
    parameters = _parameters(look)
    problems: list[str] = []
    phases = tuple(Phase(name, _fragments(look, phase, parameters, problems)) for name, phase in found.items())
    if problems:
        raise PromptProblem("\n".join(problems), _HINT)
    return phases


def has_shipped_phase(look: Lookup) -> bool:
    """True if at least one of the four phases is the built-in one."""
    return any((phase := look.find(name)) and phase.layer.tier == BUILT_IN for name in PHASES)


def context_of(look: Lookup) -> tuple[Context, ...]:
    """Return the context texts, then the context files; in each group, the settings come before the command line."""
    texts = [_context(look, item, text) for item in _with_typed(look, "context") for text in _listed(item.value)]
    named = _with_typed(look, "context_files")
    return (*texts, *(_context_file(look, item, name) for item in named for name in _listed(item.value)))


def _with_typed(look: Lookup, key: str) -> list[Found]:
    """Return the configured value, then the value from the command line, which adds to it."""
    found: list[Found] = []
    for table, layer, path in look.tables:
        if key in table:
            found.insert(0, Found(table[key], layer, (*path, key)))
            if layer.tier != FLAG:
                break
    return found


def written(value: object) -> str:
    """Format a parameter's value for the prompt."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parameters(look: Lookup) -> _Parameters:
    typed: Mapping[str, Any] = next(
        (each.table.get("parameters", {}) for each in look.tables if each.layer.tier == FLAG), {}
    )
    return _Parameters(_texts(look.merged("parameters")), _texts(typed))


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {key: written(value) for key, value in values.items()}


def _missing(look: Lookup, missing: list[str]) -> RoodaError:
    path = ("procedures", look.name)
    layer = next(layer for layer in look.settings.layers if look.name in layer.table("procedures"))
    plural = len(missing) > 1
    names = ", ".join(repr(name) for name in missing)
    return ConfigProblem(
        f"{layer.file_line(path)}: procedures.{look.name}: the phase{'s' if plural else ''} {names}"
        f" {'are' if plural else 'is'} missing",
        f"Add {', '.join(missing)}: each is inline text, a file, builtin:NAME, or an array of these.",
    )


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def _fragments(look: Lookup, found: Found, parameters: _Parameters, problems: list[str]) -> tuple[Fragment, ...]:
    fragments = []
    for item in _listed(found.value):
        own = _texts(item.get("parameters", {})) if isinstance(item, dict) else {}
        try:
            fragment = _fragment(look, found, item)
        except FileNotFoundError as gone:
            problems.append(f"{found.where}: {gone}")
            continue
        if not fragment.command and (own or parameters.procedure or fragment.shown.startswith(PREFIX)):
            fragment = fragment._replace(parameters={**parameters.procedure, **own, **parameters.typed})
        fragments.append(fragment)
    return tuple(fragments)


def _fragment(look: Lookup, found: Found, item: Any) -> Fragment:
    if isinstance(item, str):
        return _from_text(look, found, item)
    if "content" in item:
        return Fragment(text=item["content"], shown="text")
    if "command" in item:
        command, timeout = item["command"], float(item.get("timeout", 10))
        return Fragment(shown=f"command: {command}", command=command, timeout=timeout)
    return _from_path(look, found, item["path"])


def _from_text(look: Lookup, found: Found, text: str) -> Fragment:
    _refuse_empty(found, text)
    if text.startswith(PREFIX) or _file(look, found, text) or _looks_like_path(text):
        return _from_path(look, found, text)
    return Fragment(text=text, shown="text")


def _from_path(look: Lookup, found: Found, name: str) -> Fragment:
    if name.startswith(PREFIX):
        path = os.path.normpath(shipped("prompts", name.removeprefix(PREFIX)))
        if not path.startswith(shipped("prompts") + os.sep) or not os.path.isfile(path):
            raise FileNotFoundError(f"there is no built-in prompt {name!r}")
        return Fragment(path=path, shown=name)
    path = _file(look, found, name)
    if path:
        return Fragment(path=path, shown=name)
    wanted = os.path.join(_folders(look, found)[0], os.path.expanduser(name))
    kind = "is a folder, not a prompt file" if os.path.isdir(wanted) else "prompt file not found"
    raise FileNotFoundError(f"{kind}: {name} (looked for {wanted})")


def _context(look: Lookup, found: Found, text: str) -> Context:
    _refuse_empty(found, text)
    path = _file(look, found, text)
    if not path and len(text) < 4096 and _is_device(text):
        raise UsageProblem(
            f"The context {text} is not a regular file.", "rooda reads it for every prompt: save it to a file first."
        )
    if not path and found.layer.tier == FLAG and _is_meant_as_path(look, found, text):
        raise _no_context_file(look, found, text, "To pass this as text, add a space to it.")
    return Context(path=path, shown=text) if path else Context(text=text, shown="text")


def _context_file(look: Lookup, found: Found, name: str) -> Context:
    path = _file(look, found, name)
    if not path:
        raise _no_context_file(look, found, name, _HINT)
    return Context(path=path, shown=name)


def _no_context_file(look: Lookup, found: Found, name: str, hint: str) -> UsageProblem:
    paths = [os.path.join(folder, os.path.expanduser(name)) for folder in _folders(look, found)]
    what = "is not a file" if any(map(os.path.lexists, paths)) else "does not exist"
    return UsageProblem(f"{found.where} {name}: {what} (looked for {paths[0]})", hint)


def _is_meant_as_path(look: Lookup, found: Found, text: str) -> bool:
    """True if a text without spaces begins like a path, names an existing folder, or ends like a text file."""
    if not text or len(text) > 4096 or any(letter.isspace() for letter in text) or "://" in text:
        return False
    if text.startswith(("/", "./", "../", "~/")) or text.endswith(_TEXT_FILES):
        return True
    above = os.path.dirname(text)
    return bool(above) and any(os.path.isdir(os.path.join(folder, above)) for folder in _folders(look, found))


def _is_device(text: str) -> bool:
    """True for a pipe or device, such as the shell's <(command), which can only be read once."""
    try:
        mode = os.stat(text).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _refuse_empty(found: Found, text: str) -> None:
    if not text.strip():
        raise UsageProblem(f"Empty inline content not allowed for {flag_of(str(found.path[-1]))} flag.")


def _file(look: Lookup, found: Found, name: str) -> str:
    """Return the absolute path of the file; "" if it does not exist."""
    if "\n" in name or len(name) > 4096:
        return ""
    paths = (os.path.join(folder, os.path.expanduser(name)) for folder in _folders(look, found))
    return next((os.path.abspath(path) for path in paths if os.path.isfile(path)), "")


def _folders(look: Lookup, found: Found) -> tuple[str, ...]:
    if found.layer.path:
        return (os.path.dirname(found.layer.path),)
    return (look.settings.workspace, os.getcwd())


def _looks_like_path(text: str) -> bool:
    if len(text.split()) > 1 or "\n" in text:
        return False
    return text.endswith(_TEXT_FILES) or "/" in text


def prepared(
    name: str, where: "Where", asked: "RunOptions", found: Settings | None = None, resumed: bool = False
) -> tuple[Settings, Procedure]:
    """Return the settings and the procedure that they define. `found`: the settings of `where`, if already loaded.

    Raise Undecided if the workspace's files configure something to run that the user does not trust.
    """
    from rooda.loops import configuration
    from rooda.views.say import warned

    found = found or configuration.load(where.workspace, where.config)
    if asked.dry_run:
        warned(found)
    else:
        from rooda.loops import trusting

        found = configuration.refuse_misspelt(found, asked.warn_unknown)
        found = trusting.checked(found, asked, where.config, resumed)
    return found, procedure(found, name, asked.flags)


def procedure(settings: Settings, name: str, flags: Mapping[str, Any]) -> Procedure:
    """Return the procedure with all its settings resolved. `flags`: values of the command line, which win."""
    require(settings, name)
    _check_flags(flags)
    look = lookup(settings, name, flags)
    builtin = has_shipped_phase(look)
    table = own(settings, name)
    made = Procedure(
        name=name,
        phases=phases_of(look),
        setup=setup_of(settings, look),
        context=context_of(look),
        display=table.get("display", name),
        summary=summary(settings, name),
        description=table.get("description", ""),
        builtin=builtin,
        gates=_gates(look.gates()),
        more_gates=_gates(look.find("more_gates")) or (),
        promise_signals=_promise_signals(look, builtin),
        in_task=bool(os.environ.get(IN_TASK)),
    )
    made = filled(made, look)
    return made._replace(baseline=bool(look.value("baseline", made.count_failures == NO_PROGRESS)))


def _check_flags(flags: Mapping[str, Any]) -> None:
    for key, value in flags.items():
        if key in LOOP and value is not None:
            for fault in LOOP[key].type.faults(value):
                raise UsageProblem(f"{flag_of(key)} {fault.text}")


def _gates(found: Found | None) -> tuple[Gate, ...] | None:
    """Return the gates of a setting; None if it is not set."""
    if found is None:
        return None
    places = (found.layer.location((*found.path, place)) for place in range(len(found.value)))
    return tuple(_gate(item, origin) for item, origin in zip(found.value, places, strict=True))


def _gate(item: Any, origin: str) -> Gate:
    if isinstance(item, str):
        return Gate(item, item, origin=origin)
    return Gate(item.get("name", item["command"]), item["command"], float(item.get("timeout", 0)), origin)


def _promise_signals(look: Lookup, builtin: bool) -> bool:
    """True if promise signals are on. By default they are on if a built-in phase is used: its prompt explains them."""
    found = look.find("promise_signals")
    return builtin if found is None or found.layer.tier == BUILT_IN else bool(found.value)


def require_git(procedure: Procedure, workspace: str) -> None:
    """Raise ConfigProblem if `commit = "green"` or `on_red = "undo"` is set but git or snapshots are missing."""
    if procedure.on_red == "undo" and procedure.setup.safety != "snapshot":
        what = 'on_red = "undo" needs snapshots to restore the files from, and they are off'
        raise ConfigProblem(what, 'Set safety = "snapshot" in rooda.toml, or use --safety snapshot.')
    wanted = 'on_red = "undo"' if procedure.on_red == "undo" else 'commit = "green"' if commits(procedure) else ""
    if wanted:
        from rooda.git.repository import GitProblem, find

        try:
            find(workspace)
        except GitProblem as problem:
            raise ConfigProblem(f"{wanted} needs git: {problem.what}", problem.hint) from None
