"""Any bytes in a settings file give settings or a sentence."""

import os
import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st

from rooda.errors import RoodaError
from rooda.loops.configuration import load
from rooda.loops.procedure import settings as procedure_settings
from rooda.settings import procedures
from rooda.settings.lookup import origins
from rooda.settings.toml import toml_value

SAMPLE = b"""\
[loop]
default_iterations = 5
failure_threshold = 3
iteration_timeout = 1.5
agent = "claude"
on_interrupted = "ask"
quality_gates = ["make test", { name = "lint", command = "make lint", timeout = 60 }]
model = "opus"

[procedures.mine]
observe = "look"
orient = ["prompts/a.md", { content = "x {{y}}", parameters = { y = 1 } }]
decide = { path = "builtin:decide/tasks.md" }
act = '''do
it'''
context = ["notes.md"]
parameters = { z = true }

[[procedures.other.quality_gates]]
command = "x"

[agents.mine]
command = "tool --model {model}"
env = { A = "b" }

[models]
opus = "opus-9"
[ai_cmd_aliases]
old = "cat"
[reflex]
any.thing = [1, 2026-01-01, { a = nan }]
"""
PIECES = [
    b"\n",
    b"=",
    b"[",
    b"]",
    b"{",
    b"}",
    b'"',
    b"'",
    b".",
    b"#",
    b"0",
    b"-1",
    b"true",
    b"nan",
    b"[[loop]]",
    b"\xff",
    b"\0",
    b"\\u0000",
    b"9" * 30,
    b"loop",
    b"procedures.mine",
    b"act",
    b"agent",
    b"1e999",
    b"''",
    b"[]",
    b"{}",
]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = SAMPLE
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 20)))
        data = data[:start] + draw(st.sampled_from(PIECES) | st.binary(max_size=4)) + data[end:]
    return data


@st.composite
def values_swapped(draw: st.DrawFn) -> bytes:
    """The sample with the value of one key replaced by one of another type."""
    lines = SAMPLE.splitlines()
    index = draw(st.sampled_from([number for number, line in enumerate(lines) if b" = " in line]))
    key = lines[index].split(b" = ")[0]
    value = draw(
        st.sampled_from(
            [
                b"1",
                b"-1",
                b"0",
                b"1.5",
                b"inf",
                b"true",
                b"''",
                b"'x'",
                b"[]",
                b"[1]",
                b"['a']",
                b"[[]]",
                b"{}",
                b"{a = 1}",
                b"[{}]",
                b"2026-01-01",
                b"12:00:00",
                b"0x" + b"f" * 400,
            ]
        )
    )
    return b"\n".join([*lines[:index], key + b" = " + value, *lines[index + 1 :]])


def read(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "rooda.toml"), "wb") as file:
            file.write(data)
        found = load(folder, environ={"HOME": folder})
        for _, value, origin in origins(found):
            assert origin and "\n" not in toml_value(value)
        for name in procedures.names(found):
            if found.origin(("procedures", name)) != "built-in":
                procedure_settings.procedure(found, name, {})


@settings(max_examples=60, deadline=None)
@given(mutated() | values_swapped() | st.binary(max_size=60))
def test_O_119_any_file_gives_settings_or_a_sentence(data: bytes) -> None:
    """A broken file raises only RoodaError."""
    try:
        read(data)
    except RoodaError as problem:
        assert problem.code == 2 and problem.what and "Traceback" not in problem.what


@settings(max_examples=40, deadline=None)
@given(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30),
    st.sampled_from(
        ["DEFAULT_ITERATIONS", "KILL_GRACE", "AI_CMD", "PREAMBLE", "QUALITY_GATES", "AGENT", "MODEL", "LOG_LEVEL"]
    ),
)
def test_any_variable_gives_settings_or_a_sentence(text: str, key: str) -> None:
    """A strange environment raises only RoodaError."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            procedure_settings.procedure(load(folder, environ={"HOME": folder, f"ROODA_LOOP_{key}": text}), "build", {})
        except RoodaError as problem:
            assert problem.what.startswith(f"ROODA_LOOP_{key}")
