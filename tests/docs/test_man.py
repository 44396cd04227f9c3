"""The manual pages, which tools/man.py makes of the commands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rooda.cli.words import SYNONYMS, WORDS
from tests.kit.needed import needs
from tests.kit.pages import ROOT

MAN = ROOT / "docs" / "man"
PAGES = sorted(MAN.iterdir())


def test_the_pages_are_current() -> None:
    """docs/man/ is what tools/man.py makes of the commands today."""
    words = [sys.executable, "tools/man.py", "--print"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    made = dict(part.split("\n", 1) for part in re.split(r"^== ", done.stdout, flags=re.MULTILINE)[1:])
    assert made == {page.name: page.read_text() for page in PAGES}


def test_every_command_has_a_page() -> None:
    """Each word and synonym of `rooda --help`, and each procedure of `rooda list`."""
    procedures = re.findall(
        r"^\[procedures\.([\w-]+)\]$", (ROOT / "config" / "procedures.toml").read_text(), re.MULTILINE
    )
    assert len(procedures) == 17
    wanted = {*WORDS, *SYNONYMS, *procedures, "tasks-fleet"}
    assert {page.name for page in PAGES} >= {"rooda.1", *(f"rooda-{name}.1" for name in wanted)}


@needs("groff")
def test_groff_has_no_complaint(tmp_path: Path) -> None:
    """With all warnings on, and as `man` calls it: in the folder above man1."""
    (tmp_path / "man1").symlink_to(MAN)
    for page in PAGES:
        words = ["groff", "-ww", "-man", "-Tutf8", "-P-cbou", f"man1/{page.name}"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), page.name
        assert "\nNAME\n       rooda" in done.stdout and "\nSYNOPSIS\n       rooda" in done.stdout, page.name


@pytest.mark.parametrize("option", ["--max-iterations", "--detach", "--gate COMMAND", "-C DIR"])
def test_the_page_of_a_command_has_its_options(option: str) -> None:
    """As `rooda build --help` has them."""
    assert option.replace("-", "\\-") in (MAN / "rooda-build.1").read_text()
