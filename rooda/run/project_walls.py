"""Decides which paths in a project and in the user's HOME the processes in the sandbox can see and change."""

import os
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rooda.base import dirs, files, signing
from rooda.base.workspace_files import upward
from rooda.git import traces
from rooda.processes.sandbox import HIDDEN, NOTHING, READ, SEALED, WRITE, Mount, hidden, is_below
from rooda.run.setup import Sandbox

# Paths in a git folder that are read-only, since they start programs or rooda relies on them; folders end with a slash.
GIT_WALLS = ("config", "config.worktree", "hooks/", "info/", "rooda/", "refs/rooda/", "modules/", "worktrees/")
WORK_TREE_WALLS = ("commondir", "gitdir", "config.worktree")
IDENTITY = ("~/.gitconfig", "~/.config/git/config", "~/.config/git/ignore", "~/.config/git/attributes")
# Toolchains in a home folder, with their download caches, since gates have no network.
TOOLS = """
    .local/bin .local/lib .local/pipx .local/share/pipx .local/share/uv .local/share/mise .local/share/fnm .nvm
    .local/share/pnpm .local/share/claude .local/share/rtx .local/share/virtualenvs .local/share/pypoetry .npm-global
    .volta .fnm .pyenv .rbenv .nodenv .asdf .sdkman .jenv .rustup .cargo/bin .cargo/registry .cargo/git .gradle/wrapper
    .m2/repository go/bin go/pkg .bun/bin .deno/bin .dotnet .gem .opam .ghcup .juliaup .miniconda3 miniconda3 anaconda3
    .yarn/bin .nix-profile .local/state/nix .nuget/packages .pub-cache .conan2/p .cache/pypoetry/virtualenvs
"""


class Project(NamedTuple):
    """Real paths of a workspace, its repository (work tree, git folder, common git folder) and HOME; "" if missing."""

    workspace: str
    top: str
    git: str
    common: str
    home: str


def project_of(workspace: str, env: Mapping[str, str]) -> Project:
    home = env.get("HOME", "")
    return Project(os.path.realpath(workspace), *traces.folders(workspace), os.path.realpath(home) if home else "")


def refusal(project: Project) -> str:
    """Return why this project can't run in a sandbox; "" if it can."""
    if project.top == "/" or is_below(project.home or "/nowhere", (project.top,)):
        return f"the project {project.top} contains the home folder"
    if project.home == "/":
        return "HOME is /, which can't be hidden; set HOME to another folder"
    if os.path.islink(os.path.join(project.top, ".git")):
        return f"{os.path.join(project.top, '.git')} is a link"
    if os.geteuid() == 0 and os.stat(project.top).st_uid != 0:
        return f"root without its capabilities can't write {project.top}, which belongs to another user"
    return ""


def prepare(project: Project) -> None:
    """Create the missing folders of GIT_WALLS, because only an existing folder can be mounted read-only."""
    for name in GIT_WALLS if project.common else ():
        path = os.path.join(project.common, name)
        if name.endswith("/") and not os.path.lexists(path.rstrip("/")):
            files.make_folder(path)


def of_project(project: Project, writable: bool) -> Iterator[Mount]:
    """Yield mounts of the project and its git folder. Parts of git are read-only, and `.rooda` is empty."""
    how = WRITE if writable else READ
    for folder in dict.fromkeys((project.top, project.workspace, project.common, project.git)):
        if folder:
            yield Mount(how, folder)
    pointer = os.path.join(project.top, ".git")
    if os.path.isfile(pointer):
        yield Mount(READ, pointer)
    walls = [os.path.join(project.common, name.rstrip("/")) for name in GIT_WALLS] if project.common else []
    if project.git != project.common:
        walls += [os.path.join(project.git, name) for name in WORK_TREE_WALLS]
    for path in walls:  # a link itself can't be mounted; GuardedFiles restores it
        real = os.path.realpath(path)
        if os.path.exists(path) and not is_below(project.top, (real,)):
            yield Mount(READ, real)
    main = traces.in_main_tree(project.workspace)
    for folder in dict.fromkeys((*upward(project.workspace), *upward(main))):
        state = os.path.join(folder, ".rooda")
        if os.path.isdir(state) and not os.path.islink(state):
            yield Mount(SEALED, state)


