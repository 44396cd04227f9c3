"""Files, texts, fragments, parameters, context."""

import os

import pytest

from rooda.errors import PromptProblem, UsageProblem
from rooda.loops.procedure.model import Context, Fragment
from tests.kit.tiers import OWN, Tiers


def act(tiers: Tiers, toml: str, more: str = "", **flags: object) -> tuple[Fragment, ...]:
    """The fragments of the act phase written as `toml`."""
    tiers.write(OWN.replace('"ACT"', toml), more)
    return tiers.procedure("mine", **flags).phases[3].fragments


def test_a_file_next_to_the_settings_file(tiers: Tiers, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is relative to the file that names it, wherever rooda was started."""
    monkeypatch.chdir(tiers.root)
    path = tiers.file("prompts/act.md")
    assert act(tiers, '"prompts/act.md"') == (Fragment(path=path, shown="prompts/act.md"),)


def test_a_users_file_is_relative_to_the_users_folder(tiers: Tiers) -> None:
    """A phase in the user's settings is relative to that file."""
    (tiers.user_file.parent / "act.md").write_text("x")
    tiers.user(OWN.replace('"ACT"', '"act.md"'))
    assert tiers.procedure("mine").phases[3].fragments[0].path == str(tiers.user_file.parent / "act.md")


def test_a_file_of_any_name_is_a_file(tiers: Tiers) -> None:
    """What exists is a file, even with blanks in its name; ~ is the home."""
    path = tiers.file("my prompt")
    assert act(tiers, '"my prompt"')[0].path == path


@pytest.mark.parametrize(
    "text", ["Do it.", "and/or do it", "read notes.md", "line\\nprompts/x.md", "builtin", "Builtin: x y", "word"]
)
def test_other_texts_are_texts(text: str, tiers: Tiers) -> None:
    """A sentence is used unchanged, without placeholders."""
    assert act(tiers, f'"{text}"') == (Fragment(text=text.replace("\\n", "\n"), shown="text"),)


@pytest.mark.parametrize(
    "name", ["prompts/gone.md", "gone.txt", "/nowhere/at-all", "gone.prompt", "a/b", "Builtin:act/signal.md"]
)
def test_a_missing_path_is_an_error(name: str, tiers: Tiers) -> None:
    """A path to nothing is an error with file and line, once the procedure is used, and not before."""
    tiers.write(OWN.replace('"ACT"', f'"{name}"'))
    tiers.load()
    problem = tiers.fault("mine")
    assert isinstance(problem, PromptProblem)
    wanted = os.path.join(tiers.workspace, name)
    assert (
        problem.what
        == f"{tiers.workspace_file}:6: procedures.mine.act: prompt file not found: {name} (looked for {wanted})"
    )


def test_every_missing_file_at_once(tiers: Tiers) -> None:
    """Two missing prompt files are reported together. A folder is not a prompt."""
    tiers.file("folder/x.md")
    tiers.write(OWN.replace('"ACT"', '["a.md", { path = "b c" }]').replace('"ORI"', '{ path = "folder" }'))
    said = tiers.fault("mine").what.splitlines()
    assert len(said) == 3
    assert "procedures.mine.orient: is a folder, not a prompt file: folder" in said[0]


def test_OU_013_builtin_paths(tiers: Tiers) -> None:
    """builtin:NAME is a shipped prompt, always with placeholders; the prefix is exact and stays inside."""
    (fragment,) = act(tiers, '"builtin:act/signal.md"')
    assert fragment.path and os.path.isfile(fragment.path)
    assert (fragment.shown, fragment.parameters) == ("builtin:act/signal.md", {})
    for wrong in ("builtin:act/gone.md", "builtin:../README.md", "builtin:", "builtin:act"):
        tiers.write(OWN.replace('"ACT"', f'"{wrong}"'))
        assert tiers.fault("mine").what.endswith(f"procedures.mine.act: there is no built-in prompt {wrong!r}")


def test_OU_012_fragments(tiers: Tiers) -> None:
    """A phase is an array of texts, files and tables; {content} is a text whatever it looks like."""
    path = tiers.file("a.md")
    fragments = act(tiers, '["text", "a.md", { content = "a.md" }, { path = "a.md", parameters = { n = 1 } }]')
    assert fragments == (
        Fragment(text="text", shown="text"),
        Fragment(path=path, shown="a.md"),
        Fragment(text="a.md", shown="text"),
        Fragment(path=path, shown="a.md", parameters={"n": "1"}),
    )


def test_OU_015_parameters(tiers: Tiers) -> None:
    """Numbers and booleans become texts; fragment beats procedure, flag beats both."""
    toml = '["a", { content = "b", parameters = { x = "own", y = "own" } }]'
    procedure = "parameters = { x = 1, z = true, f = 1.5 }\n"
    first, second = act(tiers, toml, procedure)
    assert first.parameters == {"x": "1", "z": "true", "f": "1.5"}
    assert second.parameters == {"x": "own", "y": "own", "z": "true", "f": "1.5"}
    first, second = act(tiers, toml, procedure, parameters={"x": "typed"})
    assert first.parameters and second.parameters
    assert (first.parameters["x"], second.parameters["x"], second.parameters["y"]) == ("typed", "typed", "own")
    first, second = act(tiers, toml)
    assert first.parameters is None


def test_OU_034_phase_flags_replace_the_phase(tiers: Tiers, monkeypatch: pytest.MonkeyPatch) -> None:
    """--act, repeated: a file of the workspace or the current folder if it exists, else text; never empty."""
    elsewhere = tiers.root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "there.md").write_text("x")
    monkeypatch.chdir(elsewhere)
    path = tiers.file("a.md")
    assert act(tiers, '"ACT"', act=["a.md", "there.md", "say it"]) == (
        Fragment(path=path, shown="a.md"),
        Fragment(path=str(elsewhere / "there.md"), shown="there.md"),
        Fragment(text="say it", shown="text"),
    )
    assert tiers.fault("mine", act=["gone.md"]).what.startswith("--act: prompt file not found: gone.md")
    for empty in ("", " \n"):
        problem = tiers.fault("mine", observe=[empty])
        assert isinstance(problem, UsageProblem)
        assert problem.what == "Empty inline content not allowed for --observe flag."


