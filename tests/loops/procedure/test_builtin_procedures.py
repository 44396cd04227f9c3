"""config/procedures.toml: the seventeen procedures, complete and consistent with prompts/."""

import json
import re
import tomllib

import pytest

from rooda.base.dirs import shipped
from rooda.loops.procedure.model import PHASES
from rooda.run.placeholders import PLACEHOLDER
from tests.kit.shipped_prompts import fragments, procedures, prompt, user_page, uses

NAMES = [
    "bootstrap",
    "agents-sync",
    "build",
    "publish-plan",
    *(f"audit-{what}" for what in ("spec", "impl", "agents", "spec-to-impl", "impl-to-spec")),
    *(f"draft-plan-{what}-{kind}" for what in ("spec", "impl") for kind in ("feat", "fix", "refactor", "chore")),
]
AUDITS = [name for name in NAMES if name.startswith("audit-")]
DRAFTS = [name for name in NAMES if name.startswith("draft-plan-")]
SECTIONS = [
    "Work Tracking System",
    "Quick Reference",
    "Task Input",
    "Planning System",
    "Build/Test/Lint Commands",
    "Specification Definition",
    "Implementation Definition",
    "Audit Output",
    "Quality Criteria",
    "Operational Learnings",
]


def test_OU_016_the_seventeen_procedures_are_there() -> None:
    """Exactly the promised names are built in, bootstrap among them."""
    assert sorted(procedures()) == sorted(NAMES)


def test_OU_016_limits() -> None:
    """bootstrap runs once, build five times, and nothing that ships runs without a limit."""
    limits = {name: table["default_iterations"] for name, table in procedures().items()}
    assert limits["bootstrap"] == 1
    assert limits["build"] == 5
    assert all(1 <= limit <= 5 for limit in limits.values())


def test_the_file_stays_lean() -> None:
    """It is parsed at each start, so it holds nothing but the keys that are needed."""
    with open(shipped("config", "procedures.toml"), encoding="utf-8") as file:
        assert len(file.readlines()) < 250
    expected = {"display", "summary", "description", "default_iterations", *PHASES}
    some = {"quality_gates", "hosts", "environment", "read"}  # the last three open the sandbox for publish-plan
    assert all(set(table) - some == expected for table in procedures().values())


def test_E_13_gates_of_the_code_judge_build_alone() -> None:
    """What writes documents ships without gates."""
    assert {name for name, table in procedures().items() if table.get("quality_gates") == []} == set(NAMES) - {"build"}


@pytest.mark.parametrize("name", NAMES)
def test_what_lists_show_is_short(name: str) -> None:
    """A summary fits one line of a list; name and description say something."""
    table = procedures()[name]
    assert 10 < len(table["summary"]) <= 80
    assert not table["summary"].endswith(".")
    assert table["display"] and table["description"].endswith(".")


def test_OU_013_every_named_fragment_exists_and_every_file_is_used() -> None:
    """config and prompts/ name the same files, and a phase uses only fragments of its own folder."""
    assert {use.path for use in uses()} == set(fragments())
    assert all(use.path.startswith(f"{use.phase}/") for use in uses())


def test_OU_013_paths_are_plain() -> None:
    """Fragment names are lower-case words, so the same file is found on every file system."""
    assert all(re.fullmatch(r"[a-z]+/[a-z]+(-[a-z]+)*\.md", path) for path in fragments())


def test_OU_015_parameters_and_placeholders_agree() -> None:
    """Every placeholder has its parameter, every parameter its placeholder; fragments without them have neither."""
    for use in uses():
        wanted = {match[1] for match in re.finditer(PLACEHOLDER, fragments()[use.path])}
        assert wanted == set(use.parameters or ()), use


def test_no_fragment_twice_in_a_prompt() -> None:
    """A procedure says nothing twice."""
    named = [(use.procedure, use.path) for use in uses()]
    assert len(named) == len(set(named))


@pytest.mark.parametrize("name", NAMES)
def test_O_118_four_phases_in_order(name: str) -> None:
    """The assembled prompt has the title and four phases with something in each."""
    whole = prompt(name)
    assert whole.startswith("# OODA Loop Iteration\n\n## OBSERVE\n")
    assert re.findall(r"^## (.*)$", whole, re.M) == ["OBSERVE", "ORIENT", "DECIDE", "ACT"]
    assert all(len(part) > 300 for part in re.split(r"^## .*$", whole, flags=re.M)[1:])


@pytest.mark.parametrize("name", NAMES)
def test_prompts_stay_small(name: str) -> None:
    """A built-in prompt costs less than 2,500 tokens by the rule of four characters each."""
    assert len(prompt(name)) / 4 < 2_500


@pytest.mark.parametrize("name", NAMES)
def test_OU_001_act_teaches_both_signals_and_names_their_meaning(name: str) -> None:
    """Every ACT phase teaches both tags at its end, after it has said what done and blocked mean here."""
    act = prompt(name).partition("\n## ACT\n")[2]
    meaning, _, how = act.rpartition("\n### ")
    assert "<promise>SUCCESS</promise>" in how and "<promise>FAILURE</promise>" in how
    assert all(mark in how for mark in ("backticks", "quotation marks", "bold", "list marks"))  # with them it is no tag
    assert re.search(r"\bDone(:| means)", meaning) and re.search(r"\bBlocked(:| means)", meaning)


