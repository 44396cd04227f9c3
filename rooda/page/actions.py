"""Defines the page's actions: which are possible for a loop or task, their buttons, and their `rooda` commands."""

import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rooda.errors import UsageProblem
from rooda.loops import registry
from rooda.page.board import Entry
from rooda.page.html import Html, tag
from rooda.page.run_view import short
from rooda.run.ended import COMPLETED, FAILED_STATE, PARKED, WAITING
from rooda.tasks.store import TASKS

LONGEST = 20_000  # longest text, in characters, that the user can type on the page


class Action(NamedTuple):
    """An action: its button, its effect, and the input that the page requests before it.

    `done` is the text that the page shows afterwards; if it is "", the page shows the output of the command.
    """

    label: str
    title: str
    ask: str = ""  # text | limits | sure; "" acts at once
    hint: str = ""
    done: str = ""
    go: str = ""  # label of the dialog's button, if it differs from `label`


ANSWERED = "Answered; it continues."
ACTIONS = {
    "answer": Action("Answer", "Answer {}", "text", "The next prompt contains your answer.", ANSWERED),
    "land": Action("Land", "Land all completed tasks", "sure", "Brings work to its target branch once the gates pass."),
    "retry": Action("Retry", "Retry {}", done="It runs again."),
    "resume": Action("Resume", "Resume {}", done="It continues."),
    "continue": Action("Continue", "Continue {}"),
    "pause": Action("Pause", "Pause {}"),
    "say": Action("Say", "Say something to {}", "text", "The next prompt contains the note, once."),
    "set": Action(
        "Limits",
        "Set limits of {}",
        "limits",
        "A paused loop continues at once. Empty fields change nothing.",
        go="Set",
    ),
    "stop": Action("Stop", "Stop {}", "sure", "Ends the run as Ctrl+C does; you can resume it."),
}
FLAGS = {"iterations": "--max-iterations", "cost": "--max-cost", "tokens": "--max-tokens", "duration": "--max-duration"}
OF_TASKS = ("iterations", "cost", "duration")


def possible(entry: Entry) -> list[str]:
    """Return the actions that are possible now for an open loop or task, the most useful first."""
    row, running = entry.row, entry.row["running"]
    if row["state"] in ("damaged", "unreadable", "foreign") or entry.is_fleets:
        return []
    if entry.is_task:
        return _of_task(entry)
    if running:
        return ["continue" if row["suspended"] else "pause", *_notes(row["loop"]), "set", "stop"]
    if entry.question:
        return ["answer"]
    return ["resume", "set"] if row["next"] else []


def _notes(kind: str) -> list[str]:
    return ["say"] if kind in registry.KINDS and registry.KINDS[kind].hears_notes else []


def _kind(entry: Entry) -> str:
    """Return the kind of a task's loop."""
    details = entry.row["details"]
    return registry.OODA if details["procedure"] else str(details["kind"])


def _of_task(entry: Entry) -> list[str]:
    state, row = entry.row["state"], entry.row
    if row["running"]:
        return ["continue" if row["suspended"] else "pause", *_notes(_kind(entry)), "set", "stop"]
    if entry.question:
        return ["answer"]
    found = {PARKED: ["retry", "set"], FAILED_STATE: ["retry", "set"], COMPLETED: ["land"], WAITING: ["set"]}
    return found.get(state, [])


def bar(entry: Entry, but: str = "") -> Html:
    """Return the buttons of a loop or task, except the button of the action `but`."""
    buttons = [_button(entry, name, at) for at, name in enumerate(possible(entry)) if name != but]
    return tag("div", *buttons, class_="actions") if buttons else Html()


def _button(entry: Entry, name: str, at: int) -> Html:
    action = ACTIONS[name]
    facts: dict[str, object] = {"data_do": name, "data_id": entry.id, "data_ask": action.ask or None}
    facts |= {"data_hint": action.hint or None, "data_task": entry.is_task, "data_go": action.go or None}
    facts |= {"data_question": entry.question or None} if name == "answer" else {}
    who = f"task {entry.row['name']}" if entry.is_task else str(entry.row["name"])
    label = f"{action.title.replace('{}', who)} in {short(entry.place)}"
    kind = "primary" if at == 0 and name in ("answer", "land", "retry", "resume", "continue") else None
    return tag("button", action.label, type="button", class_=kind, aria_label=label, **facts)


def command(entry: Entry, name: str, typed: Mapping[str, str], rooda: Sequence[str], again: Sequence[str]) -> list[str]:
    """Return the command line that carries out an action. Raises UsageProblem if the action is not possible now.

    `rooda` begins each command line. `again` are the options for `rooda tasks run`, if that must be started.
    """
    if name not in possible(entry):
        raise UsageProblem(f"The action `{name}` is not possible now.", "The page shows the actions that are possible.")
    steps = (_task_steps if entry.is_task else _loop_steps)(entry, name, typed)
    again_at_once = name in ("answer", "retry") or (name == "set" and entry.row["state"] in (PARKED, FAILED_STATE))
    if entry.is_task and again_at_once and not entry.runs:
        steps.append([*TASKS, "run", *again, "--detach"])
    place = ["-C", entry.here.workspace, *(["--config", entry.here.config] if entry.here.config else [])]
    lines = [[*rooda, *place, *step] for step in steps]
    return lines[0] if len(lines) == 1 else ["/bin/sh", "-c", " && ".join(map(shlex.join, lines))]


def _loop_steps(entry: Entry, name: str, typed: Mapping[str, str]) -> list[list[str]]:
    loop = str(entry.row["name"])
    if name == "answer":
        return [["answer", "--", loop, _text(typed)], ["resume", loop, "--detach"]]
    if name == "say":
        return [["say", "--", _text(typed), loop]]
    if name == "set":
        limits = _limits(typed, tuple(FLAGS))
        if not entry.row["running"]:
            return [["resume", loop, "--detach", *limits]]
        return [["set", loop, *limits], *([["continue", loop]] if entry.row["suspended"] else [])]
    return [["resume", loop, "--detach"]] if name == "resume" else [[name, loop]]


def _task_steps(entry: Entry, name: str, typed: Mapping[str, str]) -> list[list[str]]:
    number = str(entry.row["name"])
    if name == "answer":
        return [["answer", "--", number, _text(typed)]]
    if name == "say":
        words = ["-C", str(entry.row["workspace"]), "say", "--", _text(typed)]
        return [[*words, str(entry.row["details"]["procedure"] or _kind(entry))]]
    if name == "land":
        return [[*TASKS, "land", *(["--yes"] if typed.get("yes") == "yes" else [])]]
    if name == "set":
        edit = [*TASKS, "edit", number, *_limits(typed, OF_TASKS)]
        return [edit, [*TASKS, "retry", number]] if entry.row["state"] in (PARKED, FAILED_STATE) else [edit]
    return [[*TASKS, name, number]]


def _text(typed: Mapping[str, str]) -> str:
    text = typed.get("text", "").strip()
    if not text or len(text) > LONGEST:
        what = "The text is empty." if not text else f"The text is longer than {LONGEST:,} characters."
        raise UsageProblem(what)
    return text.replace("\0", "")


def _limits(typed: Mapping[str, str], known: Sequence[str]) -> list[str]:
    found = [f"{FLAGS[key]}={value}" for key in known if (value := typed.get(key, "").strip())]
    if not found:
        raise UsageProblem("Type at least one limit.")
    return found
