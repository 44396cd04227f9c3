"""Turns exceptions into messages and exit codes."""

import errno
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rooda.errors import FAILED, INTERRUPTED, Interrupted, RoodaError, Undecided, code_of_signal

if TYPE_CHECKING:
    import click

ERROR, WARNING = "Error: ", "WARNING: "  # prefixes of messages on stderr


def guarded(words: Sequence[str]) -> int:
    """Run the command line and return its exit code. For a user's mistake, print a message instead of a traceback."""
    from rooda.cli.app import app

    def command() -> int:
        code = _shown(lambda: app.main(args=list(words), prog_name="rooda", standalone_mode=False))
        return code if isinstance(code, int) else 0

    return settled(command)


def settled(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; an exception becomes a message on stderr and a code."""
    try:
        return command()
    except KeyboardInterrupt:
        _say("Interrupted.")
        return INTERRUPTED
    except Interrupted as cut:
        _say("Interrupted.")
        return code_of_signal(cut.number)
    except Undecided as problem:
        _say(f"{WARNING}{problem}")
        return problem.code
    except RoodaError as problem:
        _say(f"{ERROR}{problem}")
        return problem.code
    except (BrokenPipeError, SystemExit):  # click turns BrokenPipeError into SystemExit
        return _reader_gone()
    except OSError as problem:
        if problem.errno == errno.ENOSPC:
            from rooda.base.terminal import silence

            silence(sys.stdout)  # otherwise Python's flush at exit would fail too
        place = f"{problem.filename}: " if problem.filename else ""
        _say(f"{ERROR}{place}{problem.strerror or problem}")
        return FAILED


def _shown(command: Callable[[], Any]) -> Any:
    """Run a click command and return its value; for a usage error, print it and return its exit code."""
    import click

    try:
        return command()
    except click.exceptions.NoArgsIsHelpError as problem:
        click.echo(problem.ctx.get_help() if problem.ctx else "", err=True)
        return problem.exit_code
    except click.ClickException as problem:
        _write_stderr(problem.show)
        if advice := _advice(problem):
            _say(advice)
        return problem.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None


def _advice(problem: "click.ClickException") -> str:
    """Return advice for an option or argument in the wrong place; "" for any other error."""
    import click

    ctx = problem.ctx if isinstance(problem, click.UsageError) else None
    if ctx is None:
        return ""
    if isinstance(problem, click.NoSuchOption) and (successor := _successor(problem.option_name, ctx)):
        return f"Instead: {successor}"
    if isinstance(problem, click.NoSuchOption) and ctx.parent is None:
        from rooda.loops import options

        known = any(problem.option_name in parameter.opts for parameter in options.for_start())
        return f"Options of a run follow its name: rooda build {problem.option_name} …" if known else ""
    if (said := problem.format_message()).startswith("No such command"):
        return _meant(said, ctx)
    if "unexpected extra argument" in said:
        takes = {parameter.name for parameter in ctx.command.params}
        if "task" in takes and "context" in takes:
            return "Put the task in quotes."
        if "context" in takes:
            return 'Describe the task with --context "TEXT".'
        return "Put the specification in quotes, or in a file: --file FILE." if "spec" in takes else ""
    return ""


_LISTS = ("agents", "tasks")  # commands that print their list if no word follows


def _meant(said: str, ctx: "click.Context") -> str:
    """Return advice on an unknown command of a group: how to list, or to put a task in quotes; "" if neither fits."""
    if ctx.command.name in _LISTS and said.startswith("No such command 'list'"):
        return f"To list them: {ctx.command_path}"
    start = getattr(ctx.command, "default", "")
    return f'If it is a task, put it in quotes: {ctx.command_path} {start} "TASK"' if start else ""


_OLD_OPTIONS = {  # of an older program of the same name
    "--list-procedures": "rooda list",
    "--ai-tool": "--agent NAME",
    "--ai-cmd-preset": "--agent NAME",
    "--ai-cli": "--ai-cmd COMMAND",
    "-m": "-n N, or --max-iterations N",
}


def _successor(option: str, ctx: "click.Context") -> str:
    """Return the option that replaces `option` of an older rooda, if the command has it; else ""."""
    found = _OLD_OPTIONS.get(option, "")
    taken = {name for parameter in ctx.command.params for name in parameter.opts}
    if ctx.parent is None and found.startswith("-"):
        return f"rooda build {found}"
    return found if found.startswith("rooda ") or found.split(" ")[0].rstrip(",") in taken else ""


def _say(text: str) -> None:
    from rooda.base.text import escape_text

    _write_stderr(lambda: _print(escape_text(text)))


def _print(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _write_stderr(say: Callable[[], object]) -> None:
    """Write to stderr. If that fails, discard further output, so that Python's flush at exit doesn't fail too."""
    try:
        say()
    except OSError:
        from rooda.base.terminal import silence

        silence(sys.stderr)


def _reader_gone() -> int:
    """Discard further output, because the process that reads it has exited (`rooda list | head -1`); return 0."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    return 0
