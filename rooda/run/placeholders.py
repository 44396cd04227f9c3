r"""Substitutes parameters in prompt fragments: `{{name}}` becomes the value, `\{{` becomes `{{`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rooda.errors import PromptProblem

if TYPE_CHECKING:
    import re

PLACEHOLDER = r"\\\{\{|\{\{[ \t]*([A-Za-z_][A-Za-z0-9_-]*)[ \t]*\}\}"


def substitute(text: str, parameters: Mapping[str, str], fragment: str) -> str:
    """Replace the placeholders in a text, but keep those inside the inserted values.

    `fragment` is the name of the text in error messages.
    """
    import re

    def value(match: "re.Match[str]") -> str:
        name = match[1]
        if name is None:
            return "{{"
        if name not in parameters:
            raise _missing(name, parameters, fragment)
        return parameters[name]

    return re.sub(PLACEHOLDER, value, text)


def _missing(name: str, parameters: Mapping[str, str], fragment: str) -> PromptProblem:
    import difflib

    near = difflib.get_close_matches(name, parameters, 1)
    known = ", ".join(sorted(parameters)) or "none"
    guess = f" Did you mean {{{{{near[0]}}}}}?" if near else ""
    return PromptProblem(
        f"Prompt fragment {fragment} uses {{{{{name}}}}}, but there is no parameter {name} (known: {known}).{guess}",
        f"Set {name} in the fragment's parameters, or write \\{{{{{name}}}}} if the braces are meant literally.",
    )
