"""Agents that resist being ended, in every kind of loop: it ends as it should, no process is left, it can continue."""

import sys
from collections.abc import Callable
from functools import cache

import pytest

from benchmarks.faults.clings import AGENTS, CASES, WAYS, Matrix
from benchmarks.faults.kinds import KINDS

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and a child subreaper")
# Every way once, with the agents in turn; a kind of loop every fourth.
SHORT = [([*KINDS][place % 4], way, [*AGENTS][(3 * place) % len(AGENTS)]) for place, way in enumerate(WAYS)]
ALL = [(loop, way, agent) for loop in KINDS for way, agent in CASES]
Made = Callable[[str], Matrix]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The cases of a kind of loop."""
    return cache(lambda loop: Matrix(KINDS[loop], str(tmp_path_factory.mktemp(loop))))


@pytest.mark.parametrize(("loop", "way", "agent"), SHORT)
def test_O_069_no_process_outlives_a_loop_of_any_kind(made: Made, loop: str, way: str, agent: str) -> None:
    """A selection: the exit code, no live process, and then the end of an undisturbed run."""
    judge = made(loop).one(way, agent)
    assert judge.problems == []


@pytest.mark.long
@pytest.mark.parametrize(("loop", "way", "agent"), ALL)
def test_every_way_and_every_agent(made: Made, loop: str, way: str, agent: str) -> None:
    """The whole matrix."""
    judge = made(loop).one(way, agent)
    assert judge.problems == []
