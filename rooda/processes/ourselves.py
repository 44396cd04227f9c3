"""rooda once more, as a process of its own."""

import sys


def command(module: str = "rooda") -> list[str]:
    """Its first words. `-P`: the folder that it begins in is somebody's project, whose modules are none of ours."""
    return [sys.executable, "-P", "-m", module]
