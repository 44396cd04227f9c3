"""What tells one text from all others."""


def told(text: str) -> str:
    """Tells this text from all others: itself, or of a long one its hash."""
    return text if len(text) < 1_048_576 else sha256(text.encode("utf-8", "surrogatepass"))


def sha256(data: bytes) -> str:
    """Return the hash in hex."""
    import hashlib

    return hashlib.sha256(data).hexdigest()
