"""Formats a goal's events as lines for the screen and as reasons for `rooda why`."""

import json
import sys
from collections.abc import Iterator
from io import TextIOWrapper

from rooda.agents.outcome import in_words
from rooda.base.json import Json
from rooda.base.text import counted, escape_line, padded, truncate, width
from rooda.run.spending import cause_of
from rooda.views.lines import PEOPLE, PROGRAMS, Line, LineMakers, is_for, warning
from rooda.views.live import is_terminal
from rooda.views.screen import Screen, ScreenOptions
from rooda.views.summary import Words, summary
from rooda.views.why import Past, Reason, ReasonMakers, limits, stopped

NO_CAUSE = "No root cause is known yet: the next step must name it, in a line ROOT_CAUSE: cause"
_ASCII = str.maketrans(
    {"✓": "+", "✗": "x", "⏸": "||", "╭": "+", "╮": "+", "╰": "+", "╯": "+", "│": "|", "─": "-", "├": "+", "┤": "+"}
    | {"↳": ">", "·": "-", "→": "->", "…": "...", "🟢": "OK", "🟡": "??", "🔴": "!!"}
)


def plain(line: Line) -> Line:
    """Return the line in ASCII."""
    text = line.ascii or line.text.translate(_ASCII).encode("ascii", "replace").decode()
    return line._replace(message=text, label="")


def _scored(record: Json) -> list[Line]:
    rows = []
    for name, each in record["scores"].items():
        quote = " ".join(each["quote"].split())
        why = f' ("{quote}")' if quote else f" ({each['note']})" if each["note"] else ""
        rows.append(f"{name.capitalize()}: {each['score']}/2{why}")
    by = {"offline": ", offline rubric", "person": ", as given", "file": ", plan file"}.get(record["by"], "")
    word = "Intent required" if record["shape"] == "Intent" else f"{record['shape']}-shaped"
    return _info(*rows, f"Total: {record['total']}/10 → {word}{by}")


def _planned(record: Json) -> list[Line]:
    criteria = [f"  {each['name']}: {each['method']}" for each in record["criteria"]]
    rules = [f"  {text}" for text in record["must_not"]]
    evidence = [f"Evidence ({record['gate']}): {record['evidence']}"] if record["evidence"] else []
    return [
        *_info(f"Reversibility: type {record['reversibility']}", f"Criteria: {len(criteria)}", *criteria),
        *_info(*(["Must not:", *rules] if rules else [])),
        *_info(f"Steps: {len(record['steps'])}", *evidence),
        *(warning(note, to_stderr=True) for note in record["notes"]),
    ]


def _prechecked(record: Json) -> list[Line]:
    return _info("Adversarial pre-check:", *(f"  {text}" for text in record["amendments"]))


def _disclosed(record: Json) -> list[Line]:
    return _rows("result", record["text"])


def _started(record: Json) -> list[Line]:
    start = (
        f"[LOOP] Starting | Shape: {record['shape']} ({record['total']}/10) | Workflow: {record['workflow']}"
        f" | Steps: {record['steps']} | Budget: {record['budget']}"
    )
    notes = [f"already true before any work: {', '.join(record['already'])}"] if record["already"] else []
    notes.append(f"File edits are counted by: {record['edits']}")
    notes += [NO_CAUSE] if record.get("no_cause") else []
    if record["blind"]:
        why = "The cost of calls is not known, so the budget can't be enforced"
        notes.append(f"{why}: the iteration limit is the only bound.")
    lost = record["type"] != "2A" and not record["git"]
    bare = warning("No git repository here: steps are not checkpointed.", to_stderr=True)
    return [*_info(start, *notes), *([bare] if lost else [])]


def _resumed(record: Json) -> list[Line]:
    return _info(
        "[LOOP RESUME] Active loop detected",
        f"Spec: {truncate(' '.join(record['spec'].split()), 100)}",
        f"Progress: {record['done']}/{record['total']} steps | Iteration: {record['iterations']}",
        f"Unmet criteria: {', '.join(record['unmet']) or 'none'}",
        f"Next: {record['next']}",
        *record["notes"],
    )


def _iteration_started(record: Json) -> list[Line]:
    number = f"{record['iteration'] + 1}/{record['max_iterations']}"
    return _info(f"[LOOP] Iteration {number} | Cost: {record['cost']}/{record['budget']} | Step: {record['step']}")


