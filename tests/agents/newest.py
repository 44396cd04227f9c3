"""Try the newest version of each agent CLI: `python -m tests.agents.newest [NAME…]`.

Asks the registries for the newest versions, installs them beside the pinned ones (tests/kit/clis/install.py), and runs
`rooda agents test` with each; with the pinned one where the newest can't be installed. Prints a line per CLI; exit 1 if
one fails. Needs the network.
"""

import os
import subprocess
import sys
import tempfile

from tests.kit.clis import install

PATIENCE = 600.0  # seconds per CLI


def newest(name: str) -> str:
    """The newest version in the registry of npm or PyPI; empty if it does not answer."""
    package = install.PACKAGES[name]
    if getattr(package, "python", ""):
        words = [package.python, "-m", "pip", "index", "versions", package.name]
        ran = subprocess.run(words, capture_output=True, text=True)
        return ran.stdout.partition("(")[2].partition(")")[0]
    ran = subprocess.run(["npm", "view", package.name, "version"], capture_output=True, text=True)
    return ran.stdout.strip()


def tried(name: str) -> tuple[bool, str]:
    """Whether `rooda agents test` passes, and the lines that failed."""
    with tempfile.TemporaryDirectory(prefix="newest-", ignore_cleanup_errors=True) as home:
        path = os.pathsep.join((install.commands(name), os.environ.get("PATH", os.defpath)))
        env = {**os.environ, "HOME": home, "PATH": path, "TMPDIR": home}
        env["PYTHONPATH"] = os.path.abspath(os.path.join(os.path.dirname(__file__), os.pardir, os.pardir))
        words = [sys.executable, "-m", "rooda", "-C", home, "agents", "test", name]
        ran = subprocess.run(words, capture_output=True, text=True, env=env, timeout=PATIENCE)
    lines = ran.stdout.splitlines()
    failed = [line[6:] for line in lines if line.startswith("FAIL")]
    return ran.returncode == 0, "; ".join(failed) or (f"{len(lines)} checks" if lines else ran.stderr.strip())


def look(name: str) -> bool:
    """Install and try the newest version of one CLI, and print what came of it."""
    pinned, found = install.version(name), newest(name)
    try:
        tells = installed(name, found)
        passed, detail = tried(name)
    except (OSError, subprocess.SubprocessError) as problem:
        tells, passed, detail = "", False, str(problem)
    start = f"{'ok  ' if passed else 'FAIL'}  {name:<10}  pinned {pinned}, newest {found or 'unknown'}"
    print(f"{start}{tells}: {detail}", flush=True)
    return passed


def installed(name: str, wanted: str) -> str:
    """Install a version of a CLI, or the pinned one where the registry has not all of it; say so."""
    pinned = install.PACKAGES[name]
    if wanted:
        install.PACKAGES[name] = pinned._replace(version=wanted)
        try:
            install.install(name)
            return ""
        except subprocess.CalledProcessError:
            install.PACKAGES[name] = pinned
    install.install(name)
    return f" (tried {pinned.version}: the newest can't be installed)"


def main(names: list[str]) -> int:
    """Try the CLIs named, or all of them, one after the other."""
    unknown = [name for name in names if name not in install.PACKAGES]
    if unknown:
        print(f"usage: python -m tests.agents.newest [NAME…]   names: {', '.join(install.PACKAGES)}", file=sys.stderr)
        return 2
    results = [look(name) for name in names or install.PACKAGES]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
