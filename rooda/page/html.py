"""Builds HTML, in which every text is escaped unless it is HTML that was built here. Pure."""

from collections.abc import Iterable, Mapping
from html import escape

from rooda.base.text import escape_text

VOID = ("br", "hr", "img", "input", "link", "meta")


class Html(str):
    """A string that is HTML. Any other string is text, and is escaped."""

    __slots__ = ()


def text(value: object) -> Html:
    """Return the HTML of a text. Control characters and those that change the direction of text are made visible."""
    return value if isinstance(value, Html) else Html(escape(escape_text(str(value)), quote=True))


def join(parts: Iterable[object], between: str = "") -> Html:
    return Html(between.join(text(part) for part in parts if part is not None and part != ""))


def tag(name: str, /, *inner: object, **attributes: object) -> Html:
    """Return an element. Inner parts that are None or "" are left out.

    The argument `class_` becomes the attribute class, `data_x` data-x. True makes an attribute without a value; None
    and False make none.
    """
    opening = f"<{name}{_attributes(attributes)}>"
    return Html(opening) if name in VOID else Html(f"{opening}{join(inner)}</{name}>")


def _attributes(given: Mapping[str, object]) -> str:
    found = []
    for key, value in given.items():
        name = key.rstrip("_").replace("_", "-")
        if value is True:
            found.append(f" {name}")
        elif value is not None and value is not False:
            found.append(f' {name}="{text(value)}"')
    return "".join(found)


def document(title: str, *body: object, head: object = "", **attributes: object) -> Html:
    """Return a whole document. `attributes` are those of the body element."""
    viewport = tag("meta", name="viewport", content="width=device-width, initial-scale=1")
    about = tag("head", tag("meta", charset="utf-8"), viewport, tag("title", title), head)
    return join((Html("<!doctype html>\n"), tag("html", about, tag("body", *body, **attributes), lang="en")))
