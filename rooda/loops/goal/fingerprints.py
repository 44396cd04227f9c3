"""Hashes of the files that verify the work, to notice an agent that changes them."""

import json
import os
from collections.abc import Iterator, Sequence

from rooda.base import files
from rooda.base.json import loads
from rooda.loops.goal.criteria import recipes, verifies
from rooda.loops.goal.edit_counts import folders
from rooda.loops.goal.world import Fingerprint

MOST, LARGEST = 5000, 4_194_304


def take(workspace: str, commands: Sequence[str]) -> tuple[Fingerprint, ...]:
    """Hash the test files, and the files that define what these commands do."""
    found = []
    defining = (path for command in commands for path in recipes(command))
    for path in dict.fromkeys([*defining, *_candidates(workspace)]):
        if sha := _hash(os.path.join(workspace, path)):
            found.append(Fingerprint(path, sha))
        if len(found) >= MOST:
            break
    return tuple(sorted(found))


def changed(workspace: str, before: Sequence[Fingerprint]) -> tuple[str, ...]:
    """Paths of the files that were changed or deleted."""
    return tuple(each.path for each in before if _hash(os.path.join(workspace, each.path)) != each.sha256)


def _candidates(workspace: str) -> Iterator[str]:
    for place in folders(workspace):
        try:
            names = [entry.name for entry in os.scandir(place) if entry.is_file(follow_symlinks=False)]
        except OSError:
            continue
        for name in names:
            path = os.path.relpath(os.path.join(place, name), workspace)
            if verifies(path):
                yield path


def _scripts(data: bytes) -> bytes:
    """The scripts of package.json: the rest of it changes with every dependency."""
    try:
        found = loads(data)
    except ValueError:
        return data
    return json.dumps(found.get("scripts"), sort_keys=True).encode() if isinstance(found, dict) else data


def _hash(path: str) -> str:
    try:
        if os.stat(path).st_size > LARGEST:
            return f"{os.stat(path).st_size} bytes"
        data = files.read_ours(path)
        return files.sha256(_scripts(data) if os.path.basename(path) == "package.json" else data)
    except (OSError, ValueError):  # an invalid path
        return ""
