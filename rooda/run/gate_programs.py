"""Checks whether the program of a quality gate exists, if its command is simple enough to parse without a shell."""

import os
import re

from rooda.run.records import Programs

_META = frozenset("|&;<>()$\\{}*?[#~!`\n")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_WORDS = """
    if then else elif fi do done case esac while until for in time function select coproc
    . : alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo enable
    eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd
    read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask unalias
    unset wait
"""
_OF_THE_SHELL = frozenset(_WORDS.split())
NOT_FOUND, NOT_YET = "command not found", "not there yet"


def program(command: str) -> str:
    """Return the program that a simple command starts; "" for keywords, builtins, and what only a shell can parse."""
    if _META & set(command):
        return ""
    import shlex

    try:
        words = shlex.split(command)
    except ValueError:  # a quote is not closed
        return ""
    for word in words:
        if not _ASSIGNMENT.match(word):
            return "" if word in _OF_THE_SHELL else word
        if word.startswith("PATH="):
            return ""
    return ""


def missing(command: str, workspace: str) -> str:
    """Return the program of a command if it is neither on PATH nor a file of the workspace; else ""."""
    name = program(command)
    if not name or os.sep in name:
        return "" if not name or os.path.exists(os.path.join(workspace, name)) else name
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    paths = (os.path.join(workspace, folder, name) for folder in folders)
    return "" if any(os.path.isfile(path) and os.access(path, os.X_OK) for path in paths) else name


def programs(workspace: str) -> Programs:
    """Return functions that test whether a name is a program or a file in this workspace."""

    def is_program(name: str) -> bool:
        path = os.path.join(workspace, name)
        if os.sep in name:
            return os.path.isfile(path) and os.access(path, os.X_OK)
        return name in _OF_THE_SHELL or not missing(name, workspace)

    return Programs(is_program, lambda path: os.path.isfile(os.path.join(workspace, path)))


def is_relative(name: str) -> bool:
    """True for a relative path, which an agent may create in the workspace during the run."""
    return os.sep in name and not os.path.isabs(name)


def why_not_found(command: str, workspace: str) -> str:
    """Return the verdict on a gate that exited with 127: command not found, or not there yet."""
    name = missing(command, workspace)
    return NOT_YET if is_relative(name) else NOT_FOUND
