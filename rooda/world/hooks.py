"""Telling somebody else: a command or an address gets the event. What goes wrong there is said, and nothing more."""

import json
import sys
from collections.abc import Mapping

from rooda.model import Json
from rooda.policy.moments import moment
from rooda.terms import Hook
from rooda.world import files, process
from rooda.world.ground import Ground
from rooda.world.signals import Later

# A process of its own: the loop's never opens a connection, nor loads what that takes.
_POST = """
import sys, urllib.request
request = urllib.request.Request(sys.argv[1], sys.stdin.buffer.read(), {"Content-Type": "application/json"})
urllib.request.urlopen(request, timeout=float(sys.argv[2])).read()
"""
SHOWN = 200  # characters of what it said
KEPT = 65_536  # bytes of it
GRACE = 1.0  # seconds between asking it to end and killing it


def told(hooks: Mapping[str, Hook], record: Json, ground: Ground) -> str:
    """Run the hook for this event, if there is one; what went wrong, or ""."""
    name = moment(record)
    hook = hooks.get(name)
    if hook is None:
        return ""
    words = ["/bin/sh", "-c", hook.command] if hook.command else [sys.executable, "-IS", "-c", _POST, hook.url, "30"]
    data = json.dumps({**record, "moment": name}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    output, opened = ground.folder.output(f"hook-{name}.out")
    spec = process.Spec(
        argv=words,
        cwd=ground.workspace,
        env=ground.env,
        output=output,
        opened=opened,
        stdin=ground.folder.write(f"hook-{name}.json", data),
        timeout=hook.timeout,
        grace=GRACE,
        cap=KEPT,
        keep=True,  # a notifier may stay until the run's end
    )
    done = process.run(spec, Later(ground.signals))
    if done.ended == "exit" and not done.code:
        return ""
    said = files.to_text(files.tail(output, KEPT)).strip().rpartition("\n")[2][:SHOWN]
    why = f"no end within {hook.timeout:g}s" if done.ended == "timeout" else f"exit {done.code}"
    return f"the hook {name!r} failed ({why}){f': {said}' if said else ''}"
