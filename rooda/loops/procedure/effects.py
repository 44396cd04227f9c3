"""Reads the pieces of a procedure's prompt afresh and puts them together."""

import errno
import os
import stat

from rooda.base import clock, files
from rooda.errors import PromptProblem
from rooda.loops.procedure.assemble import assemble, from_file
from rooda.loops.procedure.model import Context, Fragment, Phase, Procedure
from rooda.loops.procedure.prompts import preamble
from rooda.run.placeholders import substitute

TICK = 0.1  # seconds; file systems' clocks are finer


def text(procedure: Procedure, iteration: int) -> str:
    """The prompt as the files are now. `iteration` counts from 1."""
    sections = {
        phase.name: [_fragment(fragment, phase, procedure) for fragment in phase.fragments]
        for phase in procedure.phases
    }
    context = [_context(item) for item in procedure.context]
    return assemble(sections, context, preamble(procedure, iteration) if procedure.preamble else "")


def marks(procedure: Procedure) -> tuple[tuple[int, ...], ...]:
    """What changes whenever one of the files could have. Empty if that can't be told: a file is gone, or was touched
    so lately that the clock of the file system might not show the next touch."""
    paths = [fragment.path for phase in procedure.phases for fragment in phase.fragments if fragment.path]
    paths += [item.path for item in procedure.context if item.path]
    found = [files.mark(path) for path in paths]
    latest = max((mark[-1] for mark in found if mark), default=0)
    return tuple(found) if all(found) and latest < (clock.now() - TICK) * 1e9 else ()


def _fragment(fragment: Fragment, phase: Phase, procedure: Procedure) -> str:
    found = fragment.text
    if found is None:
        use = f"Phase {phase.name} of procedure {procedure.name} needs it"
        found = _read(fragment.path or "", fragment.shown, "Prompt file", f"{use}: restore it, or name another file.")
    if fragment.parameters is None:
        return found
    return substitute(found, fragment.parameters, f"{fragment.shown or 'text'} (phase {phase.name})")


def _context(item: Context) -> str:
    if item.path is None:
        return item.text or ""
    shown = item.shown or item.path
    return from_file(shown, _read(item.path, shown, "Context file", "It is read anew for each prompt; keep it there."))


def _read(path: str, shown: str, what: str, hint: str) -> str:
    """The text of an ordinary file. Anything else is refused in words."""
    try:
        return ordinary(path)
    except OSError as problem:
        reason = problem.strerror or str(problem)
    except ValueError:
        reason = "the name holds a NUL character"
    place = f" ({path})" if shown and shown != path else ""
    raise PromptProblem(f"{what} {shown or path} can't be read: {reason}{place}", hint)


def ordinary(path: str) -> str:
    """The text of an ordinary file; OSError for anything else: a pipe would block for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return files.to_text(files.read_open(descriptor))
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is a folder" if stat.S_ISDIR(mode) else "it is not an ordinary file", path)
