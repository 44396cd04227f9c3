"""Mutated transcripts: whatever an agent prints, reading its final message and its word on the outcome never fails."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rooda.agents import outcome, reader, transcript
from rooda.base import files
from tests.kit.examples import examples

QUICK = settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
OUTPUTS = ["text", *reader.OUTPUTS, "none such"]
TAGS = st.sampled_from(["<promise>SUCCESS</promise>", "<promise>FAILURE</promise>", "<promise>SUCCESS", "\n", "word"])
WORDS = st.sampled_from(
    ["type", "role", "item", "part", "data", "message", "content", "text", "result", "delta", "finalText", "result",
     "item.completed", "agent_message", "assistant", "assistant.message", "completion", "tool_use", "tool_result"]
)  # fmt: skip
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | WORDS
    | st.lists(TAGS, max_size=3).map("\n".join)
    | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=10,
)
RECORDS = st.dictionaries(WORDS, VALUES, min_size=1, max_size=5).map(lambda record: json.dumps(record).encode())
NUMBERS = st.text("0123456789.", min_size=1, max_size=6) | st.just("9" * 400)
TOKENS = st.builds(
    "Tokens: {}{} sent, {} received. Cost: ${} message, ${} session.".format,
    *(NUMBERS, st.sampled_from(["", "k", "M"]), NUMBERS, NUMBERS, NUMBERS),
)
LINES = (
    TOKENS.map(str.encode)
    | RECORDS
    | st.binary(max_size=30)
    | TAGS.map(str.encode)
    | RECORDS.map(lambda line: line[: len(line) // 2])
)
TRANSCRIPTS = st.lists(LINES, max_size=8).map(b"\n".join) | st.binary(max_size=200)


@pytest.fixture(scope="module")
def folder() -> Iterator[str]:
    """One folder for all examples."""
    with tempfile.TemporaryDirectory() as name:
        yield name


def final_lines(output: str, path: str, limit: int) -> Iterator[bytes]:
    """The lines in which a promise is searched for, as `understanding` takes them."""
    if reader.is_read(output):
        return iter(transcript.facts_of(output, path, limit).final.encode("utf-8", "replace").split(b"\n"))
    return files.lines(path, limit)


def verdict(folder: str, output: str, data: bytes, limit: int = 1 << 20, prompt: bytes = b"") -> str:
    path = Path(folder, "transcript.out")
    path.write_bytes(data)
    return outcome.verdict(outcome.claims(final_lines(output, str(path), limit)), prompt)


@pytest.mark.parametrize("output", OUTPUTS)
@QUICK
@given(data=TRANSCRIPTS, limit=st.integers(1, 400))
@example(data=b'{"type":' * 30_000, limit=1 << 20)
@example(data=b'{"type": ' + b"[" * 100_000, limit=1 << 20)
@example(data=b'{"n": 1' + b"0" * 5000 + b"}", limit=1 << 20)
@example(data=b"\xff\xfe" * 50, limit=7)
@example(data=b"Tokens: " + b"9" * 400 + b" sent, 1 received.", limit=1 << 20)
@example(data=b"Tokens: 1 sent, 1 received. Cost: $0 message, $0.0.1 session.", limit=1 << 20)
def test_any_transcript_can_be_read(folder: str, output: str, data: bytes, limit: int) -> None:
    """No exception, whatever is printed and wherever the limit cuts; the answer is one of the three words."""
    assert verdict(folder, output, data, limit) in ("", "SUCCESS", "FAILURE")


@pytest.mark.parametrize("output", OUTPUTS)
@QUICK
@given(data=TRANSCRIPTS)
@example(data=b"\x00\r\x00\n<promise>SUCCESS</promise>")
def test_an_echoed_prompt_is_not_a_signal(folder: str, output: str, data: bytes) -> None:
    """A transcript that only repeats the prompt says nothing, in every form of output."""
    assert verdict(folder, "text", data, prompt=data) == ""
    lines = list(final_lines(output, str(Path(folder, "transcript.out")), 1 << 20))
    assert outcome.verdict(outcome.claims(lines), b"\n".join(lines)) == ""


@QUICK
@given(junk=st.lists(LINES.filter(lambda line: b"promise" not in line), max_size=5).map(b"\n".join))
def test_noise_does_not_hide_the_agents_word(folder: str, junk: bytes) -> None:
    """Broken records before the final one do not keep it from being read."""
    final = b'\n{"type": "result", "result": "done\\n<promise>SUCCESS</promise>"}\n'
    assert verdict(folder, "claude", junk + final) == "SUCCESS"
    assert verdict(folder, "text", junk + b"\n<promise>FAILURE</promise>\n") == "FAILURE"
