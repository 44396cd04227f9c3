"""Python's own hash functions: their results are right, and OpenSSL's can still be loaded."""

import subprocess
import sys

from rooda.base.hashes import hashlib, hmac


def test_known_hashes() -> None:
    """The examples of FIPS 180-2 and RFC 4231."""
    assert hashlib.sha256(b"abc").hexdigest() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert hmac.digest(b"Jefe", b"what do ya want for nothing?", "sha256").hex() == (
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    )


def test_openssl_stays_loadable() -> None:
    """In a new process, where nothing else has loaded it."""
    script = "import sys\nfrom rooda.base import hashes\nassert '_hashlib' not in sys.modules\nimport ssl, _hashlib"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
