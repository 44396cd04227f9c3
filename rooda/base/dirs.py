"""Locates the user's cache and state and the files shipped with rooda, and creates `.rooda`.

Deleting the cache or the state loses no work.
"""

import errno
import os

from rooda.base import files


def cache(*names: str) -> str:
    """Return a path in rooda's cache; "" if the user has no home folder."""
    return _below("CACHE", ".cache/rooda", names)


def state(*names: str) -> str:
    """Return a path in the user's persistent state, which all loops share; "" if the user has no home folder."""
    return _below("STATE", ".local/state/rooda", names)


def data(*names: str) -> str:
    """Return a path in the user's data, where the clones of tasks are; "" if the user has no home folder."""
    return _below("DATA", ".local/share/rooda", names)


def make_state(*names: str) -> str:
    """Create a folder in the user's state that only the user can enter; return its path.

    Raises OSError if that fails, UsageProblem if the folder is a link.
    """
    home = state()
    if not home:
        raise OSError(errno.ENOENT, "HOME is not set")
    top, name = (home, "") if os.path.islink(home) else os.path.split(home)
    files.make_real_folder(top, os.path.join(name, *names), private=True)
    return os.path.join(home, *names)


def _below(kind: str, usual: str, names: tuple[str, ...]) -> str:
    for variable, below in ((f"ROODA_{kind}_HOME", ""), (f"XDG_{kind}_HOME", "rooda"), ("HOME", usual)):
        home = os.environ.get(variable, "")
        if os.path.isabs(home):
            return os.path.join(home, below, *names)
    return ""


FOLDERS = ("runs", "state", "locks", "snapshots", "worktrees", "goal.git")  # in `.rooda`


def make_home(path: str, *inner: str) -> None:
    """Create `.rooda` and a folder in it, accessible only to the workspace's owner and ignored by git.

    Raises UsageProblem if one of them is a link.
    """
    workspace, name = os.path.split(path)
    files.make_real_folder(workspace, os.path.join(name, *inner), private=True)
    ignored = os.path.join(path, ".gitignore")
    if not os.path.lexists(ignored):
        files.replace_unsynced(ignored, b"*\n")


def tighten_home(path: str) -> None:
    """Restrict existing folders in `.rooda` to the workspace's owner; older versions left them open.

    Raises UsageProblem if one of them is a link.
    """
    for name in FOLDERS:
        if os.path.lexists(os.path.join(path, name)):
            make_home(path, name)


# Shipped files are inside the wheel, or next to the package in a checkout.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def shipped(folder: str, name: str = "") -> str:
    """Return the path of a file shipped in `prompts` or `config`; the file need not exist."""
    installed = os.path.join(_PACKAGE, folder)
    root = installed if os.path.isdir(installed) else os.path.join(os.path.dirname(_PACKAGE), folder)
    return os.path.join(root, name) if name else root
