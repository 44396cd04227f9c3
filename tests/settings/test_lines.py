"""The line of every key."""

import re
import subprocess
import sys
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooda.settings.toml import TooDeep, line_of, parse

TEXT = """\
top = 1

[loop]
a = 1 # comment with a.b = 2
b = \"\"\"
two
lines\"\"\"
c.d.e = 5
list = [
  1,
  { x = 1 },
  { x = 2, y = 3 },
  # comment
]

[loop.deeper."odd key"]
f = { g = 2026-01-01T00:00:00+01:00, h.i = { j = 2 } }

[[gates]]
name = "one"
[[gates]]
name = "two"
[gates.inner]
k = 1
"""

EXPECTED = {
    ("top",): 1,
    ("loop",): 3,
    ("loop", "a"): 4,
    ("loop", "b"): 5,
    ("loop", "c", "d", "e"): 8,
    ("loop", "list"): 9,
    ("loop", "list", 0): 9,
    ("loop", "list", 1): 11,
    ("loop", "list", 1, "x"): 11,
    ("loop", "list", 2): 12,
    ("loop", "list", 2, "x"): 12,
    ("loop", "deeper", "odd key"): 16,
    ("loop", "deeper", "odd key", "f"): 17,
    ("loop", "deeper", "odd key", "f", "h", "i", "j"): 17,
    ("gates", 0): 19,
    ("gates", 0, "name"): 20,
    ("gates", 1): 21,
    ("gates", 1, "name"): 22,
    ("gates", 1, "inner"): 23,
    ("gates", 1, "inner", "k"): 24,
}


@pytest.mark.parametrize("path", EXPECTED)
def test_OU_032_every_key_has_its_line(path: tuple[str | int, ...]) -> None:
    """The line of keys, tables, dotted keys, inline tables, array tables and array items is found."""
    tree, lines = parse(TEXT)
    assert tree == tomllib.loads(TEXT)
    assert line_of(lines, path) == EXPECTED[path]


def test_windows_line_ends_count_once() -> None:
    """A file with CRLF has the same lines."""
    assert parse(TEXT.replace("\n", "\r\n"))[1] == parse(TEXT)[1]


def test_unknown_paths_get_the_line_of_the_table_around_them() -> None:
    """A key that is missing is reported where its table begins; nothing at all gives 0."""
    _, lines = parse("\n[a.b]\nc = 1\n")
    assert line_of(lines, ("a", "b", "missing")) == 2
    assert line_of(lines, ("nowhere",)) == 0


@pytest.mark.parametrize("text", ["a = [", "a = 1\na = 2", "[a]\n[a]", "a.b = 1\na = 2"])
def test_syntax_errors_are_those_of_tomllib(text: str) -> None:
    """The copied parser refuses what tomllib refuses, in the same words."""
    with pytest.raises(tomllib.TOMLDecodeError) as ours:
        parse(text)
    with pytest.raises(tomllib.TOMLDecodeError) as theirs:
        tomllib.loads(text)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize(
    "text", ["[" + ".".join("a" * 5000) + "]", "a = " + "[" * 5000 + "]" * 5000, "a = " + "{b = " * 60 + "1" + "}" * 60]
)
def test_bottomless_nesting_is_refused(text: str) -> None:
    """Neither deep tables nor deep arrays exhaust the stack."""
    with pytest.raises(TooDeep):
        parse(text)


def test_tomllib_itself_is_left_alone() -> None:
    """After a parse with lines, tomllib's own functions are the ones it came with."""
    before = dict(vars(sys.modules["tomllib._parser"]))
    parse(TEXT)
    assert dict(vars(sys.modules["tomllib._parser"])) == before


def test_a_tomllib_built_differently_only_costs_the_lines() -> None:
    """Where the parser's functions can't be copied, the document is still read."""
    code = (
        "import tomllib, sys; del sys.modules['tomllib._parser'];"
        "from rooda.settings.toml import parse; print(parse('a = 1'))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "({'a': 1}, {})\n"


@given(st.text(alphabet="ab.[]{}=\"'#\n ,1", max_size=60))
def test_any_text_is_read_as_tomllib_reads_it(text: str) -> None:
    """Same tree or same refusal for any text."""
    try:
        expected = tomllib.loads(text)
    except ValueError as problem:
        with pytest.raises(ValueError, match=re.escape(str(problem))):
            parse(text)
    else:
        assert parse(text)[0] == expected
