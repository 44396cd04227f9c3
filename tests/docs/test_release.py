"""The version, which is written once, and the changelog of it."""

import re
import tomllib

import rooda
from rooda.cli import doctor
from tests.kit.pages import ROOT

HEADINGS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]  # of Keep a Changelog, in its order


def test_the_newest_release_of_the_changelog_is_this_version() -> None:
    """`Unreleased` comes first, then the version that `rooda --version` prints, with its date."""
    sections = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert sections[0] == "[Unreleased]"
    dated = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)", section) for section in sections[1:]]
    assert all(dated), sections
    assert dated[0] and dated[0][1] == rooda.__version__
    dates = [match[2] for match in dated if match]
    assert dates == sorted(dates, reverse=True)


def test_each_release_has_the_headings_of_keep_a_changelog() -> None:
    """Nothing but the six kinds of changes, each once a release."""
    for section in re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]:
        found = re.findall(r"^### (.+)$", section, re.MULTILINE)
        assert found == [heading for heading in HEADINGS if heading in found]


def test_the_version_is_written_once() -> None:
    """The package's metadata takes it from `rooda/__init__.py`, and the page about `rooda doctor` shows it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "rooda/__init__.py"
    assert re.search(rf"^ok    rooda +{re.escape(rooda.__version__)}$", (ROOT / "docs/doctor.md").read_text(), re.M)


def test_the_oldest_versions_are_those_of_the_code() -> None:
    """docs/platforms.md names the Python that pip wants and the git that `rooda doctor` wants."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
    git = ".".join(map(str, doctor.OLDEST_GIT))
    assert f"Python {wanted} or newer, git {git} or newer" in (ROOT / "docs" / "platforms.md").read_text()
