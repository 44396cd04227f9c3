"""Reads the tasks of the fleet for the overview: those of the repository in which the page was started."""

import os
from json import loads

from rooda.base import clock
from rooda.base.json import Json
from rooda.errors import FAILED
from rooda.page import order
from rooda.processes.detach import rooda_command
from rooda.settings import layers
from rooda.settings.where import Where
from rooda.tasks import model

EVERY = 10.0  # seconds between the end of one read and the next


class FleetTasks:
    """The open tasks of the fleet, as `rooda tasks --fleet --json` prints them.

    The page runs that command, so that it neither loads the library of the fleet's engine nor waits for the fleet.
    """

    def __init__(self, here: Where) -> None:
        self._here = here
        self._next = 0.0 if layers.users_own("fleet", os.environ).get("address") else float("inf")
        self.rows: list[Json] = []
        self.problem = ""  # why the rows are not current

    @property
    def is_due(self) -> bool:
        return clock.monotonic() >= self._next

    def read(self) -> None:
        """Read the tasks. If the fleet does not answer, keep the tasks that were read before."""
        config = ["--config", self._here.config] if self._here.config else []
        words = ["-C", self._here.workspace, *config, "tasks", "--fleet", "--json"]
        self._next = float("inf")
        try:
            done = order.shown([*rooda_command(), *words], self._here.workspace)
            self.problem = done.said.strip() if done.code == FAILED else ""
            rows = loads(done.said) if done.code == 0 else []
            if not self.problem:  # any other code: no repository, or no remote, so there are no tasks of the fleet
                self.rows = [row for row in rows if row["state"] not in model.OVER]
        except (ValueError, KeyError, TypeError) as problem:
            self.problem = f"rooda tasks --fleet --json can't be read ({type(problem).__name__})"
        finally:
            self._next = clock.monotonic() + EVERY
