"""`rooda tokens`: counts the tokens of files as rooda does for `token_budget`."""

import os
import sys
from typing import NamedTuple

import click

from rooda.base import files, workspace_files
from rooda.errors import OK, USAGE
from rooda.run.vocabulary import ENCODINGS


class Counted(NamedTuple):
    """The number of tokens in a file."""

    file: str
    tokens: int
    exact: bool


class Problem(NamedTuple):
    """A file that could not be read."""

    file: str
    error: str


@click.command(short_help="Count the tokens of files.")
@click.argument("names", metavar="FILE...", nargs=-1, required=True)
@click.option("--encoding", type=click.Choice(list(ENCODINGS)), default="o200k_base", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of lines.")
@click.option("-v", "--verbose", is_flag=True, help="Print the encoding on stderr.")
def tokens(names: tuple[str, ...], encoding: str, as_json: bool, verbose: bool) -> int:
    """Count the tokens of each FILE; "-" is the standard input.

    Counts are exact and offline. A "~" marks an estimate, made when tiktoken can't be used.
    """
    from rooda.run.tokens import count

    counted, problems = [], []
    for name in names:
        try:
            counted.append(Counted(name, *count(_text(name), encoding)))
        except OSError as problem:
            reason = problem.strerror or str(problem)
            problems.append(Problem(name, reason))
            click.echo(f"{click.format_filename(name)} can't be read: {reason}", err=True)
    if verbose:
        click.echo(f"encoding: {encoding}", err=True)
    if as_json:
        _as_json(encoding, counted, problems)
    else:
        _as_lines(counted, several=len(names) > 1)
    return USAGE if problems else OK


def _text(name: str) -> str:
    if name == "-":
        return files.to_text(sys.stdin.buffer.read())
    return files.to_text(workspace_files.read_typed(os.getcwd(), name))


def _as_lines(counted: list[Counted], several: bool) -> None:
    rows = [(_number(one.tokens, one.exact), click.format_filename(one.file)) for one in counted]
    if several and rows:
        rows.append((_number(_total(counted), all(one.exact for one in counted)), "total"))
    width = max((len(number) for number, _ in rows), default=0)
    for number, name in rows:
        click.echo(f"{number:>{width}}  {name}")


def _number(tokens: int, exact: bool) -> str:
    return str(tokens) if exact else f"~{tokens}"


def _total(counted: list[Counted]) -> int:
    return sum(one.tokens for one in counted)


def _as_json(encoding: str, counted: list[Counted], problems: list[Problem]) -> None:
    import json

    answer = {
        "encoding": encoding,
        "files": [one._asdict() for one in counted],
        "problems": [one._asdict() for one in problems],
        "total": _total(counted),
        "exact": all(one.exact for one in counted),
    }
    click.echo(json.dumps(answer))
