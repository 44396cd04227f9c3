"""Every setting there is: its kind and what it means. Checks, comments of `rooda init` and suggestions read this."""

from rooda.settings.kinds import AMOUNT, ANY_TEXT, COMMAND, DURATION, FLAG, NAMES, OPTION, SECONDS, TEXT, whole, word
from rooda.settings.shapes import AGENT_ENV, GATES, PARAMETERS, PHASE, TEXTS, Key

LOOP = {
    "default_iterations": Key(
        whole(0), "iterations per run; 0 = until stopped or failing", ("max_iterations", "max_iteration")
    ),
    "failure_threshold": Key(whole(1), "failures in a row after which a run aborts"),
    "agent": Key(TEXT, "which agent of [agents] does the work"),
    "ai_cmd": Key(COMMAND, "any command that reads the prompt on stdin, instead of an agent by name", ("command",)),
    "ai_cmd_alias": Key(TEXT, "older name of agent"),
    "model": Key(TEXT, "the model the agent is told to use; [models] translates"),
    "read_only": Key(FLAG, "the agent may read and not change anything; an agent that can't be told so is refused"),
    "allowed_tools": Key(NAMES, "the only tools the agent has, by its own names for them; [] = all"),
    "denied_tools": Key(NAMES, "tools that the agent does not get"),
    "max_cost": Key(AMOUNT, "dollars a run may cost, resumes counted; 0 = no limit"),
    "max_tokens": Key(whole(0), "tokens its agents may use, read and written; 0 = no limit"),
    "max_duration": Key(DURATION, "how long it may run, in seconds or as 2h30m; 0 = no limit"),
    "call_budget": Key(AMOUNT, "dollars after which the agent's CLI ends a call by itself; 0 = no limit"),
    "quality_gates": Key(GATES, "shell commands that must exit 0 after each iteration; [] = none", ("gates", "checks")),
    "gates_from_commands": Key(FLAG, "AGENTS.md's `## Build/Test/Lint Commands` are gates too, if it names no others"),
    "token_budget": Key(whole(0), "tokens in a prompt above which a warning is printed; 0 = no check"),
    "token_encoding": Key(word("o200k_base", "cl100k_base"), "the vocabulary tokens are counted with"),
    "iteration_timeout": Key(SECONDS, "seconds one agent call may take; 0 = no limit", ("timeout",)),
    "idle_timeout": Key(SECONDS, "seconds an agent may be silent; 0 = no limit"),
    "kill_grace": Key(SECONDS, "seconds between asking an agent to stop and killing it"),
    "retry_wait": Key(SECONDS, "seconds before the next call after a passing fault of the service; doubles each time"),
    "on_limit": Key(word("wait", "stop", "switch"), "what happens at a usage limit of the agent's account"),
    "fallback": Key(NAMES, "agents to switch to, in order, while the account of the first may not be used"),
    "max_output_buffer": Key(whole(1024), "bytes of an agent's output that are searched for signals"),
    "on_interrupted": Key(word("ask", "resume", "fresh"), "what a start does with an interrupted earlier run"),
    "safety": Key(word("snapshot", "off"), "snapshot: git keeps the work tree before and after each iteration"),
    "promise_signals": Key(FLAG, "an agent may end a loop with <promise>SUCCESS</promise>; unset: built-in ones only"),
    "preamble": Key(FLAG, "prompts begin with the agent's role and the iteration"),
    "show_ai_output": Key(FLAG, "stream the agent's output"),
    "log_level": Key(word("debug", "info", "warn", "error"), "how much is printed"),
    "log_timestamp_format": Key(word("time", "time-ms", "relative", "iso", "none"), "how lines begin"),
}

PROCEDURE = {
    "display": Key(TEXT, "the name on screen"),
    "summary": Key(ANY_TEXT, "one line for rooda list"),
    "description": Key(ANY_TEXT, "a paragraph for rooda info"),
    "observe": Key(PHASE, "first phase: text, file, builtin:NAME, or an array of them"),
    "orient": Key(PHASE, "second phase"),
    "decide": Key(PHASE, "third phase"),
    "act": Key(PHASE, "fourth phase"),
    "context": Key(TEXTS, "files or texts added to every prompt"),
    "parameters": Key(PARAMETERS, "values for {{name}} in the phases"),
    **LOOP,
}

AGENT = {
    "command": Key(COMMAND, "the command line, split without a shell; {model}, {prompt}, {python} are filled in"),
    "prompt": Key(word("stdin", "argument", "file"), "how the prompt goes in"),
    "output": Key(
        word("text", "claude", "codex", "gemini", "opencode", "copilot", "droid", "pi", "aider"),
        "how the output is read",
    ),
    "stop": Key(word("TERM", "INT"), "the first signal when a call must end"),
    "keep_background": Key(FLAG, "what a call leaves running lives until the run ends, not only until the call's end"),
    "exit_grace": Key(SECONDS, "seconds it may go on after its final message; 0 = no limit"),
    "env": Key(AGENT_ENV, "variables added to its environment"),
    "model": Key(TEXT, "its model when nothing else names one"),
    "env_deny": Key(NAMES, "variables that it does not get from rooda's environment; * stands for anything"),
    "size_limit": Key(whole(0), "bytes that a prompt may have at most; 0 = no limit"),
    "character_limit": Key(whole(0), "characters that a prompt may have at most; 0 = no limit"),
    "read_only": Key(COMMAND, "the command line, in place of command, with which it changes nothing"),
    "allow": Key(OPTION, "option that leaves it these tools only: {tools} all with commas, {tool} once for each"),
    "deny": Key(OPTION, "option that takes tools from it: {tools} or {tool}"),
    "budget": Key(OPTION, "option for the dollars after which it ends by itself: {budget}"),
    "billing": Key(AGENT_ENV, "variables that decide who pays, and who that is; the first that is set counts"),
    "account": Key(TEXT, "who pays when none of them is set"),
    "version": Key(ANY_TEXT, "option that makes it tell its version; empty: it is not asked"),
    "known": Key(NAMES, "what its output tells: usage, cost, limits"),
    "install": Key(TEXT, "how to install it"),
    "summary": Key(TEXT, "one line about it"),
    "documented_only": Key(FLAG, "described as its maker documents it, never run by rooda's tests"),
}

PRICE = {
    "input": Key(AMOUNT, "tokens that are read afresh"),
    "output": Key(AMOUNT, "tokens that are written, reasoning included"),
    "cached": Key(AMOUNT, "tokens that are read from a cache; the price of input when left out"),
    "written": Key(AMOUNT, "tokens that are written into a cache; the price of input when left out"),
}

TABLES = ("loop", "procedures", "reflex", "flow", "goal", "agents", "models", "prices", "ai_cmd_aliases", "hooks")

OLDER = {"default_max_iterations": "default_iterations"}

_COMMANDS = """
    run resume status stop logs list info config init tokens agents reflex flow goal version completion doctor usage
    events why diff undo snapshots attach pause continue service help prune demo
"""
RESERVED = frozenset(_COMMANDS.split())

_FLAGS = {"default_iterations": "--max-iterations", "parameters": "--param"}


def flag_of(key: str) -> str:
    """The command line's word for a setting."""
    return _FLAGS.get(key, "--" + key.replace("_", "-"))


def variable_of(key: str) -> str:
    """The environment's word for a setting of [loop]."""
    return "ROODA_LOOP_" + key.upper()
