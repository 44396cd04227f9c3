"""Loads hashlib and hmac with Python's own hash functions: those of OpenSSL need a library of 3.5 MB in every loop."""

import sys
from importlib.util import find_spec

_SHA2 = ("_sha2",) if sys.version_info >= (3, 12) else ("_sha256", "_sha512")
_OPENSSL = "_hashlib"

_replaceable = _OPENSSL not in sys.modules and all(map(find_spec, ("_blake2", "_md5", "_sha1", *_SHA2, "_sha3")))
if _replaceable:  # a Python may be built without some of them
    sys.modules[_OPENSSL] = None  # type: ignore[assignment]  # so that hashlib and hmac don't find it
import hashlib  # noqa: E402
import hmac  # noqa: E402

if _replaceable:
    del sys.modules[_OPENSSL]

__all__ = ["hashlib", "hmac"]
