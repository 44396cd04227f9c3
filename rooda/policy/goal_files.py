"""Names of files: which of them verify work, and how a criterion's evidence is called."""

import re
from zlib import crc32

_CHECKING = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|checks)/.|(?:^|/)(?:tests?|check|verify|conftest)(?:[_.-][^/]*)?$"
    r"|(?:^|/)[^/]*[_.-](?:tests?|specs?)\.[^/]+$|(?:^|/)[^/]*[a-z0-9]Tests?\.[a-z]+$",
)
_UNSAFE = re.compile(r"[/\0-\x1f\x7f]")
LONGEST = 120  # bytes of a name


def verifies(path: str) -> bool:
    """Does a file of this name test or check others?"""
    return bool(_CHECKING.search(path))


def evidence_name(iteration: int | str, criterion: str) -> str:
    """`3-tests pass.txt`; where the criterion's name had to be changed, with a mark that keeps it apart from others."""
    whole = f"{iteration}-{criterion}"
    name = _UNSAFE.sub("_", whole[:LONGEST])
    while len(name.encode("utf-8", "replace")) > LONGEST:
        name = name[:-1]
    return f"{name}.txt" if name == whole else f"{name}~{crc32(criterion.encode('utf-8', 'replace')):08x}.txt"
