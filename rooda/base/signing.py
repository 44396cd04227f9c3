"""Signs files with the user's key, so that rooda recognizes files that someone else wrote.

A signature covers the purpose of a file (`what`: `start RUN`, `order RUN`, …) and its content, but not its path. The
key never leaves this process: agents and commands get neither the key nor the variable that names its file.
"""

import os
import stat
from typing import NamedTuple

from rooda.base import dirs, files

VARIABLE = "ROODA_KEY_FILE"
PRIVATE = (VARIABLE, "ROODA_TRUST")  # variables that rooda passes to no other process
LENGTH = 32  # bytes of a new key, and the minimum for one that the user created
LONGEST = 4096  # bytes of a key
_MARK, _END = b', "mac": "', b'"}'
_HEX = 64  # characters of a signature


class Key(NamedTuple):
    """The user's key, b"" if there is none; and a sentence about a problem with it or about its repair."""

    data: bytes = b""
    problem: str = ""


_keys: dict[str, Key] = {}  # by path; each is read once per process


def path() -> str:
    """Return the path of the key file; "" if the user has no home folder."""
    return os.environ.get(VARIABLE, "") or dirs.state("key")


def problem() -> str:
    """Return a warning if nothing can be signed or the key file was repaired, else ""."""
    return _key(create=True).problem


def has_key() -> bool:
    """Create a key if none exists; return True if there is now one to sign with."""
    return bool(_key(create=True).data)


def mac(what: str, content: bytes) -> str:
    """Return the signature of `content`. Creates a key if none exists; returns "" if that fails."""
    key = _key(create=True).data
    return _mac(key, what, content) if key else ""


def is_ours(what: str, content: bytes, signature: str) -> bool:
    """True if `signature` is this user's signature of `content` for the purpose `what`."""
    key = _key(create=False).data
    if not key or len(signature) != _HEX:
        return False
    from rooda.base.hashes import hmac

    return hmac.compare_digest(_mac(key, what, content).encode(), files.to_bytes(signature))


def signed(what: str, record: bytes) -> bytes:
    """Return the text of a JSON object with its signature added as the field `mac`; unchanged if there is no key."""
    return with_mac(record, mac(what, record))


def with_mac(record: bytes, signature: str) -> bytes:
    """Add a signature to the text of a JSON object as the field `mac`, unless the signature is empty."""
    return record[:-1] + _MARK + signature.encode() + _END if signature else record


def parted(data: bytes) -> tuple[bytes, str]:
    """Split a signed record into the unsigned record and its signature, which is "" if there is none."""
    text = data.rstrip(b"\n")
    at = len(text) - len(_END) - _HEX
    if not text.endswith(_END) or text[:at][-len(_MARK) :] != _MARK:
        return text, ""
    return text[: at - len(_MARK)] + b"}", files.to_text(text[at : -len(_END)])


def is_signed(what: str, data: bytes) -> bool:
    """True if `data` ends with this user's signature for the purpose `what`; a final line end is ignored."""
    return is_ours(what, *parted(data))


def _mac(key: bytes, what: str, content: bytes) -> str:
    from rooda.base.hashes import hmac

    name = files.to_bytes(what)
    return hmac.digest(key, b"rooda 1 %d\0%s\0%s" % (len(name), name, content), "sha256").hex()


def _key(create: bool) -> Key:
    place = path()
    known = _keys.get(place)
    if known is None or (create and not (known.data or known.problem)):
        known = _keys[place] = _read(place, create)
    return known


def _read(place: str, create: bool) -> Key:
    """Read the key file, or create it if `create`. If that fails, the key is empty and `problem` says why."""
    if not os.path.isabs(place):
        why = f"{VARIABLE} must be an absolute path, got {place!r}" if place else "HOME is not set"
        return Key(problem=_unsigned(why))
    try:
        return _opened(place)
    except FileNotFoundError:
        if not create:
            return Key()
    except OSError as problem:
        return Key(problem=_unsigned(f"{place} can't be read ({problem.strerror})"))
    try:
        files.make_folder(os.path.dirname(place))
        files.create_whole(place, os.urandom(LENGTH), 0o600)
    except FileExistsError:
        pass  # another process was first
    except OSError as problem:
        return Key(problem=_unsigned(f"{place} can't be written ({problem.strerror})"))
    try:
        return _opened(place)
    except OSError as problem:
        return Key(problem=_unsigned(f"{place} can't be read ({problem.strerror})"))


def _opened(place: str) -> Key:
    descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        facts, said = os.fstat(descriptor), ""
        if not stat.S_ISREG(facts.st_mode) or not LENGTH <= facts.st_size <= LONGEST:
            return Key(problem=_unsigned(f"{place} is not a key: it must be a file of {LENGTH} to {LONGEST} bytes"))
        if facts.st_uid not in (os.geteuid(), 0):
            return Key(problem=_unsigned(f"{place} belongs to another user (uid {facts.st_uid})"))
        if facts.st_mode & 0o077:
            if not files.make_private(descriptor):
                return Key(problem=_unsigned(f"other users can read {place} (fix: chmod 600 {place})"))
            said = f"Other users could read the key {place}; now only you can. Delete it if you don't trust them."
        return Key(os.read(descriptor, LONGEST), said)
    finally:
        os.close(descriptor)


def _unsigned(why: str) -> str:
    return f"{why}: rooda can't sign the files of its runs, so a resume asks before it continues"
