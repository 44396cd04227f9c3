"""The installer of CLIs, with a scripted npm."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.clis import install

NPM = """\
#!/bin/sh
echo "$@" >>"$CALLS"
[ -z "$NPM_FAILS" ] || { mkdir -p "$3/node_modules"; exit 1; }
mkdir -p "$3/node_modules/.bin"
"""


class Installer:
    """install.py with a scripted npm first on PATH."""

    def __init__(self, root: Path) -> None:
        self.cache, self.calls = root / "clis", root / "calls"
        npm = root / "bin" / "npm"
        npm.parent.mkdir()
        npm.write_text(NPM)
        npm.chmod(0o755)
        path = f"{npm.parent}{os.pathsep}{os.environ['PATH']}"
        self.env = {"PATH": path, "ROODA_TEST_CLIS": str(self.cache), "CALLS": str(self.calls)}

    def run(self, *names: str, **env: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, install.__file__, *names]
        return subprocess.run(words, env={**self.env, **env}, capture_output=True, text=True)


@pytest.fixture
def installer(tmp_path: Path) -> Installer:
    return Installer(tmp_path)


def test_a_pinned_version_is_installed_once(installer: Installer) -> None:
    """npm installs exactly the pinned version, in its own folder; the second time nothing runs."""
    ran = installer.run("codex")
    place = installer.cache / f"codex-{install.version('codex')}"
    assert (ran.returncode, ran.stdout) == (0, f"codex {install.version('codex')} {place}/node_modules/.bin\n")
    assert f"@openai/codex@{install.version('codex')}" in installer.calls.read_text()
    assert f"--prefix {place}" in installer.calls.read_text()
    assert installer.run("codex").stdout == ran.stdout
    assert len(installer.calls.read_text().splitlines()) == 1
    assert os.listdir(installer.cache) == [place.name]


def test_a_failed_installation_leaves_nothing_and_the_others_continue(installer: Installer) -> None:
    """A CLI that could not be installed is listed, leaves no folder, and can be installed later."""
    ran = installer.run("codex", "qwen", NPM_FAILS="1")
    assert ran.returncode == 1 and ran.stdout == ""
    assert "codex" in ran.stderr and "qwen" in ran.stderr
    assert os.listdir(installer.cache) == []
    assert installer.run("qwen").returncode == 0 and "node@22" in installer.calls.read_text()


def test_a_half_made_installation_is_made_again(installer: Installer) -> None:
    """A folder of an interrupted installation does not count as installed."""
    (installer.cache / f"pi-{install.version('pi')}" / "node_modules" / ".bin").mkdir(parents=True)
    assert installer.run("pi").returncode == 0 and installer.calls.exists()


@pytest.mark.parametrize("names", [[], ["codex", "no-such-cli"]], ids=["none", "unknown"])
def test_usage(installer: Installer, names: list[str]) -> None:
    """Without a name, or with an unknown one, nothing is installed and the names are shown."""
    ran = installer.run(*names)
    assert ran.returncode == 2 and "gemini" in ran.stderr and not installer.calls.exists()
