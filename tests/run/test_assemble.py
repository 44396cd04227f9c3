"""The form of the prompt, byte for byte."""

from hypothesis import given
from hypothesis import strategies as st

from rooda.loops.procedure.model import PHASES
from rooda.loops.procedure.prompts import assemble, from_file

FOUR = {"observe": ["OBS"], "orient": ["ORI"], "decide": ["DEC"], "act": ["ACT"]}
PLAIN = "# OODA Loop Iteration\n\n## OBSERVE\nOBS\n\n## ORIENT\nORI\n\n## DECIDE\nDEC\n\n## ACT\nACT\n"

TEXTS = st.text(max_size=30)
SECTIONS = st.fixed_dictionaries({name: st.lists(TEXTS, max_size=3) for name in PHASES})


def test_O_007_four_phases_in_order_in_the_exact_form() -> None:
    """The specification's example is met to the last newline."""
    assert assemble(FOUR) == PLAIN


def test_order_of_the_mapping_does_not_matter() -> None:
    """Each phase has its own section, by name."""
    assert assemble(dict(reversed(FOUR.items()))) == PLAIN


def test_OU_12_fragments_are_joined_by_one_empty_line() -> None:
    """Trailing newlines of each fragment are removed; inner ones stay."""
    text = assemble(FOUR | {"orient": ["one\n\n\n", "\n two \n", "three\r\n\r\n"]})
    assert "## ORIENT\none\n\n\n two \n\nthree\n\n## DECIDE" in text


def test_OA_40_context_between_title_and_observe() -> None:
    """One context: its own section, once."""
    assert assemble(FOUR, ["CTX\n"]) == PLAIN.replace("\n\n## OBSERVE", "\n\n## CONTEXT\nCTX\n\n## OBSERVE")


def test_OA_40_several_contexts_keep_their_order() -> None:
    """They are separated by one empty line."""
    assert "## CONTEXT\nB\n\nA\n\nC\n\n## OBSERVE" in assemble(FOUR, ["B", "A\n\n", "C"])


def test_OU_11_a_context_from_a_file_names_its_source() -> None:
    """The section has the path as it was typed."""
    assert from_file("./notes.md", "x\n") == "Source: ./notes.md\n\nx\n"


def test_OU_09_preamble_before_the_title() -> None:
    """The rest of the prompt is the same as without it."""
    assert assemble(FOUR, preamble="Hello\n") == "Hello\n\n" + PLAIN


def test_empty_phases_keep_their_heading() -> None:
    """A phase without a fragment, or with an empty one, is an empty section."""
    assert (
        assemble({"observe": [""]})
        == "# OODA Loop Iteration\n\n## OBSERVE\n\n\n## ORIENT\n\n\n## DECIDE\n\n\n## ACT\n\n"
    )


def test_inside_a_text_nothing_is_changed() -> None:
    """CRLF, tabs, a decomposed é, NUL and bytes that are not UTF-8 are unchanged."""
    raw = b"a\r\nb\t\x00e\xcc\x81 \xff\xfe \xe2\x80\xa8 {{x}}"
    text = assemble(FOUR | {"act": [raw.decode("utf-8", "surrogateescape")]})
    assert text.encode("utf-8", "surrogateescape").endswith(b"## ACT\n" + raw + b"\n")


@given(SECTIONS, st.lists(TEXTS, max_size=2), TEXTS)
def test_every_text_survives_without_its_trailing_newlines(
    sections: dict[str, list[str]], context: list[str], preamble: str
) -> None:
    """Cutting the expected pieces off the front, one after the other, leaves nothing over."""
    rest = assemble(sections, context, preamble)
    pieces = [preamble.rstrip("\r\n") + "\n\n"] if preamble else []
    pieces.append("# OODA Loop Iteration\n")
    for name, texts in [("context", context)] * bool(context) + [(name, sections[name]) for name in PHASES]:
        pieces.append(f"\n## {name.upper()}\n" + "\n\n".join(text.rstrip("\r\n") for text in texts) + "\n")
    for piece in pieces:
        assert rest.startswith(piece)
        rest = rest[len(piece) :]
    assert rest == ""


@given(SECTIONS)
def test_trailing_newlines_of_a_fragment_never_matter(sections: dict[str, list[str]]) -> None:
    """A file with and without its last newline gives the same prompt."""
    more = {name: [text + "\n" for text in texts] for name, texts in sections.items()}
    assert assemble(more) == assemble(sections)
