"""Keeps rooda's git commands from starting programs named in a repository's settings: filters, transports, hooks.

Agents can write to `.git/config`, and a copied folder brings its own. git can only ignore all settings or none, so
rooda overrides these one by one. Programs in the settings of the user or the system, such as Git LFS, are still run.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from rooda.base import files
from rooda.processes.capture import capture

_FILTER = ("clean", "smudge", "process")
_HARMLESS = {  # replacement values, keyed by the section and last part of a setting's key
    "merge.driver": "false",  # reports a conflict
    "core.sshcommand": "ssh",
    "core.gitproxy": "",
    "core.askpass": "true",
    "core.alternaterefscommand": "true",
    "credential.helper": "",
    "remote.uploadpack": "git-upload-pack",
    "remote.receivepack": "git-receive-pack",
    "remote.promisor": "false",
}
_OWN = (b"local", b"worktree")  # scopes of the repository's own settings
_GITLINK = b"\x00\x00\xe0\x00"  # mode of a nested repository in an index
_SPLIT = b"link"  # extension of an index whose entries are in another file
_FOR_SETTINGS = ("GIT_CONFIG", "XDG_CONFIG", "HOME", "PATH")  # beginnings of variables that affect the settings
_HEAD = re.compile("ref: refs/[!-~]+|[0-9a-f]{40}|[0-9a-f]{64}")
_CONFIG_OF_THE_USER = (".gitconfig", ".config/git/config")
Pairs: TypeAlias = tuple[tuple[str, str], ...]


class Programs(NamedTuple):
    """The settings that disable a repository's programs, and the names of the disabled filters."""

    overrides: Pairs = ()
    filters: frozenset[str] = frozenset()


def of(cwd: str, words: Iterable[str], env: Mapping[str, str]) -> Programs:
    """Return the overrides that keep a git command in `cwd` from starting programs that its repository names.

    `git add` also runs in nested repositories, which have settings of their own.
    """
    folder = next((word.removeprefix("--git-dir=") for word in words if word.startswith("--git-dir=")), "")
    found = _of_folder(cwd, folder, env)
    if "add" not in words:
        return found
    nested = [*_nested(cwd, folder, env)]
    pairs = {pair: None for each in (found, *nested) for pair in each.overrides}
    return Programs(tuple(pairs), found.filters.union(*(each.filters for each in nested)))


