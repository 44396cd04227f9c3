"""What the user can do to the prompt: context, phases, fragments, parameters, preamble; and the dry-run."""

import json

import pytest

from tests.kit.workspace import Workspace

HEAD = "# OODA Loop Iteration\n\n"
PHASES = "## OBSERVE\nOBS\n\n## ORIENT\nORI\n\n## DECIDE\nDEC\n\n## ACT\nACT\n"


def prompt(ws: Workspace, *words: str, name: str = "build", cwd: str = "") -> str:
    """The prompt that a dry-run shows."""
    ran = ws.rooda(name, "--dry-run", *words, cwd=cwd)
    assert ran.code == 0, ran.both
    return ran.out.split("\n\n", 1)[1]


def test_OU_11_a_text_as_context(ws: Workspace) -> None:
    """--context with a text: a section between the title and OBSERVE, word for word; several in order."""
    assert prompt(ws) == HEAD + PHASES
    assert prompt(ws, "--context", "do  this\nfirst") == f"{HEAD}## CONTEXT\ndo  this\nfirst\n\n{PHASES}"
    assert prompt(ws, "-c", "one", "-c", "two") == f"{HEAD}## CONTEXT\none\n\ntwo\n\n{PHASES}"


def test_OU_11_a_file_as_context(ws: Workspace) -> None:
    """--context with a file: where it is from, then its text as it is when the call is made."""
    ws.write("notes/task.md", "TASK\n")
    assert prompt(ws, "-c", "notes/task.md") == f"{HEAD}## CONTEXT\nSource: notes/task.md\n\nTASK\n\n{PHASES}"
    ws.side(1, "echo CHANGED > notes/task.md")
    ws.rooda("build", "-n", "2", "-c", "notes/task.md")
    assert [b"CHANGED" in call.prompt for call in ws.calls] == [False, True]


@pytest.mark.parametrize("flag", ["--context", "--observe", "--orient", "--decide", "--act"])
@pytest.mark.parametrize("value", ["", "  \n"], ids=repr)
def test_OU_11_OU_34_nothing_is_refused(ws: Workspace, flag: str, value: str) -> None:
    """An empty text is a mistake, not an empty section."""
    ran = ws.rooda("build", "--dry-run", flag, value)
    assert (ran.code, ran.out) == (2, "")
    assert f"Empty inline content not allowed for {flag} flag." in ran.err


def test_OU_34_a_phase_replaced(ws: Workspace) -> None:
    """A phase's flag replaces that phase, by text or file, repeatable; the others stay."""
    ws.write("orient.md", "FROM FILE\n")
    expected = PHASES.replace("OBS\n", "look\n\ntwice\n").replace("ORI\n", "FROM FILE\n")
    assert prompt(ws, "--observe", "look", "--observe", "twice", "--orient", "orient.md") == HEAD + expected
    ws.rooda("build", "-n", "1", "--act", "only this")
    assert ws.calls[0].prompt.decode() == HEAD + PHASES.replace("\nACT\n", "\nonly this\n")


@pytest.mark.parametrize("name", ["missing.md", "prompts/missing"])
def test_OU_34_a_file_that_is_not_there(ws: Workspace, name: str) -> None:
    """What looks like a file and is none is not taken for a text."""
    ran = ws.rooda("build", "--dry-run", "--act", name)
    assert ran.code == 2 and "prompt file not found" in ran.err and name in ran.err


def test_OU_12_fragments(bare: Workspace) -> None:
    """A phase is a text, or an array of texts, files and tables; the pieces are joined by one empty line."""
    bare.write("a.md", "FILE A\n\n\n")
    bare.config(
        '[loop]\nai_cmd = "true"\n[procedures.mine]\nobserve = "text"\n'
        'orient = ["one", "a.md", {content = "inline"}, {path = "a.md"}]\n'
        'decide = {content = "table"}\nact = ["x"]\n'
    )
    expected = "## OBSERVE\ntext\n\n## ORIENT\none\n\nFILE A\n\ninline\n\nFILE A\n\n## DECIDE\ntable\n\n## ACT\nx\n"
    assert prompt(bare, name="mine") == HEAD + expected


