"""Each peer in an environment of its own, below the user's cache folder."""

import glob
import json
import os
import shutil
import subprocess
import sys
from typing import NamedTuple, Protocol


class Package(Protocol):
    """What is installed, and the command in it."""

    @property
    def name(self) -> str: ...
    @property
    def registry(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def program(self) -> str: ...
    @property
    def python(self) -> str: ...


class Installed(NamedTuple):
    """Where a peer's command is; `why` says why there is none."""

    command: str
    version: str
    why: str = ""


def folder(peer: Package) -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "rooda-benchmarks", "peers", f"{peer.name}-{peer.version}")


def installed(peer: Package) -> Installed:
    """It is installed where it is not yet."""
    place = folder(peer)
    command = os.path.join(place, "bin" if peer.registry == "PyPI" else "node_modules/.bin", peer.program)
    if not os.path.exists(command):
        why = _pip(peer, place) if peer.registry == "PyPI" else _npm(peer, place)
        if why or not os.path.exists(command):
            shutil.rmtree(place, ignore_errors=True)
            return Installed("", "", why or f"{peer.name} {peer.version} has no command {peer.program}")
    return Installed(command, _version(peer, place))


def _pip(peer: Package, place: str) -> str:
    runs = _python(peer.python)
    if not runs:
        return f"no Python {peer.python} here"
    python = os.path.join(place, "bin", "python")
    package = f"{peer.name}=={peer.version}"
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", python, "--disable-pip-version-check"]
    return _failed([runs, "-m", "venv", "--without-pip", place]) or _failed([*pip, "install", package])


def _python(oldest: str) -> str:
    """A Python that is new enough: ours, else a newer one of this machine."""
    wanted = tuple(map(int, oldest.split("."))) if oldest else ()
    if sys.version_info[:2] >= wanted:
        return sys.executable
    names = [f"python3.{minor}" for minor in range(wanted[1], 20)]
    places = glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin"))
    found = (shutil.which(name, path=path) for name in names for path in (None, *places))
    return next((each for each in found if each and not _failed([each, "-c", "pass"])), "")


def _npm(peer: Package, place: str) -> str:
    npm = shutil.which("npm")
    if not npm:
        return "npm is not installed"
    os.makedirs(place, exist_ok=True)
    flags = ["--silent", "--no-fund", "--no-audit", "--prefix", place]
    return _failed([npm, "install", *flags, f"{peer.name}@{peer.version}"])


def _failed(argv: list[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    lines = f"{done.stdout}{done.stderr}".strip().splitlines()
    return (lines[-1] if lines else f"{argv[0]}: exit {done.returncode}") if done.returncode else ""


def _version(peer: Package, place: str) -> str:
    if peer.registry == "npm":
        with open(os.path.join(place, "node_modules", peer.name, "package.json"), encoding="utf-8") as file:
            return str(json.load(file)["version"])
    code = f"import importlib.metadata as m; print(m.version({peer.name!r}))"
    python = os.path.join(place, "bin", "python")
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
