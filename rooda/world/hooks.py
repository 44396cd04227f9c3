"""Telling somebody else: a command or an address gets the event. What goes wrong there is said, and nothing more."""

import json
import sys
from collections.abc import Mapping

from rooda.model import Hook, Json
from rooda.policy.moments import moment
from rooda.world import files, process

# A process of its own: the loop's never opens a connection, nor loads what that takes.
_POST = """
import sys, urllib.request
request = urllib.request.Request(sys.argv[1], sys.stdin.buffer.read(), {"Content-Type": "application/json"})
urllib.request.urlopen(request, timeout=float(sys.argv[2])).read()
"""
SHOWN = 200  # characters of what it said


def told(hooks: Mapping[str, Hook], record: Json, workspace: str, env: Mapping[str, str]) -> str:
    """Run the hook for this event, if there is one; what went wrong, or ""."""
    name = moment(record)
    hook = hooks.get(name)
    if hook is None:
        return ""
    words = ["/bin/sh", "-c", hook.command] if hook.command else [sys.executable, "-IS", "-c", _POST, hook.url, "30"]
    data = json.dumps({**record, "moment": name}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    done = process.capture(words, stdin=data, timeout=hook.timeout, cwd=workspace, env=env)
    if not done.code:
        return ""
    said = files.to_text(done.err).strip().rpartition("\n")[2][:SHOWN]
    return f"the hook {name!r} failed (exit {done.code}){f': {said}' if said else ''}"