def test_OU_011_context(tiers: Tiers) -> None:
    """Context is a file if it exists, else always text; what was typed follows what is configured."""
    path = tiers.file("notes.md")
    tiers.write(OWN + 'context = ["notes.md", "gone/notes.md"]\n')
    assert tiers.procedure("mine").context == (
        Context(path=path, shown="notes.md"),
        Context(text="gone/notes.md", shown="text"),
    )
    typed = tiers.procedure("mine", context=["Be quick", "notes.md"]).context
    assert typed[2:] == (Context(text="Be quick", shown="text"), Context(path=path, shown="notes.md"))
    assert tiers.fault("mine", context=[""]).what == "Empty inline content not allowed for --context flag."


@pytest.mark.parametrize(
    ("left_out", "said"), [("DEC", "phase 'decide' is missing"), ("ACT", "phase 'act' is missing")]
)
def test_a_missing_phase(left_out: str, said: str, tiers: Tiers) -> None:
    """A procedure with three phases is an error that names the missing one and its place; a flag can supply it."""
    tiers.write("\n".join(line for line in OWN.splitlines() if left_out not in line))
    problem = tiers.fault("mine")
    assert problem.what == f"{tiers.workspace_file}:2: procedures.mine: the {said}"
    assert tiers.procedure("mine", decide=["x"], act=["y"]).phases[3].name == "act"


def test_several_missing_phases(tiers: Tiers) -> None:
    """All are named at once."""
    tiers.write("[procedures.mine]\nobserve = 'x'\n")
    assert tiers.fault("mine").what.endswith("procedures.mine: the phases 'orient', 'decide', 'act' are missing")
