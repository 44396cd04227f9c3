"""The rooda.toml that `rooda init` writes: what was found, and every other setting as a comment."""

from typing import Any, NamedTuple

from rooda.settings.schema import LOOP
from rooda.settings.toml_text import toml_value

_HEAD = """\
# How rooda runs its loops in this project. Every line may be left out; then the value behind it holds.
# What is in force, and from where: rooda config show --origin
"""

_TAIL = """
# A procedure of your own: `rooda review` would run it. A phase is a text, a file, builtin:NAME, or an array of them.
# The keys of [loop] may stand here too.
#
# [procedures.review]
# summary = "Read the newest commit and report what is wrong with it"
# observe = "Read the newest commit and the code around it."
# orient = "Compare it with what AGENTS.md asks for."
# decide = "Pick the worst problem."
# act = "Write it to REVIEW.md, with file and line."

# An agent of your own; the prompt goes in on stdin.
#
# [agents.mine]
# command = "my-agent --model {model}"
"""

_LEFT_OUT = ("agent", "ai_cmd", "ai_cmd_alias", "quality_gates", "model")


class Findings(NamedTuple):
    """What the folder and the machine have."""

    agents: list[str]
    gates: list[str]
    because: list[str]


def text(found: Findings, defaults: dict[str, Any]) -> str:
    return _HEAD + "\n[loop]\n" + _agent(found) + "\n" + _gates(found) + "\n" + _others(defaults) + _TAIL


def _agent(found: Findings) -> str:
    what = f"# {LOOP['agent'].what}. "
    if found.agents:
        lines = f"{what}On this machine: {', '.join(found.agents)}.\nagent = {toml_value(found.agents[0])}\n"
    else:
        lines = f'{what}None was found on this machine.\n# agent = "claude"\n'
    return (
        lines + f'# {LOOP["ai_cmd"].what}\n# ai_cmd = "my-agent --flag"\n# {LOOP["model"].what}\n# model = "sonnet"\n'
    )


def _gates(found: Findings) -> str:
    what = f"# {LOOP['quality_gates'].what}"
    if not found.gates:
        return f'{what}. Nothing that checks this project was found.\n# quality_gates = ["make test"]\n'
    gates = "".join(f"    {toml_value(gate)},\n" for gate in found.gates)
    return f"{what}. From: {', '.join(found.because)}.\nquality_gates = [\n{gates}]\n"


def _others(defaults: dict[str, Any]) -> str:
    lines = ""
    for key, row in LOOP.items():
        if key not in _LEFT_OUT:
            lines += f"# {row.what}\n# {key} = {toml_value(defaults.get(key, True))}\n"
    return lines
