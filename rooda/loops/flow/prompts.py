"""The prompts of a flow's agents: their own files, with the placeholders filled in. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rooda.loops.flow.flow_labels import artifacts, sensor_file
from rooda.loops.flow.model import Node
from rooda.loops.flow.yaml import lenient

TARGET = "status is `pass` (the command exits with 0)"


class Told(NamedTuple):
    """One sensor as a prompt speaks of it."""

    name: str
    output: str  # path
    text: str  # its agent file


def filled(text: str, values: Mapping[str, str]) -> str:
    """Each `{name}` for its value, in one pass, so that no value is searched."""
    names = "|".join(re.escape(name) for name in sorted(values, key=len, reverse=True))
    return re.sub(names, lambda found: values[found[0]], text) if names else text


def sensors(preface: str, told: Sequence[Told]) -> str:
    """One prompt for all sensors of a node."""
    parts = [preface.rstrip("\n")]
    for number, each in enumerate(told, 1):
        instructions = filled(each.text, {"{output-path}": each.output}).strip("\n")
        parts.append(
            f"## Sensor {number} of {len(told)}: {each.name}\n\n- **Output file:** {each.output}\n\n"
            f"Instructions of this sensor:\n\n{instructions}"
        )
    return "\n\n".join(parts) + "\n"


def controller(preface: str, text: str, node: Node, run: str, told: Sequence[Told]) -> str:
    folder = artifacts(run, node.path)
    values = {"{artifacts-path}": folder, "{node-path}": node.path, "{sensors-section}": sensors_section(told)}
    if node.child is not None:
        inside = f"{folder}/{node.child.id}"
        values |= {"{artifacts-path}/../{child-node-id}": inside, "{child-node-id}": node.child.id}
    else:
        text = "".join(row for row in text.splitlines(keepends=True) if "{child-node-id}" not in row)
    return f"{preface.rstrip()}\n\n{filled(text, values)}"


def in_full(setpoint: str) -> str:
    """For whom the file of the setpoint is not enough: what rooda writes has stars in the place of keys."""
    about = "Its file has `***` in the place of keys. Write no key into a file."
    return f"\n\n# The setpoint in full\n\n{about}\n\n{setpoint}\n"


def actuator(preface: str, text: str, reminder: str, folder: str) -> str:
    paths = {"{input-path}": f"{folder}/controller-output.md", "{output-path}": f"{folder}/actuator-output.md"}
    instructions = filled(text, paths)
    return f"{preface.rstrip()}\n\n{instructions.rstrip()}\n\n{filled(reminder, paths)}"


def sensors_section(told: Sequence[Told]) -> str:
    """Name, file and target of each."""
    if not told:
        return "This node has no sensors."
    rows = []
    for number, each in enumerate(told, 1):
        target = " ".join(str(lenient(each.text).get("target") or TARGET).split())
        rows.append(f"### {number}. {each.name}\n- **Output file:** {each.output}\n- **Target:** {target}")
    return "\n\n".join(rows)


def output_of(folder: str, name: str) -> str:
    return f"{folder}/{sensor_file(name)}"
