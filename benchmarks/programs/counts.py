"""Token counts of many texts: `counts.py WHO ENCODING TEXTS [RANKS]`, one text a line in hex, one count a line.

WHO: `rooda` counts as rooda does, afresh for each text; `encoder` is what it counts with, loaded once; `tiktoken` is
tiktoken itself, with the ranks that its own constructor asks for by hash.
"""

import hashlib
import importlib
import sys
from collections.abc import Callable
from typing import Any


def ours(encoding: str) -> Callable[[bytes], int]:
    count = importlib.import_module("rooda.run.vocabulary").count
    return lambda data: int(count(data, encoding))


def encoder(encoding: str) -> Callable[[bytes], int]:
    vocabulary = importlib.import_module("rooda.run.vocabulary")
    made = vocabulary.encoder(encoding, vocabulary.all_of(vocabulary.tokens(encoding)))
    return lambda data: len(made.encode_ordinary(data.decode("utf-8", "replace")))


def theirs(encoding: str, ranks: str) -> Callable[[bytes], int]:
    public: Any = importlib.import_module("tiktoken_ext.openai_public")
    load = public.load_tiktoken_bpe

    def local(address: str, expected_hash: str) -> dict[bytes, int]:
        with open(ranks, "rb") as file:
            if hashlib.sha256(file.read()).hexdigest() != expected_hash:
                sys.exit(f"{ranks} is not what tiktoken would load from {address}")
        loaded: dict[bytes, int] = load(ranks)
        return loaded

    public.load_tiktoken_bpe = local
    tiktoken: Any = importlib.import_module("tiktoken")
    made = tiktoken.Encoding(**public.ENCODING_CONSTRUCTORS[encoding]())
    return lambda data: len(made.encode(data.decode("utf-8", "replace"), disallowed_special=()))


def main() -> None:
    who, encoding, texts = sys.argv[1:4]
    ways = {"rooda": ours, "encoder": encoder}
    count = ways[who](encoding) if who in ways else theirs(encoding, sys.argv[4])
    with open(texts, encoding="ascii") as file:
        for line in file:
            print(count(bytes.fromhex(line)))


main()
