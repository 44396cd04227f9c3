"""The settings of [reflex], [flow] and [goal]: what every kind of loop has, and what is its own."""

from rooda.settings.kinds import AMOUNT, FLAG, SECONDS, whole, word
from rooda.settings.schema import LOOP
from rooda.settings.shapes import WORDS, Key

SHARED = {
    key: LOOP[key]
    for key in (
        *("agent", "ai_cmd", "ai_cmd_alias", "model", "allowed_tools", "denied_tools", "call_budget"),
        *("max_cost", "max_tokens", "max_duration", "on_limit", "fallback"),
        *("token_budget", "token_encoding", "iteration_timeout", "idle_timeout", "kill_grace", "retry_wait"),
        *("max_output_buffer", "safety", "show_ai_output", "log_level", "log_timestamp_format"),
    )
}

REFLEX = {
    "max_iterations": Key(whole(1), "iterations proposed for a new loop"),
    "exec_checks": Key(word("run", "ask", "skip"), "what happens to shell commands that an agent wrote as checks"),
    "check_timeout": Key(SECONDS, "seconds one check may take; 0 = no limit"),
    "sequential": Key(FLAG, "one agent at a time"),
    "extraction": Key(word("strict", "lenient"), "whether an answer may have words around its JSON"),
    "phase_models": Key(WORDS, "models of single phases: plan, produce, prepare, evaluate, critique, refine"),
    "read_only": LOOP["read_only"],
    **SHARED,
}

FLOW = {
    "sensors": Key(word("agent", "native"), "who runs the sensors' commands: an agent, or rooda itself"),
    "sensor_timeout": Key(SECONDS, "seconds one sensor command may take; 0 = no limit"),
    "no_verify": Key(FLAG, "commits pass over git's pre-commit and commit-msg hooks"),
    **SHARED,
}

GOAL = {
    "max_iterations": Key(whole(1), "iterations after which a goal pauses"),
    "budget": Key(AMOUNT, "dollars after which a goal pauses"),
    "verify_timeout": Key(SECONDS, "seconds one verification command may take; 0 = no limit"),
    "exit_signal_source": Key(word("agent", "verified"), "who says that it is done: the agent too, or checks alone"),
    "cost_per_call": Key(AMOUNT, "dollars of a call of which nothing is known; 0 = unknown"),
    "must_not_judge": Key(FLAG, "mustNot entries without a command are judged by a call after each iteration"),
    "observation_evidence": Key(word("person", "file"), "what an observation needs: a person's yes, or a fresh file"),
    **SHARED,
}

KINDS = {"reflex": REFLEX, "flow": FLOW, "goal": GOAL}
