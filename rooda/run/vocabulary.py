"""Counts tokens exactly and offline with the shipped vocabularies. tiktoken is imported only to count.

A packed vocabulary contains, compressed with zlib: the number of tokens (4 bytes, big-endian), one length byte per
token, and the bytes of all tokens. Lengths and tokens are in the order of the tokens' ranks, which have no gaps.
"""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import tiktoken

SMALL = 65_536  # bytes of text up to which selecting tokens is faster than loading all
PREFIX = 5  # bytes of a token that must be in the text


class Rules(NamedTuple):
    """Rules of an encoding: the pattern that splits text, and the IDs of special tokens."""

    pattern: str
    special: Mapping[str, int]


ENCODINGS: Mapping[str, Rules] = {
    "o200k_base": Rules(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        {"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
    ),
    "cl100k_base": Rules(
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
}


def count(data: bytes, encoding: str) -> int:
    """Count the tokens of UTF-8 text. Special tokens count as text, invalid bytes as U+FFFD."""
    text = data.decode("utf-8", "replace")
    everything = tokens(encoding)
    ranks = needed(everything, text.encode()) if len(data) <= SMALL else all_of(everything)
    return len(encoder(encoding, ranks).encode_ordinary(text))


def tokens(encoding: str) -> tuple[bytes, ...]:
    """Return all tokens of a vocabulary; the index of each is its rank."""
    import struct
    import zlib

    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vocab", f"{encoding}.z")
    with open(path, "rb") as file:
        raw = zlib.decompress(file.read())
    start = 4 + int.from_bytes(raw[:4], "big")
    # One struct format for all tokens is five times as fast as a loop.
    codes = [f"{length}s" for length in range(256)]
    return struct.unpack_from("".join(map(codes.__getitem__, raw[4:start])), raw, start)


def all_of(everything: Sequence[bytes]) -> dict[bytes, int]:
    return dict(zip(everything, range(len(everything)), strict=True))


def needed(everything: Sequence[bytes], data: bytes) -> dict[bytes, int]:
    """Return the tokens that this text may need, with their ranks: tiktoken looks up only substrings of the text.

    Tokens whose first five bytes are not in the text are left out, so that building the encoder takes a tenth of the
    time. tiktoken requires all single bytes.
    """
    seen = {bytes((byte,)) for byte in range(256)}
    for width in range(2, PREFIX + 1):
        seen.update(data[at : at + width] for at in range(len(data)))
    return {token: rank for rank, token in enumerate(everything) if token[:PREFIX] in seen}


def encoder(encoding: str, ranks: dict[bytes, int]) -> "tiktoken.Encoding":
    """Build tiktoken's encoder from the shipped ranks; its own `get_encoding` would download them."""
    import tiktoken

    rules = ENCODINGS[encoding]
    return tiktoken.Encoding(encoding, pat_str=rules.pattern, mergeable_ranks=ranks, special_tokens=dict(rules.special))
