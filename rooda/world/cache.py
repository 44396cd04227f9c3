"""Where the user's cache is. What is in it can be lost at any time: it costs time, nothing else."""

import os


def place(*names: str) -> str:
    """Path of something in rooda's cache; "" when there is no home to put one in."""
    for variable, below in (("ROODA_CACHE_HOME", ""), ("XDG_CACHE_HOME", "rooda"), ("HOME", ".cache/rooda")):
        home = os.environ.get(variable, "")
        if os.path.isabs(home):
            return os.path.join(home, below, *names)
    return ""
