"""Counting through the door: memo, cache, child, estimate."""

import os
import shutil
import subprocess
import sys
import zlib
from itertools import count as numbers
from pathlib import Path

import pytest

import rooda
from rooda.run import tokens, vocabulary

O200K = "o200k_base"
COUNT = "import sys; from rooda.run.tokens import count"
TEXT = "The quick brown fox jumps over the lazy dog.\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and nothing remembered from an earlier test."""
    monkeypatch.setenv("ROODA_CACHE_HOME", str(tmp_path / "cache"))
    forget()
    return tmp_path / "cache"


def forget() -> None:
    """Only the last text is remembered in the process, so another text displaces it."""
    tokens.count("", O200K)


def key(text: str) -> str:
    data = text.encode()
    return f"{zlib.crc32(data):08x}{zlib.adler32(data):08x}"


def slot(cache: Path, text: str, encoding: str = O200K) -> Path:
    return cache / "tokens" / encoding / key(text)[:3]


def python(code: str, *, flags: tuple[str, ...] = (), cwd: Path | None = None, **env: str) -> str:
    """What a fresh interpreter prints."""
    ran = subprocess.run(
        [sys.executable, *flags, "-c", code], capture_output=True, text=True, cwd=cwd, env=dict(os.environ, **env)
    )
    assert ran.stderr == ""
    return ran.stdout


def test_OA_33_counts_exactly() -> None:
    """Two encodings, and the empty text."""
    assert tokens.count(TEXT, O200K) == (10, True)
    assert tokens.count("<|endoftext|>", "cl100k_base") == (7, True)
    assert tokens.count("", O200K) == (0, True)


def test_a_count_is_kept_and_used(cache: Path) -> None:
    """The next process reads the cache and starts no child: `subprocess` is not even imported."""
    assert tokens.count(TEXT, O200K) == (10, True)
    assert slot(cache, TEXT).read_text() == f"{key(TEXT)} 10\n"
    code = f"{COUNT}; print(count({TEXT!r}, 'o200k_base'), {{'subprocess', 'tiktoken'}} & sys.modules.keys())"
    assert python(code) == "(10, True) set()\n"


def test_the_last_text_is_remembered_in_the_process(cache: Path) -> None:
    """The second count of the same text does not read the cache."""
    tokens.count(TEXT, O200K)
    shutil.rmtree(cache)
    assert tokens.count(TEXT, O200K) == (10, True)
    assert not cache.exists()


@pytest.mark.parametrize(
    "damage",
    ["", "{key} ", "{key} 9", "{key} 10\n\n", "{key} 0\n", "{key} 999999\n", "{key} x\n", "{other} 10\n", "\xff"],
)
def test_a_damaged_or_foreign_entry_is_recounted(cache: Path, damage: str) -> None:
    """A truncated, overwritten or impossible entry is counted again and replaced."""
    place = slot(cache, TEXT)
    place.parent.mkdir(parents=True)
    place.write_bytes(damage.format(key=key(TEXT), other="0" * 16).encode("latin-1"))
    assert tokens.count(TEXT, O200K) == (10, True)
    assert place.read_text() == f"{key(TEXT)} 10\n"


def test_encodings_do_not_share_counts() -> None:
    """The same text has its own count in each."""
    hindi = "नमस्ते दुनिया"
    counts = {encoding: tokens.count(hindi, encoding) for encoding in (O200K, "cl100k_base")}
    assert counts[O200K] < counts["cl100k_base"]


def test_texts_that_share_a_slot_are_distinguished(cache: Path) -> None:
    """Each entry displaces the other, and both counts stay correct."""
    words = (f"a {'a' * (n // 26)}{'abcdefghijklmnopqrstuvwxyz'[n % 26]}" for n in numbers())
    rival = next(text for text in words if key(text)[:3] == key(TEXT)[:3])
    assert tokens.count(TEXT, O200K) == (10, True)
    expected = tokens.count(rival, O200K)
    assert expected[0] < 10
    assert tokens.count(TEXT, O200K) == (10, True)
    assert tokens.count(rival, O200K) == expected
    assert len(list(slot(cache, TEXT).parent.iterdir())) == 1


def test_E_03_texts_that_differ_in_digits_share_a_count(cache: Path) -> None:
    """One count serves all; it is exact, since each number of up to three digits is one token."""
    first = "Iteration 1 of 25, $9.87 of $10.00 left"
    assert tokens.count(first, O200K) == tokens.count(first.replace("1 of 25", "7 of 42"), O200K)
    assert len(list(slot(cache, first.translate(str.maketrans("123456789", "0" * 9))).parent.iterdir())) == 1
    for encoding in (O200K, "cl100k_base"):
        numbers_of = {f"{n:0{width}}".encode() for width in (1, 2, 3) for n in range(10**width)}
        assert numbers_of <= set(vocabulary.tokens(encoding))


