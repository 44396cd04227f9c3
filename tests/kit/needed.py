"""Programs that some tests need, besides Python and git."""

import os
import shutil
import sys

import pytest

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skipped where one is missing. `.ci/run` installs them all: there the test runs, and fails."""
    missing = [program for program in programs if not (shutil.which(program) or os.path.exists(program))]
    return pytest.mark.skipif(bool(missing) and "CI_TOOLS" not in os.environ, reason=f"needs {', '.join(missing)}")
