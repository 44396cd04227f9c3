"""Parameters in fragments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooda.errors import PromptProblem
from rooda.run.placeholders import substitute

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,8}", fullmatch=True)
CALM = st.text(alphabet=st.characters(exclude_characters="{\\", exclude_categories=["Cs"]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no braces", "no braces"),
        ("{{name}}", "N"),
        ("{{ name }}, {{\tname}}", "N, N"),
        ("{{name}}{{long-name_2}}", "NL"),
        ("{{{name}}}", "{N}"),
        (r"\{{name}}", "{{name}}"),
        (r"\{{", "{{"),
        (r"\\{{name}}", r"\{{name}}"),
        ("{name} {{ }} {{}} {{2x}} {{a.b}} {{na\nme}}", "{name} {{ }} {{}} {{2x}} {{a.b}} {{na\nme}}"),
        ("{{name}", "{{name}"),
    ],
)
def test_OU_15_what_is_replaced_and_what_is_not(text: str, expected: str) -> None:
    """A placeholder is two braces around a name; everything else is text."""
    assert substitute(text, {"name": "N", "long-name_2": "L", "unused": "U"}, "x.md") == expected


def test_values_are_not_expanded_again() -> None:
    """A value that looks like a placeholder, an escape or a group reference stays as it is."""
    assert substitute("{{a}}|{{b}}", {"a": "{{b}}", "b": r"\{{a}} \1 \g<0>"}, "x.md") == r"{{b}}|\{{a}} \1 \g<0>"


def test_OU_15_a_missing_parameter_is_an_error_with_a_guess() -> None:
    """It names the placeholder, the fragment, the known parameters and the nearest of them."""
    with pytest.raises(PromptProblem) as caught:
        substitute("see {{flie}}", {"file": "x", "branch": "y"}, "prompts/act.md")
    assert caught.value.what == (
        "Prompt fragment prompts/act.md uses {{flie}}, but there is no parameter flie (known: branch, file)."
        " Did you mean {{file}}?"
    )
    assert r"\{{flie}}" in caught.value.hint
    assert caught.value.code == 2


def test_a_missing_parameter_without_any_known_one() -> None:
    """Without a similar name there is no guess."""
    with pytest.raises(PromptProblem) as caught:
        substitute("{{x}}", {}, "text")
    assert caught.value.what.endswith("(known: none).")


@given(CALM, st.dictionaries(NAMES, st.text()))
def test_text_without_braces_is_untouched(text: str, parameters: dict[str, str]) -> None:
    """Text without braces is unchanged."""
    assert substitute(text, parameters, "f") == text


@given(st.lists(st.tuples(CALM, NAMES)), st.dictionaries(NAMES, st.text()), CALM)
def test_each_placeholder_becomes_exactly_its_value(
    pieces: list[tuple[str, str]], parameters: dict[str, str], end: str
) -> None:
    """Text, value, text, value … in this order, whatever the values hold."""
    known = {name: f"<{name}>" for _, name in pieces} | parameters
    text = "".join(f"{before}{{{{{name}}}}}" for before, name in pieces) + end
    assert substitute(text, known, "f") == "".join(before + known[name] for before, name in pieces) + end


@given(st.text(alphabet=st.sampled_from("ab{}\\ ")))
def test_an_escaped_text_comes_out_as_written(text: str) -> None:
    """With `\\` before every `{{`, a fragment says literally what it says."""
    escaped = text.replace("\\", "/").replace("{{", "\\{{")
    assert substitute(escaped, {}, "f") == text.replace("\\", "/")
