"""The rooda.toml that `rooda init` writes: what was found, and every other setting as a comment."""

from typing import Any, NamedTuple

from rooda.settings.schema import LOOP
from rooda.settings.toml import toml_value
from rooda.settings.types import Key

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

_LEFT_OUT = ("agent", "ai_cmd", "ai_cmd_alias", "quality_gates", "model", "safety")


class Findings(NamedTuple):
    """What the folder and the machine have."""

    agents: list[str]
    gates: list[str]
    because: list[str]


def text(found: Findings, defaults: dict[str, Any]) -> str:
    parts = (_agent(found), _gates(found), _safety(), _others(defaults))
    return _HEAD + "\n[loop]\n" + "\n".join(parts) + _TAIL


def _agent(found: Findings) -> str:
    here = f"On this machine: {', '.join(found.agents)}." if found.agents else "None was found on this machine."
    line = f"agent = {toml_value(found.agents[0])}" if found.agents else '# agent = "claude"'
    return (
        f"{_comment('agent')}. {here}\n{line}\n"
        f'{_comment("ai_cmd")}.\n# ai_cmd = "my-agent --flag"\n'
        f'{_comment("model")}.\n# model = "sonnet"\n'
    )


def _gates(found: Findings) -> str:
    if not found.gates:
        none = "Nothing that checks this project was found."
        return f'{_comment("quality_gates")}. {none}\n# quality_gates = ["make test"]\n'
    gates = "".join(f"    {toml_value(gate)},\n" for gate in found.gates)
    return f"{_comment('quality_gates')}. From: {', '.join(found.because)}.\nquality_gates = [\n{gates}]\n"


def _safety() -> str:
    more = "# What one changed: rooda diff. Back to before it: rooda undo. Needs a git repository."
    return f'{_comment("safety")}.\n{more}\nsafety = "snapshot"  # or "off"\n'


def _comment(key: str) -> str:
    what = LOOP[key].what
    return f"# {what[0].upper()}{what[1:]}"


def _others(defaults: dict[str, Any]) -> str:
    """One line for each: switched on by taking the first two characters away."""
    lines = [
        (f"# {key} = {toml_value(defaults.get(key, True))}", row) for key, row in LOOP.items() if key not in _LEFT_OUT
    ]
    width = max(len(line) for line, _ in lines)
    return "".join(f"{line:{width}}  # {row.what}{_choices(row)}\n" for line, row in lines)


def _choices(row: Key) -> str:
    return f": {', '.join(row.kind.choices)}" if row.kind.choices else ""
