"""Keep the machine and its user out of the tests: settings, git's configuration, variables, repositories above."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterable

KEPT = ("ROODA_ROUNDS", "ROODA_EXAMPLES", "ROODA_TEST_CLIS")  # what the one who starts the tests tells them
OURS = ("ROODA_", "GIT_", "XDG_")
MEMORY, ROOM = "/dev/shm", 4 << 30  # a file system without a disk, where each fsync is free; bytes that a run may need


def isolate() -> None:
    """Give this process, and all that it starts, an environment of the tests' own. Workers of xdist inherit it."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    os.environ.setdefault("ROODA_TEST_CLIS", os.path.expanduser("~/.cache/rooda-test-clis"))
    for name in [name for name in os.environ if name.startswith(OURS) and name not in KEPT]:
        del os.environ[name]
    given = [os.environ["TMPDIR"]] if "TMPDIR" in os.environ else [MEMORY] if spacious(MEMORY) else []
    os.environ["TMPDIR"] = tempfile.tempdir = clean([*given, "/tmp", "/var/tmp", os.path.expanduser("~")])
    os.environ["HOME"] = tempfile.mkdtemp(prefix="rooda-tests-home-")
    os.environ["GIT_CONFIG_NOSYSTEM"] = "1"
    atexit.register(shutil.rmtree, os.environ["HOME"], ignore_errors=True)


def clean(folders: Iterable[str]) -> str:
    """The first of these folders that can be written and has neither a repository nor a rooda.toml above it."""
    for folder in map(os.path.realpath, folders):
        if os.access(folder, os.W_OK | os.X_OK) and not any(map(_foreign, _upward(folder))):
            return folder
    raise RuntimeError("every temporary folder is inside a git repository or has a rooda.toml above it; set TMPDIR")


def share_token_counts(cache: str) -> None:
    """Let this cache of rooda's use the counts of all tests: counting a prompt takes longer than the rest of a run."""
    counts = os.path.join(os.environ["HOME"], "token-counts")
    os.makedirs(counts, exist_ok=True)
    os.makedirs(cache)
    os.symlink(counts, os.path.join(cache, "tokens"))


def spacious(folder: str) -> bool:
    """True if programs may be run from there and a whole run of the tests fits."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    return not found.f_flag & getattr(os, "ST_NOEXEC", 0) and found.f_bavail * found.f_frsize > ROOM


def _upward(folder: str) -> list[str]:
    parent = os.path.dirname(folder)
    return [folder, *(_upward(parent) if parent != folder else [])]


def _foreign(folder: str) -> bool:
    return any(os.path.lexists(os.path.join(folder, name)) for name in (".git", "rooda.toml"))
