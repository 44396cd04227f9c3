"""docs/README.md leads to every page, and the examples of all pages can be read."""

import json
from pathlib import Path

import pytest
import yaml

from tests.kit.pages import PAGES, ROOT, blocks, links, name_of


def test_the_index_has_every_page() -> None:
    """Each page of docs/ is linked."""
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}
    pages = {page for page in PAGES if index.parent in page.parents and page != index}
    assert pages - linked == set()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_of_yaml_and_json_can_be_read(page: Path) -> None:
    """Each is a whole file."""
    for text in blocks(page, "yaml"):
        assert yaml.safe_load(text)
    for text in blocks(page, "json"):
        assert json.loads(text)
