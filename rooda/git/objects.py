"""Writes and reads git objects without starting git, which a turn of a task would otherwise do several times.

Objects are written in git's loose format: each to a compressed file that is named by its hash and never partial.
"""

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from rooda.base import files
from rooda.base.hashes import hashlib

FILE, FOLDER = "100644", "40000"
_FAST = 1  # level of compression; the pack that is pushed is compressed again
_SHORT = 40  # hex digits of a SHA-1


class Entry(NamedTuple):
    """An entry of a tree: the mode and the id of an object."""

    mode: str
    id: str


class Objects:
    """Writes objects into a git folder, with the hash algorithm of `like`, the id of another object."""

    def __init__(self, folder: str, like: str = "") -> None:
        self._folder, self._short = folder, len(like or "0" * _SHORT) == _SHORT

    def name(self, kind: str, data: bytes) -> str:
        """Return the id of an object."""
        made = hashlib.sha1(usedforsecurity=False) if self._short else hashlib.sha256()
        made.update(b"%s %d\0" % (kind.encode(), len(data)))
        made.update(data)
        return made.hexdigest()

    def write(self, kind: str, data: bytes) -> str:
        """Write an object unless the folder has it; return its id."""
        name = self.name(kind, data)
        path = os.path.join(self._folder, name[:2], name[2:])
        if not os.path.exists(path):
            packed = zlib.compress(b"%s %d\0" % (kind.encode(), len(data)) + data, _FAST)
            files.make_folder(os.path.dirname(path))
            try:
                files.create_whole(path, packed, 0o444, synced=False)
            except FileExistsError:
                pass  # another thread was first
        return name

    def tree(self, content: Mapping[str, bytes | Entry]) -> str:
        """Write a tree and return its id. `content` maps paths to file data or to entries that exist already."""
        rows, folders = dict[str, Entry](), dict[str, dict[str, bytes | Entry]]()
        for path, data in content.items():
            name, slash, rest = path.partition("/")
            if slash:
                folders.setdefault(name, {})[rest] = data
            else:
                rows[name] = data if isinstance(data, Entry) else Entry(FILE, self.write("blob", data))
        rows |= {name: Entry(FOLDER, self.tree(inner)) for name, inner in folders.items()}
        places = {files.to_bytes(f"{name}/" if row.mode == FOLDER else name): name for name, row in rows.items()}
        data = b"".join(_row(places[place], rows[places[place]]) for place in sorted(places))
        return self.write("tree", data)

    def commit(self, tree: str, parents: Iterable[str], who: str, when: int, message: str) -> str:
        """Write a commit; return its id."""
        lines = [f"tree {tree}", *(f"parent {each}" for each in parents)]
        lines += [f"{word} {who} {when} +0000" for word in ("author", "committer")]
        return self.write("commit", files.to_bytes("\n".join([*lines, "", message, ""])))


def _row(name: str, entry: Entry) -> bytes:
    return f"{entry.mode} ".encode() + files.to_bytes(name) + b"\0" + bytes.fromhex(entry.id)


def entries(data: bytes, like: str) -> Iterator[tuple[str, Entry]]:
    """Yield the name and the entry in each row of a tree object; `like`: the id of an object in the same repository.

    Raises ValueError if the tree is damaged.
    """
    at, size = 0, len(like) // 2
    while at < len(data):
        end = data.index(b"\0", at)
        mode, _, name = files.to_text(data[at:end]).partition(" ")
        yield name, Entry(mode, data[end + 1 : end + 1 + size].hex())
        at = end + 1 + size
