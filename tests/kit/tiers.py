"""Settings files of a workspace and of a user, on a real disk."""

from pathlib import Path
from typing import Any

import pytest

from rooda.errors import RoodaError
from rooda.loops.configuration import load
from rooda.loops.procedure import settings
from rooda.loops.procedure.model import Procedure
from rooda.settings.layers import Settings

OWN = """
[procedures.mine]
observe = "OBS"
orient = "ORI"
decide = "DEC"
act = "ACT"
"""


class Tiers:
    """A workspace `work` and a user `home`; `environ` is the whole environment."""

    def __init__(self, root: Path) -> None:
        self.root, self.workspace = root, root / "work"
        self.workspace_file = self.workspace / "rooda.toml"
        self.user_file = root / "home" / ".config" / "rooda" / "rooda.toml"
        self.environ = {"HOME": str(root / "home")}
        self.workspace.mkdir()
        self.user_file.parent.mkdir(parents=True)

    def write(self, text: str, more: str = "") -> None:
        """The workspace's rooda.toml."""
        self.workspace_file.write_text(text + more)

    def user(self, text: str) -> None:
        """The user's rooda.toml."""
        self.user_file.write_text(text)

    def file(self, name: str, text: str = "text\n") -> str:
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def load(self, config: str | None = None) -> Settings:
        return load(str(self.workspace), config, self.environ)

    def procedure(self, name: str, **flags: Any) -> Procedure:
        return settings.procedure(self.load(), name, flags)

    def fault(self, name: str = "", **flags: Any) -> RoodaError:
        """The error of loading, or of asking for the procedure."""
        with pytest.raises(RoodaError) as caught:
            settings.procedure(self.load(), name, flags) if name else self.load()
        assert caught.value.code == 2
        return caught.value

    def faults(self, text: str) -> list[str]:
        """What is said of this rooda.toml, without the file's name."""
        self.write(text)
        return [line.removeprefix(f"{self.workspace_file}:") for line in self.fault().what.splitlines()]

    def warnings(self, text: str) -> list[str]:
        self.write(text)
        return [line.removeprefix(f"{self.workspace_file}:") for line in self.load().warnings]
