"""Names of files: which of them verify work, and how a criterion's evidence is called."""

import os
import re
from zlib import crc32

_CHECKING = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|checks)/.|(?:^|/)(?:tests?|check|verify|conftest)(?:[_.-][^/]*)?$"
    r"|(?:^|/)[^/]*[_.-](?:tests?|specs?)\.[^/]+$|(?:^|/)[^/]*[a-z0-9]Tests?\.[a-z]+$",
)
_RECIPES = {  # what a command of this name reads to know what to do, in the order in which it looks
    **dict.fromkeys(("make", "gmake"), ("GNUmakefile", "makefile", "Makefile")),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), ("package.json",)),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile", "rakefile"),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
}
_PART = re.compile(r"&&|\|\||[;&|()\n]")
_UNSAFE = re.compile(r"[/\0-\x1f\x7f]")
LONGEST = 120  # bytes of a name


def verifies(path: str) -> bool:
    """Does a file of this name test or check others?"""
    return bool(_CHECKING.search(path))


def recipes(command: str) -> tuple[str, ...]:
    """Paths of the files that say what `make check` or `npm test` does; some of them may not be there."""
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
    """The value of the first of these options: joined to it, or the next word."""
    for place, word in enumerate(words):
        for name in names:
            if word.startswith(name):
                value = word.removeprefix(name) or " ".join(words[place + 1 : place + 2])
                return value.strip("\"'")
    return ""


def evidence_name(iteration: int | str, criterion: str, encoding: str = "utf-8") -> str:
    """`3-tests pass.txt`; where the criterion's name had to be changed, with a mark that keeps it apart from others.

    `encoding`: of the names of files here. A C locale may have no more than ASCII.
    """
    whole = f"{iteration}-{criterion}"
    name = _UNSAFE.sub("_", whole[:LONGEST])
    if encoding != "utf-8":
        name = name.encode(encoding, "replace").decode(encoding).replace("?", "_")
    while len(name.encode("utf-8", "replace")) > LONGEST:
        name = name[:-1]
    return f"{name}.txt" if name == whole else f"{name}~{crc32(criterion.encode('utf-8', 'replace')):08x}.txt"
