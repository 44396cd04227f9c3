"""The built-in procedures, resolved by the settings in a workspace that has none of its own."""

import re
from pathlib import Path

import pytest

from rooda.agents import outcome
from rooda.base import files
from rooda.loops.configuration import load
from rooda.loops.procedure import settings as procedure_settings
from rooda.loops.procedure.model import PHASES, Fragment, Procedure
from rooda.loops.procedure.prompts import assemble
from rooda.run.placeholders import substitute
from tests.kit.shipped_prompts import procedures, prompt, user_page


def resolved(workspace: Path, name: str) -> Procedure:
    settings = load(str(workspace), environ={"HOME": str(workspace / "home")})
    return procedure_settings.procedure(settings, name, {})


def content(fragment: Fragment) -> str:
    assert fragment.path
    return substitute(files.text(fragment.path), fragment.parameters or {}, fragment.shown)


@pytest.mark.parametrize("name", procedures())
def test_O_118_an_empty_directory_is_enough(name: str, tmp_path: Path) -> None:
    """Without any file of the user, rooda finds all four phases and puts them together as they ship."""
    procedure = resolved(tmp_path, name)
    assert [phase.name for phase in procedure.phases] == list(PHASES)
    texts = {phase.name: [content(fragment) for fragment in phase.fragments] for phase in procedure.phases}
    assert assemble(texts) == prompt(name)
    assert procedure.builtin and procedure.promise_signals
    assert procedure.max_iterations == procedures()[name]["default_iterations"]


def test_user_page_examples_work_as_settings(tmp_path: Path) -> None:
    """The examples of docs/procedures.md, put into a rooda.toml, do what the page says."""
    examples = re.findall(r"^```toml\n(.*?)^```", user_page(), re.M | re.S)
    (tmp_path / "rooda.toml").write_text("\n".join(examples))
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "our-priorities.md").write_text("Bugs first.\n")
    build, own = resolved(tmp_path, "build"), resolved(tmp_path, "audit-licences")
    assert [fragment.shown for fragment in build.phases[2].fragments] == [
        "builtin:decide/next-task.md",
        "prompts/our-priorities.md",
    ]
    assert build.builtin and build.max_iterations == 20
    assert own.promise_signals and not own.builtin
    assert own.phases[1].fragments[0].text == "Compare the head of each source file with LICENSE."


@pytest.mark.parametrize("name", procedures())
def test_OU_001_the_reader_of_signals_finds_none_in_a_prompt(name: str) -> None:
    """An agent that echoes its whole prompt has claimed nothing."""
    assert outcome.claims(prompt(name).encode().splitlines()) == []
