"""The page shows the tasks of the fleet, and nothing more."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit import temporal
from tests.kit.page import Page, needs_extra
from tests.kit.processes import Running, until
from tests.kit.site import ROODA, Site

pytestmark = needs_extra
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def site(server: temporal.Server, tmp_path: Path) -> Iterator[Site]:
    found = Site(tmp_path, server.address)
    yield found
    found.end()


@pytest.fixture
def page(site: Site) -> Iterator[Page]:
    """A page that is served at the desk."""
    words = [*ROODA, "page", "--no-browser"]
    process = Running(words, site.environment("desk"), str(site.desk), str(site.folder / "page"), None)
    yield Page(process).enter()
    process.stop()


def shown(page: Page, site: Site, **facts: Any) -> list[dict[str, Any]]:
    """The open rows of the page, once those of `rooda tasks --fleet --json` have these facts."""

    def found() -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = page.rows()["open"]
        return rows if rows and all(rows[-1][key] == value for key, value in facts.items()) else []

    with page.stream() as stream:
        stream.next("pieces")
        rows: list[dict[str, Any]] = until(found, 60, f"a task with {facts}")
    assert rows == json.loads(site.tasks("--json"))
    return rows


def test_P_01_the_fleets_tasks_are_on_the_page(site: Site, page: Page) -> None:
    """The rows are the command's; a question is shown with the command that answers it; there are no buttons."""
    (site.notes / "script.sh").write_text(f"echo '<question>Which {HOSTILE}?</question>'\n")
    site.tasks("add", f"Write {HOSTILE}", "-n", "2", "--pool", site.folder.name)
    assert [row["state"] for row in shown(page, site)] == ["waiting"]
    site.worker("blue", pool=site.folder.name)
    (row,) = shown(page, site, state="parked")
    html = page.ask("").text
    assert "&lt;img src=x" in html
    assert "<img" not in html
    assert f"rooda tasks answer {row['name']}" in html
    assert re.search(r"1 asks? you", html)
    assert "data-do=" not in html
    entry = html.partition('data-piece="open/')[2].partition('"')[0]
    assert page.act("stop", entry).status == 422


def test_P_01_a_fleet_that_does_not_answer_is_one_sentence(tmp_path: Path) -> None:
    """The page says so, shows everything else, and ends at once."""
    site = Site(tmp_path, "temporal://127.0.0.1:1/default")
    words = [*ROODA, "page", "--no-browser"]
    process = Running(words, site.environment("desk"), str(site.desk), str(site.folder / "page"), None)
    page = Page(process).enter()
    with page.stream() as stream:
        assert "Temporal does not answer" in json.dumps(stream.until("pieces", "Temporal"))
    assert page.ask("").status == 200
    assert "temporalio" not in Path(f"/proc/{process.pid}/maps").read_text()
    process.stop()
    assert process.err == ""
