"""What tells one text from all others."""

import sys

_SHA256 = "_sha2" if sys.version_info >= (3, 12) else "_sha256"


def told(text: str) -> str:
    """Tells this text from all others: itself, or of a long one its hash."""
    return text if len(text) < 1_048_576 else sha256(text.encode("utf-8", "surrogatepass"))


def sha256(data: bytes) -> str:
    """In hex. Python's own code if it is there: hashlib loads OpenSSL, 3 MB for as long as the loop runs."""
    if len(data) < 1_048_576:
        try:
            return str(__import__(_SHA256).sha256(data).hexdigest())
        except ImportError:
            pass
    import hashlib

    return hashlib.sha256(data).hexdigest()
