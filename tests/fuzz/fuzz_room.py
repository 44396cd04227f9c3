"""One temporary folder per process, for the parsers that read files."""

import atexit
import functools
import os
import shutil
import tempfile
from pathlib import Path


@functools.cache
def room() -> str:
    """A folder of this process, with a .git so that no settings above it are read."""
    folder = tempfile.mkdtemp(prefix="rooda-fuzz-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.mkdir(os.path.join(folder, ".git"))
    return folder


def put(name: str, data: bytes) -> str:
    """This file of the folder holds the bytes; gives its path."""
    path = Path(room(), name)
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return str(path)


def text(data: bytes) -> str:
    """As the program reads files: bytes that are no UTF-8 survive."""
    return data.decode("utf-8", "surrogateescape")


def seen(data: bytes) -> str:
    """As the program reads what agents print."""
    return data.decode("utf-8", "replace")
