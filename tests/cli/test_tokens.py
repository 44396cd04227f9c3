"""`rooda tokens`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from rooda.cli.tokens import tokens

COMMAND = "import sys; from rooda.cli.tokens import tokens; sys.exit(tokens.main(standalone_mode=False))"


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a one-token file, a twelve-token file and its own cache."""
    monkeypatch.setenv("ROODA_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("one.md").write_text("hello")
    Path("twelve.md").write_text(" hello" * 12)
    return tmp_path


def run(*arguments: str, stdin: bytes = b"") -> Said:
    """The command in a process of its own."""
    ran = subprocess.run([sys.executable, "-c", COMMAND, *arguments], input=stdin, capture_output=True)
    return Said(ran.returncode, ran.stdout.decode(), ran.stderr.decode())


def test_one_file_is_one_line() -> None:
    """The count, two blanks, the name; nothing on stderr."""
    assert run("one.md") == Said(0, "1  one.md\n", "")


def test_several_files_are_aligned_and_summed() -> None:
    """Counts are right-aligned, the total comes last."""
    assert run("one.md", "twelve.md") == Said(0, " 1  one.md\n12  twelve.md\n13  total\n", "")


def test_a_dash_is_stdin() -> None:
    """What comes in is counted like a file."""
    assert run("-", stdin=b"hello hello \xff").out.endswith("  -\n")
    assert run("-", stdin=b"") == Said(0, "0  -\n", "")


def test_a_missing_file_is_a_sentence_and_the_others_are_counted() -> None:
    """Exit 2 says that the answer is not complete."""
    said = run("gone.md", "one.md", ".")
    assert said.code == 2
    assert said.out == "1  one.md\n1  total\n"
    assert said.err == "gone.md can't be read: No such file or directory\n. can't be read: Is a directory\n"


def test_verbose_names_the_encoding() -> None:
    """Only with -v, and on stderr."""
    assert run("-v", "--encoding", "cl100k_base", "one.md") == Said(0, "1  one.md\n", "encoding: cl100k_base\n")


def test_json_is_one_object() -> None:
    """Counts, problems and total, for programs."""
    said = run("--json", "one.md", "gone.md")
    assert said.code == 2
    assert json.loads(said.out) == {
        "encoding": "o200k_base",
        "files": [{"file": "one.md", "tokens": 1, "exact": True}],
        "problems": [{"file": "gone.md", "error": "No such file or directory"}],
        "total": 1,
        "exact": True,
    }


def test_an_estimate_is_marked(here: Path) -> None:
    """Where tiktoken is not to be had, a ~ says so."""
    import click

    import rooda

    for module in (rooda, click):  # a folder with click but without tiktoken
        package = Path(module.__file__ or "").parent
        (here / package.name).symlink_to(package)
    ran = subprocess.run(
        [sys.executable, "-P", "-S", "-c", COMMAND, "one.md", "twelve.md"],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(here)},
    )
    assert (ran.stdout, ran.stderr) == (" ~2  one.md\n~18  twelve.md\n~20  total\n", "")


def test_no_file_is_a_usage_error() -> None:
    """click says so, and the gate makes it exit 2."""
    import click

    with pytest.raises(click.UsageError):
        tokens.main([], standalone_mode=False)
