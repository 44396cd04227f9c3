"""How a session was started, in the run's folder: the words that were typed, where, and inside which other run.

A resume goes on with a run as it was started, and `rooda resume --all` leaves a run inside another one to that. An
agent can write there, as it can write rooda.toml: nothing in it is trusted to be of the right form.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence

from rooda.base import files
from rooda.base.json import Json
from rooda.base.secrets import MARK, referenced
from rooda.run.folder import RunFolder

NAME = "start"


def note(folder: RunFolder, environ: Mapping[str, str], workspace: str, kept: Sequence[str], task: str) -> None:
    """In the place of keys the names of their variables. `kept`: what an earlier start had typed, and still holds."""
    every = (sys.argv[1:], kept, (task,))
    words, before, (work,) = ([referenced(word, environ, workspace) for word in each] for each in every)
    facts = {"words": words, "kept": before, "folder": os.getcwd(), "inside": os.environ.get("ROODA_RUN", "")}
    facts["task"] = work
    folder.write(NAME, json.dumps(facts).encode() + b"\n")


def of(folder: str) -> Json:
    """{} where it is not known."""
    try:
        found = json.loads(files.read_ours(os.path.join(folder, NAME)))
        return {
            "words": [str(word) for word in found["words"]],
            "kept": [str(word) for word in found.get("kept", ())],
            "folder": str(found["folder"]).replace(MARK, ""),
            "inside": str(found["inside"]),
            "task": str(found.get("task", "")),
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}
