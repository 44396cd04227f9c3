"""Renders a run as pieces of HTML for an export and for the page, which replaces the pieces that have changed.

A piece is keyed by `container/name`, or by the name of its container if the container has only one piece.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from json import dumps
from typing import TypeAlias

from rooda.base import clock
from rooda.base.json import Json
from rooda.base.text import counted, format_seconds, format_tenths
from rooda.loops import registry
from rooda.page.html import Html, join, tag
from rooda.run.spending import dollars

Pieces: TypeAlias = dict[str, Html]
Show: TypeAlias = Callable[[str, Json], Html]  # returns an element with this title for a file of a run, or for a diff
NOTHING = "–"
PASS = "pass"
MOST_CHARTED = 500  # number of iterations in the chart
MOST_LISTED = 300  # number of iterations and decisions in the lists
KEPT = ("success", "completed", "landed", PASS)
BAD = ("failure", "failed", "damaged", "unreadable", "foreign")
ASKS = ("parked", "needs you")
LIVE = ("running",)


def tone(state: str) -> str:
    """Return the CSS class of a state: live, good, bad, asks or calm."""
    tones = {"live": LIVE, "good": KEPT, "bad": BAD, "asks": ASKS}
    return next((name for name, words in tones.items() if state in words), "calm")


def badge(state: str) -> Html:
    return tag("span", state, class_=f"state {tone(state)}")


def money(cost: float | None, unknown: int = 0, calls: int = 1) -> str:
    """Format a cost as the commands do: $0.31, $0.31+ if some is unknown, `unknown` if all is."""
    if cost is None:
        return "unknown" if calls else NOTHING
    return f"{dollars(cost)}{'+' if unknown else ''}"


def moment(ts: str, most: int = 19) -> Html:
    """Return a timestamp as local date and time, cut after `most` characters."""
    return tag("time", clock.local(ts)[:most], datetime=ts) if ts else Html(NOTHING)


def title(row: Json) -> str:
    """Return the display name of a loop, as `rooda runs` prints it."""
    return registry.title(row["loop"], row["name"]) if row["loop"] != row["name"] else str(row["name"])


def short(path: str) -> str:
    """Return a path with the home folder abbreviated as `~`."""
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path.startswith(f"{home}{os.sep}") else path


def pieces(facts: Json, show: Show, actions: str = "", asking: str = "") -> Pieces:
    """Return the pieces of a run's view. `actions` and `asking`: the page's controls; an export has none."""
    newest_first = [*reversed(facts["iterations"])]
    found = {
        "head": _head(facts, actions),
        "ask": _question(facts, asking),
        "figures": _figures(facts),
        "chart": _chart(facts["iterations"]),
    }
    for each in newest_first[:MOST_LISTED]:
        found[f"iterations/{each['number']}"] = _iteration(each, show, each is newest_first[0])
    found["more"] = _more(len(newest_first))
    for number, each in reversed([*enumerate(facts["why"])][-MOST_LISTED:]):
        found[f"why/{number}"] = _decision(number, each)
    return found


def body(found: Pieces, live: str = "") -> Html:
    """Return the pieces laid out in their containers. `live`: the element for the agent's words while it works."""
    main = (
        live,
        tag("h2", "Iterations"),
        tag("ol", *of(found, "iterations"), id="iterations", class_="iterations"),
        tag("p", *of(found, "more"), id="more", class_="soft"),
    )
    side = (
        tag("section", *of(found, "figures"), id="figures"),
        tag("section", *of(found, "chart"), id="chart"),
        tag("h2", "Why"),
        tag("ol", *of(found, "why"), id="why", class_="why"),
    )
    return join(
        (
            tag("header", *of(found, "head"), id="head", class_="head"),
            tag("div", *of(found, "ask"), id="ask"),
            tag("div", tag("div", *main, class_="main"), tag("aside", *side), class_="columns"),
        )
    )


def of(found: Mapping[str, Html], container: str) -> Iterator[Html]:
    """Yield the pieces whose keys name this container."""
    return (html for key, html in found.items() if key.partition("/")[0] == container)


def _head(facts: Json, actions: str) -> Html:
    row = facts["row"]
    line = (badge(row["state"]), tag("span", row["cause"], class_="cause") if row["cause"] else "")
    return tag(
        "div",
        tag("h1", title(row)),
        tag("p", *line, class_="stateline"),
        tag("p", short(facts["workspace"]), class_="path", title=facts["workspace"]),
        actions,
        data_piece="head",
    )


def _question(facts: Json, asking: str) -> Html:
    if not facts["question"] or facts["row"]["state"] not in ASKS:
        return tag("div", data_piece="ask")
    asked = tag("p", facts["question"], class_="question")
    return tag("div", tag("h2", "The agent asks"), asked, asking, class_="asking", data_piece="ask")


def _figures(facts: Json) -> Html:
    row = facts["row"]
    most = f" of {facts['max_iterations']:,}" if facts["max_iterations"] else ""
    failed = f", {row['failed']:,} failed" if row["failed"] else ""
    figures = {
        "Cost": money(row["cost"], row["calls_of_unknown_cost"], row["calls"]),
        "Tokens": f"{row['tokens']:,}",
        "Iterations": f"{row['iterations']:,}{most}{failed}",
        "Run time": _run_time(row),
        "Calls": f"{row['calls']:,}",
        "Started": moment(row["started_at"]),
        "Last event": moment(row["last"]),
        "Changes": _changes(row),
        "Sessions": f"{row['sessions']:,}" if row["sessions"] > 1 else "",
        "Run": tag("code", row["run"]),
    }
    rows = (join((tag("dt", name), tag("dd", value))) for name, value in figures.items() if value)
    return tag("dl", *rows, data_piece="figures")


