"""`rooda reflex new TASK`: a new loop, once its criteria and its limit are confirmed."""

import os
from typing import Any

import click

from rooda.base import clock
from rooda.base.json import Json
from rooda.errors import Interrupted, RoodaError, Undecided, UsageProblem, code_of_signal
from rooda.loops import launch, options
from rooda.loops.options import DASH_H, InOrder, RunOptions
from rooda.loops.reflex import drafting, files, rules
from rooda.loops.reflex import store as reflex_store
from rooda.loops.reflex.drafting import TEMPLATES, Drafted, Given, Proposal, confirmed
from rooda.loops.reflex.files import FRESH, Found, Place, meant, none_active, without_history
from rooda.loops.reflex.inspect import diff, history, show
from rooda.loops.reflex.keys import OWN
from rooda.loops.reflex.manage import clean, stop
from rooda.loops.reflex.setup import Prepared, prepared
from rooda.loops.reflex.start import go
from rooda.loops.reflex.state import PLAN, PRODUCE_PREPARE, RUNNING, State
from rooda.loops.reflex.status import list_, status, tab_aliases
from rooda.loops.remembered import taken_over
from rooda.settings.where import Where, relocated, where

COUNT = click.IntRange(min=1)


@click.pass_context
def _new(ctx: click.Context, /, task: tuple[str, ...], **typed: object) -> int:
    here = relocated(where(ctx), typed)
    asked = options.run_options(typed)
    text = " ".join(task)
    if not text.strip():
        raise UsageProblem("The task is empty.", 'Say what is to be written: rooda reflex new "An OpenAPI spec for …"')
    _one_source(typed)
    if not asked.worktree:
        _refuse_a_second(here.workspace)
    made = prepared(here, asked, own_flags(typed))
    try:
        proposal = _proposed(text, here, asked, made, typed)
    except Interrupted as cut:  # while an agent drafted
        click.echo("Interrupted. Nothing was started.", err=True)
        return code_of_signal(cut.number)
    given = Given(bool(typed["confirm_criteria"]), _number(typed["confirm_max_iterations"]))
    proposal = confirmed(proposal, given, asked.json)
    if asked.worktree:
        from rooda.loops import launch

        return launch.inside(here, "reflex", "reflex", made.screen, lambda there: start(proposal, there, asked, made))
    return start(proposal, here, asked, made)


def _one_source(typed: Json) -> None:
    named = [name for name in ("rules", "template", "draft") if typed[name] not in (None, False)]
    if len(named) > 1:
        raise UsageProblem(f"{' and '.join(f'--{name}' for name in named)} are mutually exclusive.")
    alias = typed["alias"]
    if alias is not None and not rules.is_alias(alias):
        raise UsageProblem(f"--alias {alias!r}: an alias has 3 to 64 small letters and digits, with single hyphens.")


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def own_flags(typed: Json) -> Json:
    """What was typed of [reflex]'s own settings."""
    return options.flags_of(OWN, typed)


def _refuse_a_second(workspace: str) -> None:
    """One loop at a time: there is one pointer."""
    running = files.running(workspace)
    if running:
        raise Undecided(
            f"The loop '{running[0]}' is active; no second one was started.",
            f"Go on with it: rooda reflex resume {running[0]}\nor end it: rooda reflex stop",
        )


def _proposed(task: str, here: Where, asked: RunOptions, made: Prepared, typed: Json) -> Proposal:
    drafted = _drafted(task, here, asked, made, typed)
    thresholds = dict(drafted.criteria.thresholds)
    thresholds |= {level: typed[key] for level in "AB" if typed[key := f"threshold_{level.lower()}"] is not None}
    alias = _unused(here.workspace, typed["alias"] or rules.alias_of(task))
    shown = "rules of both phases hold" if any(rule.phase == "B" for rule in drafted.criteria.rules) else "rules hold"
    first = " ".join(task.split())
    ideal = typed["ideal_result"] or drafted.ideal or f"{first[:120]}: all {shown}"
    limit = int(made.look.value("max_iterations"))
    criteria = drafted.criteria._replace(thresholds=thresholds)
    return Proposal(task, ideal, alias, criteria, drafted.origin, limit)


