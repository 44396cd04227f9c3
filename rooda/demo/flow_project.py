"""`rooda flow setup --demo DIR`: creates a project with failing tests, and a two-level flow that fixes them."""

import os
import shlex

from rooda.base import files
from rooda.demo.agent import PROGRAM, TESTS
from rooda.demo.project import SOMEBODY, SUBJECT, taken
from rooda.errors import OK, RoodaError, UsageProblem
from rooda.git import command
from rooda.loops.flow import setup
from rooda.loops.flow.setup import NewSensor, Plan
from rooda.views.say import say

SETTINGS = """\
[flow]
ai_cmd = "{python} -P -m rooda.demo.flow" # a scripted stand-in for an agent. For real work: agent = "claude", …
"""
PLAN = Plan(
    ["delivery", "repair"],
    [5, 4],
    [NewSensor("tests", "python3 -m unittest -v")],
    [NewSensor("suite", "python3 -m unittest -q")],
)


def scaffold(folder: str) -> int:
    """Create the project in a folder that is missing or empty, and return the exit code."""
    if taken(folder):
        raise UsageProblem(f"{folder} already exists and is not an empty folder.", "Choose a new folder.")
    own = (
        ("textkit.py", PROGRAM),
        ("test_textkit.py", TESTS),
        ("rooda.toml", SETTINGS),
        (".gitignore", "__pycache__/\n"),
    )
    try:
        for name, text in (*own, *setup.files_of(PLAN)):
            path = os.path.join(folder, name)
            files.make_folder(os.path.dirname(path))
            files.create(path, files.to_bytes(text))
    except OSError as problem:
        raise RoodaError(f"Can't create the demo in {folder}: {problem.strerror}.", "Name another folder.") from None
    _commit(folder)
    say(f"Created in {folder}: textkit.py with three mistakes, its tests, and a flow of two loops.")
    task = '"make every test pass"'
    say(f"Next: rooda flow run -C {shlex.quote(folder)} {task}")
    return OK


def _commit(folder: str) -> None:
    env = command.with_identity(folder, os.environ)
    failed, why = command.first_commit(folder, SUBJECT, env)
    if failed:
        raise RoodaError(f"git {failed} failed in {folder}: {why}", "A flow needs git.")
    if env.get("GIT_AUTHOR_NAME") == command.DEFAULT_IDENTITY["GIT_AUTHOR_NAME"]:  # the flow needs an identity too
        for key, value in SOMEBODY.items():
            command.run(["config", f"user.{key.lower()}", value], folder)
