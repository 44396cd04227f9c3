"""Documents that are almost right: the corpus with pieces cut out, doubled, moved in, or a JSON value replaced."""

import json
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.fuzz_table import Target
from tests.kit.inside import changed, places

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.sampled_from(
        [10**18, -(10**30), 10**400, 1e300, 1e-300, float("inf"), float("nan"), "", "\ud800", "\x00", "é\u202e"]
    ),
    st.text(max_size=8),
    st.just([[[[[]]]]]),
    st.lists(st.integers(0, 3) | st.text(max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=4), st.none() | st.integers(0, 9), max_size=2),
)


def documents(target: Target) -> st.SearchStrategy[bytes]:
    """For a target: its own inputs, changed."""
    kept = [path.read_bytes() for path in target.corpus()]
    small = [data for data in kept if len(data) < 20_000] or [b""]
    return changed_text(small, target.pieces) | changed_values(small) | st.binary(max_size=40)


@st.composite
def changed_text(draw: st.DrawFn, kept: list[bytes], pieces: tuple[str, ...]) -> bytes:
    """One to four changes of the bytes."""
    data = draw(st.sampled_from(kept))
    given = st.sampled_from([piece.encode("utf-8", "surrogatepass") for piece in pieces]) | st.binary(max_size=4)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 40)))
        how = draw(st.integers(0, 3))
        other = draw(st.sampled_from(kept)) if how == 3 else b""
        new = (b"", data[start:end] * 3, draw(given), other[len(other) // 3 :])[how]
        data = data[:start] + new + data[end:]
    return data


@st.composite
def changed_values(draw: st.DrawFn, kept: list[bytes]) -> bytes:
    """One value of a JSON document, or of one of its lines, is another; what is no JSON loses a line."""
    lines = draw(st.sampled_from(kept)).split(b"\n")
    whole = _read(b"\n".join(lines))
    place = draw(st.integers(0, len(lines) - 1))
    value = _read(lines[place]) if whole is None else whole
    if not isinstance(value, dict | list):
        return b"\n".join(lines[:place] + lines[place + 1 :])
    for _ in range(draw(st.integers(1, 3))):
        value = changed(value, draw(st.sampled_from(places(value) or [()])), draw(VALUES))
    data = json.dumps(value).encode()
    return data if whole is not None else b"\n".join([*lines[:place], data, *lines[place + 1 :]])


def _read(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None