def _drafted(task: str, here: Where, asked: RunOptions, made: Prepared, typed: Json) -> Drafted:
    if typed["rules"] is not None:
        return drafting.from_file(typed["rules"])
    if typed["template"]:
        return drafting.from_template(typed["template"])
    if typed["draft"]:
        from rooda.loops.reflex.drafting import draft

        return draft(task, here, made)
    return drafting.chosen(task)


def _unused(workspace: str, alias: str) -> str:
    """Never over an older loop: a number is put behind the name."""
    taken, number = set(files.aliases(workspace)), 1
    while (name := rules.numbered(alias, number)) in taken or os.path.islink(Place(workspace, name).folder):
        number += 1
    return rules.numbered(alias, number)


def start(proposal: Proposal, here: Where, asked: RunOptions, made: Prepared) -> int:
    reflex_store.tidy_all(here.workspace)
    place = Place(here.workspace, _unused(here.workspace, proposal.alias))
    held = launch.locked(place.lock, f"the loop '{place.alias}'", place.alias, made.screen)
    reflex_store.require_none_running(here.workspace)  # begun before we had the lock
    store = reflex_store.ReflexStore(place, None)
    return go(place, store, first(place, proposal), made, held, asked)


def first(place: Place, proposal: Proposal) -> State:
    """The state before the first phase."""
    now = clock.now()
    stamp = clock.file_stamp(now)
    return State(
        run_id=f"{place.alias}-{stamp[:8]}-{stamp[9:15]}",
        task_alias=place.alias,
        status=RUNNING,
        iteration=1,
        max_iterations=proposal.max_iterations,
        phase="A",
        current_step=PLAN,
        task={"prompt": proposal.task, "ideal_result": proposal.ideal},
        criteria=rules.stored(proposal.criteria),
        created_at=clock.rfc3339(now),
    )


class _Number(click.FloatRange):
    """A number in a range; nan is in none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        return number if number == number else self.fail(f"{value!r} is no number.", param, ctx)


def ways() -> list[click.Parameter]:
    """What `new` and `resume` share beside the agent's options."""
    return [*options.of(OWN, "steps"), *options.of(OWN, "checks", check_timeout=_Number(min=0))]


_THRESHOLD = _Number(0, 1)
new = click.Command(
    "new",
    callback=_new,
    params=[
        click.Argument(["task"], nargs=-1, required=True),
        click.Option(["--rules"], metavar="FILE", type=click.Path(), help="Rules of your own, as JSON or TOML."),
        click.Option(["--template"], type=click.Choice(TEMPLATES), help="Rules that ship with rooda."),
        click.Option(["--draft"], is_flag=True, help="Let the agent draft rules; you confirm them."),
        *options.of(OWN, "limit", max_iterations=COUNT),
        click.Option(["--threshold-a"], type=_THRESHOLD, metavar="X", help="Score that phase A needs, 0 to 1."),
        click.Option(["--threshold-b"], type=_THRESHOLD, metavar="X", help="Score that phase B needs."),
        click.Option(["--ideal-result"], metavar="TEXT", help="What an ideal result is, for the record."),
        click.Option(["--alias"], metavar="NAME", help="The loop's name; made from the task otherwise."),
        click.Option(["--confirm-criteria"], is_flag=True, help="I confirm the rules and thresholds."),
        click.Option(["--confirm-max-iterations"], type=COUNT, metavar="N", help="I confirm this limit."),
        *ways(),
        options.worktree(),
        *options.for_kind(),
    ],
    help="Start a new loop for TASK. You confirm the success criteria and the limit, here or with two options.",
    short_help="Start a new loop.",
)


# `rooda reflex resume [ALIAS]`: the active loop, or the named one, goes on.