@pytest.mark.parametrize("fragment", ['{content = "c", path = "p"}', "{}", "{parameters = {a = 1}}"])
def test_OU_12_exactly_one_of_three(bare: Workspace, fragment: str) -> None:
    """A fragment has one of content, path and command; said with file and line."""
    bare.config(f'[procedures.mine]\nobserve = "o"\norient = "o"\ndecide = "d"\nact = [{fragment}]\n')
    ran = bare.rooda("mine", "--dry-run")
    assert ran.code == 2
    assert "rooda.toml:5: procedures.mine.act[0]: must have exactly one of content, path and command" in ran.err


def test_OU_12_overriding_replaces_the_whole_array(ws: Workspace) -> None:
    """A stronger file's phase replaces a weaker one's array; nothing of it is left."""
    ws.write(f"{ws.home}/.config/rooda/rooda.toml", '[procedures.build]\nact = ["A1", "A2", "A3"]\norient = ["O1"]\n')
    assert prompt(ws) == HEAD + PHASES
    bare = '[loop]\nai_cmd = "true"\n[procedures.build]\nobserve = "OBS"\ndecide = "DEC"\nact = ["B1"]\n'
    ws.config(bare)
    assert prompt(ws) == HEAD + PHASES.replace("ORI\n", "O1\n").replace("\nACT\n", "\nB1\n")


def test_OU_13_built_in_fragments(ws: Workspace) -> None:
    """`builtin:` names a shipped prompt; the prefix is exact, and an unknown name is an error."""
    text = prompt(ws, "--observe", "builtin:observe/contract.md")
    assert "AGENTS.md" in text.partition("## ORIENT")[0]
    ran = ws.rooda("build", "--dry-run", "--observe", "builtin:observe/nothing.md")
    assert ran.code == 2 and "there is no built-in prompt 'builtin:observe/nothing.md'" in ran.err
    ran = ws.rooda("build", "--dry-run", "--observe", "builtin:../../rooda/errors.py")
    assert ran.code == 2 and "there is no built-in prompt" in ran.err
    assert "## OBSERVE\nBUILTIN: upper case\n" in prompt(ws, "--observe", "BUILTIN: upper case")


def test_OU_13_paths_are_relative_to_their_file(bare: Workspace) -> None:
    """A path in a settings file is relative to that file, wherever the workspace is."""
    bare.write(
        "deep/settings.toml",
        '[loop]\nai_cmd="true"\n[procedures.mine]\nobserve = "p/o.md"\norient="a"\ndecide="b"\nact="c"\n',
    )
    bare.write("deep/p/o.md", "DEEP")
    bare.write("p/o.md", "SHALLOW")
    assert "## OBSERVE\nDEEP\n" in prompt(bare, "--config", "deep/settings.toml", name="mine")


def test_OU_15_parameters(bare: Workspace) -> None:
    """{{name}} is filled in, a typed value first; one without a value is an error that names it."""
    bare.config(
        '[loop]\nai_cmd="true"\n[procedures.mine]\nobserve = "Look at {{what}}."\norient="a"\ndecide="b"\n'
        'act = {content = "Do {{what}} {{times}} times", parameters = {what = "that", times = 3}}\n'
        '[procedures.mine.parameters]\nwhat = "this"\n'
    )
    text = prompt(bare, name="mine")
    assert "Look at this." in text and "Do that 3 times" in text
    assert prompt(bare, "--param", "what=it", name="mine").count("it") >= 2
    ran = bare.rooda("mine", "--dry-run", "--act", "{{gone}}")
    assert ran.code == 2 and "gone" in ran.err


def test_OU_15_braces_without_parameters(ws: Workspace) -> None:
    """Without parameters a text is used verbatim: {{ }} of another language is not a placeholder."""
    assert "## ACT\nuse {{ .Values.x }} and ${y}\n" in prompt(ws, "--act", "use {{ .Values.x }} and ${y}")


def test_OU_09_the_preamble(ws: Workspace) -> None:
    """Off by default; on, it is before the title and says procedure, iteration, role and signals."""
    assert prompt(ws).startswith(HEAD)
    ws.procedure("build", 'display = "The Builder"\npreamble = true\npromise_signals = true\n')
    ws.rooda("build", "-n", "2")
    texts = [call.prompt.decode() for call in ws.calls]
    before, title, after = texts[1].partition(HEAD)
    assert title and after == PHASES
    for line in (
        "Procedure: The Builder",
        "Iteration: 2 of 2",
        "Your Role:",
        "Success Signaling:",
        "<promise>SUCCESS</promise>",
    ):
        assert line in before
    assert "Iteration: 1 of 2" in texts[0]
    assert "Iteration: 1 (unlimited)" in prompt(ws, "--preamble", "-u")
    assert prompt(ws, "--no-preamble").startswith(HEAD)


