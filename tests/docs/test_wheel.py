"""The wheel, built from a copy of the tree without git, installed into an environment of its own."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from packaging.requirements import Requirement

import rooda
from rooda.cli.words import help_text

PROJECT = Path(__file__).resolve().parents[2]
TREE = ["rooda", "prompts", "config", "docs/man", "archive", "pyproject.toml", "README.md", "LICENSE"]


class Installed(NamedTuple):
    """A wheel, its names, and the command that it put into a fresh environment."""

    names: list[str]
    command: str
    python: str
    folder: Path


def environment(cwd: Path) -> dict[str, str]:
    home = os.path.join(os.path.dirname(cwd), "home")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ROODA_", "XDG_"))}
    return env | {"PYTHONDONTWRITEBYTECODE": "1", "HOME": home, "GIT_CONFIG_NOSYSTEM": "1"}


def run(*command: str, cwd: Path) -> str:
    """The program's stdout; its words when it fails."""
    done = subprocess.run(
        command, cwd=cwd, env=environment(cwd), capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of what packages are built from, without git and with files that must not get into one."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in TREE:
        source, target = PROJECT / name, folder / "tree" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    yield folder / "tree"
    shutil.rmtree(folder, ignore_errors=True)


def built(kind: str, source: Path, into: Path) -> Path:
    """The one file that a build of this kind makes."""
    run(
        sys.executable,
        "-m",
        "build",
        f"--{kind}",
        "--no-isolation",
        "--outdir",
        str(into),
        str(source),
        cwd=into.parent,
    )
    (made,) = into.iterdir()
    return made


def needed(name: str) -> set[str]:
    """The packages that pip would install with this one, itself included."""
    found, new = set[str](), [name]
    while new:
        if (each := new.pop().lower()) not in found:
            found.add(each)
            wanted = [Requirement(line) for line in distribution(each).requires or ()]
            new += [row.name for row in wanted if not row.marker or row.marker.evaluate({"extra": ""})]
    return found


@pytest.fixture(scope="module")
def installed(tree: Path) -> Installed:
    """Build and install once, with links to the dependencies that pip would install."""
    folder = tree.parent
    wheel = built("wheel", tree, folder / "dist")
    run(sys.executable, "-m", "venv", "--without-pip", "venv", cwd=folder)
    python = str(folder / "venv" / "bin" / "python")
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", str(wheel), cwd=folder)
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    dependencies = {
        Requirement(line).name
        for line in tomllib.loads((tree / "pyproject.toml").read_text())["project"]["dependencies"]
    }
    for name in set().union(*map(needed, dependencies)):
        for top in {file.parts[0] for file in distribution(name).files or ()} - {"..", "__pycache__"}:
            (site / top).symlink_to(Path(str(distribution(name).locate_file(top))))
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    (folder / "empty").mkdir()
    return Installed(names, str(folder / "venv" / "bin" / "rooda"), python, folder / "empty")


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
    data = f"rooda-{rooda.__version__}.data/data/"
    assert {name for name in names if name.startswith(data)} == {
        f"{data}share/man/man1/{name}" for name in files(tree / "docs" / "man")
    }
    others = {name.split("/")[0] for name in names if not name.startswith(("rooda/", data))}
    assert len(names) == len(set(names))
    assert others == {f"rooda-{rooda.__version__}.dist-info"}


def test_the_manual_is_where_man_looks_for_it(installed: Installed) -> None:
    """Beside the folder of the command, from where `man` derives the folders that it searches."""
    manual = Path(installed.command).parents[1] / "share" / "man" / "man1"
    assert (manual / "rooda.1").is_file() and (manual / "rooda-build.1").is_file()


def test_the_sdist_builds_the_same_wheel(tree: Path, installed: Installed) -> None:
    """The wheel built from the unpacked sdist equals the one built from the tree, byte for byte."""
    folder = tree.parent
    with tarfile.open(built("sdist", tree, folder / "sdist")) as archive:
        safe: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # since Python 3.11.4
        archive.extractall(folder / "unpacked", **safe)
    (wheel,) = (folder / "dist").iterdir()
    again = built("wheel", folder / "unpacked" / f"rooda-{rooda.__version__}", folder / "again")
    assert again.name == wheel.name and again.read_bytes() == wheel.read_bytes()


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
    assert "AI signaled SUCCESS: completed after 3 iterations" in ended
    run(sys.executable, "-m", "unittest", "-q", cwd=parent / "demo")


@pytest.mark.parametrize("command", ["page", "worker", "fleet doctor", "build"])
def test_a_missing_extra_is_one_sentence(installed: Installed, command: str) -> None:
    """What needs an extra says which, and how to install it; telemetry without its extra does not stop a loop."""
    extra, code = {"page": ("page", 2), "build": ("otel", 0)}.get(command, ("fleet", 2))
    demo = installed.folder.parent / f"demo of {command}"
    run(installed.command, "init", "--demo", str(demo), cwd=installed.folder)
    env = environment(installed.folder) | {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    words = [installed.command, *command.split()]
    done = subprocess.run(words, cwd=demo, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr.count(f"pip install 'rooda[{extra}]'")) == (code, 1)
    assert "Traceback" not in done.stderr and (code == 0 or len(done.stderr.splitlines()) == 2)


def test_agents_are_listed_from_the_installed_package(installed: Installed) -> None:
    """`rooda agents` has the shipped table, and `rooda --help` every command."""
    assert "\nclaude " in run(installed.command, "agents", cwd=installed.folder)
    assert run(installed.command, "--help", cwd=installed.folder) == help_text()
