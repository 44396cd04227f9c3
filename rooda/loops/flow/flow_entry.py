"""What has a name on the disk, of whatever kind, as it was before a call; and putting it back."""

import os
from typing import NamedTuple

from rooda.base import files


class Entry(NamedTuple):
    """A file; or a link in its place, since people link files of git's, or a folder."""

    data: bytes = b""
    mode: int = 0
    target: str = ""  # of a link
    folder: bool = False


OTHER = Entry(mode=-1)  # no ordinary file, or one that can't be read


def entry(path: str) -> Entry | None:
    """None where nothing is."""
    try:
        if os.path.islink(path):
            return Entry(target=os.readlink(path))
        if os.path.isdir(path):
            return Entry(folder=True)
        return Entry(files.read_ours(path), os.stat(path).st_mode & 0o777)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return OTHER


def put(path: str, old: Entry | None) -> None:
    """As it was. Whatever has the name now goes, and so does what stands in the place of a folder above."""
    if old == OTHER:
        return
    files.remove_tree(path)
    if old is None:
        return
    above = os.path.dirname(path)
    while not os.path.isdir(above):
        files.remove(above)
        above = os.path.dirname(above)
    files.folder(path if old.folder else os.path.dirname(path))
    if old.target:
        files.link(path, old.target)
    elif not old.folder:
        files.write(path, old.data, old.mode)
