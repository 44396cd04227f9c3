"""What the documents say can be typed, followed and believed."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rooda.loops import configuration
from rooda.run import gates_md
from tests.kit.pages import PAGES, ROOT, anchors, blocks, commands, links, name_of
from tests.kit.workspace import Workspace

FENCE = re.MULTILINE | re.DOTALL
PROCEDURE = re.compile(r"^((\[procedures\.[\w-]+\])\n(?:.+\n)+)", re.MULTILINE)
EACH_PAGE = pytest.mark.parametrize("page", PAGES, ids=name_of)


def python(*words: str, cwd: str | Path = ROOT, env: dict[str, str] | None = None) -> str:
    """What a Python of this tree prints."""
    environment = {**(env or os.environ), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *words], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@EACH_PAGE
def test_commands_are_accepted(page: Path, bare: Workspace) -> None:
    """Each `rooda …` command has a word that exists and options that this word takes; shown to `--help`, they pass."""
    typed = [_anywhere(words) for words in commands(page)]
    files = re.findall(r"<<'END'\n(.*?)^END$", page.read_text(), FENCE)
    shown = "\n".join([*blocks(ROOT / "README.md", "toml"), *files])
    bare.config("".join({table: text for text, table in PROCEDURE.findall(shown)}.values()))
    program = (
        "import contextlib, io, json, sys; from rooda.startup import main\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    said = io.StringIO()\n"
        "    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said): code = main([*words, '--help'])\n"
        "    if code: print(words, said.getvalue())\n"
    )
    assert python("-c", program, json.dumps(typed), cwd=bare.path, env=bare.env) == ""


def _anywhere(words: list[str]) -> list[str]:
    """The command without -C and its folder, which is another machine's."""
    at = words.index("-C") if "-C" in words else len(words)
    return [word for word in words[:at] + words[at + 2 :] if word != "--help"]


def test_commands_are_found() -> None:
    """The commands of blocks, tables and sentences are all seen, so that the test above can fail."""
    seen = [" ".join(words) for words in commands(ROOT / "README.md")]
    assert {"init --demo $demo", "build --dry-run", "why", "resume", "tasks land --pr"} <= set(seen)
    assert len(seen) > 20


@EACH_PAGE
def test_links_lead_somewhere(page: Path) -> None:
    """Each link between the documents names a file, and a heading of it where it has one."""
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name) if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@EACH_PAGE
def test_paths_exist(page: Path) -> None:
    """A path of the tree named in a document is there."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    roots = r"rooda|tests|tools|docs|config|prompts|benchmarks|archive|\.ci"
    for path in re.findall(rf"`((?:{roots})/[\w./-]*)`", prose):
        assert (ROOT / path).exists() or path.startswith("benchmarks/results/"), path  # those are made by measuring


def test_configuration_is_current() -> None:
    """docs/configuration.md is what tools/configuration.py makes of the schema today."""
    assert python("tools/configuration.py", "--print") == (ROOT / "docs" / "configuration.md").read_text()


def test_A_13_the_tables_of_agents_are_current() -> None:
    """docs/agents.md has the tables that tools/agents.py makes of the shipped agents today."""
    assert python("tools/agents.py", "--print") == (ROOT / "docs" / "agents.md").read_text()


def test_every_shipped_agent_is_described(bare: Workspace) -> None:
    """docs/agents.md has each agent's command, prompt channel and stop signal as they are shipped, and no others."""
    shipped: dict[str, Any] = tomllib.loads((ROOT / "config" / "rooda.toml").read_text())["agents"]
    rows = re.findall(
        r"^\| `([\w-]+)` \| `(.+)` \| (stdin|argument|file) \| (\w+) \|$",
        (ROOT / "docs" / "agents.md").read_text(),
        re.MULTILINE,
    )
    usual = {name: "argument" if "{prompt}" in it["command"] else "stdin" for name, it in shipped.items()}
    wanted = {
        (name, it["command"], it.get("prompt", usual[name]), it.get("stop", "TERM")) for name, it in shipped.items()
    }
    assert set(rows) == wanted


