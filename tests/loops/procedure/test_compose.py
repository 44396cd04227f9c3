"""Prompts from real files."""

import os
from pathlib import Path

import pytest

from rooda.errors import PromptProblem
from rooda.loops.procedure import effects
from rooda.loops.procedure.model import PHASES, Context, Fragment, Phase, Procedure

MARKS = {"observe": "OBS", "orient": "ORI", "decide": "DEC", "act": "ACT"}
BODY = "## OBSERVE\nOBS\n\n## ORIENT\nORI\n\n## DECIDE\nDEC\n\n## ACT\nACT\n"


def from_files(folder: Path) -> Procedure:
    """A procedure whose four phases are files in `folder`."""
    phases = []
    for name in PHASES:
        path = folder / f"{name}.md"
        path.write_text(MARKS[name] + "\n")
        phases.append(Phase(name, (Fragment(path=str(path), shown=f"prompts/{name}.md"),)))
    return Procedure("build", tuple(phases))


def with_act(*fragments: Fragment) -> Procedure:
    """A procedure with these fragments in its act phase."""
    return Procedure("build", (Phase("act", fragments),))


def refused(procedure: Procedure) -> PromptProblem:
    """The problem that composing this procedure ends with."""
    with pytest.raises(PromptProblem) as caught:
        effects.prompt_text("/", procedure, 1)
    assert caught.value.hint
    return caught.value


def test_O_007_four_files_become_the_prompt(tmp_path: Path) -> None:
    """Files in, the specification's form out."""
    assert effects.prompt_text("/", from_files(tmp_path), 1) == "# OODA Loop Iteration\n\n" + BODY


def test_O_005_files_are_read_each_time(tmp_path: Path) -> None:
    """What was added to a file after one prompt is in the next."""
    procedure = from_files(tmp_path)
    first = effects.prompt_text("/", procedure, 1)
    with (tmp_path / "observe.md").open("a") as file:
        file.write("NEWTEXT\n")
    assert "NEWTEXT" not in first
    assert "## OBSERVE\nOBS\nNEWTEXT\n\n## ORIENT" in effects.prompt_text("/", procedure, 2)


def test_OU_12_inline_text_and_files_mix(tmp_path: Path) -> None:
    """A phase may be made of several pieces; only those with parameters know placeholders."""
    path = tmp_path / "b.md"
    path.write_text("file {{x}}\n")
    pieces = [
        Fragment(text="inline {{x}}\n"),
        Fragment(path=str(path)),
        Fragment(path=str(path), parameters={"x": "X"}),
        Fragment(text="{{x}}", parameters={"x": "Y"}),
    ]
    assert effects.prompt_text("/", with_act(*pieces), 1).endswith(
        "## ACT\ninline {{x}}\n\nfile {{x}}\n\nfile X\n\nY\n"
    )


def test_OU_11_contexts_from_text_and_file(tmp_path: Path) -> None:
    """A file says its source as typed, a text stands for itself, both in the order given."""
    (tmp_path / "notes.md").write_text("NOTES\n\n")
    context = (Context(path=str(tmp_path / "notes.md"), shown="./notes.md"), Context(text="just this"))
    text = effects.prompt_text("/", from_files(tmp_path)._replace(context=context), 1)
    head = "# OODA Loop Iteration\n\n## CONTEXT\nSource: ./notes.md\n\nNOTES\n\njust this\n\n"
    assert text == head + BODY


def test_OU_09_preamble_only_when_asked_for(tmp_path: Path) -> None:
    """It changes from turn to turn, the rest does not."""
    procedure = from_files(tmp_path)._replace(preamble=True, max_iterations=5)
    text = effects.prompt_text("/", procedure, 2)
    assert text.startswith("Procedure: build\nIteration: 2 of 5\n")
    assert text.endswith("\n\n# OODA Loop Iteration\n\n" + BODY)


def test_bytes_survive(tmp_path: Path) -> None:
    """CRLF and invalid UTF-8 in a file come out as they lie on disk."""
    raw = b"\xef\xbb\xbfa\r\nb\xff\xe9 \xe6\xbc\xa2"
    (tmp_path / "raw.md").write_bytes(raw)
    text = effects.prompt_text("/", with_act(Fragment(path=str(tmp_path / "raw.md"))), 1)
    assert text.encode("utf-8", "surrogateescape").endswith(b"## ACT\n" + raw + b"\n")


def test_OA_39_a_missing_file_is_a_sentence(tmp_path: Path) -> None:
    """The error has the name as typed, where rooda looked for it, and what needs it."""
    procedure = from_files(tmp_path)
    path = tmp_path / "act.md"
    path.unlink()
    problem = refused(procedure)
    assert problem.what == f"Prompt file prompts/act.md can't be read: No such file or directory ({path})"
    assert "Phase act of procedure build" in problem.hint
    assert problem.code == 2


def test_non_files_are_refused_without_hanging(tmp_path: Path) -> None:
    """A folder, a pipe without a writer, a device, a link to itself and an impossible name."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    reasons = {
        str(tmp_path): "Is a directory",
        str(tmp_path / "pipe"): "it is not a regular file",
        os.devnull: "it is not a regular file",
        str(tmp_path / "loop"): "symbolic links",
        str(tmp_path / ("x" * 300)): "too long",
        str(tmp_path / "a\0b"): "NUL",
        "": "No such file",
    }
    for path, reason in reasons.items():
        assert reason in refused(with_act(Fragment(path=path))).what


def test_a_missing_context_file_is_called_one(tmp_path: Path) -> None:
    """It is not mistaken for a prompt file."""
    procedure = from_files(tmp_path)._replace(context=(Context(path=str(tmp_path / "gone.md"), shown="gone.md"),))
    assert refused(procedure).what.startswith("Context file gone.md can't be read: No such file or directory")


def test_a_missing_parameter_names_fragment_and_phase() -> None:
    """The user can find the place."""
    problem = refused(with_act(Fragment(text="{{file}}", shown="text", parameters={"fiel": "x"})))
    assert "fragment text (phase act)" in problem.what
    assert "Did you mean {{fiel}}?" in problem.what
