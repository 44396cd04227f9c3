"""Defines every setting of [loop], procedures and agents, one row each.

The rows determine validation, options, environment variables, which options a resume keeps, and the records of a run.
The defaults in config/rooda.toml (`python tools/defaults.py`), docs/configuration.md and the comments in the file that
`rooda init` writes are generated from them.
"""

from rooda.agents.reader import OUTPUTS
from rooda.settings.types import (
    AGE,
    AGENT_ENV,
    ALL,
    AMOUNT,
    ANY_TEXT,
    BEAT,
    COMMAND,
    DURATION,
    FLAG,
    GATES,
    GUARDS,
    HOME_FILES,
    HOSTS,
    NAMES,
    OPTION,
    PARAMETERS,
    PHASE,
    PROCEDURES,
    RESTRAINS,
    RUNS,
    SECONDS,
    SIZE,
    TEXT,
    TEXTS,
    URL,
    Key,
    Option,
    table_with,
    whole,
    word,
)
from rooda.settings.where import HERE

# From the weakest to the strictest, and from the strictest to the weakest
SANDBOXES = ("off", "auto", "workspace", "read-only")
NETWORKS = ("off", "agent", "on")
GATE_NETWORKS = ("off", "hosts", "on")

LOOP = {
    "default_iterations": Key(
        whole(0),
        "iterations per run; 0 = no limit",
        ("max_iterations", "max_iteration"),
        default=0,
        flag=Option("Stop after N iterations; 0 = unlimited.", ("-n", "--max-iterations")),
        kinds=PROCEDURES,
        into="procedure.max_iterations",
        group="call",
        trust=RESTRAINS,
    ),
    "failure_threshold": Key(
        whole(1),
        "failures in a row after which a run aborts",
        default=3,
        flag=Option("Abort after N failures in a row."),
        kinds=PROCEDURES,
        into="procedure.failure_threshold",
        group="call",
        trust=RESTRAINS,
    ),
    "count_failures": Key(
        word("red", "no-progress"),
        "when red gates make an iteration fail: red: always; no-progress: only if a gate turned red, or neither a file "
        "nor a red gate's result changed",
        default="red",
        kinds=PROCEDURES,
        into="procedure.count_failures",
        group="way",
    ),
    "stuck_after": Key(
        whole(0),
        'with count_failures = "no-progress": abort after N iterations in a row in which no red gate\'s result '
        "changed; 0 = never",
        default=5,
        kinds=PROCEDURES,
        into="procedure.stuck_after",
        group="way",
        trust=RESTRAINS,
    ),
    "blocked_threshold": Key(
        whole(0),
        "abort after N promises of FAILURE in a row with no file changed; 0 = only failure_threshold counts",
        default=0,
        kinds=PROCEDURES,
        into="procedure.blocked_threshold",
        group="way",
        trust=RESTRAINS,
    ),
    "baseline": Key(
        FLAG,
        "run the quality gates once before the first iteration, to find out which gates are already red",
        unset='on with count_failures = "no-progress", else off',
        kinds=PROCEDURES,
        group="way",
    ),
    "commit": Key(
        word("agent", "green"),
        "agent: the agent commits, as its prompt says; green: rooda commits once all gates pass",
        default="agent",
        kinds=PROCEDURES,
        into="procedure.commit",
        group="way",
    ),
    "on_red": Key(
        word("keep", "undo"),
        'undo: restore the files if a gate turned red or no red gate\'s result changed; needs safety = "snapshot"',
        default="keep",
        kinds=PROCEDURES,
        into="procedure.on_red",
        group="way",
    ),
    "agent": Key(
        TEXT,
        "the agent of [agents] that does the work",
        flag=Option("Agent to run: claude, codex, demo, …", metavar="NAME"),
        kept=True,
        group="agent",
        trust=RUNS,
    ),
    "ai_cmd": Key(
        COMMAND,
        "a command that reads the prompt on stdin, to use instead of an agent of [agents]",
        ("command",),
        flag=Option("Agent command that reads a prompt on stdin.", metavar="COMMAND"),
        kept=True,
        group="agent",
        trust=RUNS,
    ),
    "ai_cmd_alias": Key(
        TEXT,
        "old name of the key `agent`",
        flag=Option("Old name of --agent.", metavar="NAME", sets="agent", hidden=True),
        kept=True,
        group="agent",
        trust=RUNS,
    ),
    "model": Key(
        TEXT,
        "the model that the agent uses; [models] can map this name to another",
        flag=Option("Model name, mapped by [models] if listed.", metavar="NAME"),
        kept=True,
        group="agent",
    ),
    "read_only": Key(
        FLAG,
        "the agent may read but not change files; rooda refuses an agent that has no option for this",
        default=False,
        kinds=PROCEDURES,
        group="agent",
        trust=RESTRAINS,
    ),
    "allowed_tools": Key(
        NAMES,
        "the only tools that the agent may use, by the names that its CLI uses; [] = all",
        default=[],
        group="agent",
        trust=RESTRAINS,
    ),
    "denied_tools": Key(NAMES, "tools that the agent may not use", default=[], group="agent", trust=RESTRAINS),
    "max_cost": Key(
        AMOUNT,
        "dollars that a run may cost, over all its resumes; 0 = no limit",
        default=0,
        flag=Option("Start no more agents once the run, resumes included, has cost N dollars."),
        into="budget.cost",
        group="budget",
        trust=RESTRAINS,
    ),
    "max_tokens": Key(
        whole(0),
        "tokens that a run's agents may read and write, over all its resumes; 0 = no limit",
        default=0,
        flag=Option("Start no more agents once the run, resumes included, has used N tokens."),
        into="budget.tokens",
        group="budget",
        trust=RESTRAINS,
    ),
    "max_duration": Key(
        DURATION,
        "how long a run may take, in seconds or as 2h30m; 0 = no limit",
        default=0,
        flag=Option("Start no more agents after N seconds, or a time such as 2h30m."),
        into="budget.seconds",
        group="budget",
        trust=RESTRAINS,
    ),
    "call_budget": Key(
        AMOUNT,
        "dollars that one call may cost before the agent's CLI ends it; 0 = no limit",
        default=0,
        group="agent",
        trust=RESTRAINS,
    ),
    "quality_gates": Key(
        GATES,
        "shell commands that must exit 0 after each iteration; [] = none",
        ("gates", "checks"),
        unset="those of AGENTS.md",
        flag=Option("Run the project's quality gates, or none.", ("--gates/--no-gates",), sets="gates", switch=True),
        kinds=PROCEDURES,
        kept=True,
        group="way",
        trust=GUARDS,
    ),
    "more_gates": Key(
        GATES,
        "additional shell commands that must exit 0, besides the quality gates",
        default=[],
        flag=Option(
            "Another command that must succeed after each iteration; repeatable.",
            ("--gate",),
            metavar="COMMAND",
            many=True,
        ),
        kinds=PROCEDURES,
        kept=True,
        group="way",
        trust=GUARDS,
    ),
    "gates_from_commands": Key(
        FLAG,
        "use the section `## Build/Test/Lint Commands` of AGENTS.md as gates if it defines no others",
        default=False,
        kinds=PROCEDURES,
        into="procedure.gates_from_commands",
        group="way",
        trust=RUNS,
    ),
    "token_budget": Key(
        whole(0),
        "warn if a prompt has more tokens than this; 0 = no check",
        default=100000,
        flag=Option("Warn about prompts over N tokens; 0 = never."),
        kept=True,
        into="setup.token_budget",
        group="call",
    ),
    "token_encoding": Key(
        word("o200k_base", "cl100k_base"),
        "the vocabulary for counting tokens",
        default="o200k_base",
        into="setup.token_encoding",
        group="call",
    ),
    "iteration_timeout": Key(
        SECONDS,
        "seconds that one agent call may take; 0 = no limit",
        ("timeout",),
        default=0,
        flag=Option("End agent calls after N seconds; 0 = never."),
        kept=True,
        into="bounds.iteration_timeout",
        group="call",
        trust=RESTRAINS,
    ),
    "idle_timeout": Key(
        SECONDS,
        "seconds that an agent may neither print nor use the CPU; 0 = no limit; if not set, the agent's own "
        "idle_timeout applies",
        default=0,
        flag=Option("End an agent call after N seconds without output."),
        kept=True,
        into="bounds.idle_timeout",
        group="call",
        trust=RESTRAINS,
    ),
    "kill_grace": Key(
        SECONDS,
        "seconds between the first signal to an agent and its processes, and SIGKILL",
        default=5,
        into="bounds.kill_grace",
        group="call",
    ),
    "retry_wait": Key(
        SECONDS,
        "seconds to wait before retrying after a transient error of the model service; doubles with each retry",
        default=5,
        into="setup.retry_wait",
        group="call",
    ),
    "on_limit": Key(
        word("wait", "stop", "switch"),
        "what rooda does when the agent's account reaches a usage limit",
        default="wait",
        group="budget",
    ),
    "fallback": Key(
        NAMES,
        "agents to use instead, in this order, while the account of the chosen agent is at a usage limit",
        default=[],
        group="budget",
        trust=RUNS,
    ),
    "max_output_buffer": Key(
        whole(1024),
        "bytes at the end of an agent's output that rooda searches for promise signals",
        default=10485760,
        into="bounds.max_output_buffer",
        group="call",
    ),
    "on_interrupted": Key(
        word("ask", "resume", "fresh"),
        "what rooda does at a start if an earlier run was interrupted",
        default="ask",
        kinds=PROCEDURES,
        into="procedure.on_interrupted",
        group="way",
        trust=RUNS,
    ),
    "safety": Key(
        word("snapshot", "off"),
        "snapshot: save the work tree in git before and after each iteration",
        default="off",
        flag=Option("Save the work tree around each iteration."),
        kept=True,
        into="setup.safety",
        group="way",
        trust=RESTRAINS,
    ),
    "sandbox": Key(
        word(*SANDBOXES),
        "what agents and gates may see and change: workspace: the project; read-only: agents can't change anything; "
        "auto: workspace where bubblewrap works, else off",
        default="off",
        flag=Option("What agents and gates may see and change."),
        kept=True,
        group="way",
        trust=RESTRAINS,
    ),
    "keep_awake": Key(
        FLAG,
        "keep the machine awake while a loop runs, if systemd-inhibit or caffeinate is installed",
        default=False,
        into="setup.keep_awake",
        group="way",
    ),
    "keep_runs": Key(
        whole(1),
        "number of newest runs whose logs `rooda prune` keeps, for each procedure and kind of loop",
        default=50,
        kinds=PROCEDURES,
        group="way",
    ),
    "workspace": Key(
        word("nearest", HERE),
        "where a command works: nearest: in the folder of the nearest rooda.toml; here: in the current folder",
        default="nearest",
        kinds=PROCEDURES,
        group="way",
    ),
    "snapshot_private": Key(
        FLAG,
        "also save private untracked files in snapshots; other users may be able to read git's objects",
        default=False,
        into="setup.snapshot_private",
        group="way",
        trust=RUNS,
    ),
    "promise_signals": Key(
        FLAG,
        "an agent may end the loop with <promise>SUCCESS</promise>; if not set: in built-in procedures only",
        unset="on for the built-in procedures, off for yours",
        kinds=PROCEDURES,
        group="way",
    ),
    "preamble": Key(
        FLAG,
        "begin each prompt with the agent's role and the iteration",
        default=False,
        flag=Option("Begin the prompt with the agent's role.", ("--preamble/--no-preamble",)),
        kinds=PROCEDURES,
        kept=True,
        into="procedure.preamble",
        group="prompt",
    ),
    "feedback": Key(
        FLAG,
        "add a STATUS section to the prompt if there are gates, failures or notes to report",
        default=True,
        kinds=PROCEDURES,
        into="procedure.feedback",
        group="prompt",
    ),
    "show_ai_output": Key(
        FLAG, "print the agent's output as it arrives", default=False, into="setup.show_ai_output", group="screen"
    ),
    "log_level": Key(
        word("debug", "info", "warn", "error"),
        "how much is printed",
        default="info",
        flag=Option("How much to print."),
        kept=True,
        into="setup.log_level",
        group="screen",
    ),
    "log_timestamp_format": Key(
        word("time", "time-ms", "relative", "iso", "none"),
        "the timestamp at the beginning of each line",
        default="time",
        into="setup.log_timestamp_format",
        group="screen",
    ),
}

