"""Install pinned versions of the real agent CLIs outside the checkout.

`python -m tests.kit.clis.install codex gemini`

Each goes into a folder of its own, `<cache>/<name>-<version>`, where the cache is `$ROODA_TEST_CLIS` or
`~/.cache/rooda-test-clis`. What is there already is left alone. Prints one line per CLI: name, version,
folder of commands.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple


class Package(NamedTuple):
    """What npm or pip installs for a CLI; `beside` are packages that its command needs in the same folder."""

    name: str
    version: str
    beside: tuple[str, ...] = ()
    python: str = ""  # the Python that runs it, if it comes from PyPI
    program: str = ""  # path of its program in the package, if npm makes no link to it


PACKAGES = {
    "claude": Package("@anthropic-ai/claude-code", "2.1.326"),
    "codex": Package("@openai/codex", "0.169.0"),
    "gemini": Package("@google/gemini-cli", "0.61.0"),
    "opencode": Package("opencode-ai", "1.18.33"),
    "copilot": Package("@github/copilot", "1.0.102"),
    "qwen": Package("@qwen-code/qwen-code", "0.24.4", ("node@22",)),
    "droid": Package("droid", "0.215.0"),
    "pi": Package("@mariozechner/pi-coding-agent", "0.73.1"),
    "grok": Package("@xai-official/grok", "1.0.41"),
    "goose": Package("@aaif/goose", "0.20.1"),
    "kilo": Package("@kilocode/cli-linux-x64", "7.7.9", program="bin/kilo"),
    "omp": Package("@oh-my-pi/pi-coding-agent", "18.2.3", ("bun",)),
    "kimi": Package("@moonshot-ai/kimi-code", "2.1.0", ("node@24",)),
    "cline": Package("cline", "3.0.65"),
    "cn": Package("@continuedev/cli", "1.5.47"),
    "nanocoder": Package("@nanocollective/nanocoder", "1.30.0", ("node@24",)),
    "aider": Package("aider-chat", "0.86.2", python=sys.executable),
    "mini": Package("mini-swe-agent", "2.4.6", ("mcp",), sys.executable),
    "vibe": Package("mistral-vibe", "3.0.2", python="python3.12"),
    "openhands": Package("openhands", "1.16.0", python="python3.12"),
}
NAMES = tuple(PACKAGES)
CI = tuple(name for name in ("claude", "codex", "gemini", "cn", "kimi") if name in NAMES)  # installed and tried in CI
COMPLETE = ".installed"


def version(name: str) -> str:
    """The pinned version of a CLI."""
    return PACKAGES[name].version


def cache() -> str:
    """The folder of all installed CLIs."""
    return os.path.abspath(os.environ.get("ROODA_TEST_CLIS") or os.path.expanduser("~/.cache/rooda-test-clis"))


def folder(name: str) -> str:
    """Where this version of a CLI is, or would be."""
    return os.path.join(cache(), f"{name}-{version(name)}")


def commands(name: str) -> str:
    """The folder with the CLI's command, empty when it is not installed completely."""
    place = folder(name)
    if not os.path.exists(os.path.join(place, COMPLETE)):
        return ""
    return os.path.join(place, "bin" if PACKAGES[name].python else os.path.join("node_modules", ".bin"))


def install(name: str) -> str:
    """Install a CLI unless it is there; gives its folder of commands. A failed installation leaves nothing behind."""
    if place := commands(name):
        return place
    os.makedirs(cache(), exist_ok=True)
    shutil.rmtree(folder(name), ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".npm-", dir=cache()) as npm_cache:
        try:
            _run(name, npm_cache)
        except BaseException:
            shutil.rmtree(folder(name), ignore_errors=True)
            raise
    with open(os.path.join(folder(name), COMPLETE), "w", encoding="utf-8"):
        pass
    return commands(name)


def _run(name: str, npm_cache: str) -> None:
    place, package = folder(name), PACKAGES[name]
    if package.python:  # its scripts name their own folder, so it is made where it stays
        subprocess.run([package.python, "-m", "venv", place], check=True)
        pip = [os.path.join(place, "bin", "pip"), "install", "-q", f"{package.name}=={package.version}"]
        subprocess.run([*pip, *package.beside], check=True, stdin=subprocess.DEVNULL)
        return
    os.makedirs(place)
    npm = ["npm", "install", "--prefix", place, "--cache", npm_cache, "--no-audit", "--no-fund", "--loglevel=error"]
    wanted = [f"{package.name}@{package.version}", *package.beside]
    subprocess.run([*npm, *wanted], check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    if package.program:
        links = os.path.join(place, "node_modules", ".bin")
        os.makedirs(links, exist_ok=True)
        os.symlink(os.path.join("..", package.name, package.program), os.path.join(links, name))


def main(names: list[str]) -> int:
    """Install each of the CLIs named, `ci` for those of CI; 2 for an unknown name, 1 if one could not be installed."""
    names = [*CI] if names == ["ci"] else names
    unknown = [name for name in names if name not in NAMES]
    if unknown or not names:
        print(f"usage: python {sys.argv[0]} NAME…   names: ci, {', '.join(NAMES)}", file=sys.stderr)
        return 2
    with ThreadPoolExecutor(len(names)) as pool:
        return 1 if not all([*pool.map(_installed, names)]) else 0


def _installed(name: str) -> bool:
    try:
        print(f"{name} {version(name)} {install(name)}\n", end="", flush=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{name} {version(name)}: not installed: {error}\n", end="", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
