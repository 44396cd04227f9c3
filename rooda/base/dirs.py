"""Where the user's cache and state are. What is in them can be lost at any time: it costs time or comfort, no work."""

import os

from rooda.base import files


def cache(*names: str) -> str:
    """Path of something in rooda's cache; "" when there is no home to put one in."""
    return _below("CACHE", ".cache/rooda", names)


def state(*names: str) -> str:
    """Path of something that all loops of this user share, and that outlives a restart and a reboot."""
    return _below("STATE", ".local/state/rooda", names)


def _below(kind: str, usual: str, names: tuple[str, ...]) -> str:
    for variable, below in ((f"ROODA_{kind}_HOME", ""), (f"XDG_{kind}_HOME", "rooda"), ("HOME", usual)):
        home = os.environ.get(variable, "")
        if os.path.isabs(home):
            return os.path.join(home, below, *names)
    return ""


def make_home(path: str) -> None:
    """`.rooda`, with a .gitignore so that no agent commits it."""
    files.make_folder(path)
    ignored = os.path.join(path, ".gitignore")
    if not os.path.lexists(ignored):
        files.replace_unsynced(ignored, b"*\n")


# Where the files that ship with rooda lie: inside the wheel, or beside the package in a checkout.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def shipped(folder: str, name: str = "") -> str:
    """Path of `name` in `prompts` or `config`; it need not exist."""
    installed = os.path.join(_PACKAGE, folder)
    root = installed if os.path.isdir(installed) else os.path.join(os.path.dirname(_PACKAGE), folder)
    return os.path.join(root, name) if name else root