SHARED = {key: row for key, row in LOOP.items() if row.kinds == ALL}


def _phase(name: str, what: str) -> Key:
    flag = Option(f"Replace the {name} phase.", metavar="TEXT|FILE", many=True)
    return Key(PHASE, what, flag=flag, kinds=PROCEDURES, kept=True, group="prompt")


PROCEDURE = {
    "display": Key(TEXT, "the name on screen"),
    "summary": Key(ANY_TEXT, "one line for rooda list"),
    "description": Key(ANY_TEXT, "a paragraph for rooda info"),
    "observe": _phase("observe", "first phase: text, file, builtin:NAME, or an array of them"),
    "orient": _phase("orient", "second phase"),
    "decide": _phase("decide", "third phase"),
    "act": _phase("act", "fourth phase"),
    "context": Key(
        TEXTS,
        "files or text added to every prompt",
        flag=Option(
            "Add text or a file to the prompt; repeatable.", ("-c", "--context"), metavar="TEXT|FILE", many=True
        ),
        kinds=PROCEDURES,
        kept=True,
        group="prompt",
    ),
    "context_files": Key(
        TEXTS,
        "files added to every prompt, after context; each must exist",
        flag=Option("Add a file to the prompt; repeatable.", ("--context-file",), metavar="FILE", many=True),
        kinds=PROCEDURES,
        kept=True,
        group="prompt",
    ),
    "hosts": Key(HOSTS, "hosts that the procedure may reach in a sandbox, besides those of [sandbox]", trust=RUNS),
    "environment": Key(NAMES, "further environment variables that the procedure gets in a sandbox", trust=RUNS),
    "read": Key(NAMES, "further files and folders that the procedure may read in a sandbox", trust=RUNS),
    "parameters": Key(
        PARAMETERS,
        "values for {{name}} in the phases",
        flag=Option("Value of a {{NAME}} placeholder.", ("--param",), metavar="NAME=VALUE", many=True),
        kinds=PROCEDURES,
        kept=True,
        group="prompt",
    ),
    **LOOP,
}

