"""Exact token counts: remembered, else from the user's cache, else counted by tiktoken in a child.

A child, because the vocabulary takes about 80 MB that the loop would keep for as long as it runs.
"""

import os

from rooda.base import dirs, files
from rooda.run.vocabulary import ENCODINGS

TIMEOUT = 60.0
CHILD = """\
import os, sys
sys.path[:] = sys.argv[2:]
from rooda.run.vocabulary import count
os.write(1, b"%d" % count(sys.stdin.buffer.read(), sys.argv[1]))
os._exit(0)
"""  # leaving at once spares the clean-up of 200,000 tokens

_last: list[tuple[str, str, tuple[int, bool]]] = []


def count(text: str, encoding: str) -> tuple[int, bool]:
    """How many tokens, and whether that is exact; if not, it is a quarter of the characters."""
    told = files.content_key(text)
    if _last and _last[0][:2] == (encoding, told):
        return _last[0][2]
    answer = _recalled(text, encoding)
    _last[:] = [(encoding, told, answer)]
    return answer


def _recalled(text: str, encoding: str) -> tuple[int, bool]:
    if not text:
        return 0, True
    data = _bytes(text)
    key = files.sha256(data)
    slot = dirs.cache("tokens", encoding, key[:3])  # one of 4096 files, with the latest count that fell to it
    number = _read(slot, key, len(data))
    if number is None:
        number = _counted(data, encoding)
        if number is None:
            return -(-len(text) // 4), False
        _write(slot, key, number)
    return number, True


def _bytes(text: str) -> bytes:
    try:
        return files.to_bytes(text)
    except UnicodeEncodeError:  # surrogates that never were bytes of a file
        return text.encode("utf-8", "surrogatepass")


def _read(slot: str, key: str, size: int) -> int | None:
    """The count in the slot, if it is this text's and can be true: a token has 1 to 128 bytes."""
    try:
        entry = files.read(slot)
        number = int(entry[len(key) :])
    except (OSError, ValueError):
        return None
    whole = entry == _entry(key, number)
    return number if whole and size <= number * 128 <= size * 128 else None


def _write(slot: str, key: str, number: int) -> None:
    """A cache that can't be written costs time, nothing else."""
    try:
        files.make_folder(os.path.dirname(slot))
        files.write(slot, _entry(key, number))
    except OSError:
        pass


def _entry(key: str, number: int) -> bytes:
    return f"{key} {number}\n".encode()


def _counted(data: bytes, encoding: str) -> int | None:
    """tiktoken's count, or None when it can't be had: not installed, too slow, beaten by the text, or by a signal."""
    import sys

    from rooda.errors import Interrupted
    from rooda.processes import capture

    if encoding not in ENCODINGS or not sys.executable:
        return None
    flags = ["-ISB"] if sys.dont_write_bytecode else ["-IS"]
    # Our own sys.path leads the child to the same rooda and tiktoken, however they are installed.
    folders = [os.path.abspath(folder) for folder in sys.path]
    words = [sys.executable, *flags, "-c", CHILD, encoding, *folders]
    try:
        answer = capture.capture(words, stdin=data, timeout=TIMEOUT, brief=False)
    except Interrupted:
        return None
    return int(answer.out) if answer.code == 0 and answer.out.isdigit() else None
