"""How a session was started, in the run's folder: the words that were typed, where, and inside which other run.

`rooda resume --all` goes on with a run as it was started, and leaves a run inside another one to that.
"""

import json
import os
import sys
from collections.abc import Sequence

from rooda.model import Json
from rooda.world import files
from rooda.world.runfolder import RunFolder

NAME = "start"


def note(folder: RunFolder, keys: Sequence[str]) -> None:
    """Words that hold one of these keys are not kept."""
    words = [] if any(key in word for word in sys.argv[1:] for key in keys) else sys.argv[1:]
    facts = {"words": words, "folder": os.getcwd(), "inside": os.environ.get("ROODA_RUN", "")}
    folder.write(NAME, json.dumps(facts).encode() + b"\n")


def of(folder: str) -> Json:
    """{} where it is not known."""
    try:
        found = json.loads(files.read_ours(os.path.join(folder, NAME)))
        return {
            "words": [str(word) for word in found["words"]],
            "folder": str(found["folder"]),
            "inside": str(found["inside"]),
        }
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return {}