def _run_time(row: Json) -> Html:
    """Return how long a run has taken. While the run works, a script in the browser updates the time."""
    began = clock.now() - float(row["elapsed"]) if row["state"] == "running" else None
    return tag("span", format_seconds(row["elapsed"]), data_began=began and f"{began:.0f}")


def _changes(row: Json) -> str:
    if row["files"] is None:
        return ""
    commits = f"{counted(row['commits'], 'commit')}, " if row["commits"] is not None else ""
    return f"{commits}{counted(row['files'], 'file')}, +{row['added'] or 0:,} −{row['removed'] or 0:,} lines"


def _chart(iterations: list[Json]) -> Html:
    """Return the element in which a script draws the chart, with the chart's figures."""
    points = [
        [each["number"], (each["usage"] or {}).get("cost"), token_count(each["usage"])]
        for each in iterations[-MOST_CHARTED:]
        if each["number"] > 0 and each["usage"]
    ]
    if not any(amount is not None for _, *amounts in points for amount in amounts):
        return tag("div", data_piece="chart")
    label = f"Cost and tokens of {counted(len(points), 'iteration')}"
    place = tag("div", class_="plot", role="img", aria_label=label, data_keep=True)
    head = tag("h2", tag("span", "Cost", class_="live"), " and ", tag("span", "tokens", class_="good"))
    inner = (head, place)
    return tag("div", *inner, data_points=dumps(points), data_piece="chart", class_="charted")


def token_count(usage: Json | None) -> int | None:
    """Return the tokens of an iteration; None if they are unknown."""
    known = usage and usage["calls"] > usage["calls_without_usage"]
    return sum(usage[key] for key in ("input", "output", "cached", "written")) if usage and known else None


def _iteration(one: Json, show: Show, is_open: bool) -> Html:
    number = f"{one['number']}" if one["number"] else "Before 1"
    usage, tokens = one["usage"], token_count(one["usage"])
    head = (
        tag("span", number, class_="number"),
        badge(one["state"]) if one["state"] else tag("span", class_="state calm"),
        tag("span", _agents(one["calls"]), class_="agent"),
        tag("span", *map(_gate_mark, _last_of_each(one["gates"])), class_="marks"),
        tag("span", format_seconds(one["seconds"]) if usage else "", class_="figure"),
        tag("span", money(usage["cost"], usage["calls_of_unknown_cost"]) if usage else "", class_="figure"),
        tag("span", f"{tokens:,} tok" if tokens else "", class_="figure wide"),
    )
    inner = tag("div", *_details(one, show), class_="inner")
    folded = tag("details", tag("summary", *head), inner, open=is_open)
    return tag("li", folded, data_piece=f"iterations/{one['number']}")


def _agents(calls: Iterable[Json]) -> str:
    names = dict.fromkeys(" ".join(filter(None, (call["agent"] or "command", call["model"]))) for call in calls)
    return ", ".join(names)


def _last_of_each(gates: Iterable[Json]) -> list[Json]:
    return [*{gate["gate"]: gate for gate in gates}.values()]


def _gate_mark(gate: Json) -> Html:
    good = gate["verdict"] == PASS
    label = f"{gate['gate']}: {gate['verdict']}"
    return tag("span", gate["gate"], class_=f"mark {'good' if good else 'bad'}", title=label)


def _details(one: Json, show: Show) -> Iterator[Html]:
    if one["lines"]:
        yield tag("ul", *map(_line, one["lines"]), class_="lines")
    for gate in one["gates"]:
        good = gate["verdict"] == PASS
        words = f"Gate {gate['gate']}: {gate['verdict']}, {format_tenths(float(gate['elapsed'] or 0))}"
        ref = {"what": "gate", "session": gate["session"], "file": gate["output"]}
        yield tag("div", show(words, ref), class_="good" if good else "bad")
    for call in one["calls"]:
        what = "What the agent said" if len(one["calls"]) == 1 else f"What the agent said ({call['call']})"
        keys = {key: call[key] for key in ("session", "output")}
        yield show(what, {"what": "words", "file": call["transcript"], **keys})
    if one["calls"]:
        session = one["calls"][-1]["session"]
        yield show("Changes (diff)", {"what": "diff", "session": session, "number": one["number"]})


def _line(line: Json) -> Html:
    return tag("li", tag("time", clock.local(line["ts"])[11:]), " ", line["text"], class_=line["level"])


def _decision(number: int, each: Json) -> Html:
    who = f"Iteration {each['iteration']}" if each["iteration"] else "Run"
    head = tag("p", tag("b", f"{who} {each['decision']}"), " ", tag("time", clock.local(each["ts"])))
    place = f"{each['evidence'].rpartition('/')[2]}:{each['line']}"
    proof = tag("details", tag("summary", place, title=each["evidence"]), tag("code", each["quote"]), class_="proof")
    return tag("li", head, tag("p", each["rule"]), proof if each["quote"] else "", data_piece=f"why/{number}")


def _more(count: int) -> Html:
    over = count - MOST_LISTED
    words = f"{counted(over, 'older iteration')} not shown; see: rooda logs" if over > 0 else ""
    return tag("span", words, data_piece="more")
