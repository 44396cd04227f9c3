"""The opt-in opening of a prompt: where in the loop the agent is, and how it can end it."""

from rooda.loops.procedure.model import Procedure

ROLE = """\
Your Role: one turn of an unattended loop. Nobody reads along or answers questions, and the next turn
remembers nothing of this one: what it must know has to be in files when you finish."""

SIGNALS = """\
Success Signaling: once nothing is left to do, put <promise>SUCCESS</promise> on a line of its own in your final
message. If you cannot go on without a person, put <promise>FAILURE</promise> there instead, and say why on the
lines after it. Otherwise write neither: the loop then starts the next turn."""

NO_SIGNALS = "Success Signaling: none. The loop goes by your exit status and its own checks."


def preamble(procedure: Procedure, iteration: int) -> str:
    """`iteration` counts from 1, as the screen does."""
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
