"""Defines the record of a workspace setting that can run, redirect or leak something and so needs the user's trust."""

from typing import NamedTuple


class Fact(NamedTuple):
    """One setting in a workspace file that needs the user's trust, identified by its file, name and value."""

    file: str  # relative to the workspace, such as "rooda.toml"; absolute if outside the workspace
    name: str  # key in the file, such as "loop.quality_gates", without list indexes
    value: str  # the command to run or the address to send to, on one line
    label: str = ""  # its purpose in a word or two, such as "gate" or "hook done"
    line: int = 0  # 0: unknown
    warning: str = ""  # a danger that the user might overlook, such as "sends your key elsewhere"
    restrains: bool = False  # it restricts the agent, so removing it is a change too
    harmless: bool = False  # it only restricts the agent, so adding it needs no permission

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.file, self.name, self.value
