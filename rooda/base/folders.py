"""Folders that go: with all that is in them, once they are empty, or out of the way of a file."""

import os

from rooda.base import files


def remove(path: str) -> None:
    """Gone with all that is in it, whether or not it was there. Links are removed, not followed."""
    if not os.path.isdir(path) or os.path.islink(path):
        files.remove(path)
        return
    for folder, inner, names in os.walk(path, topdown=False):
        for name in (*names, *inner):
            place = os.path.join(folder, name)
            if name in names or os.path.islink(place):
                files.remove(place)
            else:
                os.rmdir(place)
    os.rmdir(path)


def remove_empty(path: str, top: str) -> None:
    """This folder and those above it, as long as nothing is in them, up to `top`, which stays."""
    while path != top and path.startswith(top):
        try:
            os.rmdir(path)
        except OSError:
            return
        path = os.path.dirname(path)


def make_way(path: str) -> None:
    """No folder has this name afterwards: an empty one is removed, one that holds something is renamed, never lost."""
    if not os.path.isdir(path) or os.path.islink(path):
        return
    try:
        os.rmdir(path)
    except OSError:
        aside, number = f"{path}.folder", 1
        while os.path.lexists(aside):
            number += 1
            aside = f"{path}.folder-{number}"
        os.rename(path, aside)


def prune(path: str) -> None:
    """An empty folder is gone, and those above it that are empty then."""
    os.removedirs(path)
