"""The prices in force: those that ship, and what a person says of them."""

from typing import Any

from rooda.agents import prices
from rooda.agents.prices import Price, Prices
from rooda.base import files
from rooda.base.dirs import shipped
from rooda.errors import ConfigProblem
from rooda.settings.check import dotted
from rooda.settings.layers import Settings, merge
from rooda.settings.schema import PRICE


def prices_of(settings: Settings) -> Prices:
    """Read when a run needs it: nothing else waits for this file. A person's name beats every shipped one it fits."""
    written = settings.table("prices")
    table = {
        name: price
        for name, price in _shipped().items()
        if name in written or not any(prices.fits(each, prices.forms_of(name)) for each in written)
    }
    return {name: _price(settings, name, each) for name, each in merge(table, written).items()}


def _shipped() -> dict[str, Any]:
    import tomllib

    table: dict[str, Any] = tomllib.loads(files.text(shipped("config", "prices.toml")))["prices"]
    return table


def _price(settings: Settings, name: str, table: dict[str, Any]) -> Price:
    for key in ("input", "output"):
        if key not in table:
            where = settings.place(("prices", name))
            hint = f"The keys of a price are {', '.join(PRICE)}, in dollars per million tokens."
            raise ConfigProblem(f"{where}: {dotted(('prices', name))}: the key {key!r} is missing", hint)
    fresh = float(table["input"])
    return Price(fresh, float(table["output"]), float(table.get("cached", fresh)), float(table.get("written", fresh)))
