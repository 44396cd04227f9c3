"""Defines the settings that only reflex loops have, and shared settings with a different default."""

from rooda.settings.schema import LOOP
from rooda.settings.types import FLAG, RESTRAINS, RUNS, SECONDS, WORDS, Key, Option, whole, word

OWN = {
    "max_iterations": Key(
        whole(1),
        "the iteration limit that rooda proposes for a new loop",
        default=4,
        flag=Option("Stop after N iterations.", ("-n", "--max-iterations", "limit")),
        group="limit",
        trust=RESTRAINS,
    ),
    "exec_checks": Key(
        word("run", "ask", "skip"),
        "whether to run shell commands that an agent wrote as checks",
        default="run",
        flag=Option("Whether to run shell commands that an agent wrote as checks."),
        kept=True,
        group="checks",
        trust=RUNS,
    ),
    "check_timeout": Key(
        SECONDS,
        "seconds that one check may take; 0 = no limit",
        default=30,
        flag=Option("Maximum seconds for each check."),
        kept=True,
        group="checks",
    ),
    "sequential": Key(
        FLAG,
        "run one agent and one check at a time",
        default=False,
        flag=Option("Run one agent and one check at a time."),
        kept=True,
        group="steps",
    ),
    "extraction": Key(word("strict", "lenient"), "whether an answer may have text around its JSON", default="lenient"),
    "phase_models": Key(WORDS, "models for individual phases: plan, produce, prepare, evaluate, critique, refine"),
    "read_only": LOOP["read_only"]._replace(default=None, unset="on for agents with an option for it"),
    "log_timestamp_format": LOOP["log_timestamp_format"]._replace(default="none"),
}
