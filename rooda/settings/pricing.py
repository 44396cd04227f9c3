"""What calls cost that nobody lived to write down: the prices of the workspace that they were made in."""

from functools import cache

from rooda.agents.prices import Prices
from rooda.errors import RoodaError
from rooda.settings.where import Where


@cache
def prices(here: Where) -> Prices:
    """{} if the settings can't be read: what was used is told all the same."""
    from rooda.settings import layers
    from rooda.settings.prices import prices_of

    try:
        return prices_of(layers.load(here.workspace, here.config))
    except RoodaError:
        return {}
