"""Loads hashlib and hmac with Python's own hash functions: those of OpenSSL need a library of 3.5 MB in every loop."""

import sys
from contextlib import suppress
from importlib import import_module

_SHA2 = ("_sha2",) if sys.version_info >= (3, 12) else ("_sha256", "_sha512")
_OPENSSL = "_hashlib"

_found = []
with suppress(ImportError):  # a Python may be built without some of them
    _found = [import_module(name) for name in ("_md5", "_sha1", *_SHA2, "_sha3", "_blake2")]
_replaceable = bool(_found) and _OPENSSL not in sys.modules
if _replaceable:
    sys.modules[_OPENSSL] = None  # type: ignore[assignment]  # so that hashlib and hmac don't find it
import hashlib  # noqa: E402
import hmac  # noqa: E402

if _replaceable:
    del sys.modules[_OPENSSL]

__all__ = ["hashlib", "hmac"]
