"""A work tree's git folder as files, for where a process of git's costs too much."""

import os
from collections.abc import Collection

from rooda.world import files


def around(place: str) -> str:
    """The git folder of the work tree that the place is in; a path at which nothing is where there is none."""
    while not os.path.exists(found := os.path.join(place, ".git")):
        place, below = os.path.dirname(place), place
        if place == below:
            return found
    return found if os.path.isdir(found) else os.path.join(place, _text(found).removeprefix("gitdir:").strip())


def with_refs(folder: str, roots: Collection[str]) -> set[str]:
    """Those of these folders of refs in which there is a ref."""
    common = os.path.join(folder, _text(os.path.join(folder, "commondir")).strip())
    packed = _text(os.path.join(common, "packed-refs"))
    return {root for root in roots if f" {root}" in packed or os.path.isdir(os.path.join(common, root))}


def _text(path: str) -> str:
    try:
        return files.text(path)
    except OSError:
        return ""
