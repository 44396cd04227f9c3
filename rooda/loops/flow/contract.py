"""Parses the files that agents write and checks them against their contracts. No side effects."""

import re
from collections.abc import Sequence

from rooda.base.yaml import front_matter
from rooda.loops.flow.model import FAIL, PASS, PENDING, Action, Decision, Reading

MOST = 1_048_576  # most characters of a sensor's file that are parsed


class Broken(ValueError):
    """An agent's file breaks its contract; the message continues a sentence that starts with the file's name."""


def reading(text: str, name: str) -> Reading:
    """Parse the reading in a sensor's file: pass or fail."""
    found = any_reading(text, name)
    if found.status == PENDING:
        raise Broken("has the status 'pending', expected pass or fail")
    return found


def any_reading(text: str, name: str) -> Reading:
    """Parse the reading in a sensor's file: pass, fail or pending."""
    keys, _ = front_matter(text[:MOST])
    if keys is None:
        raise Broken("has no valid front matter")
    if keys.get("status") not in (PASS, FAIL, PENDING):
        raise Broken(f"has the status {keys.get('status')!r:.100}, expected pass or fail")
    if str(keys.get("sensor", name)) != name:
        raise Broken(f"names the sensor {keys['sensor']!r:.100}")
    return Reading(name, keys["status"])


def decision(text: str, needs_plan: bool) -> Decision:
    """Parse the decision in a controller's file; with `needs_plan`, require an action plan unless the target is met."""
    keys, body = front_matter(text)
    if keys is None:
        raise Broken("has no valid front matter")
    met = keys.get("target-met")
    if not isinstance(met, bool):
        raise Broken("does not say `target-met: true` or `target-met: false`")
    plan = section(body, "action plan")
    if needs_plan and not met and not plan:
        raise Broken("has no text under a heading `## Action Plan`")
    return Decision(met, plan)


def action(text: str) -> Action:
    """Parse the action in an actuator's file: the first sentence under `What Was Done`, else of the whole text."""
    _, body = front_matter(text)
    if not body.strip():
        raise Broken("is empty")
    report = section(body, "what was done") or body
    return Action(first_sentence("\n".join(row for row in report.splitlines() if not row.startswith("#"))))


def require_report(text: str) -> None:
    """Raise Broken unless the text is an actuator's report, with a `What Was Done` section."""
    if not section(text, "what was done"):
        raise Broken("is not a report")


def first_sentence(text: str) -> str:
    paragraph = text.strip().split("\n\n")[0]
    first = re.split(r"\n[^\S\n]*+(?:[-*+]|\d++[.)])\s", paragraph)[0]
    plain = " ".join(re.sub(r"^\s*(?:[-*+]|\d+[.)])\s+", "", first).split())
    found = re.match(r".+?[.!?](?=\s|$)", plain)
    return found[0] if found else plain


def section(text: str, title: str) -> str:
    """Return the text below the first level-2 heading that starts with `title`, up to the next level-1 or -2 heading.

    Headings inside code fences do not count.
    """
    inside, fence, found = False, "", []
    for row in rows_of(text):
        plain = row.strip()
        if fence:
            if plain.startswith(fence) and not plain.strip(fence[0]):
                fence = ""
        elif opened := re.match(r" {0,3}(`{3,}|~{3,})", row):
            fence = opened[1]
        elif heading := re.match(r"(#{1,2})(?:[ \t]+(.*))?$", row.rstrip("\r\n")):
            if inside:
                break
            inside = heading[1] == "##" and (heading[2] or "").strip().lower().startswith(title)
            continue
        if inside:
            found.append(row)
    return trimmed("".join(found))


def trimmed(text: str) -> str:
    """Return the text without leading and trailing blank lines, otherwise unchanged."""
    rows = rows_of(text)
    filled = [place for place, row in enumerate(rows) if row.strip()]
    return "".join(rows[filled[0] : filled[-1] + 1]).rstrip("\r\n") if filled else ""


def rows_of(text: str) -> list[str]:
    """Split the text into lines at line feeds only, keeping the line feeds."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def unfenced(text: str) -> str:
    """Return the text without a code fence that encloses all of it."""
    first, newline, rest = text.strip().partition("\n")
    mark = re.match(r"`{3,}+|~{3,}+", first)
    count = min(len(mark[0]), len(rest) - len(rest.rstrip(mark[0][0]))) if mark and newline else 0
    return rest[:-count].removesuffix("\n") + "\n" if count >= 3 else text


FRONT = re.compile(r"^---[ \t]*\r?\n(?=[\w-]+[ \t]*:)", re.MULTILINE)
REPORT = re.compile(r"^#{1,6}[ \t]+\S", re.MULTILINE)  # an actuator's own heading begins its report


def unwrapped(text: str, begin: re.Pattern[str]) -> str:
    """Return an agent's text without a code fence around it and without chatter before it.

    `begin` matches the text's proper beginning; a text that starts with a match is returned unchanged.
    """
    plain = unfenced(text)
    found = begin.search(plain)
    before = plain[: found.start()] if found else ""
    if not found or not before.strip("\ufeff \t\r\n"):
        return plain
    rest, opening = plain[found.start() :], before.rstrip().rpartition("\n")[2].strip()
    mark = re.match(r"`{3,}|~{3,}", opening)
    closing = rest.rfind(f"\n{mark[0]}") if mark else -1
    return rest[: closing + 1] if closing >= 0 else rest


def all_pass(readings: Sequence[Reading]) -> bool:
    """True if every sensor passes; False without sensors."""
    return bool(readings) and all(reading.status == PASS for reading in readings)