def _iteration_ended(record: Json) -> list[Line]:
    open_ = [name for name, met in record["criteria"].items() if not met]
    word = f"✓ {record['step']} complete" if record["accepted"] else f"✗ {record['step']} not complete"
    shown, in_ascii = (f"CRITERIA: {json.dumps(record['criteria'], ensure_ascii=each)}" for each in (False, True))
    return [
        *_info(
            f"[LOOP] {word} | Progress: {record['done']}/{record['total']} | Next: {record['next_step']}",
            *([NO_CAUSE] if record.get("no_cause") else []),
        ),
        *_for(PROGRAMS, _info("---LOOP_STATUS---", f"EXIT_SIGNAL: {str(record['exit_signal']).lower()}")),
        Line("info", shown, ascii=in_ascii, audience=PROGRAMS),
        *_for(PROGRAMS, _info(f"STUCK_COUNT: {record['stuck']}", f"NEXT: {record['next']}", "---END_STATUS---")),
        *_for(PEOPLE, _info(f"Unmet criteria: {', '.join(open_) or 'none'}")),
    ]


def _for(audience: str, lines: list[Line]) -> list[Line]:
    return [line._replace(audience=audience) for line in lines]


def _asked(record: Json) -> list[Line]:
    """Return the lines above a question; add the question itself unless rooda asks it at the terminal."""
    rows = [*record["lines"]]
    if not record["attended"] or record["answer"]:
        rows.append(f"{record['text']} {record['hint']}".rstrip())
    return _rows("result", *rows)


def _ended(record: Json) -> list[Line]:
    if "verdict" not in record:  # no plan was made: rooda prints the error separately
        return []
    if record["status"] == "completed":
        done = _rows("result", "All success criteria satisfied:", *(f"- {name}: ✓" for name in record["criteria"]))
        first, last = (_for(PROGRAMS, _rows("result", tag)) for tag in ("<loop-complete>", "</loop-complete>"))
        return [*first, *done, *last, *_rows("result", *box(record)), *summary(record, WORDS)]
    if record["status"] == "failed":
        rows = [f"ERROR: {record['note']}"]
    else:
        word = "The agent asks" if record["reason"] == "question" else "Paused"
        rows = [
            f"[LOOP] ⏸ {word}: {record['note']}",
            f"Progress: {record['done']} steps complete, {record['remaining']} remaining",
            "rooda goal cancel ends it now" if _is_cancelled(record) else f"Resume: {resume(record)}",
        ]
    return [*_rows("result", *rows, *box(record)), *summary(record, WORDS)]


def _cause(record: Json) -> str:
    return "all criteria hold" if record["status"] == "completed" else ""


def _next(record: Json) -> str:
    if record["reason"] == "shared limit":
        return "rooda goal continue"
    return "" if record["status"] in ("completed", "failed") or _is_cancelled(record) else resume(record)


WORDS = Words(lambda record: "goal", _cause, _next)


def _is_cancelled(record: Json) -> bool:
    """True if the goal paused because another terminal requested its cancellation."""
    cause = cause_of(record)
    return cause is not None and cause.kind == "cancel"


def resume(record: Json) -> str:
    """Return the command that resumes the goal, depending on why it paused."""
    words = {"budget": f" --budget={record['allowance'].lstrip('$')}", "shape": " --reload-shape"}
    words |= {"shared limit": ", with a higher limit or after the limit resets"}
    if record["reason"] == "question":
        return 'rooda answer goal "…", then: rooda goal continue'
    words |= dict.fromkeys(("G1", "G2", "G3", "tests", "untold"), " --yes")
    if record["reason"] == "observation":
        return 'rooda goal continue, after: rooda goal verify NAME --observed "what was seen"'
    return f"rooda goal continue{words.get(record['reason'], '')}"


def _verified(record: Json) -> list[Line]:
    return [Line("debug", f"{record['criterion']}: {record['verdict']} ({record['evidence']})")]


def _info(*rows: str) -> list[Line]:
    return _rows("info", *rows)


def _rows(level: str, *rows: str) -> list[Line]:
    """Return one line per row, with newlines escaped, so that a name chosen by an agent can't fake a line of output."""
    return [Line(level, row.replace("\n", "\\n")) for row in rows]


LINES: LineMakers = {
    "goal.scored": _scored,
    "goal.planned": _planned,
    "goal.prechecked": _prechecked,
    "goal.disclosed": _disclosed,
    "run.started": _started,
    "run.resumed": _resumed,
    "run.ended": _ended,
    "iteration.started": _iteration_started,
    "iteration.ended": _iteration_ended,
    "question.asked": _asked,
    "criterion.verified": _verified,
}


