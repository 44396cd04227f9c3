"""`flow`: a project under git with a flow, and its scripted agent. `ran`: the five scenarios, run once each."""

from collections.abc import Callable, Iterator

import pytest

from tests.kit.flow import Flow
from tests.kit.workspace import Ran, Workspace

Done = tuple[Flow, Ran]


@pytest.fixture
def flow(bare: Workspace) -> Flow:
    """A project under git with a flow; `scenario` chooses another."""
    return Flow(bare)


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Done]]:
    """A scenario that has been run; for tests that only look."""
    made: dict[str, Done] = {}

    def run(name: str) -> Done:
        if name not in made:
            flow = Flow(Workspace(str(tmp_path_factory.mktemp(name)))).scenario(name)
            made[name] = (flow, flow.run())
        return made[name]

    yield run
    for flow, _ in made.values():
        flow.ws.close()
