"""Our encoders against tiktoken's own, built from the same ranks by tiktoken's loader."""

import base64
import hashlib
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from rooda.run import vocabulary
from tests.kit.examples import examples

ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
SHA256 = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
CHUNKS = [
    *(
        " ",
        "  ",
        "\t",
        "\n",
        "\r\n",
        "\n\n \n",
        "'s",
        "'LL",
        "’t",
        "it's",
        "12345678",
        "0x1F",
        "٣",
        "Ⅷ",
        "..",
        "/*",
        "\n/",
    ),
    *(
        "HTTPServer",
        "camelCase",
        "ÄÖÜß",
        "ǅ",
        "ʰ",
        "e\u0301",
        "नमस्ते",
        "漢字かな",
        "한국어",
        "👩‍👩‍👧",
        "\u200b",
        "\u2028",
        "\x00",
        "\ufffd",
    ),
    *(
        "<|endoftext|>",
        "<|fim_prefix|>",
        "<|endofprompt|>",
        "def f(x):\n    return x\n",
        "## ACT\n",
        "- [ ] ",
        "| a | b |",
    ),
]
TEXTS = st.lists(st.one_of(st.sampled_from(CHUNKS), st.text(max_size=6)), max_size=30).map("".join)
each = pytest.mark.parametrize("name", list(vocabulary.ENCODINGS))


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tiktoken.Encoding]]:
    """tiktoken's own encodings; its loader checks the ranks' sha256 itself."""
    folder = tmp_path_factory.mktemp("ranks")
    for name in vocabulary.ENCODINGS:
        key = hashlib.sha1(ADDRESS.format(name).encode()).hexdigest()
        (folder / key).write_bytes(ranks_file(name))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        yield {name: tiktoken.get_encoding(name) for name in vocabulary.ENCODINGS}


@cache
def tokens(name: str) -> tuple[bytes, ...]:
    return vocabulary.tokens(name)


@cache
def full(name: str) -> tiktoken.Encoding:
    return vocabulary.encoder(name, vocabulary.all_of(tokens(name)))


def ranks_file(name: str) -> bytes:
    """The packed vocabulary, written out again in the form it was published in."""
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens(name)))


@each
def test_the_shipped_ranks_are_the_published_ones(name: str) -> None:
    """Unpacked and written out again, they have the sha256 that tiktoken asks for."""
    assert hashlib.sha256(ranks_file(name)).hexdigest() == SHA256[name]


@each
def test_the_rules_are_tiktokens(name: str, genuine: dict[str, tiktoken.Encoding]) -> None:
    """Pattern and special tokens are the same."""
    assert vocabulary.ENCODINGS[name].pattern == genuine[name]._pat_str
    assert vocabulary.ENCODINGS[name].special == genuine[name]._special_tokens


@each
@settings(max_examples=examples(150), deadline=None)
@given(text=TEXTS)
def test_the_full_encoder_is_tiktokens(name: str, genuine: dict[str, tiktoken.Encoding], text: str) -> None:
    """The same tokens, not only the same number."""
    assert full(name).encode_ordinary(text) == genuine[name].encode(text, disallowed_special=())


@each
@settings(max_examples=20, deadline=None)
@given(text=TEXTS)
def test_leaving_out_tokens_changes_nothing(name: str, genuine: dict[str, tiktoken.Encoding], text: str) -> None:
    """An encoder of only the ranks a small text needs gives the same tokens."""
    ranks = vocabulary.needed(tokens(name), text.encode())
    assert vocabulary.encoder(name, ranks).encode_ordinary(text) == genuine[name].encode(text, disallowed_special=())


@each
def test_OA_33_counts_of_real_texts(name: str, genuine: dict[str, tiktoken.Encoding]) -> None:
    """Small, empty, and larger than the limit for leaving out tokens."""
    page = Path(vocabulary.__file__).read_text() * 3
    for text in ("", "a", page, page * 20):
        assert vocabulary.count(text.encode(), name) == len(genuine[name].encode(text, disallowed_special=()))


@each
def test_special_tokens_count_as_text(name: str) -> None:
    """A prompt may speak of <|endoftext|>; it is seven tokens, not one and no error."""
    assert vocabulary.count(b"<|endoftext|>", name) == len(full(name).encode_ordinary("<|endoftext|>")) == 7


@each
def test_invalid_bytes_count_as_replacement_characters(name: str) -> None:
    """A file that is not UTF-8 is counted, never refused."""
    assert vocabulary.count(b"ab \xff\xfe cd", name) == len(full(name).encode_ordinary("ab \ufffd\ufffd cd"))


@each
def test_a_long_run_of_one_letter_does_not_blow_up(name: str) -> None:
    """Half a megabyte of one word is counted like any other text."""
    assert vocabulary.count(b"a" * 500_000, name) == 62_500


def test_counting_opens_no_connection() -> None:
    """A process in which every use of a socket is an error counts all the same."""
    code = """
import sys
def hook(event, arguments):
    if event.startswith("socket."):
        raise RuntimeError(event)
sys.addaudithook(hook)
from rooda.run.vocabulary import count
print(count(b"hello world", "o200k_base"), count(b"hello world", "cl100k_base"))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("2 2\n", "")


def test_prompts_import_nothing_heavy() -> None:
    """Importing every module that makes prompts loads neither tiktoken nor what it brings along."""
    modules = [f"rooda.run.{name}" for name in ("placeholders", "vocabulary")]
    modules += [f"rooda.loops.{kind}.prompts" for kind in ("procedure", "reflex", "flow", "goal")]
    heavy = {"tiktoken", "regex", "requests", "psutil", "yaml", "subprocess", "zlib", "struct", "difflib"}
    code = f"import sys, {', '.join(modules)}\nprint(sorted(sys.modules.keys() & {heavy}))"
    ran = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert len(modules) >= 4
    assert (ran.stdout, ran.stderr) == ("[]\n", "")