# The verdict box: 38 columns, padded and wrapped by display width.
INSIDE = 36
MARKS = {"SHIP": "🟢", "MONITOR": "🟡", "RESEARCH": "🔴"}


def box(record: Json) -> list[str]:
    """Return the verdict box of an ended or paused goal as lines."""
    verdict = record["verdict"]
    title = f"─ {MARKS[verdict]} {verdict} "
    met = sum(record["criteria"].values()) - len(record.get("claimed", ()))  # missing in older logs
    rows = [
        f"Verified: {' + '.join(record['verified']) or 'nothing yet'}",
        f"Checklist: {met}/{len(record['criteria'])} criteria verified",
        f"Subjective: {_confidence(record['confidence'])} · Type {record['type']} · {_points(record['points'])}",
    ]
    risk = "; ".join(
        filter(None, (record["risk"], *(f"changed: {escape_line(path)}" for path in record["tests_changed"])))
    )
    return [
        f"╭{title}{'─' * (INSIDE - width(title))}╮",
        *(line for row in rows for line in framed(row)),
        f"├{'─' * INSIDE}┤",
        *framed(f"↳ Alt: {record['alt'] or 'n/a'}"),
        *framed(f"↳ Risk: {risk or 'n/a'}"),
        f"╰{'─' * INSIDE}╯",
    ]


def _confidence(text: str) -> str:
    word = text.strip().removesuffix("%").strip().lstrip("~")
    return f"~{word}%" if word.isdecimal() else text or "n/a"


def _points(points: int) -> str:
    return f"{points}pt" if points else "n/a"


def framed(text: str) -> list[str]:
    """Return the text wrapped inside the box frame."""
    return [f"│ {padded(line, INSIDE - 1)}│" for line in wrapped(text, INSIDE - 1)]


def wrapped(text: str, room: int) -> list[str]:
    lines, line = [], ""
    for word in text.split(" "):
        if line and width(f"{line} {word}") > room:
            lines.append(line)
            line = "  "
        joined = f"{line}{word}" if line in ("", "  ") else f"{line} {word}"
        while width(joined) > room:
            head = _fitting(joined, room)
            lines.append(head)
            joined = f"  {joined[len(head) :]}"
        line = joined
    return [*lines, line]


def _fitting(text: str, room: int) -> str:
    while width(text) > room:
        text = text[:-1]
    return text


class GoalScreen(Screen):
    """A screen for goals, optionally in ASCII only. A terminal shows machine-readable lines only with --verbose."""

    def __init__(self, look: ScreenOptions, ascii_only: bool = False) -> None:
        super().__init__(look, LINES)
        self._ascii = ascii_only
        self._for_people = is_terminal(sys.stdout) and look.level != "debug" and not look.json
        if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors != "replace":
            sys.stdout.reconfigure(errors="replace")  # in a C locale, print ? instead of failing

    def line(self, line: Line) -> None:
        if not is_for(line, PEOPLE if self._for_people else PROGRAMS):
            return
        super().line(plain(line) if self._ascii else line)

    def show(self, record: Json) -> None:
        """Show an event; clear the status line before a question, because the user types there."""
        super().show(record)
        if record["event"] == "question.asked":
            self.close()


# Reasons for `rooda why`.
_WORDS = {"exit": "the agent exited with {code}", "outcome": "{message}", "": "its call ended by {ended}"}


def _why_scored(record: Json, past: Past) -> Iterator[Reason]:
    """Explain, with the score of the specification, why the goal started or asked the user."""
    intent = record["shape"] == "Intent"
    rule = f"the specification scores {record['total']}/10: {record['shape']}"
    rule += "; below 5 rooda asks the user first" if intent else ""
    yield Reason(record["ts"], 0, "asked" if intent else "went on", rule, *past.transcript("plan"))


def _why_started(record: Json, past: Past) -> Iterator[Reason]:
    rule = (
        f"at most {counted(record['max_iterations'], 'iteration')}, {record['budget']}; type {record['type']}, "
        f"workflow {record['workflow']}; steps: {record['steps']}"
    )
    held = ", ".join(record["already"])
    rule += f"; true before any work: {held}" if held else ""
    yield Reason(record["ts"], 0, "began", rule + ("; no root cause is known yet" if record.get("no_cause") else ""))


def _why_resumed(record: Json, past: Past) -> Iterator[Reason]:
    unmet = ", ".join(record["unmet"]) or "none"
    done = f"{record['done']} of {record['total']} steps were done in {counted(record['iterations'], 'iteration')}"
    rule = f"{done}; unmet: {unmet}"
    yield Reason(record["ts"], 0, "began", "; ".join([rule, *record["notes"]]))


