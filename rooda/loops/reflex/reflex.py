"""A phase's prompt: the preamble of every phase, then its template with what the contract gives it."""

from collections.abc import Mapping

from rooda.run.placeholders import substitute

PREAMBLE = """\
You are executing phase {{phase}} for run {{run_id}}, iteration {{iteration}}, phase level {{level}}.
Return only the required output format.
Do not add explanations or commentary outside the specified format.

"""


def text(phase: str, template: str, values: Mapping[str, str]) -> str:
    return substitute(PREAMBLE + template, {**values, "phase": phase}, f"builtin:reflex/{phase.lower()}.md")
