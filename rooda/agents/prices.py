"""Computes the cost of tokens from a price table. A model without a price has an unknown cost, never zero."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from rooda.agents.records import Usage

LONGEST = 200  # characters of a model's name
# Prefixes that name the vendor, removed from names; a reseller's prefix stays.
_MAKER = r"^(?:models|anthropic|openai|google|gemini|alibaba|qwen)/"
# Suffixes that name the same model.
_FORM = r"(?:[-@]\d{4}-?\d\d-?\d\d|-\d{3}|-latest|-preview(?:-\d\d-\d{2,4})?)$"


class Price(NamedTuple):
    """Dollars per million tokens, in the order of Usage's fields."""

    input: float
    output: float
    cached: float
    written: float


Prices = Mapping[str, tuple[float, ...]]


class Cost(NamedTuple):
    """The cost of a call, and where the figure comes from."""

    dollars: float | None = None
    source: str = "unknown"  # reported | computed | declared | estimated | unknown


def cost_of_call(reported: float | None, usage: Usage | None, parts: Mapping[str, Usage], table: Prices) -> Cost:
    """Return the cost reported by the CLI, else computed from the tokens per model in `parts`, else unknown."""
    if reported is not None and (reported or not usage or not any(usage)):
        return Cost(reported, "reported")  # zero dollars for many tokens: the CLI doesn't know the price
    costs = [cost(each, name, table) for name, each in parts.items() if any(each)]
    known = [each for each in costs if each is not None]
    return Cost(sum(known), "computed") if known and len(known) == len(costs) else Cost()


def assumed_cost(known: float | None, declared: float, lengths: tuple[int, int], model: str, table: Prices) -> Cost:
    """Return a call's cost for a goal's budget: as reported, else as declared in the settings, else estimated.

    `lengths`: characters of prompt and answer; four count as a token.
    """
    if known is not None:
        return Cost(known, "reported")
    if declared:
        return Cost(declared, "declared")
    guess = cost(Usage(input=lengths[0] // 4, output=lengths[1] // 4), model, table)
    return Cost() if guess is None else Cost(guess, "estimated")


def cost(usage: Usage | None, model: str, table: Prices) -> float | None:
    """Return the dollars for these tokens; None if the tokens or the model's price are unknown."""
    price = price_of(model, table)
    if usage is None or price is None:
        return None
    return sum(tokens * each for tokens, each in zip(usage, price, strict=True)) / 1_000_000


def price_of(model: str, table: Prices) -> tuple[float, ...] | None:
    """Return the price listed under the longest name that matches the model; None if none matches."""
    forms = names_of(model)
    fitting = [name for name in table if matches(name, forms)]
    return table[max(fitting, key=len)] if fitting else None


def names_of(model: str) -> tuple[str, ...]:
    """Return a model's names: as given, without the vendor's prefix, and without a date, -latest or -preview."""
    name = model.lower()[:LONGEST]
    forms = [name, re.sub(_MAKER, "", name)]
    while (shorter := re.sub(_FORM, "", forms[-1])) != forms[-1]:
        forms.append(shorter)
    return tuple(forms)


def matches(name: str, forms: tuple[str, ...]) -> bool:
    """True if a name in the price table matches one of these names; `*` matches anything."""
    if "*" not in name:
        return name.lower() in forms
    return any(_has_parts(name.lower().split("*"), form) for form in forms)


def _has_parts(parts: list[str], form: str) -> bool:
    """True if the name consists of these parts in order, with anything between them."""
    first, *middle, last = parts
    if not form.startswith(first) or not form.endswith(last) or len(form) < len(first) + len(last):
        return False
    place = len(first)
    for part in middle:
        place = form.find(part, place, len(form) - len(last))
        if place < 0:
            return False
        place += len(part)
    return True
