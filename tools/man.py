"""Generates docs/man/ from click's commands: rooda.1, a page for each command and procedure. Run: python tools/man.py

click-man was weighed: it sees only commands that a group holds, and rooda loads its commands when they are called; it
leaves dots and backslashes of a text to roff, and has no place for arguments and procedures.
"""

import os
import re
import sys
import tempfile
from inspect import cleandoc

import click

import rooda
from rooda.cli import app, words
from rooda.loops import configuration
from rooda.loops.options import DASH_H
from rooda.settings import procedures

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "docs", "man")
COMMON = ("-C", "--config", "--help")  # shown once for each page
AS_TYPED = {"terminal_width": 1000, "max_content_width": 1000, **DASH_H}
EXIT_STATUS = [
    ("0", "ended as asked"),
    ("1", "failed, or it could not be done"),
    ("2", "the command line or a setting is wrong; nothing was started"),
    ("3", "a person must decide first; nothing was started"),
    ("4", "ended short of its goal; it can be resumed"),
    ("130, 143", "ended by Ctrl+C, by SIGTERM or SIGHUP; the state is saved"),
]
FILES = [
    ("rooda.toml", "settings of the workspace"),
    ("~/.config/rooda/rooda.toml", "settings of the user"),
    (".rooda/", "state, runs and transcripts of the workspace; `rooda doctor --paths` lists what is elsewhere"),
]


def pages() -> dict[str, str]:
    """Return the text of each page by its file's name. A folder without settings keeps this machine's out of them."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOME=folder, XDG_CONFIG_HOME="", ROODA_CONFIG_HOME="")
        os.chdir(folder)
        ctx = click.Context(app.app, info_name="rooda", obj=app.located(None, None), **AS_TYPED)
        texts = {name: _page(ctx, name, word.help) for name, word in words.WORDS.items()}
        texts["tasks --fleet"] = _page(ctx, "tasks --fleet", "Work through the tasks of a fleet.")
        ships = procedures.summaries(configuration.load(folder, None))
        texts |= {name: _procedure(name, text) if name != "build" else _page(ctx, name, text) for name, text in ships}
        os.chdir(ROOT)
    found = {f"rooda-{re.sub('[ -]+', '-', name)}.1": text for name, text in texts.items()}
    synonyms = {f"rooda-{word}.1": f".so man1/rooda-{name}.1\n" for word, name in words.SYNONYMS.items()}
    return {"rooda.1": _overview(ships), **found, **synonyms}


def _overview(ships: list[tuple[str, str]]) -> str:
    about = words.ABOUT.strip().partition("\n\n")
    rows = [(title, [(name, words.WORDS[name].help) for name in names]) for title, names in words.grouped().items()]
    lists = [f".SS {_text(title)}\n{_list(row, 'rooda-{}(1)')}" for title, row in [*rows, ("Procedures", ships)]]
    return (
        _head("rooda", "Run AI coding CLIs in loops that end.")
        + _lines(".SH SYNOPSIS", *words.USAGE.replace("Usage:", "").split("\n"))
        + f".SH DESCRIPTION\n{_prose(' '.join(about[0].split()))}.SH EXAMPLES\n.nf\n{_prose(cleandoc(about[2]))}.fi\n"
        + f".SH OPTIONS\n{_list(re.findall(r'^  (-.+?)  +(.+)$', words.OPTIONS, re.MULTILINE))}"
        + f".SH COMMANDS\n{''.join(lists)}"
        + f".SH EXIT STATUS\n{_list(EXIT_STATUS)}.SH FILES\n{_list(FILES)}"
    )


def _page(above: click.Context, name: str, summary: str) -> str:
    command = _command(above, name)
    ctx = click.Context(command, info_name=name, parent=above)
    inner = [(key, each) for key, each in getattr(command, "commands", {}).items() if not each.hidden]
    sections = [_inner(click.Context(each, info_name=key, parent=ctx)) for key, each in inner]
    return (
        _head(f"rooda {name}", summary)
        + _lines(".SH SYNOPSIS", ctx.get_usage().removeprefix("Usage: "))
        + f".SH DESCRIPTION\n{_prose(cleandoc(command.help or ''))}"
        + f".SH OPTIONS\n{_options(ctx)}"
        + (f".SH COMMANDS\n{''.join(sections)}" if sections else "")
        + ".SH SEE ALSO\n.BR rooda (1)\n"
    )


def _command(above: click.Context, name: str) -> click.Command:
    _, command, _ = app.app.resolve_command(above, name.split())
    assert command, name
    return command


def _inner(ctx: click.Context) -> str:
    usage = " ".join(ctx.get_usage().removeprefix("Usage: ").split())
    return f".SS {_text(usage)}\n{_prose(cleandoc(ctx.command.help or ''))}{_options(ctx, COMMON)}"


def _procedure(name: str, summary: str) -> str:
    return (
        _head(f"rooda {name}", summary)
        + _lines(".SH SYNOPSIS", f"rooda {name} [OPTIONS] [TASK]")
        + ".SH DESCRIPTION\nA procedure. Its phases and settings: "
        + f"{_prose(f'`rooda info {name}`.')}.SH OPTIONS\nThose of\n.BR rooda\\-build (1).\n"
    )


def _options(ctx: click.Context, without: tuple[str, ...] = ()) -> str:
    options = [each for each in ctx.command.get_params(ctx) if isinstance(each, click.Option)]
    shown = [each for each in options if not {*each.opts} & {*without}]
    return _list([record for each in shown if (record := each.get_help_record(ctx))])


def _head(name: str, summary: str) -> str:
    with open(os.path.join(ROOT, "CHANGELOG.md"), encoding="utf-8") as file:
        date = re.findall(rf"^## \[{re.escape(rooda.__version__)}\] - (\S+)", file.read(), re.MULTILINE)
    title = re.sub("[ -]+", "-", name)
    what = _text(summary.rstrip(".").replace("`", ""))
    return (
        f'.\\" Generated by: python tools/man.py\n.TH {_text(title.upper())} 1 {" ".join(date)} '
        f'"rooda {rooda.__version__}" rooda\n.SH NAME\n{_text(title)} \\- {what}\n'
    )


def _lines(head: str, *lines: str) -> str:
    return f"{head}\n.nf\n" + "".join(f"{_text(line.strip())}\n" for line in lines if line.strip()) + ".fi\n"


def _list(rows: list[tuple[str, str]], form: str = "{}") -> str:
    return "".join(f".TP\n\\fB{_text(form.format(name))}\\fR\n{_prose(text or '')}" for name, text in rows)


def _prose(text: str) -> str:
    bold = re.sub(r"`([^`\n]+)`", r"\\fB\1\\fR", _text(text).replace("\b\n", ""))
    return re.sub(r"\n\n+", "\n.PP\n", bold.strip()) + "\n"


def _text(text: str) -> str:
    """Escape what roff would interpret."""
    safe = re.sub(r"^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"), flags=re.MULTILINE)
    return "".join(char if char.isascii() else f"\\[u{ord(char):04X}]" for char in safe)


def main() -> int:
    made = pages()
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write("".join(f"== {name}\n{text}" for name, text in made.items()))
        return 0
    os.makedirs(FOLDER, exist_ok=True)
    for name in {*os.listdir(FOLDER)} - {*made}:
        os.remove(os.path.join(FOLDER, name))
    for name, text in made.items():
        with open(os.path.join(FOLDER, name), "w", encoding="utf-8") as file:
            file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