AGENT_TEST = {
    "env": Key(
        AGENT_ENV, "environment variables that point the CLI at the model server; {url} is the server's address"
    ),
    "files": Key(
        HOME_FILES,
        "files that point the CLI at the server: path below the CLI's HOME = text; {url} is the server's address",
    ),
    "api": Key(
        word("openai", "anthropic", "responses"),
        "the only API that the server offers: OpenAI's Chat Completions, Anthropic's, or OpenAI's Responses; "
        "before env, rooda sets the usual variables of this API, such as OPENAI_BASE_URL and OPENAI_API_KEY",
    ),
    "model": Key(TEXT, "the model that the CLI is started with, if its default model would not use the server"),
    "answer": Key(
        TEXT,
        "for a CLI that offers the model no tools: the model's answer that makes it write the file made.txt with "
        "the line `from the model`",
    ),
    "finish": Key(TEXT, "for a CLI that exits only if the model runs a certain shell command: that command"),
}

AGENT = {
    "like": Key(TEXT, "another agent, from which this one inherits all keys that it does not set", trust=RUNS),
    "fallback": Key(NAMES, "agents to use instead of this one; see fallback of [loop]", trust=RUNS),
    "command": Key(
        COMMAND,
        "the command line, split without a shell; {model}, {prompt}, {report}, … are filled in (docs/agents.md)",
        trust=RUNS,
    ),
    "prompt": Key(word("stdin", "argument", "file"), "how the agent gets the prompt", trust=RUNS),
    "output": Key(
        word("text", *OUTPUTS),
        "how rooda reads the output",
        trust=RUNS,
    ),
    "stop": Key(word("TERM", "INT"), "the first signal to end a call"),
    "keep_background": Key(
        FLAG,
        "let processes that a call leaves running continue until the run ends, not only until the call ends",
        trust=RUNS,
    ),
    "exit_grace": Key(SECONDS, "seconds that the agent may run after its final message; 0 = no limit"),
    "idle_timeout": Key(
        SECONDS,
        "seconds that the agent may neither print nor use the CPU, unless [loop] or the kind of loop sets "
        "idle_timeout; 0 = no limit",
        trust=RESTRAINS,
    ),
    "log": Key(
        TEXT, "the CLI's own log, which rooda names if the CLI prints nothing; ~ is the agent's HOME", trust=RUNS
    ),
    "env": Key(AGENT_ENV, "variables added to the agent's environment", trust=RUNS),
    "model": Key(TEXT, "the agent's model if no other setting names one"),
    "env_deny": Key(
        NAMES, "variables of rooda's environment that the agent does not get; * matches anything", trust=RESTRAINS
    ),
    "size_limit": Key(whole(0), "maximum bytes of a prompt; 0 = no limit"),
    "character_limit": Key(whole(0), "maximum characters of a prompt; 0 = no limit"),
    "read_only": Key(COMMAND, "the command line that replaces command if read_only is set", trust=RUNS),
    "allow": Key(
        OPTION,
        "option that allows only certain tools: {tools} is a list with commas; {tool} repeats the option for each",
        trust=RUNS,
    ),
    "deny": Key(OPTION, "option that denies certain tools: {tools} or {tool} as in allow", trust=RUNS),
    "budget": Key(OPTION, "option that makes the CLI end a call that has cost {budget} dollars", trust=RUNS),
    "budget_day": Key(
        AMOUNT,
        "dollars that all loops of the user may spend on the agent's account in one local calendar day; 0 = no limit",
        trust=RESTRAINS,
    ),
    "untrusted": Key(
        ANY_TEXT,
        "options with which the agent ignores its settings files in a project; empty: the agent needs no option",
        trust=RUNS,
    ),
    "billing": Key(
        AGENT_ENV,
        "variables that decide which account pays, each with its description; the first that is set counts",
        trust=RUNS,
    ),
    "account": Key(TEXT, "the account that pays if none of the billing variables is set", trust=RUNS),
    "version": Key(ANY_TEXT, "option that prints the agent's version; empty: rooda does not ask for it", trust=RUNS),
    "sandbox": Key(word(*SANDBOXES), "the agent's own value of sandbox in [loop]", trust=RESTRAINS),
    "hosts": Key(HOSTS, "hosts that the agent needs and may reach in a sandbox", trust=RUNS),
    "variables": Key(NAMES, "variables that the agent also gets in a sandbox; * matches anything", trust=RUNS),
    "login": Key(
        NAMES,
        "files with the agent's login; in a sandbox the agent gets copies of these files and can renew the login",
        trust=RUNS,
    ),
    "own_files": Key(
        NAMES, "other files of the agent in HOME; in a sandbox the agent gets copies of these files", trust=RUNS
    ),
    "known": Key(NAMES, "what the agent's output reports: usage, cost, limits", trust=RUNS),
    "install": Key(TEXT, "how to install the agent"),
    "summary": Key(TEXT, "one line about the agent"),
    "test": Key(table_with(AGENT_TEST), "how `rooda agents test` points the CLI at its model server", trust=RUNS),
    "tested": Key(TEXT, "the version of the CLI that rooda's own tests run"),
    "documented_only": Key(FLAG, "configured from its vendor's documentation, never run by rooda's tests"),
}

