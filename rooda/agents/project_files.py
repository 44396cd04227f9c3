"""Finds the agent CLIs' own files in a project, and what they start or redirect.

rooda starts the CLIs with their own trust question turned off, so rooda asks the user itself: see `project_facts.py`.
"""

import os
from collections.abc import Sequence

from rooda.agents import project_facts
from rooda.agents.project_facts import FOLDER, UNREADABLE, Kind
from rooda.base import files as doors
from rooda.base.facts import Fact

MOST_READ = 67_108_864  # bytes of a file
MOST_FILES, MOST_FOLDERS = 2000, 500  # that are read below a CLI's folder

# Files and folders, and the CLI that each belongs to.
FILES = {
    ".mcp.json": "claude",
    "opencode.json": "opencode",
    "opencode.jsonc": "opencode",
    ".opencode.json": "opencode",
    ".aider.conf.yml": "aider",
    ".aider.model.settings.yml": "aider",
    ".env": "aider, gemini",
    "agents.config.json": "nanocoder",
}
FOLDERS = {
    ".claude": "claude",
    ".codex": "codex",
    ".gemini": "gemini",
    ".qwen": "qwen",
    ".opencode": "opencode",
    ".cursor": "cursor",
    ".agents": "codex",
    ".factory": "droid",
    ".kiro": "kiro",
    ".pi": "pi",
    ".amp": "amp",
    ".kilo": "kilo",
    ".kilocode": "kilo",
    ".grok": "grok",
    ".github": "copilot",
    ".vibe": "vibe",
    ".goose": "goose",
    ".kimi-code": "kimi",
    ".omp": "omp",
    ".cline": "cline",
    ".clinerules": "cline",
    ".continue": "cn",
    ".nanocoder": "nanocoder",
    ".openhands": "openhands",
}
_CODE = {"hooks", "plugin", "plugins", "tool", "tools", "extension", "extensions"}  # the CLI runs their files by itself
_WORDS = {"agent", "agents", "command", "commands", "droids", "mode", "modes", "prompts", "skill", "skills"}
_RULES = {"policies", "rules"}
_INNER = {*_CODE, *_WORDS, *_RULES, "settings"}  # other folders have a CLI's own notes, caches and work trees
_OF_COPILOT = {"agents", "copilot", "hooks", "skills"}  # the rest of .github is GitHub's
_SETTINGS = (".json", ".jsonc", ".toml", ".yml", ".yaml")
_STARTED = (".js", ".ts", ".mjs", ".cjs", ".mts", ".cts", ".jsx", ".tsx", ".py", ".sh")


def facts(folders: Sequence[str]) -> list[Fact]:
    """Return the facts about what the CLIs' files in `folders` start or redirect.

    `folders`: the workspace and the folders above it.
    """
    found = list[Fact]()
    for path in files(folders):
        found += _facts_at(path)
    return found


def files(folders: Sequence[str]) -> list[str]:
    """Return the absolute path of each file that `facts` reads."""
    return [path for folder in dict.fromkeys(map(os.path.abspath, folders)) for path in _files_in(folder)]


def facts_in(file: str, data: bytes) -> list[Fact]:
    """Return the facts about what a file with this content starts or redirects.

    `file`: the file's path, which decides its format. A fact without a name covers the whole file: a script, or a file
    that rooda can't parse.
    """
    kind = _kind(file)
    return project_facts.read(kind, file, data) if kind else []


def _facts_at(path: str) -> list[Fact]:
    """Return the facts of one file: what it makes an agent CLI start or redirect. Follows links as the CLIs do."""
    kind, real = _kind(path), os.path.realpath(path)
    try:
        known = kind is None or kind.reader == FOLDER
        readable = known or os.path.getsize(real) <= MOST_READ
        data = doors.read_ours(real) if readable and not known else b""
    except OSError as problem:
        readable, data = isinstance(problem, FileNotFoundError), b""
    return facts_in(path, data) if readable or kind is None else [project_facts.unreadable(kind, path, UNREADABLE)]


def _files_in(folder: str) -> list[str]:
    found = list[str]()
    for name in sorted(_known_names(folder)):
        path = os.path.join(folder, name)
        if name.lower() in FILES:
            found.append(path)
        else:
            found += _below(path)
    return found


def _known_names(folder: str) -> list[str]:
    """Return the names of a CLI's files in the folder; case is ignored, as macOS opens `.MCP.json` as `.mcp.json`."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.name[:1] in ".oOaA" and _is_known(entry.name.lower())]
    except OSError:
        return []


def _is_known(name: str) -> bool:
    return name in FILES or name in FOLDERS


def _below(folder: str) -> list[str]:
    """Return the files in a CLI's folder, or the folder itself if it has too many; no folder is entered twice."""
    found, todo, seen = list[str](), [folder], set[str]()
    while todo:
        place = todo.pop()
        if (real := os.path.realpath(place)) in seen:
            continue
        seen.add(real)
        for name in doors.list_folder(place):
            path = os.path.join(place, name)
            if not os.path.isdir(path):
                found += [path] if _kind(path) else []
            elif _is_entered(name.lower(), place, folder):
                todo.append(path)
        if len(found) > MOST_FILES or len(seen) > MOST_FOLDERS:
            return [folder]
    return sorted(found)


def _is_entered(name: str, place: str, top: str) -> bool:
    inner = _OF_COPILOT if os.path.basename(top).lower() == ".github" else _INNER
    return name not in ("node_modules", ".git") and (place != top or name in inner)


def _kind(file: str) -> Kind | None:
    """Return the kind of a CLI's file, based on its name or the last known folder in its path; None for other files."""
    parts = file.lower().split("/")
    if parts[-1] in FILES:
        return Kind(FILES[parts[-1]], "env" if parts[-1] == ".env" else "settings")
    if parts[-1] in FOLDERS:
        return Kind(FOLDERS[parts[-1]], FOLDER)
    for place in range(len(parts) - 2, -1, -1):
        inner = parts[place + 1 :]
        if parts[place] in FOLDERS:
            known = parts[place] != ".github" or inner[0] in (*_OF_COPILOT, "mcp.json", "lsp.json")
            reader = _reader(inner) if known else ""
            return Kind(FOLDERS[parts[place]], reader) if reader else None
    return None


def _reader(inner: Sequence[str]) -> str:
    """Return how to read a file below a CLI's folder; "" if it starts nothing."""
    first, name = inner[0], inner[-1]
    if name == ".env":
        return "env"
    if name.startswith("sandbox") and name.endswith((".bashrc", ".dockerfile", ".sb")):
        return "code"
    settings, words = name.endswith(_SETTINGS), name.endswith(".md")
    if len(inner) == 1 or first in ("copilot", "settings"):
        return "settings" if settings and not name.startswith(("package", "tsconfig")) else ""
    if first in _CODE:
        started = name.endswith(_STARTED) or (first == "hooks" and not words) or "hooks" in inner[1:-1]
        return "words" if words else "settings" if settings else "code" if started else ""
    if first in _WORDS:
        return "words" if words or (name.endswith(".toml") and first != "agents") else _agent_reader(first, settings)
    return "rules" if first in _RULES and name.endswith((".rules", ".toml")) else ""


def _agent_reader(first: str, settings: bool) -> str:
    return "settings" if settings and first in ("agent", "agents") else ""
