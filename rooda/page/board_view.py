"""Renders the overview: a row for each open loop and task, and for each finished run."""

from collections.abc import Sequence

from rooda.base import clock
from rooda.base.json import Json
from rooda.base.text import format_seconds
from rooda.page import actions
from rooda.page.board import Entry, Finished, key_of
from rooda.page.html import Html, join, tag
from rooda.page.run_view import NOTHING, badge, moment, money, short, title
from rooda.run.history import seconds_of

OPEN_HEAD = ("Loop", "State", "Iteration", "Time", "Cost", "Tokens", "Now", "Actions")
DONE_HEAD = ("Run", "State", "Iteration", "Time", "Cost", "Tokens", "Ended", "Cause")
JITTER = 3.0  # seconds by which a computed start may differ between two looks


class Clocks:
    """The times at which running loops started, from which browsers compute their run times."""

    def __init__(self) -> None:
        self._began: dict[str, float] = {}

    def began(self, entry: Entry) -> float:
        found = clock.now() - float(entry.row["elapsed"])
        if abs(self._began.get(entry.id, 0.0) - found) > JITTER:
            self._began[entry.id] = round(found, 1)
        return self._began[entry.id]


def pieces(open_: Sequence[Entry], finished: Sequence[Finished], clocks: Clocks, problem: str = "") -> dict[str, Html]:
    """Return the pieces of the overview. `problem`: why the tasks of the fleet are not current."""
    found = {"sums": _sums(open_)}
    for each in sorted(open_, key=_urgency):
        found[f"open/{each.id}"] = _open_row(each, clocks)
    for run in finished:
        found[f"finished/{run.id}"] = _finished_row(run)
    found["none"] = _stale(problem) if problem else _nothing(not open_, not finished)
    return found


def body(found: dict[str, Html]) -> Html:
    def rows(name: str) -> list[Html]:
        return [html for key, html in found.items() if key.partition("/")[0] == name]

    return join(
        (
            tag("div", *rows("none"), id="none"),
            tag("section", tag("h2", "Open"), _table("open", OPEN_HEAD, rows("open")), class_="list"),
            tag("section", tag("h2", "Finished"), _table("finished", DONE_HEAD, rows("finished")), class_="list"),
        )
    )


def _table(name: str, head: Sequence[str], rows: Sequence[Html]) -> Html:
    cells = (tag("th", word, scope="col", class_=f"of-{word.lower()}") for word in head)
    return tag("table", tag("thead", tag("tr", *cells)), tag("tbody", *rows, id=name), class_=f"{name}-list")


def _urgency(entry: Entry) -> int:
    """Return the sort key of an entry: entries with a question first, then running entries, then the rest."""
    return 0 if entry.question else 1 if entry.row["running"] else 2


def _sums(open_: Sequence[Entry]) -> Html:
    asks, runs = sum(bool(each.question) for each in open_), sum(each.row["running"] for each in open_)
    rest = len(open_) - asks - runs
    parts = (
        tag("span", f"{asks} {'asks' if asks == 1 else 'ask'} you", class_="asks") if asks else "",
        tag("span", f"{runs} running", class_="live") if runs else "",
        tag("span", f"{rest} not running") if rest else "",
    )
    return tag("span", *parts, class_="sums", data_piece="sums", data_asks=str(asks))


def _nothing(no_open: bool, no_finished: bool) -> Html:
    if not no_open:
        return tag("p", data_piece="none")
    words = "No loop is open." if not no_finished else "No loop has run yet. Start one in a project:"
    code = tag("p", tag("code", "rooda build --max-iterations 5")) if no_finished else ""
    return tag("div", tag("p", words), code, class_="empty", data_piece="none")


def not_current(place: str, problem: Exception) -> Html:
    """Return the piece of HTML that says why the page is not current."""
    return _stale(f"This page is not current: something can't be read ({type(problem).__name__}).", place)


def _stale(words: str, place: str = "none") -> Html:
    return tag("p", words, class_="stale", role="alert", data_piece=place)


