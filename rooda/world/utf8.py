"""Settings, plans and states are UTF-8, so names of files and words of commands must be, whatever the locale lacks."""

import os
import sys

_SPOKEN = "_ROODA_SPOKEN"  # the encoding of whoever reads what we print; it stays what it was


def insist() -> None:
    """Begin anew in Python's UTF-8 mode: a C locale without it has no `é` for a path or a command."""
    if sys.flags.utf8_mode or not sys.executable:
        return
    spoken = getattr(sys.stdout or sys.stderr, "encoding", None) or "ascii"
    try:
        os.execve(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]], {**os.environ, _SPOKEN: spoken})
    except OSError:
        return


def spoken() -> str | None:
    """What our output is to be encoded in, if not as it is. Nobody whom we start is told."""
    return os.environ.pop(_SPOKEN, None)