def of_rooda(project: Project) -> Iterator[Mount]:
    """Yield mounts that hide rooda's state and key if they are outside of HOME, or inside the project."""
    for path in map(os.path.realpath, filter(None, (dirs.state(), signing.path()))):
        concealed = is_below(path, (*HIDDEN, project.home or "/nowhere")) and not is_below(path, (project.top,))
        if os.path.exists(path) and not concealed:
            yield Mount(SEALED if os.path.isdir(path) else NOTHING, path)


def of_machine(project: Project, sandbox: Sandbox) -> list[Mount]:
    """Return mounts that hide the rest of the machine.

    They do not hide sockets in the project, in HOME, or below the paths of `read` and `write` in [sandbox].
    """
    opened = [os.path.realpath(expanded(project, name)) for name in (*sandbox.read, *sandbox.write)]
    return hidden([project.top, *opened, *filter(None, (project.home,))])


def of_home(project: Project, private: str, env: Mapping[str, str], program: str) -> Iterator[Mount]:
    """Yield mounts that replace HOME with the folder `private`, with the user's toolchains mounted in it, read-only."""
    if project.home in ("", "/"):
        return
    yield Mount(WRITE, project.home, private)
    for name in IDENTITY:
        yield from shared(project, name, READ)
    places = [os.path.join(project.home, name) for name in TOOLS.split()]
    places += [place for each in env.get("PATH", "").split(os.pathsep) if each for place in _around(each)]
    places += [sys.prefix, sys.base_prefix, os.path.dirname(dirs.shipped("config"))]
    for each in (program, os.path.realpath(program)):
        places += _around(os.path.dirname(each))
    found: list[str] = []
    for place in sorted({os.path.realpath(each) for each in places}):
        concealed = is_below(place, (*HIDDEN, project.home)) and not is_below(place, (project.top, *found))
        holds_home = is_below(project.home, (place,)) or is_below(project.top, (place,))
        if concealed and os.path.isdir(place) and not holds_home:
            found.append(place)
            yield Mount(READ, place)
    path = os.path.join(os.path.realpath(os.path.dirname(program)), os.path.basename(program))
    concealed = is_below(path, (*HIDDEN, project.home)) and not is_below(path, (project.top, *found))
    if concealed and os.path.isfile(path):  # its folder was skipped, as it holds the project or the home folder
        yield Mount(READ, path, os.path.realpath(path))


def _around(folder: str) -> list[str]:
    """Return the folder to mount for a folder of programs: the whole installation that contains it, else itself."""
    real = os.path.realpath(folder)
    parent = os.path.dirname(real)
    packages, found, _ = real.partition(os.sep + "node_modules")
    if found:
        return [packages + found]
    own = os.path.basename(parent) not in (".local", ".cargo", "home") and os.path.basename(real) == "bin"
    has_library = any(os.path.exists(os.path.join(parent, name)) for name in ("pyvenv.cfg", "lib", "libexec"))
    return [parent] if own and has_library else [real]


def of_settings(project: Project, sandbox: Sandbox) -> Iterator[Mount]:
    """Yield the mounts for `read`, `write` and `hide` in [sandbox]."""
    for name in sandbox.read:
        yield from shared(project, name, READ)
    for name in sandbox.write:
        path = expanded(project, name)
        if not os.path.lexists(path):
            files.make_folder(path)
        yield from shared(project, name, WRITE)
    for name in sandbox.hide:
        path = os.path.realpath(expanded(project, name))
        if os.path.lexists(path):
            yield Mount(SEALED if os.path.isdir(path) else NOTHING, path)


def shared(project: Project, name: str, how: str) -> Iterator[Mount]:
    """Yield the mount of one path, if it exists. If it is a link, its target is mounted at the link's path."""
    path = expanded(project, name)
    if os.path.exists(path):
        parent = os.path.realpath(os.path.dirname(path))
        yield Mount(how, os.path.join(parent, os.path.basename(path)), os.path.realpath(path))


def expanded(project: Project, name: str) -> str:
    """Expand a path from the settings: `~/…` is in the home folder, any other path is relative to the workspace."""
    if name == "~" or name.startswith("~/"):
        return os.path.join(project.home, name[2:])
    return os.path.normpath(os.path.join(project.workspace, name))


def links(project: Project, home: str) -> list[str]:
    """Return bubblewrap's options that recreate HOME as a link, if its path has links that the sandbox hides."""
    if not home or os.path.realpath(home) == os.path.normpath(home) or not is_below(home, HIDDEN):
        return []
    return ["--symlink", project.home, os.path.normpath(home)]
