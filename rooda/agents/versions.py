"""Asks installed agents for their versions, once per installation, and caches them."""

import os
import re
from collections.abc import Mapping

from rooda.base import dirs, files, secrets
from rooda.processes import capture

PATIENCE = 8.0  # seconds; a CLI that was just installed may unpack itself first
LONGEST = 65_536  # bytes of an answer
_NUMBER = re.compile(r"\d+\.\d+[\w.+-]*\w")


def version_of(program: str, option: str, env: Mapping[str, str]) -> str:
    """Return a program's version; "" if it has no version option, or does not answer in time."""
    if not option:
        return ""
    slot = _slot(program, option)
    try:
        return files.text(slot)
    except OSError:
        pass
    answer = _asked(program, option, env)
    if answer and slot:
        _keep(slot, answer)
    return answer


def _asked(program: str, option: str, env: Mapping[str, str]) -> str:
    done = capture.capture([program, *option.split()], env=env, timeout=PATIENCE, most=LONGEST)
    if done.code:
        return ""
    text = (done.out.strip() or done.err.strip()).decode("utf-8", "replace")
    number = _NUMBER.search(text)
    version = number[0] if number else text.partition("\n")[0].strip()
    return secrets.hide(version, secrets.forms(env))[:60]


def _slot(program: str, option: str) -> str:
    """Return the path of a version's cache file, which depends on the program's path, size and modification time."""
    try:
        facts = os.stat(program)
    except OSError:
        return ""
    identity = f"{os.path.realpath(program)}\0{facts.st_mtime_ns}\0{facts.st_size}\0{option}"
    return dirs.cache("versions", files.sha256(files.to_bytes(identity))[:32])


def _keep(slot: str, answer: str) -> None:
    try:
        files.make_folder(os.path.dirname(slot))
        files.write(slot, files.to_bytes(answer))
    except OSError:
        pass