@pytest.mark.parametrize("name", NAMES)
def test_OU_001_an_echoed_prompt_is_not_a_signal(name: str) -> None:
    """No line of a prompt is a tag alone, not even without bullet, quote or code marks."""
    bare = [line.strip(" \t-*+>`'\".,:;") for line in prompt(name).splitlines()]
    assert not {"<promise>SUCCESS</promise>", "<promise>FAILURE</promise>"} & set(bare)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "bootstrap"])
def test_OU_041_the_contract_is_read_first_and_kept_true(name: str) -> None:
    """Each procedure reads AGENTS.md before anything else, doubts it, and corrects it unless it only reports on it."""
    assert [use.path for use in uses() if use.procedure == name][1:3] == ["observe/loop.md", "observe/contract.md"]
    act = prompt(name).partition("\n## ACT\n")[2]
    corrects = re.search(r"Correct in AGENTS\.md, in place|Edit `AGENTS\.md` as decided", act)
    assert bool(corrects) == (name != "audit-agents")


@pytest.mark.parametrize("name", ["bootstrap", "agents-sync", "audit-agents"])
def test_OU_040_the_ten_sections_are_named_in_order(name: str) -> None:
    """The prompts that write or judge AGENTS.md name its ten headings."""
    assert re.findall(r"^- ([A-Z][\w/ ]+): ", prompt(name).partition("## ORIENT")[2], re.M)[:10] == SECTIONS


@pytest.mark.parametrize("name", NAMES)
def test_E_04_a_prompt_begins_with_the_job(name: str) -> None:
    """Five lines at the top: heading, job, size, when it is done, and what never to do."""
    job = prompt(name).partition("## OBSERVE\n")[2].partition("\n\n### ")[0].replace("\n\n", "\n").splitlines()
    assert [line.partition(":")[0] for line in job] == ["### Your job", "- Job", "- Size", "- Done when", "- Never"]


@pytest.mark.parametrize("name", NAMES)
def test_E_04_common_limits(name: str) -> None:
    """Each prompt says who wrote STATUS, what needs the task's permission, and what of .rooda may be read."""
    observe = prompt(name).partition("\n## ORIENT\n")[0]
    assert "STATUS above, if it is there, comes from rooda" in observe
    assert "install nothing, delete no data, read no secrets" in observe and "use no network" in observe
    assert "In `.rooda/` read only what STATUS names" in observe


def test_E_04_build_goes_by_status_and_context() -> None:
    """The last gate results count as before; a task in CONTEXT needs no tracking; only green work is committed."""
    whole = prompt("build")
    for words in (
        "The gate results in STATUS are the state before your work: do not run those gates now.",
        "Without work tracking, the task in CONTEXT is the only task",
        "Create no tracking file",
        "run the narrowest test that shows it",
        "At the end run everything once",
        "When every gate passes, commit once",
        "Do not commit if STATUS says that rooda does",
        "about 300 changed lines and one commit",
    ):
        assert words in whole


@pytest.mark.parametrize("name", AUDITS)
def test_E_04_audits_are_capped_and_listed(name: str) -> None:
    """At most 20 findings, each with its confidence, and a list whose example is JSON."""
    whole = prompt(name)
    assert "at most 20 findings" in whole and "Confidence: high" in whole
    (finding,) = json.loads(re.search(r"^    (\[\{.*)$", whole, re.M)[1])  # type: ignore[index]
    assert {"severity", "confidence", "title", "path", "line"} <= set(finding)


@pytest.mark.parametrize("name", DRAFTS)
def test_E_04_plans_are_logged_and_checked_once(name: str) -> None:
    """A plan has a review log, and today's result of each acceptance command."""
    whole = prompt(name)
    assert "`## Review log`" in whole and "Log `no defect`" in whole
    assert "Run a harmless acceptance command once" in whole and "Run only those without today's result" in whole


@pytest.mark.parametrize("name", AUDITS)
def test_audits_write_one_report_of_their_own(name: str) -> None:
    """An audit's default report carries its name, so that two audits never overwrite each other."""
    assert f"`audits/{name}.md`" in prompt(name)


@pytest.mark.parametrize("name", DRAFTS)
def test_plans_say_their_kind(name: str) -> None:
    """A plan file names the kind of its procedure, and says what it does not change."""
    whole = prompt(name)
    subject, kind = name.removeprefix("draft-plan-").split("-")
    assert f"`Kind: {subject}-{kind}`" in whole
    changed = {"spec": "specifications", "impl": "implementation"}[subject]
    assert f"The plan changes the {changed}." in whole


def test_OU_047_only_build_commits() -> None:
    """The commit is the agent's, in build alone; nothing pushes on its own."""
    commits = {use.procedure for use in uses() if use.path == "act/hand-over.md"}
    leaves = {use.procedure for use in uses() if use.path == "act/leave.md"}
    assert commits == {"build"}
    assert leaves == set(NAMES) - {"build"}
    assert "Do not push" in fragments()["act/hand-over.md"]


def test_user_page_names_every_procedure_with_its_limit() -> None:
    """docs/procedures.md has a row for each built-in procedure, and the limit in it is the true one."""
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (\d+) \|", user_page(), re.M))
    assert rows == {name: str(table["default_iterations"]) for name, table in procedures().items()}


def test_user_page_examples_hold() -> None:
    """The TOML shown to users is valid and names fragments that exist."""
    examples = re.findall(r"^```toml\n(.*?)^```", user_page(), re.M | re.S)
    assert len(examples) == 3
    tables = [table for example in examples for table in tomllib.loads(example)["procedures"].values()]
    assert tables
    assert {path for example in examples for path in re.findall(r"builtin:([\w/.-]+)", example)} <= set(fragments())
