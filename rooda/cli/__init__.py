"""The command line: click lives here, and only here."""

import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """The whole command: arguments in, exit code out. The two cheapest questions never load click."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if "_ROODA_COMPLETE" not in os.environ and words in ([], ["--help"], ["-h"], ["--version"]):
        from rooda.cli.words import help_text, version_text

        return _print(version_text() if words == ["--version"] else help_text())
    from rooda.cli.gate import guarded

    return guarded(words)


def _print(text: str) -> int:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:
        from rooda.report.screen import silence

        silence(sys.stdout)
    return 0
