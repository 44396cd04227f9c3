"""Shows the commands and programs configured in a workspace's files, and asks the user whether to trust them."""

import os
import shlex
from collections.abc import Sequence

from rooda.base import files
from rooda.base.facts import Fact
from rooda.base.text import escape_line
from rooda.errors import Undecided
from rooda.run import questions
from rooda.settings import trust
from rooda.settings.layers import Settings
from rooda.settings.trust import Verdict
from rooda.settings.trust_doubts import Doubts
from rooda.settings.trust_record import Record
from rooda.settings.trust_search import Seen
from rooda.views.say import say, screen_size

VARIABLE = "ROODA_TRUST"
EVERYTHING = "all"
WIDTHS = (14, 18)  # columns of the label and of the place
LEFT = 6  # screen lines kept free for the title and the question
YES, NO, IGNORE = "yes", "no", "ignore"


def permitted(seen: Seen, found: Settings, resumed: bool, config: str | None) -> bool:
    """True if the user trusts these settings, False if they are to be ignored; raise Undecided otherwise."""
    record, doubts = Record(seen.top, seen.part), Doubts(seen)
    doubts.consolidate(record.known)
    verdict = trust.judge(seen, record)
    if verdict.asks:
        if seen.part:
            record.ask_later(seen)
        if _accepted_for_this_start(seen):
            return True
        answer = YES if trust.is_trusted_folder(seen.top, found) else _answer(seen, verdict, _hint(seen, found, config))
        if answer == IGNORE:
            return False
        doubts.forget()
        record.forget_pending()
    elif resumed and verdict.changed:
        say(f"Changed since the last start: {_in_a_line(seen, verdict.changed)}", to_stderr=True)
    problem = record.settle(seen, verdict.versions)
    if not (problem or seen.part or doubts.notes):
        trust.remember(found, config, seen)
    if problem:
        danger = "rooda will ask again" if verdict.asks else "rooda can't notice settings that an agent changes"
        say(f"WARNING: What you trust here can't be saved ({problem}); {danger}.", to_stderr=True)
    return True


def _accepted_for_this_start(seen: Seen) -> bool:
    given = os.environ.get(VARIABLE, "").replace(",", " ").split()
    return EVERYTHING in given or seen.hash in given


def _answer(seen: Seen, verdict: Verdict, hint: str) -> str:
    """Show what would run and return the user's answer; raise Undecided if it is "no" or there is no terminal."""
    title = _title(seen, verdict)
    if not questions.at_terminal():
        raise Undecided(f"{title[:-1]}; nothing was started.\n{question_lines(verdict, whole=True)}", hint)
    shown, whole = question_lines(verdict, _room()), question_lines(verdict, whole=True)
    say(f"{title}\n{shown}", to_stderr=True)
    question = "Trust them? [y]es, [n]o, [i]gnore them and go on with your own settings: "
    while (said := questions.typed_answer(question)) is not None:
        word = said.strip().lower()
        answer = next((each for each in (YES, NO, IGNORE) if word and each.startswith(word)), "")
        if answer == NO:
            break
        if answer == YES and shown != whole:
            say(f"Here they are in full:\n{whole}", to_stderr=True)
            shown = whole
        elif answer:
            return answer
    raise Undecided("Not trusted; nothing was started.", hint)


def _title(seen: Seen, verdict: Verdict) -> str:
    place = escape_line(seen.top)
    if verdict.is_change:
        return f"{place}: its settings that can run programs have changed, by git or while a loop ran:"
    return f"{place} has settings of its own that can run programs, and you have not trusted them:"


def _hint(seen: Seen, found: Settings, config: str | None) -> str:
    place = shlex.quote(found.workspace) + (f" --config {shlex.quote(config)}" if config else "")
    return (
        f"Trust them: rooda -C {place} trust\n"
        f"in CI, for exactly these: {VARIABLE}={seen.hash}\n"
        "or run without them: add --untrusted"
    )


def question_lines(verdict: Verdict, most: int = 1_000_000, whole: bool = False) -> str:
    """Return at most `most` lines, one per setting in question.

    If the settings changed, each line begins with + or -.
    """
    marked = [("+ " if verdict.is_change else "  ", fact) for fact in verdict.added]
    marked += [("- ", fact) for fact in verdict.removed]
    lines = [f"{mark}{fact_line(fact, whole)}" for mark, fact in marked]
    if len(lines) > most:
        lines = [*lines[: most - 1], f"  and {len(lines) - most + 1} more. See: rooda trust --show"]
    return "\n".join(lines)


def fact_line(fact: Fact, whole: bool = False) -> str:
    """Return the row for a setting: its purpose, its place in the file, and the command that would run."""
    place = f"{fact.file}:{fact.line}" if fact.line else fact.file
    label, where = (f"{text:<{width}}" for text, width in zip((fact.label, place), WIDTHS, strict=True))
    warning = f"   <- {fact.warning}" if fact.warning else ""
    value = escape_line(files.to_bytes(fact.value).decode("utf-8", "replace"))
    room = screen_size()[0] - len(label) - len(where) - len(warning) - 5
    shown = value if whole else shortened(value, max(20, room))
    return escape_line(f"{label} {where} {shown}{warning}".rstrip())


def shortened(text: str, room: int) -> str:
    """Shorten a long text in the middle, because a command could hide behind a long beginning."""
    if len(text) <= room:
        return text
    head = (room - 3) * 2 // 3
    return f"{text[:head]} … {text[len(text) - (room - 3 - head) :]}"


def _room() -> int:
    return max(5, screen_size()[1] - LEFT)


def _in_a_line(seen: Seen, changed: Sequence[Fact]) -> str:
    now = seen.identities
    said = [f"{'+' if fact.identity in now else '-'} {fact.label} {escape_line(fact.value)}" for fact in changed]
    return ", ".join(said[:5]) + (f" and {len(said) - 5} more" if len(said) > 5 else "")
