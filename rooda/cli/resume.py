"""`rooda resume [NAME]`: go on with what was interrupted."""

import click
from click.core import ParameterSource

from rooda.cli import common
from rooda.errors import Undecided, UsageProblem
from rooda.loops import options, registry
from rooda.loops.registry import Loop
from rooda.processes import lock
from rooda.settings.where import Where, above, relocated, where

TAKEN = {"goal": {"max_iterations"}}  # beside the options of a start


@click.pass_context
def _resume(ctx: click.Context, /, name: str | None, everything: bool, wait: bool, **typed: object) -> int:
    here = relocated(where(ctx), typed)
    if everything or wait:
        return _everything(ctx, here, name, everything, wait)
    loop = _named(here, common.loop_of(here, name)) if name is not None else _only_candidate(here)
    _require_its_own(ctx, loop)
    return registry.tenant(loop.kind).resume(loop.name, here, typed)


def _require_its_own(ctx: click.Context, loop: Loop) -> None:
    """UsageProblem for an option that loops of this kind do not have: it would be passed over in silence."""
    if loop.kind == registry.OODA:
        return
    own = {option.name for option in registry.tenant(loop.kind).options()} | TAKEN.get(loop.kind, set())
    for option in ctx.command.params:
        if isinstance(option, click.Option) and option.name not in own and _is_typed(ctx, str(option.name)):
            flag = max(option.opts, key=len)
            raise UsageProblem(f"{flag} is no option of '{loop.name}', a {loop.kind} loop; nothing was started.")


def _is_typed(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE


def _everything(ctx: click.Context, here: Where, name: str | None, everything: bool, wait: bool) -> int:
    if not everything:
        raise UsageProblem("--wait goes with --all.")
    given = [key for key in ctx.params if _is_typed(ctx, key)]
    if name is not None or {*given} - {"everything", "wait", "directory", "config"}:
        raise UsageProblem("--all takes no NAME and no options of a run: each goes on as it was started.")
    if wait:
        from rooda.cli.supervise import supervised

        return supervised(here)
    from rooda.cli.resume_all import resume_all

    return resume_all(here)[0]


def _named(here: Where, name: str) -> Loop:
    """What bears this name and can go on; else the procedure, which says what is the matter."""
    found = [loop for loop in registry.resumable(here.workspace) if loop.name == name]
    if found:
        return _one(found)
    kind = common.kind_of(here, name)
    nothing = kind == registry.OODA and not registry.tenant(kind).facts(here.workspace, name)
    if nothing and (unknown := common.hint(here, name)):
        raise UsageProblem(f"No saved state for procedure '{name}'.", unknown)
    return Loop(kind, name)


def _only_candidate(here: Where) -> Loop:
    """The one loop that can be resumed."""
    found = [*registry.resumable(here.workspace)] or _damaged(here)
    if not found:
        otherwise = "Start with `rooda build`, or see `rooda list`."
        raise UsageProblem("Nothing to resume here.", above(here.workspace) or otherwise)
    idle = [loop for loop in found if not _runs(here, loop)]
    return _one(idle or found)


def _damaged(here: Where) -> list[Loop]:
    """They can't go on; their own resume says why."""
    from rooda.cli.resume_all import damaged

    return [Loop(kind, name) for kind in registry.KINDS for name in damaged(here.workspace, kind)]


def _runs(here: Where, loop: Loop) -> bool:
    path = registry.tenant(loop.kind).locks(here.workspace).get(loop.name)
    return path is not None and lock.is_held(path)


def _one(found: list[Loop]) -> Loop:
    if len(found) > 1:
        rows = "\n".join(f"  {_command(loop)}" for loop in found)
        raise Undecided("Several runs can be resumed; name one.", rows)
    return found[0]


def _command(loop: Loop) -> str:
    if loop.kind == registry.OODA:
        return f"rooda resume {loop.name}"
    return "rooda goal continue" if loop.kind == "goal" else f"rooda {loop.kind} resume {loop.name}"


resume = click.Command(
    "resume",
    callback=_resume,
    params=[
        click.Argument(["name"], required=False, shell_complete=common.tab_resumable),
        click.Option(["--all", "everything"], is_flag=True, help="Every run that was cut off, in all workspaces."),
        click.Option(["--wait"], is_flag=True, help="With --all: stay until they have ended, and end them if ended."),
        *options.for_resume(),
    ],
    help="Go on with an interrupted or aborted run, or one that crashed. Options given here beat the saved ones.",
)