BUDGET = {
    "day": Key(
        AMOUNT,
        "dollars that all loops of the user may spend in one local calendar day; 0 = no limit",
        trust=RESTRAINS,
    ),
    "project": Key(
        AMOUNT,
        "dollars that all runs of this workspace and its worktrees may cost; 0 = no limit",
        trust=RESTRAINS,
    ),
    "unknown_call": Key(AMOUNT, "dollars to assume for a call of unknown cost; 0: its cost stays unknown", trust=RUNS),
}

PRICE = {
    "input": Key(AMOUNT, "input tokens that are not cached"),
    "output": Key(AMOUNT, "output tokens, including reasoning"),
    "cached": Key(AMOUNT, "input tokens read from a cache; default: the price of input"),
    "written": Key(AMOUNT, "input tokens written to a cache; default: the price of input"),
}

SANDBOX = {
    "network": Key(
        word(*NETWORKS),
        "what agents may reach: agent: their own hosts and `hosts`; on: everything, including this machine; off: "
        "nothing",
        trust=RUNS,
    ),
    "gates": Key(FLAG, "also run gates, checks, sensors and verifications in the sandbox; default: true", trust=RUNS),
    "gate_network": Key(
        word(*GATE_NETWORKS),
        "what gates and checks may reach: hosts: the names in `hosts`; on: everything; off: nothing; default: off",
        trust=RUNS,
    ),
    "hosts": Key(
        HOSTS,
        "hosts that may be reached: example.org, *.example.org, example.org:8443, localhost:5432 of this machine; "
        "[]: agents whose hosts rooda does not know need none",
        trust=RUNS,
    ),
    "read": Key(NAMES, "further files and folders that may be read, such as ~/lib", trust=RUNS),
    "write": Key(NAMES, "further files and folders that may be changed, such as ~/.cache/uv", trust=RUNS),
    "hide": Key(NAMES, "files and folders of the workspace to hide, such as .env", trust=RESTRAINS),
    "environment": Key(NAMES, "environment variables to pass on; * matches anything", trust=RUNS),
    "allow": Key(NAMES, "guarded files that an agent may change, such as .github/workflows", trust=RUNS),
    "max_memory": Key(SIZE, "memory that a call or a gate may use, in bytes or as 8GB; 0 = no limit", trust=RESTRAINS),
    "max_processes": Key(whole(0), "processes that a call or a gate may have; 0 = no limit", trust=RESTRAINS),
    "max_output": Key(SIZE, "output of a call or a gate, in bytes or as 1GB; 0 = no limit", trust=RESTRAINS),
}

