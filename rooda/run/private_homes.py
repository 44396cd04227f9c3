"""Keeps the folders that are HOME in the sandbox: one for each project and CLI, and one for a project's commands.

They are kept after a run, because CLIs and toolchains have caches there.
"""

import os
from collections.abc import Iterator

from rooda.base import dirs, files
from rooda.base.json import parse_object
from rooda.errors import RoodaError

PROJECT = "project"  # a file that names the project of a folder


def home_of(top: str, who: str) -> str:
    """Return the HOME of `who` (a CLI, or commands) for the project at `top`; create it if it is missing."""
    home = dirs.make_state("homes", key_of(top), who)
    note = os.path.join(os.path.dirname(home), PROJECT)
    if not os.path.lexists(note):
        files.replace(note, files.to_bytes(top), 0o600, synced=False)
    return home


def problem() -> str:
    """Return why a home can't be created; "" if it can."""
    try:
        dirs.make_state("homes")
    except OSError as problem:
        why = f"{dirs.state('homes')}: {problem.strerror}" if dirs.state() else str(problem.strerror)
    except RoodaError as problem:
        why = problem.what
    else:
        return ""
    return f"the agents' HOME can't be made ({why}); set ROODA_STATE_HOME to a folder that you can write"


def key_of(path: str) -> str:
    """Return the name under which rooda's state keeps the data of this folder."""
    return files.sha256(files.to_bytes(path))[:16]


def forget(top: str, common: str) -> None:
    """Delete the homes of a project, and the record of its commits."""
    for kind, folder in (("homes", top), ("commits", common)):
        if folder and (place := dirs.state(kind, key_of(folder))):
            remove(place)


def of_gone_projects() -> Iterator[tuple[str, str]]:
    """Yield the path of each home or record of commits whose project no longer exists, and the project's path."""
    for kind in ("homes", "commits"):
        place = dirs.state(kind)
        for name in files.list_if_readable(place) if place else ():
            path = os.path.join(place, name)
            project = _project(path)
            if project and not os.path.lexists(project):
                yield path, project


def _project(path: str) -> str:
    """Return the project of a home or a record of commits; "" if it is not recorded."""
    try:
        if files.is_folder(path):
            return files.to_text(files.read_ours(os.path.join(path, PROJECT)))
        return str(parse_object(files.read_ours(path)).get("folder", ""))
    except (OSError, ValueError):
        return ""


def remove(path: str) -> None:
    """Delete a home or a record. Some toolchains make their caches read-only."""
    for folder, _, _ in os.walk(path):
        files.set_mode(folder, 0o700)
    files.remove_tree(path)
