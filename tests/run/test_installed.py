"""A process imports no module of another version of rooda."""

import os
from pathlib import Path

import pytest

from rooda.errors import UNFINISHED, RoodaError
from rooda.run.installed import REMOVED, Installed


def test_E_46_another_version_is_not_imported(tmp_path: Path) -> None:
    """The same version written again is no upgrade; another one, or none, refuses every import of rooda."""
    package = tmp_path / "__init__.py"

    def install(version: str) -> None:
        (tmp_path / "new").write_text(f'__version__ = "{version}"\n')
        os.replace(tmp_path / "new", package)

    install("1.0")
    found = Installed(str(package), "1.0")
    install("1.0")
    assert found.other_version() == "" and found.find_spec("rooda.x") is None
    install("1.1")
    assert found.other_version() == "1.1" and found.find_spec("json") is None
    with pytest.raises(RoodaError, match=r"version 1\.1 is installed now") as refused:
        found.find_spec("rooda.x")
    assert refused.value.code == UNFINISHED
    package.unlink()
    assert found.other_version() == REMOVED