WORKTREE = {
    "setup": Key(TEXT, "a shell command that rooda runs in a new worktree before the loop starts", trust=RUNS),
    "copy": Key(NAMES, "files and folders of the workspace that rooda copies to a new worktree", trust=RUNS),
    "link": Key(NAMES, "caches of the workspace to which rooda makes links in a new worktree", trust=RUNS),
}

TASKS = {
    "target": Key(TEXT, "the branch that tasks land on; default: the branch that is checked out when a task is added"),
    "branch_prefix": Key(TEXT, "prefix of the tasks' branches, such as rooda/7-fix-login; default: rooda"),
    "clones": Key(TEXT, "the folder for the tasks' clones, outside of the repository", trust=RUNS),
    "min_free": Key(SIZE, "start no more tasks if the disk with the clones has less free space than this, such as 5GB"),
    "question_timeout": Key(DURATION, "how long a task waits for your answer to an agent's question; 0 = no limit"),
    "question_default": Key(TEXT, "the answer that the agent gets after question_timeout; if not set, the task fails"),
    "squash": Key(FLAG, "land each task as one commit"),
}

FLEET_WORKER = {
    "repositories": Key(NAMES, "URLs of repositories that this machine works on; * matches anything", default=[]),
    "agents": Key(NAMES, "agents that tasks may use on this machine; default: the agent of [loop] only", default=[]),
    "max_cost": Key(
        AMOUNT, "highest cost limit of a task here, in dollars, and the limit of tasks without one; 0 = no limit"
    ),
    "prepare": Key(TEXT, "a shell command that sets up a task's clone; default: setup of [worktree]"),
    "ticket_commands": Key(FLAG, "run commands that come with a task: gates, agent commands, set-up"),
}

