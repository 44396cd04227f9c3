"""Checks a repository that an agent made, whose settings and hooks could start programs outside of the sandbox."""

import os
import re

from rooda.base import files, workspace_files

# Lines of a git configuration that start no program and lead nowhere else.
_HARMLESS = re.compile(
    r"""\s*(?:[#;].*|\[(?:core|user|init|(?:branch|remote)\ "[^"]*")\]|
    (?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|symlinks|precomposeunicode|
    name|email|defaultbranch|remote|merge|url|fetch)\s*=.*)?""",
    re.IGNORECASE | re.VERBOSE,
)
_REDIRECTS = ("commondir", "config.worktree", "modules", "worktrees")


def is_harmless(folder: str) -> bool:
    """True for a git folder as `git init` makes it: no hooks, and no settings that start a program."""
    if not files.is_folder(folder) or any(os.path.lexists(os.path.join(folder, name)) for name in _REDIRECTS):
        return False
    hooks = os.path.join(folder, "hooks")
    if os.path.lexists(hooks) and not files.is_folder(hooks):
        return False
    if not all(name.endswith(".sample") for name in files.list_if_readable(hooks)):
        return False
    try:
        text = workspace_files.text(folder, os.path.join(folder, "config"))
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return all(_HARMLESS.fullmatch(line) for line in text.split("\n"))
