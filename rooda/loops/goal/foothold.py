"""Is a folder still the one that it was? One made in its place may get its number, unless somebody holds it open."""

import os


def taken(path: str) -> int:
    """Hold it open."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def kept(folder: int, path: str) -> bool:
    """Let it go. Has it still this name?"""
    try:
        return os.path.samestat(os.fstat(folder), os.stat(path))
    except OSError:
        return False
    finally:
        os.close(folder)
