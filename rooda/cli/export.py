"""`rooda export RUN -o FILE`: writes a run to one HTML file."""

import os

import click

from rooda.base import dirs, files
from rooda.cli import common
from rooda.errors import OK, RoodaError, UsageProblem
from rooda.loops import past
from rooda.run import cost_ledger, folder, past_runs, workspaces
from rooda.run.past_runs import PastRun
from rooda.settings.where import Where, where

UNSIGNED = "A record of this run is not signed by the user who exported it; someone else may have written it."


@click.command(short_help="Write a run to one HTML file.")
@click.argument("run", shell_complete=common.tab_loops)
@click.option("-o", "--output", metavar="FILE", required=True, help="The file to write.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.pass_context
def export(ctx: click.Context, run: str, output: str, force: bool) -> int:
    """Write RUN, with its iterations, gates, costs, reasons and the agent's words, to one HTML file.

    RUN is the ID of a run or the name of a loop, for its newest run, as `rooda runs` shows them. A run that is active
    is written as it is now. The file needs no scripts and no network. Secrets are masked as in `rooda logs`.
    """
    from rooda.page import export as page

    _require_free(output, force)
    here, found = _found(where(ctx), run)
    live = past_runs.is_running(found, past.live_runs(here.workspace))
    ended = found.sessions[:-1] if live else found.sessions
    unsigned = [session for session in ended if common.say_if_unsigned(session.folder)]
    data = page.html(found, here, [UNSIGNED] if unsigned else []).encode("utf-8", "replace")
    try:
        (files.replace if force else files.create_whole)(output, data, 0o600)
    except FileExistsError:
        _require_free(output, force)
    except OSError as problem:
        raise RoodaError(f"{output} can't be written: {problem.strerror}.", "Name another file with -o.") from None
    return OK


def _require_free(output: str, force: bool) -> None:
    """Raise UsageProblem if `output` exists, unless it is a regular file and `force` is set."""
    if not os.path.lexists(output):
        return
    if not os.path.isfile(output):
        raise UsageProblem(f"{output} is not a regular file; nothing was written.", "Name another file with -o.")
    if not force:
        raise UsageProblem(f"{output} exists; nothing was written.", "Replace it with --force, or name another file.")


def _found(here: Where, word: str) -> tuple[Where, PastRun]:
    """Find a run by ID or loop name in this workspace, or by ID in another; return its workspace and the run."""
    from rooda.page import export as page

    for place in (here, *(Where(path) for path in _others(here, word))):
        if found := page.find(place.workspace, word):
            _refuse_links(found)
            return place, found
    raise UsageProblem(f"There is no run {word!r} here.", "See the runs with: rooda runs --json")


def _others(here: Where, word: str) -> list[str]:
    """Return the other workspaces, such as clones of tasks, that have a run with this ID."""
    if not folder.is_id(word) or os.path.basename(word) != word:
        return []
    home = dirs.state("ledger")
    of_ledger = (str(each.get("workspace")) for each in cost_ledger.records(home, word) if each.get("run") == word)
    found = dict.fromkeys([*workspaces.known(), *(of_ledger if home else ())])
    return [path for path in found if path != here.workspace and os.path.isdir(folder.folder_of(path, word))]


def _refuse_links(run: PastRun) -> None:
    """Raise UsageProblem if the folder of a session is a link, since rooda never creates such links."""
    for session in run.sessions:
        if os.path.islink(session.folder):
            raise UsageProblem(f"{session.folder} is a link; nothing was written.", "Remove the link.")
