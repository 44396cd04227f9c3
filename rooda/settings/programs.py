"""Where the program of a command lies that a settings file names by a relative path."""

import os

from rooda.settings.layers import Settings
from rooda.settings.toml import Path


def located(settings: Settings, path: Path, command: str) -> str:
    """The command of the key at `path`: a path in a file is relative to that file, if there is such a program.

    Otherwise it stays as it is, and the workspace decides, where it will be started.
    """
    folder = settings.folder(path) if os.sep in command else ""
    if not folder or os.path.realpath(folder) == os.path.realpath(settings.workspace):
        return command
    import shlex

    program, *words = shlex.split(command)
    beside = os.path.abspath(os.path.join(folder, program))
    if os.sep not in program or os.path.isabs(program) or not os.path.isfile(beside):
        return command
    return shlex.join([beside, *words])