def _why_verified(record: Json, past: Past) -> Iterator[Reason]:
    """Explain the result of a check after an iteration; checks before the first iteration are omitted."""
    if "iteration.started" in past.this_iteration:
        met = record["verdict"] == "met"
        rule = f"criterion {record['criterion']}: {record['verdict']}"
        words = "" if met else "result: "
        yield Reason(record["ts"], record["display"], "verified" if met else "failed", rule, record["evidence"], words)


def _why_iteration(record: Json, past: Past) -> Iterator[Reason]:
    unmet = [name for name, met in record["criteria"].items() if not met]
    fault = in_words(past.latest_by_call.get("step", {}), _WORDS)
    word = "accepted: the agent exited with 0, and the step's criteria hold"
    rule = f"step {record['step']} {word if record['accepted'] else 'not accepted'}"
    rule += f": {fault}" if fault and not record["accepted"] else ""
    rule += "; no root cause is known yet" if record.get("no_cause") else ""
    if record["claimed"] and not record["exit_signal"]:
        rule += "; the agent claimed completion, which was not accepted"
    rule += f"; unmet: {', '.join(unmet)}" if unmet else "; all criteria hold"
    transcript, words = past.transcript("step")
    words = "EXIT_SIGNAL" if record["claimed"] else words
    decision = "went on" if record["accepted"] else "failed"
    yield Reason(record["ts"], record["display"], decision, rule, transcript, words)


def _why_asked(record: Json, past: Past) -> Iterator[Reason]:
    by = f"; answered by {record['answer']}" if record["answer"] else ""
    rule = f"gate {record['gate']}: {record['text'] or 'the user decides'}{by}"
    yield Reason(record["ts"], record["display"], "asked", rule)


def _why_answered(record: Json, past: Past) -> Iterator[Reason]:
    said = "no answer" if record["answer"] is None else f"the answer was {record['answer']!r}"
    yield Reason(record["ts"], record["display"], "asked", f"gate {record['gate']}: {said}")


def _why_ended(record: Json, past: Past) -> Iterator[Reason]:
    word = f"Paused: {record['note']}" if record["status"] == "paused" else record["status"]
    word += f": {record['note']}" if record["status"] in ("failed", "in_progress") else ""
    reason = record["reason"]
    rule = limits(record) if reason == "shared limit" else _RULES.get(reason, "")
    text = "; ".join(filter(None, (word, stopped(record), rule)))
    call = {"completed": "step", "error": "step", "unplanned": "plan"}.get(reason, "")
    evidence, words = past.transcript(call) if call else ("", "")
    words = "EXIT_SIGNAL" if reason == "completed" else words
    unmet = [name for name, met in record.get("criteria", {}).items() if not met]
    checked = past.this_iteration.get("criterion.verified", {})
    if reason in ("stuck", "error") and checked.get("criterion") in unmet:
        evidence, words = checked["evidence"], "result: "
    yield Reason(record["ts"], 0, "ended", f"{text} (exit {record['exit_code']})", evidence, words)


_RULES = {
    "unplanned": "a goal doesn't start without a plan",
    "files": "the goal's files can't be read or written; rooda left them unchanged",
    "completed": "every criterion was verified by rooda, and completion was signalled",
    "stuck": "no progress: the same criteria stayed unmet",
    "error": "no progress: the same error several times in a row",
    "edits": "no progress: one file written several times in an iteration",
    "budget": "the budget is spent; it is checked before the iteration limit",
    "limit": "the iteration limit is tested before each iteration",
    "mustNot": "a mustNot entry is violated",
    "shape": "SHAPE.md was changed during an iteration",
    "observation": "the user must look and confirm what was seen",
    "tests": "files that verify the work were changed; the user decides",
    "untold": "mustNot entries could not be checked; the user decides",
    "interrupted": "a signal ends the loop; the state is kept",
    "question": "the agent asks the user a question; after the answer, the goal can be resumed",
    "asked": "requested by the user; the running iteration was finished first",
    **dict.fromkeys(("G1", "G2", "G3"), "the user decides before rooda continues"),
}
REASONS: ReasonMakers = {
    "goal.scored": _why_scored,
    "goal.disclosed": lambda record, past: iter(()),
    "run.started": _why_started,
    "run.resumed": _why_resumed,
    "criterion.verified": _why_verified,
    "iteration.ended": _why_iteration,
    "question.asked": _why_asked,
    "question.answered": _why_answered,
    "run.ended": _why_ended,
}
