"""Whole runs of `rooda build` with the installed CLIs: right outcome, right cost, and no process left."""

from collections.abc import Callable

import pytest

from rooda.agentkit.server.server import ModelServer
from tests.kit.clis import build_cases, builds
from tests.kit.workspace import Workspace

USUAL = ("codex", "gemini")
# What these cases prove another case of the CLI proves too; most of each is the wait for its idle timeout.
LONG = {"codex": ("rate_limit_wait",), "gemini": ("overloaded", "rate_limit_wait", "usage_limit_wait")}
OTHERS = ("claude", "opencode", "copilot", "qwen", "droid", "pi")


def rows() -> list[object]:
    """Every case of every CLI; all but the usual ones by `-m real`, some of those by `-m long`."""

    def marks(cli: str, name: str) -> tuple[pytest.MarkDecorator, ...]:
        if cli not in USUAL:
            return (pytest.mark.real,)
        return (pytest.mark.long,) if name in LONG[cli] else ()

    return [
        pytest.param(cli, name, id=f"{cli}-{name}", marks=marks(cli, name))
        for cli in (*USUAL, *OTHERS)
        for name in build_cases.cases(cli, "/")
    ]


@pytest.mark.parametrize(("cli_name", "case_name"), rows())
def test_a_whole_build(
    bare: Workspace, cli: Callable[[str], str], server: ModelServer, cli_name: str, case_name: str
) -> None:
    """The run ends as the case says: outcome, exit code, message, cost; one agent at a time, no process left."""
    cli(cli_name)
    case = build_cases.cases(cli_name, bare.path)[case_name]
    built = builds.build(bare, cli_name, server, case)
    builds.check(bare, cli_name, case, built)
