"""Renders the frame of each page: title, navigation, the dialog for actions, scripts and styles."""

from collections.abc import Sequence

from rooda.base.json import Json
from rooda.page.html import Html, document, join, tag
from rooda.page.run_view import title

OVERVIEW = "rooda"
STYLES = ("look.css", "page.css", "uPlot.min.css")


def _frame(name: str, up: str, *inner: object, seen: int, kind: str, bar: Sequence[object] = ()) -> Html:
    styles = (tag("link", rel="stylesheet", href=f"{up}static/{each}") for each in STYLES)
    script = tag("script", type="module", src=f"{up}static/page.js")
    icon = tag("link", rel="icon", href=f"{up}static/icon.svg", type="image/svg+xml")
    top = tag(
        "nav",
        tag("a", "rooda", href=up or "./", class_="home", aria_label="rooda: all loops"),
        tag("div", *bar, id="sums"),
        tag("span", "connecting", id="connection", class_="connection", role="status"),
    )
    facts: dict[str, object] = {"data_up": up, "data_seen": str(seen), "data_page": kind}
    return document(name, top, tag("main", *inner, class_=kind), _dialog(), head=join((*styles, icon, script)), **facts)


def overview(body: Html, sums: Sequence[Html], seen: int) -> str:
    return _frame(OVERVIEW, "", tag("h1", "Loops", class_="unseen"), body, seen=seen, kind="overview", bar=sums)


def run(body: Html, row: Json, seen: int) -> str:
    return _frame(f"{title(row)} – rooda", "../../../", body, seen=seen, kind="run")


def words() -> Html:
    """Return the element for the agent's words while it works."""
    head = tag("h2", "The agent says")
    return tag("section", head, tag("pre", tabindex="0", id="words", data_keep=True), id="live", hidden=True)


def _dialog() -> Html:
    """Return the dialog in which an action asks for a text or limits, or shows the output of a command."""
    field = tag("textarea", name="text", rows="4", aria_label="Text")
    limits = (
        _limit("iterations", "Iterations", "such as 8"),
        _limit("cost", "Cost in dollars", "such as 12"),
        _limit("tokens", "Tokens", "such as 2000000"),
        _limit("duration", "Time", "such as 2h30m"),
    )
    yes = tag(
        "label", tag("input", type="checkbox", name="yes", value="yes"), " Also land changes to settings, gates and CI"
    )
    buttons = (
        tag("button", "Cancel", type="button", id="cancel"),
        tag("button", "OK", type="submit", class_="primary", id="go"),
    )
    form = tag(
        "form",
        tag("h2", id="asks"),
        tag("p", id="about", class_="soft"),
        tag("div", field, data_part="text"),
        tag("div", *limits, data_part="limits", class_="limits"),
        tag("p", yes, data_part="land"),
        tag("pre", id="said", hidden=True, role="status", tabindex="0"),
        tag("div", *buttons, class_="buttons"),
        method="dialog",
    )
    return tag("dialog", form, id="dialog", aria_labelledby="asks")


def _limit(name: str, label: str, example: str) -> Html:
    return tag("label", label, tag("input", name=name, placeholder=example, autocomplete="off"), data_limit=name)


def missing() -> str:
    why = "Its logs were deleted, or the disk was full: rooda then writes to a temporary folder, which the run names."
    return document("Not found – rooda", tag("main", tag("h1", "There is no such run."), tag("p", why)))


def refused(why: str, again: bool) -> str:
    """Return the page of a refused request.

    `again`: the page reloads itself once. A browser that a local file redirected here does not send the new
    cookie with its first request, because that request came from the file; it sends the cookie after the reload.
    """
    refresh = tag("meta", http_equiv="refresh", content="0;url=./") if again else ""
    return document("rooda", tag("main", tag("p", why)), head=refresh)
