"""Every kept input through its parser, and many almost like them: understood, or refused as documented."""

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz.fuzz_mutate import documents
from tests.fuzz.fuzz_table import CORPUS, TARGETS
from tests.kit.examples import examples

BOUNDED = settings(
    max_examples=examples(60), deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
LONG = settings(BOUNDED, max_examples=5000, derandomize=False)


def test_each_folder_of_the_corpus_has_a_target() -> None:
    """Every input is used, and every target has a seed."""
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)
    assert all(target.corpus() for target in TARGETS.values())


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus(name: str) -> None:
    """What was once a crash, what reached something new, and documents as they should be."""
    for path in TARGETS[name].corpus():
        TARGETS[name].take(path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_documents_that_are_almost_right(name: str) -> None:
    """Changed inputs of the corpus, the same ones in every run."""
    _tried(name, BOUNDED)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", TARGETS)
def test_many_documents_that_are_almost_right(name: str) -> None:
    """More of them, other ones in every run."""
    _tried(name, LONG)


def _tried(name: str, how: settings) -> None:
    target = TARGETS[name]

    @how
    @given(data=documents(target))
    def tried(data: bytes) -> None:
        target.take(data)

    tried()