def _open_row(entry: Entry, clocks: Clocks) -> Html:
    row = entry.row
    where = f"run/{key_of(row['workspace'])}/{row['run']}/" if row["run"] and not entry.is_fleets else ""
    running = row["running"] and not row["suspended"] and not entry.is_fleets
    time = tag(
        "span",
        "" if running else format_seconds(row["elapsed"]) if row["elapsed"] or row["run"] else NOTHING,
        data_began=clocks.began(entry) if running else None,
    )
    cells = (
        _name(_titled(entry), where, entry.place),
        tag("td", badge(_state(entry)), class_="state-cell"),
        tag("td", *_iteration(row), class_="iteration" if row["run"] else "iteration none"),
        tag("td", time, class_="time"),
        tag("td", money(row["cost"], row["calls_of_unknown_cost"], row["calls"]), class_="cost"),
        tag("td", f"{row['tokens']:,}" if row["tokens"] or row["run"] else NOTHING, class_="tokens"),
        tag("td", *_now(entry), class_="now"),
        tag("td", actions.bar(entry), class_="actions-cell"),
    )
    facts = {"data_state": row["state"], "data_name": row["name"], "data_run": row["run"] or None}
    urgent = "urgent" if entry.question else None
    return tag("tr", *cells, data_piece=f"open/{entry.id}", class_=urgent, **facts)


def _titled(entry: Entry) -> str:
    if entry.is_task:
        return f"{entry.row['name']}. {entry.row['details']['title']}"
    return title(entry.row) or "unreadable workspace"


def _name(words: str, where: str, place: str) -> Html:
    head = tag("a", words, href=where) if where else tag("span", words)
    return tag(
        "th", tag("div", head, class_="title"), tag("div", short(place), class_="path", title=place), scope="row"
    )


def _state(entry: Entry) -> str:
    return "needs you" if entry.question else str(entry.row["state"])


def _iteration(row: Json) -> tuple[Html | str, ...]:
    done, most = row["display"] if row["display"] is not None else row["iteration"], row["max_iterations"]
    if done is None:
        return (NOTHING,)
    bar = tag("progress", value=str(min(done, most)), max=str(most), aria_label="iterations") if most else ""
    return f"{done:,} of {most:,}" if most else f"{done:,}", bar


def _now(entry: Entry) -> tuple[Html | str, ...]:
    row = entry.row
    if entry.question:
        how = tag("code", row["next"]) if entry.is_fleets else ""
        return tag("span", entry.question, class_="question-line"), how
    if row["running"] and row["seconds_left"] is not None:
        until = clock.now() + float(row["seconds_left"])
        return (f"{row['waits_for']}, ", tag("span", data_until=str(round(until, -1)), class_="left"))
    if row["running"] and not row["waits_for"] and row["phase"]:
        since = seconds_of(row["since"]) or clock.now()
        return (f"{row['phase']} ", tag("span", data_began=str(since), class_="soft"))
    waits = row["waits_for"] if row["running"] or entry.is_task else row["reason"] or entry.cause
    return (tag("span", waits, class_="soft"),) if waits else ()


def _finished_row(run: Finished) -> Html:
    row = run.row
    cells = (
        _name(title(row), f"run/{key_of(run.workspace)}/{row['run']}/", run.workspace),
        tag("td", badge(row["state"]), class_="state-cell"),
        tag("td", f"{row['iterations']:,}", class_="iteration"),
        tag("td", format_seconds(row["elapsed"]), class_="time"),
        tag("td", money(row["cost"], row["calls_of_unknown_cost"], row["calls"]), class_="cost"),
        tag("td", f"{row['tokens']:,}", class_="tokens"),
        tag("td", moment(row["last"], 16), class_="ended"),
        tag("td", row["cause"], class_="cause-cell"),
    )
    facts = {"data_state": row["state"], "data_name": row["name"], "data_run": row["run"]}
    return tag("tr", *cells, data_piece=f"finished/{run.id}", **facts)
