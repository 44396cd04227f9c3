"""`rooda init --demo FOLDER`: creates a project for a first loop without a model and without cost."""

import os

from rooda.base import files
from rooda.demo.agent import PROGRAM, TESTS
from rooda.errors import UsageProblem

SETTINGS = """\
# Settings of this project. `rooda config show --origin` lists every setting, its value and where it comes from.

[loop]
agent = "demo" # a scripted stand-in for an agent. For real work: "claude", "codex", "gemini", …
safety = "snapshot" # git saves the work tree of each iteration: `rooda diff 2` shows changes, `rooda undo` reverts them

[[loop.quality_gates]] # a check that rooda runs after each iteration; add a table for each check
name = "tests" # the name of the gate in the output
command = "python3 -m unittest -q" # a shell command; the iteration fails unless it exits with 0
"""

AGENTS = """\
# textkit

A small Python library without dependencies. The code is in `textkit.py`, its tests are in `test_textkit.py`.

* Task: make every test pass without changing the tests.
* Run the tests: `python3 -m unittest -q`
"""

MADE = (
    ("textkit.py", PROGRAM, "three functions, each with a mistake"),
    ("test_textkit.py", TESTS, "a failing test for each"),
    ("rooda.toml", SETTINGS, "settings: the agent `demo`, the gate `tests`"),
    ("AGENTS.md", AGENTS, "what an agent should know"),
    (".gitignore", "__pycache__/\n", "what git should not keep"),
)

SUBJECT = "A small library with three mistakes"
SOMEBODY = {"NAME": "demo", "EMAIL": "demo@example.invalid"}


def scaffold(folder: str) -> str:
    """Create the demo project in a missing or empty folder, and return a sentence about its git repository."""
    try:
        if taken(folder):
            raise UsageProblem(
                f"{folder} already exists and is not an empty folder.",
                "Name a new folder: rooda init --demo my-demo",
            )
        files.make_folder(folder)
        for name, text, _ in MADE:
            files.create(os.path.join(folder, name), files.to_bytes(text))
    except OSError as problem:
        raise UsageProblem(
            f"Can't create the demo project in {folder}: {problem.strerror or problem}.",
            "Name a folder that you may write to: rooda init --demo FOLDER",
        ) from None
    return commit(folder)


def taken(folder: str) -> bool:
    """True if the path exists and is not an empty folder."""
    return os.path.lexists(folder) and (not os.path.isdir(folder) or bool(os.listdir(folder)))


def commit(folder: str) -> str:
    """Commit the project; return a sentence that says whether that worked. The demo also works without git."""
    from rooda.git import command

    names = {f"GIT_{who}_{key}": value for who in ("AUTHOR", "COMMITTER") for key, value in SOMEBODY.items()}
    failed, why = command.first_commit(folder, SUBJECT, {**names, **os.environ})
    if failed:
        return f"Without git, because `git {failed}` failed: {why}"
    return "All of it is in a first git commit, so `git diff` shows what the agent changes."