@click.pass_context
def _resume(ctx: click.Context, /, alias: str | None, **typed: object) -> int:
    here = relocated(where(ctx), typed)
    reflex_store.tidy_all(here.workspace)  # an end that was cut off, too
    place = meant(here.workspace, alias)
    if place is None:
        raise none_active(here.workspace)
    return go_on(place, here, typed)


def go_on(place: Place, here: Where, typed: Json) -> int:
    """The saved loop to its end, as it was started, or why not."""
    require_open(place, files.look(place))
    _refuse_beside_another(place)
    here, typed = taken_over(here, typed, "reflex", place.alias)
    asked = options.run_options(typed)
    made = _limited(prepared(here, asked, own_flags(typed)), place, asked)
    held = launch.locked(place.lock, f"the loop '{place.alias}'", place.alias, made.screen)
    reflex_store.tidy_all(here.workspace)
    found = files.look(place)
    state = require_open(place, found)
    if found.rebuilt:
        launch.warn(made.screen, f"{place.run} could not be read; it was rebuilt from history.jsonl.")
    elif not found.history:
        launch.warn(made.screen, f"{place.history} holds no event of this loop; it goes on by run.json alone.")
    store = reflex_store.opened(place, found)
    return go(place, store, with_artifact(place, state), made, held, asked)


def _limited(made: Prepared, place: Place, asked: RunOptions) -> Prepared:
    """What is not typed goes on as it was started."""
    return made._replace(setup=launch.kept(made.setup, place.workspace, "reflex", place.alias, asked.flags))


def require_open(place: Place, found: Found) -> State:
    """The state of a loop that can go on."""
    if found.no_history:
        raise without_history(place, found)
    if found.state is None:
        raise RoodaError(f"The files of the loop '{place.alias}' can't be understood.", FRESH)
    if found.state.status != RUNNING:
        raise Undecided(f"{_ended(place, found.state)}{last_error(found)}", FRESH)
    return found.state


def _ended(place: Place, state: State) -> str:
    why = f"{state.status} ({state.stop['reason']})"
    return f"The loop '{place.alias}' has ended: {why}; there is nothing to go on with."


def last_error(found: Found) -> str:
    """The latest phase_error of a loop that failed."""
    errors = [event for event in found.history if event["event"] == "phase_error"]
    if not errors or found.state is None or found.state.status != "failed":
        return ""
    return f"\nLast phase_error: {errors[-1].get('step')}: {errors[-1].get('payload', {}).get('error')}"


def _refuse_beside_another(place: Place) -> None:
    others = [alias for alias in files.running(place.workspace) if alias != place.alias]
    active = files.active(place.workspace)
    if active in others:
        raise Undecided(
            f"The loop '{active}' is active; '{place.alias}' does not go on beside it.",
            f"Go on with it: rooda reflex resume {active}\nor end it: rooda reflex stop",
        )


def with_artifact(place: Place, state: State) -> State:
    """Without its artifact the iteration goes back to where it is written."""
    written = state.current_step not in (PLAN, PRODUCE_PREPARE)
    if written and files.read_artifact(place) is None:
        return state._replace(current_step=PRODUCE_PREPARE, prepared_checks=None, critique=None)
    return state


resume = click.Command(
    "resume",
    callback=_resume,
    params=[click.Argument(["alias"], required=False, shell_complete=tab_aliases), *ways(), *options.for_kind()],
    help="Go on with the active loop, or with ALIAS. A phase that was interrupted is repeated, finished ones are not.",
    short_help="Go on with the active loop, or a named one.",
)


# The words behind `rooda reflex`.
HELP = """Write one artifact and refine it until its rules hold.

Each iteration: PLAN, PRODUCE beside PREPARE, EVALUATE, and if a rule failed CRITIQUE and REFINE. You confirm the
rules and the number of iterations before the first. All state is in .ai-factory/evolution/.
"""
reflex = InOrder(
    "reflex",
    commands=[new, resume, status, stop, list_, history, clean, show, diff],
    help=HELP,
    short_help="An artifact refined until its rules hold.",
    context_settings=DASH_H,
)
