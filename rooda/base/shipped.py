"""Where the files that ship with rooda lie: inside the wheel, or beside the package in a checkout."""

import os

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def shipped(folder: str, name: str = "") -> str:
    """Path of `name` in `prompts` or `config`; it need not exist."""
    installed = os.path.join(_PACKAGE, folder)
    root = installed if os.path.isdir(installed) else os.path.join(os.path.dirname(_PACKAGE), folder)
    return os.path.join(root, name) if name else root
