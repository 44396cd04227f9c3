"""`.ci/repeat`, which tells failures under load from defects."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.pages import ROOT

TESTS = """
import os, pytest

def test_good():
    pass

@pytest.mark.parametrize("number", range(int(os.environ.get("UNSTABLE", "0"))))
def test_unstable(number):
    seen = f"seen-{number}"
    first = not os.path.exists(seen)
    open(seen, "w").close()
    assert not first

@pytest.mark.parametrize("number", range(int(os.environ.get("BAD", "0"))))
def test_bad(number):
    assert False
"""


def repeated(folder: Path, unstable: int, bad: int, code: int = 0) -> tuple[int, str, list[str]]:
    """What `.ci/repeat` makes of a first run with so many unstable and failing tests: exit code, output, its file."""
    (folder / "test_it.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\n")
    path = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
    env = {**os.environ, "PATH": path, "UNSTABLE": str(unstable), "BAD": str(bad)}
    how = {"cwd": folder, "env": env, "capture_output": True, "text": True}
    first = subprocess.run(["pytest", "-q", "-n", "2"], **how)
    words = ["bash", str(ROOT / ".ci" / "repeat"), str(code or first.returncode), "unstable"]
    done = subprocess.run(words, **how)
    file = folder / "unstable"
    return done.returncode, done.stdout + done.stderr, file.read_text().split() if file.exists() else []


def test_a_test_that_passes_alone_is_named_and_does_not_fail_the_run(tmp_path: Path) -> None:
    """It is in the output and in the file, from which `.ci/run` names it at the end."""
    code, out, unstable = repeated(tmp_path, unstable=2, bad=0)
    assert code == 0 and unstable == ["test_it.py::test_unstable[0]", "test_it.py::test_unstable[1]"]
    assert "UNSTABLE: failed first, passed alone: test_it.py::test_unstable[0]\n" in out and "2 passed" in out


def test_a_test_that_fails_again_fails_the_run(tmp_path: Path) -> None:
    """Named apart from the unstable one."""
    code, out, unstable = repeated(tmp_path, unstable=1, bad=1)
    assert code == 1 and unstable == ["test_it.py::test_unstable[0]"]
    assert "FAILED twice: test_it.py::test_bad[0]\n" in out


@pytest.mark.parametrize(("bad", "code"), [(11, 0), (1, 2), (0, 3)], ids=["many", "interrupted", "internal error"])
def test_what_load_does_not_explain_is_not_repeated(tmp_path: Path, bad: int, code: int) -> None:
    """Many failures, and an end of pytest that is not about tests."""
    ended, out, unstable = repeated(tmp_path, unstable=0, bad=bad, code=code)
    assert ended == 1 and unstable == [] and "not repeated" in out
