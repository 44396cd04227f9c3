"""Hashes of the files that verify the work, to notice an agent that changes them."""

import json
import os
import re
from collections.abc import Iterator, Sequence

from rooda.base import files
from rooda.base.json import loads
from rooda.loops.goal.edit_counts import folders
from rooda.loops.goal.world import Fingerprint

MOST, LARGEST = 5000, 4_194_304
_CHECKING = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|checks)/.|(?:^|/)(?:tests?|check|verify|conftest)(?:[_.-][^/]*)?$"
    r"|(?:^|/)[^/]*[_.-](?:tests?|specs?)\.[^/]+$|(?:^|/)[^/]*[a-z0-9]Tests?\.[a-z]+$",
)
_RECIPES = {  # files that a command reads to know what to do, in the order in which it looks for them
    **dict.fromkeys(("make", "gmake"), ("GNUmakefile", "makefile", "Makefile")),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), ("package.json",)),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile", "rakefile"),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
}
_PART = re.compile(r"&&|\|\||[;&|()\n]")


def fingerprint_files(workspace: str, commands: Sequence[str]) -> tuple[Fingerprint, ...]:
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


def verifies(path: str) -> bool:
    """True if a file of this name tests or checks other files."""
    return bool(_CHECKING.search(path))


def recipes(command: str) -> tuple[str, ...]:
    """Paths of the files that define what a command like `make check` or `npm test` does. Some may not exist."""
    found: list[str] = []
    folder = ""
    for words in map(str.split, _PART.split(command)):
        if words[:1] == ["cd"] and len(words) == 2:
            folder = os.path.join(folder, words[1].strip("\"'"))
        name = next((os.path.basename(word) for word in words if os.path.basename(word) in _RECIPES), "")
        if name:
            inside = os.path.join(folder, _option(words, "-C"))
            chosen = _option(words, "-f", "--file=", "--makefile=")
            found += [os.path.join(inside, each) for each in ([chosen] if chosen else _RECIPES[name])]
    return tuple(dict.fromkeys(map(os.path.normpath, found)))


def _option(words: list[str], *names: str) -> str:
    """The value of the first of these options: joined to its name, or the next word."""
    for place, word in enumerate(words):
        for name in names:
            if word.startswith(name):
                value = word.removeprefix(name) or " ".join(words[place + 1 : place + 2])
                return value.strip("\"'")
    return ""
