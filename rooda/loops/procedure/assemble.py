"""From the pieces of a procedure to one prompt. Nothing is added, reordered or normalised."""

from collections.abc import Iterable, Mapping, Sequence

from rooda.loops.procedure.model import PHASES

TITLE = "# OODA Loop Iteration"


def assemble(sections: Mapping[str, Sequence[str]], context: Sequence[str] = (), preamble: str = "") -> str:
    """The prompt: preamble if any, title, context if any, then the four phases."""
    parts = [_stripped(preamble)] if preamble else []
    parts.append(TITLE)
    if context:
        parts.append(f"## CONTEXT\n{_joined(context)}")
    parts += [f"## {name.upper()}\n{_joined(sections.get(name, ()))}" for name in PHASES]
    return "\n\n".join(parts) + "\n"


def from_file(shown: str, text: str) -> str:
    """A context that was read from a file says which one."""
    return f"Source: {shown}\n\n{text}"


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join(map(_stripped, texts))


def _stripped(text: str) -> str:
    return text.rstrip("\r\n")
