"""Defines the settings that only goals have, and shared settings with a different default."""

from rooda.settings.schema import LOOP
from rooda.settings.types import AMOUNT, FLAG, RESTRAINS, RUNS, SECONDS, Key, Option, whole, word

ITERATIONS, BUDGET = 10, 25
OWN = {
    "max_iterations": Key(
        whole(1),
        "iterations after which a goal pauses",
        default=ITERATIONS,
        flag=Option(
            f"Iterations after which the goal pauses (default {ITERATIONS}, at most 50).",
            ("-n", "--iterations", "--max-iterations", "iterations"),
        ),
        group="limit",
        trust=RESTRAINS,
    ),
    "budget": Key(
        AMOUNT,
        "dollars after which a goal pauses",
        default=BUDGET,
        flag=Option(f"Dollars after which the goal pauses (default {BUDGET}, at most 100).", metavar="DOLLARS"),
        group="limit",
        trust=RESTRAINS,
    ),
    "verify_timeout": Key(SECONDS, "seconds that one verification command may take; 0 = no limit", default=300),
    "exit_signal_source": Key(
        word("agent", "verified"),
        "what completes a verified goal: the agent's statement that the goal is done, or the verification alone",
        default="agent",
    ),
    "cost_per_call": Key(
        AMOUNT, "estimated dollars of a call whose cost is unknown; 0 = no estimate", default=0, trust=RUNS
    ),
    "must_not_judge": Key(
        FLAG, "after each iteration, call an agent that judges the mustNot entries without a command", default=False
    ),
    "observation_evidence": Key(
        word("person", "file"),
        "the evidence for an observation: the user's yes, or a file that the agent wrote during the call",
        default="person",
        trust=RUNS,
    ),
    "log_timestamp_format": LOOP["log_timestamp_format"]._replace(default="none"),
}
