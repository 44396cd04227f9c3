"""Counts tokens exactly: from the last count or the user's cache, else with tiktoken in a child process.

In the loop's own process the vocabulary would use about 80 MB of memory until the end of the run.
"""

import os
import zlib

from rooda.base import dirs, files

TIMEOUT = 60.0
CHILD = """\
import os, sys
sys.path[:] = sys.argv[2:]
from rooda.run.vocabulary import count
os.write(1, b"%d" % count(sys.stdin.buffer.read(), sys.argv[1]))
os._exit(0)
"""  # _exit skips the slow clean-up of 200,000 tokens
_BYTES, _DIGITS = bytes(range(256)), b"0123456789"
_ZEROS = bytes.maketrans(_DIGITS, b"0" * 10)
_CLASSES = bytes(48 if byte in _DIGITS else 120 if byte > 127 else 32 for byte in _BYTES)  # "0", "x" or a blank

_last: list[tuple[str, str, int, tuple[int, bool]]] = []


def count(text: str, encoding: str) -> tuple[int, bool]:
    """Return the number of tokens, and whether it is exact; if not, it is estimated from the number of characters."""
    data = _zeroed(_bytes(text))
    key = _key(data)
    if _last and _last[0][:3] == (encoding, key, len(data)):
        return _last[0][3]
    answer = _cached(data, key, encoding)
    _last[:] = [(encoding, key, len(data), answer)]
    return answer


def _cached(data: bytes, key: str, encoding: str) -> tuple[int, bool]:
    if not data:
        return 0, True
    slot = dirs.cache("tokens", encoding, key[:3])  # one of 4096 files, each with the latest count of its keys
    number = _read(slot, key, len(data))
    if number is None:
        number = _counted(data, encoding)
        if number is None:
            return -(-len(data.decode("utf-8", "replace")) // 4), False
        _write(slot, key, number)
    return number, True


def _zeroed(data: bytes) -> bytes:
    """Replace digits with 0: prompts that differ only in digits, as in the iteration number, share a cached count.

    The count remains exact: each group of up to three digits is one token. With digits of other scripts this is not
    certain, so a text that has any is returned unchanged.
    """
    if not data.isascii():
        classes = data.translate(_CLASSES)
        if b"0x" in classes or b"x0" in classes:
            return data
    return data.translate(_ZEROS)


def _key(data: bytes) -> str:
    """Return a cache key of two checksums, since hashlib takes too long to load; a collision costs one wrong count."""
    return f"{zlib.crc32(data):08x}{zlib.adler32(data):08x}"


def _bytes(text: str) -> bytes:
    try:
        return files.to_bytes(text)
    except UnicodeEncodeError:  # lone surrogates that are not undecodable bytes of a file
        return text.encode("utf-8", "surrogatepass")


def _read(slot: str, key: str, size: int) -> int | None:
    """Return the cached count if it is of this text and plausible (1 to 128 bytes for each token); else None."""
    try:
        entry = files.read(slot)
        number = int(entry[len(key) :])
    except (OSError, ValueError):
        return None
    whole = entry == _entry(key, number)
    return number if whole and size <= number * 128 <= size * 128 else None


def _write(slot: str, key: str, number: int) -> None:
    """Write a count to the cache; errors are ignored, since a missing cache costs only time."""
    try:
        files.make_folder(os.path.dirname(slot))
        files.write(slot, _entry(key, number))
    except OSError:
        pass


def _entry(key: str, number: int) -> bytes:
    return f"{key} {number}\n".encode()


def _counted(data: bytes, encoding: str) -> int | None:
    """Return tiktoken's count; None if tiktoken is not installed, is too slow, or fails, or if a signal ends it."""
    import sys

    from rooda.errors import Interrupted
    from rooda.processes import capture
    from rooda.run.vocabulary import ENCODINGS

    if encoding not in ENCODINGS or not sys.executable:
        return None
    flags = ["-ISB"] if sys.dont_write_bytecode else ["-IS"]
    # With the same sys.path the child finds the same rooda and tiktoken, however they are installed.
    folders = [os.path.abspath(folder) for folder in sys.path]
    words = [sys.executable, *flags, "-c", CHILD, encoding, *folders]
    try:
        answer = capture.capture(words, stdin=data, timeout=TIMEOUT, brief=False)
    except Interrupted:
        return None
    return int(answer.out) if answer.code == 0 and answer.out.isdigit() else None