def arguments(programs: Programs, env: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the overrides as git options, or as variables for names with `=`, which `-c` can't express."""
    words = [word for key, value in programs.overrides if "=" not in key for word in ("-c", f"{key}={value}")]
    rest = [(key, value) for key, value in programs.overrides if "=" in key]
    count = int(number) if (number := env.get("GIT_CONFIG_COUNT", "")).isdecimal() else 0
    variables = {"GIT_CONFIG_COUNT": str(count + len(rest))} if rest else {}
    for place, (key, value) in enumerate(rest, count):
        variables |= {f"GIT_CONFIG_KEY_{place}": key, f"GIT_CONFIG_VALUE_{place}": value}
    return words, variables


def _of_folder(cwd: str, folder: str, env: Mapping[str, str]) -> Programs:
    marks = [_marks(folder)] if folder else [*_around(cwd)]
    if not any(marks):
        return Programs()
    users = tuple(files.fingerprint(os.path.join(env.get("HOME", ""), name)) for name in _CONFIG_OF_THE_USER)
    known = tuple(pair for pair in env.items() if pair[0].startswith(_FOR_SETTINGS))
    found, includes = _listed(cwd, folder, known, (*marks, users))
    if includes:  # included files may change unnoticed, or apply only on some branch
        _listed.cache_clear()
    return found


def _around(cwd: str) -> Iterator[tuple[object, ...]]:
    """Yield the stats of each repository that git may use for a folder, nearest first; git skips damaged ones."""
    folder = os.path.realpath(cwd)
    while True:
        own = os.path.join(folder, ".git")
        if os.path.isfile(own):
            own = os.path.join(folder, _first_line(own).removeprefix("gitdir: "))
        yield from filter(None, (_marks(own), _marks(folder)))
        if folder == os.path.dirname(folder):
            return
        folder = os.path.dirname(folder)


def _marks(place: str) -> tuple[object, ...]:
    """Return file stats that change with the settings of this git folder; () if it isn't one."""
    if not os.path.lexists(os.path.join(place, "HEAD")):
        return ()
    common = os.path.join(place, _first_line(os.path.join(place, "commondir")))
    paths = (os.path.join(place, "config.worktree"), os.path.join(common, "config"))
    parts = tuple(os.path.isdir(os.path.join(common, name)) for name in ("objects", "refs"))
    return place, _head_mark(place), *map(files.fingerprint, paths), *parts


def _head_mark(place: str) -> object:
    """Return the same mark for every valid HEAD, because the commit or branch that it names changes no setting."""
    path = os.path.join(place, "HEAD")
    return "HEAD" if _HEAD.fullmatch(_first_line(path)) else files.fingerprint(path)


@lru_cache(maxsize=64)
def _listed(cwd: str, folder: str, env: Pairs, _: object) -> tuple[Programs, bool]:
    """Return the overrides for git's current settings, and True if the repository's own include other files."""
    where = [f"--git-dir={folder}"] if folder else []
    words = ["git", *where, "config", "--list", "--includes", "-z", "--show-scope"]
    said = capture(words, env={**dict(env), "LC_ALL": "C"}, cwd=cwd)
    parts = said.out.split(b"\0")[:-1]
    rows = [(scope, *_key_and_value(text)) for scope, text in zip(parts[::2], parts[1::2], strict=True)]
    trusted = {key: value for scope, key, value in rows if scope not in _OWN}
    own = {key: value for scope, key, value in rows if scope in _OWN}
    found = _switched_off(own, trusted)
    return found, any(key.startswith("include") for key in own)


def _switched_off(own: Mapping[str, str], trusted: Mapping[str, str]) -> Programs:
    overrides, filters = dict[str, str](), set[str]()
    for key, value in own.items():
        section, name, last = _parts(key)
        if section == "filter" and name and last in _FILTER:
            overrides[key] = trusted.get(key, "")
            if value != overrides[key]:
                filters.add(name)
                overrides[f"filter.{name}.required"] = "false"  # else git fails without the filter
        elif section == "hook" and last == "command":
            overrides[f"hook.{name}.enabled"] = "false"
        elif (neutral := _HARMLESS.get(f"{section}.{last}")) is not None:
            overrides[key] = trusted.get(key, neutral)
    return Programs((*overrides.items(),), frozenset(filters))


def _key_and_value(text: bytes) -> tuple[str, str]:
    key, _, value = files.to_text(text).partition("\n")
    return key, value


def _parts(key: str) -> tuple[str, str, str]:
    section, _, rest = key.partition(".")
    name, _, last = rest.rpartition(".")
    return section, name, last


def _nested(cwd: str, folder: str, env: Mapping[str, str]) -> Iterator[Programs]:
    """Yield the overrides for all nested repositories in the index, recursively."""
    index = env.get("GIT_INDEX_FILE", "")
    try:
        data = files.read(index, files.LARGEST_OF_GIT) if index else _GITLINK  # only git knows where its own index is
    except OSError:
        return
    if _GITLINK not in data and _SPLIT not in data:
        return
    where = [f"--git-dir={folder}"] if folder else []
    words = ["git", "-c", "core.fsmonitor=false", *where, "ls-files", "-s", "-z"]
    said = capture(words, env=env, cwd=cwd, timeout=120.0)
    for row in files.to_text(said.out).split("\0"):
        path = os.path.join(cwd, row.partition("\t")[2])
        if row.startswith("160000 ") and os.path.lexists(os.path.join(path, ".git")):
            inside = {key: value for key, value in env.items() if key != "GIT_INDEX_FILE"}
            yield _of_folder(path, "", inside)
            yield from _nested(path, "", inside)


def _first_line(path: str) -> str:
    try:
        return files.text(path).strip()
    except (OSError, ValueError):
        return ""
