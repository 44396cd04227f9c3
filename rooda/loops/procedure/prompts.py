"""Assembles a procedure's prompt: an optional preamble, the context, and the four phases."""

from collections.abc import Iterable, Mapping, Sequence

from rooda.loops.procedure.model import PHASES, Procedure

ROLE = """\
Your Role: one turn of an unattended loop. Nobody reads along or answers questions, and the next turn
remembers nothing of this one: what it must know has to be in files when you finish."""
SIGNALS = """\
Success Signaling: once nothing is left to do, put <promise>SUCCESS</promise> on a line of its own in your final
message. If you cannot go on without a person, put <promise>FAILURE</promise> there instead, and say why on the
lines after it. Otherwise write neither: the loop then starts the next turn."""
NO_SIGNALS = "Success Signaling: none. The loop goes by your exit status and its own checks."


def preamble(procedure: Procedure, iteration: int) -> str:
    """Return the preamble that describes the loop to the agent. `iteration` counts from 1."""
    limit = f"{iteration} of {procedure.max_iterations}" if procedure.max_iterations else f"{iteration} (unlimited)"
    return "\n".join(
        (
            f"Procedure: {procedure.display or procedure.name}",
            f"Iteration: {limit}",
            "",
            ROLE,
            "",
            SIGNALS if procedure.promise_signals else NO_SIGNALS,
        )
    )


TITLE = "# OODA Loop Iteration"


def assemble(
    sections: Mapping[str, Sequence[str]], context: Sequence[str] = (), preamble: str = "", status: str = ""
) -> str:
    """Return the whole prompt: preamble if any, title, status and context if any, then the four phases."""
    parts = [_stripped(preamble)] if preamble else []
    parts.append(TITLE)
    if status:
        parts.append(f"## STATUS\n{status}")
    if context:
        parts.append(f"## CONTEXT\n{_joined(context)}")
    parts += [f"## {name.upper()}\n{_joined(sections.get(name, ()))}" for name in PHASES]
    return "\n\n".join(parts) + "\n"


def with_new_status(prompt: str, old: str, new: str) -> str:
    """Replace the status in a prompt without a preamble."""
    head = f"{TITLE}\n\n## STATUS\n"
    return f"{head}{new}{prompt.removeprefix(head + old)}"


def from_file(shown: str, text: str) -> str:
    """Return a context file's text below a line with its name."""
    return f"Source: {shown}\n\n{text}"


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join(map(_stripped, texts))


def _stripped(text: str) -> str:
    return text.rstrip("\r\n")