FLEET = {  # only in the user's own settings: no workspace decides where tasks run
    "address": Key(TEXT, "the Temporal server: temporal://HOST:PORT/NAMESPACE"),
    "default": Key(FLAG, "`rooda tasks` always means the tasks of the fleet, as with --fleet"),
    "heartbeat": Key(
        BEAT, "seconds without a sign of life from a worker after which other workers get its tasks; default: 60"
    ),
    "state": Key(TEXT, "the repository for the state of tasks; default: the task's own repository"),
    "ref_prefix": Key(TEXT, "prefix of the refs that hold a task's state; default: refs/rooda/task/"),
    "logs": Key(word("worker", "git"), "where transcripts stay: on the worker, or in the task's ref; default: worker"),
    "keep": Key(AGE, "how long `rooda fleet prune` keeps the refs of landed and cancelled tasks; default: 14d"),
    "insecure": Key(FLAG, "allow unencrypted connections to other machines: to Temporal and to git remotes"),
    "worker": Key(table_with(FLEET_WORKER), "what `rooda worker` runs on this machine"),
}

TELEMETRY = {
    "endpoint": Key(
        URL,
        "the collector to which rooda exports runs with OpenTelemetry; OTEL_EXPORTER_OTLP_ENDPOINT overrides "
        "this setting",
        trust=RUNS,
    ),
}

TRUST = {  # only in the user's own settings: no workspace can trust itself
    "folders": Key(
        TEXTS, 'folders in and below which rooda accepts all settings, and files of any owner; "/" = every folder'
    ),
}

OLDER = {"default_max_iterations": "default_iterations"}

_COMMANDS = """
    run resume status stop logs list info config init tokens agents reflex flow goal version completion doctor usage
    events why diff undo snapshots attach pause continue service prune trust
    say set forecast tasks answer cancel clean log worker fleet metrics export
"""
COMMANDS = tuple(_COMMANDS.split())
_FURTHER = """
    help demo runs page watch schedule eval fork
    memory
"""
RESERVED = frozenset({*COMMANDS, *_FURTHER.split()})


def flag_of(key: str) -> str:
    """Return the command-line option of a setting."""
    row = PROCEDURE.get(key)
    return ((row and row.flag) or Option("")).flag(key)


VARIABLES = "ROODA_LOOP_"


def variable_of(key: str) -> str:
    """Return the environment variable of a setting of [loop]."""
    return VARIABLES + key.upper()