def test_digits_next_to_other_scripts_are_counted_as_they_are(cache: Path) -> None:
    """A group of mixed digits may have its own tokens, so nothing is replaced there."""
    tokens.count("x²1", O200K)
    assert slot(cache, "x²1").exists()


def test_an_unwritable_cache_does_not_matter(cache: Path) -> None:
    """A file in place of the cache folder does not change the count."""
    cache.write_text("in the way")
    assert tokens.count(TEXT, O200K) == (10, True)
    assert cache.read_text() == "in the way"


def test_the_folder_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ROODA_CACHE_HOME, else XDG_CACHE_HOME/rooda, else ~/.cache/rooda, else nowhere."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for variable, folder in (
        ("ROODA_CACHE_HOME", "cache"),
        ("XDG_CACHE_HOME", "xdg/rooda"),
        ("HOME", "home/.cache/rooda"),
    ):
        forget()
        tokens.count(TEXT, O200K)
        assert slot(tmp_path / folder, TEXT).exists()
        monkeypatch.delenv(variable)
    forget()
    assert tokens.count(TEXT, O200K) == (10, True)


def test_surrogates_never_fail() -> None:
    """Bytes that were no UTF-8, and half characters that no file can hold, are counted."""
    raw = b"caf\xe9 \xff".decode("utf-8", "surrogateescape")
    assert tokens.count(raw, O200K) == tokens.count("caf\ufffd \ufffd", O200K)
    number, exact = tokens.count("half \ud83d", O200K)
    assert exact
    assert number > 1


def test_parallel_counters_agree_on_one_cache(cache: Path) -> None:
    """Four processes count the same texts into the same slots; all say the same, and so does the cache."""
    code = """
from rooda.run.tokens import count
for n in range(3):
    print(count(f"some words {n}" * 50, "o200k_base"))
"""
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(4)
    ]
    said = {child.communicate()[0] for child in started}
    assert len(said) == 1
    assert said.pop().count("True") == 3
    entries = [path.read_text().split() for path in cache.rglob("*") if path.is_file()]
    assert {number for _, number in entries} == {str(tokens.count(f"some words {n}" * 50, O200K)[0]) for n in range(3)}


def test_OA_33_without_tiktoken_it_is_an_estimate(cache: Path) -> None:
    """A quarter of the characters, rounded up, marked as inexact and not kept."""
    root = os.path.dirname(os.path.dirname(rooda.__file__))
    code = f"{COUNT}; print(count('é' * 9, 'o200k_base'))"
    assert python(code, flags=("-P", "-S"), PYTHONPATH=root) == "(3, False)\n"
    assert not cache.exists()


def test_an_unknown_encoding_is_an_estimate() -> None:
    """Settings refuse an unknown encoding; here it gives an estimate."""
    assert tokens.count("x" * 8, "no_such_encoding") == (2, False)


def test_a_text_that_beats_tiktoken_is_an_estimate() -> None:
    """A megabyte of spaces overflows tiktoken's splitter; the result is an estimate."""
    number, exact = tokens.count(" " * 1_000_000, O200K)
    assert exact or number == 250_000


def test_a_megabyte_of_one_letter_is_exact() -> None:
    """It neither hangs nor fails."""
    assert tokens.count("a" * 1_000_000, O200K) == (125_000, True)


def test_works_from_any_place_and_without_network(tmp_path: Path) -> None:
    """A copy in a folder with a space, other working folder, dead proxy, empty tiktoken cache: exact."""
    home = tmp_path / "some where"
    shutil.copytree(os.path.dirname(rooda.__file__), home / "rooda", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "empty").mkdir()
    code = f"import rooda; {COUNT}; print(rooda.__file__, count({TEXT!r}, 'o200k_base'))"
    dead = {"HTTPS_PROXY": "http://127.0.0.1:9", "TIKTOKEN_CACHE_DIR": str(tmp_path / "empty")}
    said = python(code, cwd=tmp_path, PYTHONPATH=str(home), PYTHONDONTWRITEBYTECODE="1", **dead)
    assert said == f"{home}/rooda/__init__.py (10, True)\n"
    assert not list(home.rglob("__pycache__"))
    assert not list((tmp_path / "empty").iterdir())
