"""The events of a goal as the lines that people read. Pure: facts in, text out."""

import json
from collections.abc import Callable

from rooda.base.json import Json
from rooda.loops.goal.goal_box import box
from rooda.run.spending import cause_of
from rooda.views.lines import Line, warning

_ASCII = str.maketrans(
    {"✓": "+", "✗": "x", "⏸": "||", "╭": "+", "╮": "+", "╰": "+", "╯": "+", "│": "|", "─": "-", "├": "+", "┤": "+"}
    | {"↳": ">", "·": "-", "→": "->", "…": "...", "🟢": "OK", "🟡": "??", "🔴": "!!"}
)


def plain(line: Line) -> Line:
    """For a terminal that knows ASCII only. Names of criteria stay what they are in the file."""
    text = line.ascii or line.text.translate(_ASCII).encode("ascii", "replace").decode()
    return line._replace(said=text, label="")


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
        *(warning(note, aside=True) for note in record["notes"]),
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
    if record["blind"]:
        why = "The cost of calls is not known, so the budget can't be enforced"
        notes.append(f"{why}: the iteration limit is the only bound.")
    lost = record["type"] != "2A" and not record["git"]
    bare = warning("No git repository here: steps are not checkpointed.", aside=True)
    return [*_info(start, *notes), *([bare] if lost else [])]


def _resumed(record: Json) -> list[Line]:
    return _info(
        "[LOOP RESUME] Active loop detected",
        f"Spec: {' '.join(record['spec'].split())[:100]}",
        f"Progress: {record['done']}/{record['total']} steps | Iteration: {record['iterations']}",
        f"Unmet criteria: {', '.join(record['unmet']) or 'none'}",
        f"Next: {record['next']}",
        *record["notes"],
    )


def _iteration_started(record: Json) -> list[Line]:
    number = f"{record['iteration'] + 1}/{record['max_iterations']}"
    return _info(f"[LOOP] Iteration {number} | Cost: {record['cost']}/{record['budget']} | Step: {record['step']}")


def _iteration_ended(record: Json) -> list[Line]:
    word = f"✓ {record['step']} complete" if record["accepted"] else f"✗ {record['step']} not complete"
    shown, in_ascii = (f"CRITERIA: {json.dumps(record['criteria'], ensure_ascii=each)}" for each in (False, True))
    return [
        *_info(
            f"[LOOP] {word} | Progress: {record['done']}/{record['total']} | Next: {record['next_step']}",
            "---LOOP_STATUS---",
            f"EXIT_SIGNAL: {str(record['exit_signal']).lower()}",
        ),
        Line("info", shown, ascii=in_ascii),
        *_info(f"STUCK_COUNT: {record['stuck']}", f"NEXT: {record['next']}", "---END_STATUS---"),
    ]


def _asked(record: Json) -> list[Line]:
    """On a terminal the question itself stands where the answer is typed."""
    rows = [*record["lines"]]
    if not record["attended"] or record["answer"]:
        rows.append(f"{record['text']} {record['hint']}".rstrip())
    return _rows("result", *rows)


def _ended(record: Json) -> list[Line]:
    if "verdict" not in record:  # before there was a plan: what ended it is said by itself
        return []
    if record["status"] == "completed":
        rows = ["<loop-complete>", "All success criteria satisfied:"]
        rows += [*(f"- {name}: ✓" for name in record["criteria"]), "</loop-complete>"]
    elif record["status"] == "failed":
        rows = [f"ERROR: {record['note']}"]
    else:
        rows = [
            f"[LOOP] ⏸ Paused: {record['note']}",
            f"Progress: {record['done']} steps complete, {record['remaining']} remaining",
            "rooda goal cancel ends it now" if _is_cancelled(record) else f"Resume: {resume(record)}",
        ]
    return _rows("result", *rows, *box(record))


def _is_cancelled(record: Json) -> bool:
    """True if another terminal cancels the goal and waits for this end."""
    cause = cause_of(record)
    return cause is not None and cause.kind == "cancel"


def resume(record: Json) -> str:
    """What to type to go on, by what it waits for."""
    words = {"budget": f" --budget={record['allowance'].lstrip('$')}", "shape": " --reload-shape"}
    words |= {"shared limit": ", with a higher limit or when it is over"}
    words |= dict.fromkeys(("G1", "G2", "G3", "tests", "untold"), " --yes")
    if record["reason"] == "observation":
        return 'rooda goal continue, after: rooda goal verify NAME --observed "what was seen"'
    return f"rooda goal continue{words.get(record['reason'], '')}"


def _verified(record: Json) -> list[Line]:
    return [Line("debug", f"{record['criterion']}: {record['verdict']} ({record['evidence']})")]


def _info(*rows: str) -> list[Line]:
    return _rows("info", *rows)


def _rows(level: str, *rows: str) -> list[Line]:
    """One line each: an agent chooses names of files, and none of them may look like a line of ours."""
    return [Line(level, row.replace("\n", "\\n")) for row in rows]


MAKERS: dict[str, Callable[[Json], list[Line]]] = {
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
