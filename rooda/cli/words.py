"""Lists rooda's commands: where each is defined, and its line in `rooda --help`."""

from typing import NamedTuple

from rooda.loops import registry


class Word(NamedTuple):
    """A command: where it is defined, and its line in `rooda --help`."""

    target: str  # "module:attribute" of the click command
    help: str
    starting: tuple[str, ...] = ()  # subcommands that run a loop


WORDS = {
    "run": Word("rooda.loops.procedure.cli:run", "Run a procedure; `rooda build` is short for `rooda run build`."),
    "resume": Word("rooda.cli.resume:resume", "Resume an interrupted or aborted run."),
    "status": Word("rooda.cli.status:status", "Show what is running here, and what can be resumed."),
    "stop": Word("rooda.cli.control:stop", "End a running loop as Ctrl+C would; its state is saved."),
    "cancel": Word("rooda.cli.cancel:cancel", "End a loop for good; its run and its work stay."),
    "pause": Word("rooda.cli.control:pause", "Suspend a running loop and its agent."),
    "continue": Word("rooda.cli.control:continue_", "Continue a paused loop."),
    "say": Word("rooda.cli.messages:say", "Give a running loop a note for its next prompt."),
    "answer": Word("rooda.cli.answer:answer", "Answer the question of an agent."),
    "set": Word("rooda.cli.messages:set_", "Change the limits of a running loop."),
    "attach": Word("rooda.cli.control:attach", "Watch a running loop; Ctrl+C only stops watching."),
    "logs": Word("rooda.cli.logs:logs", "Show what the latest run did, iteration by iteration."),
    "events": Word("rooda.cli.logs:events", "Print the events of the latest run as JSON lines; -f follows."),
    "why": Word("rooda.cli.why:why", "Show why a run continued, failed, paused or stopped."),
    "runs": Word("rooda.cli.runs:runs", "List past runs, newest first: when, what, outcome, cost."),
    "export": Word("rooda.cli.export:export", "Write a run to one HTML file."),
    "page": Word("rooda.page.cli:page", "Serve a live page with all loops and tasks, for a browser."),
    "usage": Word("rooda.cli.usage:usage", "Sum up tokens, time and cost per loop, run, agent or day."),
    "forecast": Word("rooda.cli.forecast:command", "Estimate what further iterations cost, and how long they take."),
    "metrics": Word("rooda.cli.metrics:metrics", "Print metrics of all your loops, for Prometheus."),
    **{
        kind: Word(f"{row.package}.cli:{kind}", row.summary, row.starting)
        for kind, row in registry.KINDS.items()
        if row.summary
    },
    "tasks": Word("rooda.tasks.cli:tasks", "Work through a list of tasks, several at once.", ("run", "land")),
    "worker": Word("rooda.fleet.cli:worker", "Run the tasks of a fleet on this machine."),
    "fleet": Word("rooda.fleet.cli:fleet", "Show, check and clean the fleet."),
    "snapshots": Word("rooda.cli.snapshots:snapshots", "List the snapshots of the work tree, iteration by iteration."),
    "diff": Word("rooda.cli.snapshots:diff", "Show what an iteration changed in the work tree."),
    "undo": Word("rooda.cli.undo:undo", "Restore the work tree from before an iteration."),
    "prune": Word("rooda.cli.undo:prune", "Remove old runs and snapshots, and merged worktrees."),
    "list": Word("rooda.loops.procedure.cli:list_", "List all procedures."),
    "info": Word("rooda.loops.procedure.cli:info", "Show the prompts and settings of a procedure."),
    "init": Word("rooda.cli.init:init", "Write a commented rooda.toml for this project."),
    "config": Word("rooda.cli.config:config", "Show the settings in force; show --origin adds their source."),
    "agents": Word("rooda.cli.agents:agents", "List the agent CLIs: installed or not, version, known features."),
    "tokens": Word("rooda.cli.tokens:tokens", "Count the tokens of files."),
    "doctor": Word("rooda.cli.doctor:doctor", "Check whether a loop can run here, and who pays for it."),
    "trust": Word("rooda.cli.trust:trust", "Trust what the settings of a workspace would start."),
    "service": Word("rooda.cli.service:service", "Resume loops after a reboot: install, uninstall, status."),
    "completion": Word("rooda.cli.completion:completion", "Print or install shell completion for bash, zsh or fish."),
    "version": Word("rooda.cli.app:version", "Print the versions of rooda, Python and the system."),
}

SYNONYMS = {"log": "logs", "clean": "prune"}  # further words for commands

USAGE = "Usage: rooda [OPTIONS] PROCEDURE [ARGS]...\n       rooda [OPTIONS] COMMAND [ARGS]...\n"

ABOUT = """
  Runs an AI coding CLI in a loop that ends: a fresh process per iteration,
  its work checked by your quality gates, every state on disk.

  rooda build --max-iterations 5 --agent claude    run a procedure
  rooda build --dry-run                            see the prompt first
  rooda resume build                               resume it after Ctrl+C
"""

OPTIONS = """
Options:
  -C DIR         Work in DIR instead of the current directory.
  --config FILE  Use FILE instead of the rooda.toml found from the workspace.
  --version      Show the version and exit.
  -h, --help     Show this message and exit.
"""


_RUN = "run resume reflex flow goal pause continue stop cancel set say answer"
GROUPS = {
    "Run": _RUN,
    "Watch": "status attach logs runs events why export metrics",
    "Tasks": "tasks worker fleet",
    "Money": "usage forecast",
    "Safety": "snapshots diff undo prune trust",
}
REST = "Set up"  # the group of all other commands


def grouped() -> dict[str, list[str]]:
    """Return the names of all commands by group, in the order of display."""
    groups = {title: [name for name in names.split() if name in WORDS] for title, names in GROUPS.items()}
    listed = {name for names in groups.values() for name in names}
    return {**groups, REST: [name for name in WORDS if name not in listed]}


def help_text() -> str:
    """Return the text of `rooda --help`. It is built without click, which is slow to load."""
    width = max(map(len, WORDS))
    rows = "\n".join(
        f"{title}:\n" + "".join(f"  {name:<{width}}  {WORDS[name].help}\n" for name in names)
        for title, names in grouped().items()
    )
    synonyms = "\nAlso: " + ", ".join(f"{word} = {name}" for word, name in SYNONYMS.items()) + "\n"
    procedures = "Procedures: build, bootstrap, audit-spec, … (rooda list; rooda build --help)\n"
    return f"{USAGE}{ABOUT}{OPTIONS}\n{rows}{synonyms}{procedures}"


def version_text() -> str:
    from rooda import __version__

    return f"rooda {__version__}\n"
