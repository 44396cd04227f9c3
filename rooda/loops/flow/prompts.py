"""Builds the prompts of a flow from its agent files, and the text of a node's result file. No side effects."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rooda.base.text import counted
from rooda.base.yaml import lenient
from rooda.loops.flow.contract import all_pass, section
from rooda.loops.flow.model import (
    COMPLETE,
    ERROR,
    FAIL,
    LIMIT,
    NOT_ENTERED,
    PENDING,
    Node,
    NodeState,
    Reading,
    node_folder,
)

TARGET = "status is `pass` (the command exits with 0)"


class SensorPrompt(NamedTuple):
    """One sensor in a prompt: its name, output file and instructions."""

    name: str
    output: str  # path
    text: str  # its agent file


def filled(text: str, values: Mapping[str, str]) -> str:
    """Replace placeholders with their values in one pass, so that placeholders inside values are not replaced."""
    names = "|".join(re.escape(name) for name in sorted(values, key=len, reverse=True))
    return re.sub(names, lambda found: values[found[0]], text) if names else text


def sensors(preface: str, described: Sequence[SensorPrompt]) -> str:
    """Return the prompt for all sensors of a node."""
    parts = [preface.rstrip("\n")]
    for number, each in enumerate(described, 1):
        instructions = filled(each.text, {"{output-path}": each.output}).strip("\n")
        parts.append(
            f"## Sensor {number} of {len(described)}: {each.name}\n\n- **Output file:** {each.output}\n\n"
            f"Instructions of this sensor:\n\n{instructions}"
        )
    return "\n\n".join(parts) + "\n"


def controller(preface: str, text: str, node: Node, run: str, described: Sequence[SensorPrompt]) -> str:
    folder = node_folder(run, node.path)
    values = {"{artifacts-path}": folder, "{node-path}": node.path, "{sensors-section}": sensors_section(described)}
    if node.child is not None:
        inside = f"{folder}/{node.child.id}"
        values |= {"{artifacts-path}/../{child-node-id}": inside, "{child-node-id}": node.child.id}
    else:
        text = "".join(row for row in text.splitlines(keepends=True) if "{child-node-id}" not in row)
    return f"{preface.rstrip()}\n\n{filled(text, values)}"


def in_full(setpoint: str) -> str:
    """Return a prompt section with the unredacted setpoint; the file with the setpoint shows secrets as `***`."""
    about = "Its file has `***` in the place of keys. Write no key into a file."
    return f"\n\n# The setpoint in full\n\n{about}\n\n{setpoint}\n"


def failing(outputs: Mapping[str, str]) -> str:
    """Return a prompt section with the end of what each failing sensor printed; "" if none printed anything."""
    parts = []
    for name, text in outputs.items():
        rows = (section(text, "output") or text).splitlines()
        if said := "\n".join(rows[-SHOWN:])[-LONGEST:].strip():
            parts.append(f"### {name}\n\n{_quote(said)}")
    return "\n\n".join(["## Output of the failing sensors", *parts]) + "\n\n" if parts else ""


def actuator(preface: str, text: str, reminder: str, folder: str, failing: str = "") -> str:
    paths = {"{input-path}": f"{folder}/controller-output.md", "{output-path}": f"{folder}/actuator-output.md"}
    instructions = filled(text, paths)
    return f"{preface.rstrip()}\n\n{instructions.rstrip()}\n\n{failing}{filled(reminder, paths)}"


def after_breach(prompt: str, again: str, problem: str) -> str:
    """Return the prompt for a second request, which quotes what was wrong with the first answer."""
    return f"{prompt.rstrip()}\n\n{filled(again, {'{problem}': problem})}"


def sensors_section(described: Sequence[SensorPrompt]) -> str:
    """Return the name, output file and target of each sensor as Markdown."""
    if not described:
        return "This node has no sensors."
    rows = []
    for number, each in enumerate(described, 1):
        target = " ".join(str(lenient(each.text).get("target") or TARGET).split())
        rows.append(f"### {number}. {each.name}\n- **Output file:** {each.output}\n- **Target:** {target}")
    return "\n\n".join(rows)


# The text of a node's `result-output.md`.
LAST_LINES = 5
SHOWN = 60  # most lines of a failing sensor's output in the actuator's prompt
LONGEST = 4_000  # most characters quoted from a controller's section or a sensor's output


class Ended(NamedTuple):
    """Facts about a node that has ended, for its result file."""

    id: str
    max_iterations: int
    executed: int
    state: NodeState
    first: Sequence[Reading]  # readings at the node's entry
    last_action: str
    controller: str  # text of the controller's last output; empty if there is none
    outputs: Mapping[str, str]  # sensor name to text of its output file


def body(ended: Ended) -> str:
    return (
        f"\n# Result: {ended.id}\n\n"
        f"## Summary\n\n{_summary(ended)}\n\n"
        f"## Metrics Delta\n\n{_metrics(ended)}\n\n"
        f"## Key Observations for Parent Controller\n\n{_observations(ended)}\n"
    )


def _summary(ended: Ended) -> str:
    iterations = counted(ended.executed, "iteration")
    if ended.state.status == COMPLETE:
        parts = [f"The target was met after {iterations}."]
    elif ended.state.status == LIMIT:
        limit = counted(ended.max_iterations, "iteration")
        parts = [f"Stopped at the limit of {limit}, after {iterations}; the target was not met."]
        if all_pass(ended.state.readings):
            parts.append("All sensors pass at the limit, but no controller judged that any more.")
    else:
        parts = [f"Ended with an error after {iterations}: {ended.state.error}."]
    gap = _cut(section(ended.controller, "gap analysis"))
    return "\n\n".join(parts + ([f"The controller's last gap analysis:\n\n{_quote(gap)}"] if gap else []))


def _metrics(ended: Ended) -> str:
    if not ended.state.readings:
        return "This node has no sensors." if not ended.first else "Nothing was measured."
    first = {reading.sensor: reading.status for reading in ended.first}
    rows = [f"| {each.sensor} | {first.get(each.sensor, 'pending')} | {each.status} |" for each in ended.state.readings]
    return "\n".join(["| sensor | initial | final |", "|---|---|---|", *rows])


def _observations(ended: Ended) -> str:
    done = f"- Done: {ended.last_action or _nothing(ended)}"
    failing = [each.sensor for each in ended.state.readings if each.status == FAIL]
    rows = [done, f"- Remains: {_remains(ended, failing)}"]
    for name in failing:
        said = [row for row in section(ended.outputs.get(name, ""), "output").splitlines() if row.strip("`~ ")]
        if said:
            rows.append(f"- Last lines of {name}:\n\n{_quote(chr(10).join(said[-LAST_LINES:]))}\n")
    if notes := _cut(section(ended.controller, "stagnation")):
        rows.append(f"- Stagnation, as the controller noted it:\n\n{_quote(notes)}\n")
    if ended.state.status == ERROR:
        rows.append(f"- Went wrong: {ended.state.error}")
    return "\n".join(rows)


def _nothing(ended: Ended) -> str:
    tried = ended.state.status == ERROR and ended.executed
    return "no action was finished; one that failed may have left changes." if tried else "nothing was changed."


def _remains(ended: Ended, failing: Sequence[str]) -> str:
    if ended.state.status == COMPLETE:
        return "nothing, by the controller's judgement" + (f"; still failing: {', '.join(failing)}" if failing else "")
    if failing:
        return f"failing sensors: {', '.join(failing)}"
    if unknown := [each.sensor for each in ended.state.readings if each.status == PENDING]:
        return f"the target; not measured: {', '.join(unknown)}"
    return "the target; no sensor fails" if ended.state.iteration > NOT_ENTERED + 1 else "everything"


def _quote(text: str) -> str:
    return "\n".join(f"> {row}".rstrip() for row in text.splitlines())


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST].rpartition("\n")[0] + "\n…"
