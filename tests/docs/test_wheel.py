"""The wheel, built from a copy of the tree without git, installed into an environment of its own."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple

import pytest

PROJECT = Path(__file__).resolve().parents[2]
TREE = ["rooda", "prompts", "config", "archive", "pyproject.toml", "README.md", "LICENSE"]


class Installed(NamedTuple):
    """A wheel, its names, and the command that it put into a fresh environment."""

    names: list[str]
    command: str
    python: str
    folder: Path


def run(*command: str, cwd: Path) -> str:
    """The program's stdout; its words when it fails."""
    home = os.path.join(os.path.dirname(cwd), "home")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ROODA_", "XDG_"))}
    env |= {"PYTHONDONTWRITEBYTECODE": "1", "HOME": home, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """Build and install once. The dependencies are those of the environment that runs the tests, by a .pth file."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in TREE:
        source, target = PROJECT / name, folder / "tree" / name
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist", "tree", cwd=folder)
    (wheel,) = (folder / "dist").glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", "venv", cwd=folder)
    python = str(folder / "venv" / "bin" / "python")
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", str(wheel), cwd=folder)
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip()
    homes = {str(distribution(name).locate_file("")) for name in ("click", "tiktoken", "psutil", "PyYAML", "tomli_w")}
    Path(site, "dependencies.pth").write_text("".join(f"{home}\n" for home in homes))
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    (folder / "empty").mkdir()
    yield Installed(names, str(folder / "venv" / "bin" / "rooda"), python, folder / "empty")
    shutil.rmtree(folder, ignore_errors=True)


def files(folder: Path) -> set[str]:
    """Names of the files below, as seen from there."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_O_118_prompts_and_settings_are_in_the_wheel(installed: Installed) -> None:
    """The wheel has each file of prompts/ and config/, every module, nothing of archive/ or tests/, nothing twice."""
    tree, names = installed.folder.parent / "tree", installed.names
    prompts = {f"rooda/prompts/{name}" for name in files(tree / "prompts")}
    settings = {f"rooda/config/{name}" for name in files(tree / "config")}
    assert len(prompts) >= 50 and {"rooda/config/rooda.toml", "rooda/config/procedures.toml"} <= settings
    assert {name for name in names if name.startswith("rooda/")} == (
        prompts | settings | {f"rooda/{name}" for name in files(tree / "rooda")}
    )
    others = {name.split("/")[0] for name in names if not name.startswith("rooda/")}
    assert len(names) == len(set(names))
    assert len(others) == 1 and others.pop().endswith(".dist-info")


def test_O_118_the_shipped_build_procedure_in_an_empty_folder(installed: Installed) -> None:
    """From the installed package alone: four phases, each with text, and an exact token count."""
    where = run(installed.python, "-c", "import rooda; print(rooda.__file__)", cwd=installed.folder)
    assert where.startswith(str(installed.folder.parent))
    shown = run(installed.command, "build", "--dry-run", "--ai-cmd", "cat", cwd=installed.folder)
    head, _, prompt = shown.partition("\n\n")
    assert head.startswith("[DRY RUN] Procedure: build\n[DRY RUN] Would execute with: cat\n")
    assert "Token count: ~" not in head
    _, *phases = prompt.split("\n## ")
    assert [phase.partition("\n")[0] for phase in phases] == ["OBSERVE", "ORIENT", "DECIDE", "ACT"]
    assert all(len(phase.split()) > 20 for phase in phases)
    assert os.listdir(installed.folder) == []


def test_O_118_every_shipped_procedure_can_be_shown(installed: Installed) -> None:
    """Each name that `rooda list` prints assembles from the installed prompts."""
    listed = run(installed.command, "list", cwd=installed.folder)
    names = [line.split()[0] for line in listed.splitlines() if line.startswith("  ")]
    assert len(names) >= 16
    program = (
        "import sys; from rooda.loops import configuration; from rooda.loops.procedure import effects, settings\n"
        "found = configuration.load('.', None)\n"
        "for name in sys.argv[1:]: print(len(effects.prompt_text('/', settings.procedure(found, name, {}), 1)))"
    )
    sizes = run(installed.python, "-c", program, *names, cwd=installed.folder).split()
    assert len(sizes) == len(names) and all(int(size) > 500 for size in sizes)


def test_O_118_the_demo_runs_from_the_installed_package(installed: Installed) -> None:
    """`rooda init --demo` and `rooda build` there: the installed demo agent finishes the work."""
    parent = installed.folder.parent
    made = run(installed.command, "init", "--demo", "demo", cwd=parent)
    assert made.splitlines()[-1] == "Next: cd demo && rooda build"
    ended = run(installed.command, "build", cwd=parent / "demo").splitlines()[-1]
    assert "AI signaled SUCCESS" in ended or "Reached max iterations" in ended
    run(sys.executable, "-m", "unittest", "-q", cwd=parent / "demo")
