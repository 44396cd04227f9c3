"""`rooda resume [NAME]`: go on with what was interrupted."""

import click

from rooda.cli import options
from rooda.cli.where import Where, a_name, relocated, where
from rooda.errors import StateDamaged, Undecided, UsageProblem
from rooda.policy import opening
from rooda.stores import procedure_state
from rooda.stores.procedure_state import Place


@click.pass_context
def _resume(ctx: click.Context, /, name: str | None, **typed: object) -> int:
    from rooda.cli.start import resume

    here = relocated(where(ctx), typed)
    return resume(a_name(name) if name is not None else only_candidate(here), here, options.asked(typed))


def only_candidate(here: Where) -> str:
    """The one procedure that can be resumed."""
    found = [name for name in procedure_state.names(here.workspace) if _can_resume(Place(here.workspace, name))]
    if not found:
        raise UsageProblem("Nothing to resume here.", "Start with `rooda build`, or see `rooda list`.")
    if len(found) > 1:
        rows = "\n".join(f"  rooda resume {name}" for name in found)
        raise Undecided("Several runs can be resumed; name one.", rows)
    return found[0]


def _can_resume(place: Place) -> bool:
    try:
        state = procedure_state.look(place)
    except StateDamaged:
        return False
    return state is not None and opening.resume(state.status) == "resume"


resume = click.Command(
    "resume",
    callback=_resume,
    params=[click.Argument(["name"], required=False), *options.for_resume()],
    help="Go on with an interrupted or aborted run, or one that crashed. Options given here beat the saved ones.",
)
