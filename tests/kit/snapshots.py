"""A repository to make snapshots of, and what there is of them."""

import subprocess
from pathlib import Path
from typing import Any

from .workspace import Workspace

SAFE: dict[str, Any] = {"safety": "snapshot"}


def repository(ws: Workspace, files: dict[str, str], loop: dict[str, Any] | None = SAFE) -> None:
    """A git repository with these files committed, and a loop that takes snapshots."""
    ws.procedure("build", loop=loop)
    for name, text in files.items():
        ws.write(name, text)
    ws.git("init", "-q")
    ws.git("add", "-A")
    ws.git("commit", "-q", "-m", "the beginning")


def add_submodule(ws: Workspace, name: str) -> None:
    """Add another repository, with the file `f`, to the index as a submodule."""
    other = f"{ws.root}/other"
    ws.git("init", "-q", other)
    Path(other, "f").write_text("as it was\n")
    ws.git("-C", other, "add", "f")
    ws.git("-C", other, "commit", "-q", "-m", "one")
    ws.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", other, name)


def refs(ws: Workspace) -> list[str]:
    """All refs that are neither branch nor stash."""
    found = ws.git("for-each-ref", "--format=%(refname)").split()
    return [ref for ref in found if not ref.startswith(("refs/heads/", "refs/stash"))]


def moments(ws: Workspace) -> list[str]:
    """The names of the snapshots within their runs."""
    return [ref.split("/", 3)[3] for ref in refs(ws) if not ref.endswith("/last")]


def tree_of(ws: Workspace, name: str) -> dict[str, str]:
    """The files of a snapshot of the newest run."""
    ref = [each for each in refs(ws) if each.endswith(f"/{name}")][-1]
    paths = ws.git("ls-tree", "-r", "-z", "--name-only", ref).split("\0")[:-1]
    return {path: _text(ws, ref, path) for path in paths}


def _text(ws: Workspace, ref: str, path: str) -> str:
    done = subprocess.run(["git", "cat-file", "-p", f"{ref}:{path}"], cwd=ws.path, env=ws.env, capture_output=True)
    return done.stdout.decode("utf-8", "replace")