def test_OU_10_the_phase_markers(ws: Workspace) -> None:
    """The phases are headed as the specification has it, with and without preamble."""
    for words in ((), ("--preamble",)):
        text = prompt(ws, *words)
        assert "PHASE 1" not in text and "## OBSERVE\n" in text


def test_OU_26_where_each_setting_comes_from(ws: Workspace) -> None:
    """`--dry-run --verbose` prints each setting with its tier and file on stderr; stdout stays as it was."""
    ws.write(f"{ws.home}/.config/rooda/rooda.toml", "[loop]\nfailure_threshold = 7\n")
    plain = ws.rooda("build", "--dry-run", "-n", "4")
    ran = ws.rooda("build", "--dry-run", "-n", "4", "-v", env={"ROODA_LOOP_TOKEN_BUDGET": "999"})
    assert plain.err == "" and ran.out == plain.out.replace("100,000", "999")
    lines = ran.err.splitlines()
    assert "default_iterations: 4 (from: flag (--max-iterations))" in lines
    assert "token_budget: 999 (from: environment (ROODA_LOOP_TOKEN_BUDGET))" in lines
    assert any(line.startswith("failure_threshold: 7 (from: user config (") for line in lines)
    assert any(
        line.startswith("ai_cmd: ") and "workspace config (" in line and "rooda.toml:2" in line for line in lines
    )
    assert "kill_grace: 5 (from: built-in)" in lines


def test_OU_27_a_dry_run_leaves_nothing(ws: Workspace) -> None:
    """A dry-run writes nothing, takes no lock and does not mind a state of any kind."""
    assert ws.rooda("build", "--dry-run").code == 0 and not ws.exists(".rooda")
    for text in (json.dumps({"status": "running"}), "{"):
        ws.write(".rooda/state/build.json", text)
        ran = ws.rooda("build", "--dry-run")
        assert (ran.code, ran.err) == (0, "")
        assert ws.read(".rooda/state/build.json") == text


def test_E_26_the_task_as_an_argument(ws: Workspace) -> None:
    """`rooda build "TASK"` is `--context "TASK"`, also on a resume."""
    assert prompt(ws, "fix the parser", "-c", "briefly") == f"{HEAD}## CONTEXT\nfix the parser\n\nbriefly\n\n{PHASES}"
    ws.signal_at(1)
    assert ws.rooda("run", "build", "fix the parser", "-n", "2", "-c", "briefly").code == 130
    assert ws.rooda("resume", "build").code == 0
    assert b"## CONTEXT\nfix the parser\n\nbriefly\n\n" in ws.calls[-1].prompt


def test_E_26_a_context_that_looks_like_a_path_must_exist(ws: Workspace) -> None:
    """A missing file is exit 2 with the place that was searched; an address, a word or a sentence is a text."""
    ws.write("notes/task.md", "TASK\n")
    for text in ("todo.md", "./todo", "../todo", "~/todo", "/nowhere/todo", "notes/todo", "notes/"):
        ran = ws.rooda("build", "--dry-run", "--context", text)
        assert ran.code == 2 and f"--context {text}: " in ran.err and "(looked for " in ran.err, text
    for text in ("https://x.invalid/issue.md", "parser/lexer", "tests", "see ./todo.md"):
        assert text in prompt(ws, "--context", text)


def test_E_26_a_context_file(ws: Workspace) -> None:
    """--context-file and context_files are files, whatever their names; a missing one is exit 2."""
    ws.write("odd name", "ODD\n")
    shown = f"{HEAD}## CONTEXT\nfirst\n\nSource: odd name\n\nODD\n\n{PHASES}"
    assert prompt(ws, "--context-file", "odd name", "-c", "first") == shown
    ran = ws.rooda("build", "--context-file", "gone")
    assert ran.code == 2 and "--context-file gone: does not exist" in ran.err
    ws.procedure("build", keys='context_files = ["odd name", "gone"]')
    ran = ws.rooda("build", "--dry-run")
    assert ran.code == 2 and "procedures.build.context_files gone: does not exist" in ran.err
