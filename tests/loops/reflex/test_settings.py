"""The settings of [reflex]: extraction, models of phases, agents that only read, names in [reflex] before [loop]."""

import json

import pytest

from rooda.demo.reflex import answer
from rooda.loops.reflex.contract import LENIENT, Breach, markdown, one_object
from rooda.loops.reflex.rules import alias_of, changed, is_alias, sections
from tests.kit.reflex import FAKE, PLAN, Kit, words


@pytest.mark.parametrize(
    "text, fine",
    [
        (f"Here it is:\n{PLAN}\nGood luck.", True),
        (PLAN, True),
        (f"```json\n{PLAN}\n```", True),
        (f"{PLAN} and {PLAN}", False),
        ("nothing", False),
        ("{ not json } " + PLAN, True),
        (f'The shape is {{"a": 1}}.\n\n```json\n{PLAN}\n```\nGood luck.', True),
    ],
)
def test_L_04_json_in_chatter(text: str, fine: bool) -> None:
    """One object with the contract's key anywhere in the answer will do; none or two will not."""
    if fine:
        assert one_object(text, LENIENT, "plan") == json.loads(PLAN)
    else:
        with pytest.raises(Breach):
            one_object(text, LENIENT, "plan")


@pytest.mark.parametrize(
    "text, artifact",
    [
        ("Sure! Here is the updated document:\n\n# T\n\nx", "# T\n\nx\n"),
        ("Sure! Here it is.\n```markdown\n# T\n```sh\nls\n```\n```\n\nShall I go on?", "# T\n```sh\nls\n```\n"),
        ("Here\u2019s the document:\n\n---\n\n# T", "# T\n"),
        ("Certainly!\n\n---\ntitle: x\n---\n# T", "---\ntitle: x\n---\n# T\n"),
        ("```md\n# T\n```\nI changed the title.", "# T\n"),
        ("Here is how to start:\n\n1. Install it", "Here is how to start:\n\n1. Install it\n"),
        ("```\nls\n```", "```\nls\n```\n"),
        ("```markdown\na\n```\n\n# Two\n\ntext", "```markdown\na\n```\n\n# Two\n\ntext\n"),
    ],
)
def test_L_04_an_artifact_begins_with_itself(text: str, artifact: str) -> None:
    """Words before it, an outer fence and a sentence after that are cut off; what belongs to it stays."""
    assert markdown(text) == artifact


def test_L_04_words_without_an_artifact_are_a_breach() -> None:
    with pytest.raises(Breach, match="only words about it"):
        markdown("Sure! Here is the document:")


def test_L_04_on_the_command(kit: Kit) -> None:
    """An agent that chats costs no retry; extraction = "strict" in [reflex] demands JSON alone."""
    kit.answer("PLAN.1", f"Sure:\n{PLAN}\n")
    kit.answer("PRODUCE.1", f"Sure! Here is the spec:\n\n{words('ENAD')}")
    assert kit.new().code == 0 and "phase_error" not in kit.ev and kit.artifact == words("ENAD")
    kit.config(table='extraction = "strict"')
    assert kit.new(4, "--alias", "strict-one").code == 1


def test_models_of_phases_and_agents_that_only_read(kit: Kit) -> None:
    """phase_models reach single phases through [models]; an agent with a read_only command line gets that one."""
    kit.ws.config(
        f'[agents.scripted]\ncommand = "{FAKE} --write"\nread_only = "{FAKE} --model {{model}}"\n'
        '[models]\nsmall = "tiny-1"\n[reflex]\nagent = "scripted"\nmodel = "big"\nphase_models = { plan = "small" }\n'
    )
    assert kit.new().code == 0
    models = {line["phase"]: (line["argv"], line["env"]["ROODA_MODEL"]) for line in kit.started("*")}
    assert models["PLAN"] == (["--model", "tiny-1"], "tiny-1")
    assert models["PRODUCE"] == (["--model", "big"], "big")
    kit.ws.config(kit.ws.read("rooda.toml") + "read_only = false\n")
    assert kit.new(4, "--alias", "other").code == 0
    assert kit.started("PLAN")[-1]["argv"] == ["--write"]
    kit.ws.config(kit.ws.read("rooda.toml").replace("plan =", "planning ="))
    ran = kit.new(4, "--alias", "third")
    assert ran.code == 2 and "planning" in ran.err


@pytest.mark.parametrize(
    "task, alias",
    [
        ("Write the courses API", "write-the-courses-api"),
        ("Größe & Maß — déjà vu!", "grosse-mass-deja-vu"),
        ("日本語", "task"),
        ("x", "task-x"),
        ("it's 3 o'clock", "its-3-oclock"),
        ("a" * 100, "a" * 48),
        ("word " * 40, "word-word-word-word-word-word-word-word-word"),
    ],
)
def test_names_of_loops(task: str, alias: str) -> None:
    """From the first words, in the letters that a folder may have."""
    assert alias_of(task) == alias and is_alias(alias)


def test_sections_and_changes() -> None:
    """Headings outside of code blocks, numbered where they repeat; added, modified, removed."""
    text = "intro\n# A\none\n```sh\n# no heading\n```\n## B ##\n# A\ntwo\n"
    assert [*sections(text)] == ["(beginning)", "A", "B", "A (2)"]
    assert sections("# A\n")["A"] == "# A\n\n" and sections("") == {}
    assert changed({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "4", "d": "5"}) == ["b", "d", "-c"]


def test_the_demo_runs_without_an_account(kit: Kit) -> None:
    """`--agent demo`: a first failure, phase A in iteration 2, phase B in iteration 3."""
    ran = kit.ws.rooda("reflex", "new", "A REST API for a lending library", "--agent", "demo", stdin=b"y\ny\n")
    heads = [line for line in ran.lines if line.startswith("── Iteration")]
    assert ran.code == 0, ran.both
    assert [line.split("|")[1].strip() + line.split("|")[3].strip(" ─") for line in heads] == [
        *("Phase AFAIL", "Phase APASS", "Phase BFAIL", "Phase BPASS"),
    ]
    assert "stop_reason: threshold_reached" in ran.lines and answer("iteration", "") is None


def test_other_words_reach_reflex_loops(kit: Kit) -> None:
    """The functions of the registry's contract: what runs, what can continue, how it is described."""
    from rooda.loops.reflex import kind

    kit.kill_in("PLAN.1", "x")
    path = kit.ws.path
    assert kind.resumable(path) == [kit.run["task_alias"]] == [*kind.locks(path)]
    (facts,) = kind.facts(path, None)
    assert facts["status"] == "running" and not facts["running"]
    assert any("rooda reflex resume" in line for line in kind.lines(facts))
    kit.reflex("stop")
    assert kind.resumable(path) == [] == kind.facts(path, None)
    assert kind.facts(path, kit.run["task_alias"])[0]["status"] == "stopped"


@pytest.mark.parametrize("option", [["--param", "a=b"], ["--failure-threshold", "2"], ["--no-gates"]])
def test_R_064_an_option_of_another_kind_is_refused(kit: Kit, option: list[str]) -> None:
    """Nothing that was typed is passed over in silence."""
    kit.kill_in("PLAN.1", "x")
    before = kit.checksums()
    ran = kit.ws.rooda("resume", kit.run["task_alias"], *option)
    assert (ran.code, "is not an option of" in ran.err) == (2, True), ran.both
    assert kit.checksums() == before and len(kit.started("*")) == 1
