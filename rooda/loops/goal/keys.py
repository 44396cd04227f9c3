"""The settings that only goals have, or have another default for."""

from rooda.settings.schema import LOOP
from rooda.settings.types import AMOUNT, FLAG, SECONDS, Key, Option, whole, word

ITERATIONS, BUDGET = 10, 25
OWN = {
    "max_iterations": Key(
        whole(1),
        "iterations after which a goal pauses",
        default=ITERATIONS,
        flag=Option(
            f"Iterations after which it pauses (default {ITERATIONS}, at most 50)",
            ("-n", "--iterations", "--max-iterations", "iterations"),
        ),
        group="limit",
    ),
    "budget": Key(
        AMOUNT,
        "dollars after which a goal pauses",
        default=BUDGET,
        flag=Option(f"Dollars after which it pauses (default {BUDGET}, at most 100)", metavar="DOLLARS"),
        group="limit",
    ),
    "verify_timeout": Key(SECONDS, "seconds one verification command may take; 0 = no limit", default=300),
    "exit_signal_source": Key(
        word("agent", "verified"), "who says that it is done: the agent too, or checks alone", default="agent"
    ),
    "cost_per_call": Key(AMOUNT, "dollars of a call of which nothing is known; 0 = unknown", default=0),
    "must_not_judge": Key(
        FLAG, "mustNot entries without a command are judged by a call after each iteration", default=False
    ),
    "observation_evidence": Key(
        word("person", "file"), "what an observation needs: a person's yes, or a fresh file", default="person"
    ),
    "log_timestamp_format": LOOP["log_timestamp_format"]._replace(default="none"),
}
