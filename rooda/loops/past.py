"""Makes the objects of `rooda runs --json`: past runs with their state, their cost, and why they ended."""

from collections.abc import Sequence
from functools import partial

from rooda.base.json import Json
from rooda.loops import registry
from rooda.loops.configuration import prices
from rooda.processes import lock
from rooda.run.past_runs import PastRun, spent
from rooda.run.spending import Spent, Used, total
from rooda.settings.where import Where
from rooda.views.summary import cancelled_text, cause_text

VERSION = 2  # of the objects printed by --json: keys may be added, but not changed
_DONE = ("failed", "cut_off", "commits", "files", "added", "removed")


def live_runs(workspace: str) -> set[str]:
    """Return the IDs of the sessions that are running."""
    held = [loop.lock for loop in registry.known(workspace) if lock.is_held(loop.lock)]
    return {str(lock.owner(path).get("run")) for path in held}


def facts(run: PastRun, here: Where, running: bool) -> Json:
    """Return the object that --json prints for a run."""
    used, summary = spent(run, running, partial(prices, here)), run.summary
    done = {key: summary.get(key) for key in _DONE}
    return {
        "v": VERSION,
        "run": run.sessions[0].run,
        "loop": run.loop,
        "name": run.name,
        "state": run.state(running),
        "cause": cause(run, running),
        "started_at": run.started_at,
        "last": str(run.last.last.get("ts", "")),
        "elapsed": round(run.elapsed(running), 3),
        "sessions": len(run.sessions),
        "exit_code": (run.last.ended or {}).get("exit_code"),
        "iterations": run.iterations,
        **done,
        **_use(used),
    }


def facts_of_deleted(calls: Sequence[Used]) -> Json:
    """Return the object for a session whose log was deleted, from its calls in the user's ledger."""
    used, first = total(calls), calls[0]
    return {
        "v": VERSION,
        "run": first.run,
        "loop": first.loop,
        "name": first.name,
        "state": None,
        "cause": "its log was deleted",
        "started_at": first.ts,
        "last": calls[-1].ts,
        "elapsed": round(used.seconds, 3),
        "sessions": 1,
        "exit_code": None,
        "iterations": len({call.number for call in calls}),
        **dict.fromkeys(_DONE),
        **_use(used),
    }


def _use(used: Spent) -> Json:
    return {
        "calls": used.calls,
        "tokens": used.tokens,
        "cost": None if used.unknown == used.calls else round(used.cost, 6),
        "calls_of_unknown_cost": used.unknown,
    }


def cause(run: PastRun, running: bool) -> str:
    """Return why a run ended, in a few words; "" while it runs."""
    if running:
        return ""
    if (because := run.cancelled) is not None:
        return cancelled_text(because)
    if run.last.ended is None:
        return "its log records no end, so the run was killed or the machine stopped"
    try:
        return cause_text(run.last.ended, registry.view(run.loop).WORDS.cause)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return ""  # the log was edited