def test_settings_in_examples_are_accepted(bare: Workspace) -> None:
    """Each TOML example is without fault and without an unknown key."""
    examples = [(page, text) for page in PAGES for text in blocks(page, "toml")]
    assert len(examples) > 5
    for page, text in examples:
        if page.name == "procedures.md":
            bare.write("prompts/our-priorities.md", "Tests first.")
        own = Path(bare.home, ".config", "rooda", "rooda.toml")
        own.parent.mkdir(parents=True, exist_ok=True)
        of_user = text.startswith("[fleet")
        own.write_text(text if of_user else "")
        bare.config("" if of_user else text)
        loaded = configuration.load(bare.path, environ={"HOME": bare.home})
        assert loaded.warnings == (), name_of(page)


def test_the_procedure_of_the_page_runs(bare: Workspace) -> None:
    """`rooda audit-licences` of docs/procedures.md has the shipped fragments, filled in, and its own text."""
    (example,) = (text for text in blocks(ROOT / "docs/procedures.md", "toml") if "[procedures.audit-licences]" in text)
    bare.config(example)
    run = bare.rooda("audit-licences", "--dry-run", "--ai-cmd", "cat")
    assert run.code == 0, run.both
    for text in ("files without a licence header", "Compare the head of each source file with LICENSE."):
        assert text in run.out
    assert (ROOT / "prompts/observe/loop.md").read_text().splitlines()[0] in run.out


def test_exit_codes_are_documented() -> None:
    """docs/ooda.md has a row for each exit code of rooda/errors.py."""
    from rooda import errors

    names = ("OK", "FAILED", "USAGE", "UNDECIDED", "UNFINISHED", "INTERRUPTED", "TERMINATED")
    codes = {str(getattr(errors, name)) for name in names}
    text = (ROOT / "docs" / "ooda.md").read_text().replace("exit code | meaning", "code | meaning")
    cells = re.findall(r"^\| ([\d, ]+) \|", text.partition("code | meaning")[2], re.MULTILINE)
    assert {code for cell in cells for code in cell.split(", ")} == codes


def test_agents_md_is_short_and_its_gates_are_those_of_ci() -> None:
    """AGENTS.md fits 100 lines; rooda reads three gates out of it, and .ci/run runs the same commands."""
    text = (ROOT / "AGENTS.md").read_text()
    assert len(text.splitlines()) <= 100
    gates = {gate.name: gate.command for gate in gates_md.gates(text)}
    ci = (ROOT / ".ci" / "run").read_text()
    assert list(gates) == ["lint", "types", "tests"]
    assert f"check lint .venv/bin/{gates['lint']}\n" in ci
    assert f"check types .venv/bin/{gates['types']}\n" in ci
    assert f"&& {gates['tests']}\n" in (ROOT / "README.md").read_text()


def test_the_test_in_agents_md_is_a_test(ws: Workspace) -> None:
    """The example for a newcomer passes as it is."""
    (example,) = blocks(ROOT / "AGENTS.md", "python")
    names: dict[str, Any] = {"Workspace": Workspace}
    exec(example, names)  # noqa: S102
    (test,) = (value for name, value in names.items() if name.startswith("test_"))
    test(ws)


def test_L_08_the_table_of_verbs_is_complete(bare: Workspace) -> None:
    """docs/loops.md has a row for each verb and a column for each kind; what a cell says is the verb of its kind."""
    table = (ROOT / "docs" / "loops.md").read_text().partition("| verb |")[2].partition("\n\n")[0]
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("|")]
    kinds = ["", "reflex ", "flow ", "goal "]
    known = {row[0] for row in rows} - {"---"}
    assert known == {"run", "resume", "status", "stop", "cancel", "list", "logs", "clean"}
    for verb, *cells in (row for row in rows if row[0] in known):
        assert all(cell.startswith(f"rooda {kind}{verb}") for kind, cell in zip(kinds, cells, strict=True)), cells
    for kind in kinds[1:]:
        listed = re.findall(r"^  ([\w-]+) ", bare.rooda(kind.strip(), "--help").out.partition("Commands:\n")[2], re.M)
        assert known - {"clean"} <= {*listed} | {"logs" if "log" in listed else ""}, kind
