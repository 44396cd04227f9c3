"""One thing that a workspace's file names and that can run, redirect or leak: what the user is asked to trust."""

from typing import NamedTuple


class Fact(NamedTuple):
    """A fact of a file. Two facts are the same if file, name and value are; the rest is for display."""

    file: str  # as the workspace has it, such as "rooda.toml"; a path outside of the workspace is absolute
    name: str  # where in the file, such as "loop.quality_gates"; without a position in a list
    value: str  # what would run, or where it would send something, on one line
    label: str = ""  # what it is for, in a word or two, such as "gate" or "hook done"
    line: int = 0  # 0: unknown
    warning: str = ""  # what the user might overlook, such as "sends your key elsewhere"
    restrains: bool = False  # it holds the agent back: its absence is a change too
    harmless: bool = False  # it only holds the agent back: to appear it needs no permission

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.file, self.name, self.value
