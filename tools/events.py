"""Generates config/events.schema.json and docs/events.md from the event records. Run: python tools/events.py

With --print it prints the page instead, with --schema the schema; tests compare both with the files.
"""

import os
import sys
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "events.md")
Json = dict[str, Any]

HEAD = """\
<!-- Generated from the event records in the code by: python tools/events.py -->

# Events

Each event of a run is one JSON object on one line of `.rooda/runs/<run-id>/events.jsonl`. `rooda build --json` prints
the same lines as rooda writes them; so does `--json` of `rooda reflex new`, `rooda flow run`, `rooda goal run` and of
the commands that resume these loops. `rooda events` prints the lines later, `rooda events -f` follows a running loop,
and `rooda events --since 2h` covers all runs of the last two hours. rooda makes the lines on the screen from events;
most events print no line.

`rooda events --schema` prints the format as a JSON schema (draft 2020-12). This page is generated from that schema.

Readers should ignore unknown events and fields: new ones may be added at any time. `v` changes only if an existing
field changes its meaning. The last line of a killed run may be incomplete; the next writer begins a new line. If a
run's log has no `run.ended`, the run is still running or was cut off. After `run.ended` only a `problem` of a failed
hook may follow.

Seconds are numbers, sizes are bytes, and paths are absolute. rooda replaces the values of secret environment variables
with `***`; see [secrets](background.md#secrets).

## Every event

{always}
All events except `run.started`, `run.resumed` and `run.ended` also have:

{turn}
`run.ended` of every kind of loop also has:

{end}
`phase` names the part of the iteration (`assemble`, `budget`, `execute`, `gates`, `persist`), `elapsed` is its duration
in seconds, and `outcome` is `success`, `failure` or `interrupted`. A field whose meaning begins with "only" may be
missing; all others are present.

## Order

```
run.started | run.resumed
state.saved
  iteration.started
  prompt.assembled
  budget.exceeded                 if the prompt has more tokens than token_budget
  agent.started
  agent.ended
  output.truncated                if a raw command (ai_cmd) printed more than max_output_buffer
  transcript.replaced             if the transcript's file was deleted or replaced while the call ran
  gate.started, gate.ended        for each gate, if the agent succeeded
  gates.ended
  state.saved
  iteration.ended
  …
state.saved
run.ended
```

`state.unsaved` takes the place of `state.saved` if the file can't be written. `problem` may come at any time.
"""

OWN = {
    "goal": """\
# Events of a goal

`rooda goal run` and `rooda goal continue` emit the events above and those below. `loop` is `goal`, and `name` takes the
place of `procedure`. Events that are described again here have other fields than the events of a procedure.

```
goal.scored                     once more after each round of the intent dialogue
goal.planned
goal.prechecked                 if the work is hard to undo (type 1), or with --high-stakes
criterion.verified              the baseline
goal.disclosed
state.saved
run.started | run.resumed
  question.asked                at a gate of the goal: G1, G2, G3, …
  question.answered
  iteration.started
  prompt.assembled, agent.started, agent.ended
  criterion.verified            for each command
  state.saved
  iteration.ended
  …
state.saved
run.ended
```
""",
    "reflex": """\
# Events of a reflex loop

`rooda reflex new` and `rooda reflex resume` emit the events above and those below. `loop` is `reflex`, and `name`, the
alias, takes the place of `procedure`. Events that are described again here have other fields than the events of a
procedure. The loop's own history is its `history.jsonl`; see [the reflex loop](reflex.md).

```
run.started | run.resumed
  reflex.phase                    PLAN
  prompt.assembled, agent.started, agent.ended
  reflex.breach                   if the answer violated its contract; the phase is repeated once
  reflex.phase                    PRODUCE ‖ PREPARE, and so on
  …
  question.asked, question.answered   if rooda asks the user whether commands may be run
  reflex.checks                   if there are commands
  reflex.block
  reflex.boundary
  …
run.ended
```
""",
    "flow": """\
# Events of a flow

`rooda flow run` and `rooda flow resume` emit the events above and those below. `loop` is `flow`, and `name`, the run's
id, takes the place of `procedure`; `run` is the id of the session's own folder. Events that are described again here
have other fields than those of a procedure. The flow's own history is its commits; see [the flow loop](flow.md).

```
run.started | run.resumed
  node.entered                    a node begins; a child node once for each entry
  prompt.assembled, agent.started, agent.ended
  node.answered
  node.boundary                   a commit has been made
  …
  node.ended
run.ended
```
""",
}


def page(schema: Json) -> str:
    defs = schema["$defs"]
    tables = {"always": _table(schema), "turn": _table(defs["turn"]), "end": _table(defs["end"])}
    parts = [HEAD.format(**tables)]
    parts += [_section(f"`{_event(key)}`", each) for key, each in defs.items() if key.startswith(("ooda:", "any:"))]
    for kind in [*OWN, *(sorted({key.partition(":")[0] for key in defs if ":" in key} - {"ooda", "any", *OWN}))]:
        text = OWN.get(kind, f"# Events of a {kind} loop\n")
        own = {key: each for key, each in defs.items() if key.startswith(f"{kind}:")}
        parts += [text, *(_section(f"{kind.capitalize()}: `{_event(key)}`", each) for key, each in own.items())]
    return "\n".join(parts)


def _event(key: str) -> str:
    return key.partition(":")[2]


def _section(title: str, event: Json) -> str:
    about = f"{event['description']}\n" if "description" in event else ""
    return "\n".join(part for part in (f"## {title}\n", about, _table(event)) if part)


def _table(event: Json) -> str:
    rows = [("field", "value", "meaning"), ("---",) * 3] if event["properties"] else []
    rows += [(f"`{name}`", _value(field), field["description"]) for name, field in event["properties"].items()]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _value(field: Json) -> str:
    """The values of a field."""
    if "const" in field or "enum" in field:
        return ", ".join(_word(word) for word in field.get("enum", [field.get("const")]))
    kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
    return " or ".join(_kind(kind, field) for kind in kinds)


def _word(word: Any) -> str:
    return f"`{word}`" if word != "" else "empty"


def _kind(kind: str, field: Json) -> str:
    if kind == "array":
        return f"list of {_value(field['items'])}"
    if kind == "object" and "additionalProperties" in field:
        return f"object of {_value(field['additionalProperties'])}"
    return {"string": "text", "boolean": "true, false", "integer": "integer", "null": "null"}.get(kind, kind)


if __name__ == "__main__":
    import event_schema_maker as maker

    pages = {"--print": (page(maker.schema()), PAGE), "--schema": (maker.text(), maker.PATH)}
    for option, (text, path) in pages.items():
        if sys.argv[1:] == [option]:
            sys.stdout.write(text)
        elif not sys.argv[1:]:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
