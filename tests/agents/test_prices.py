"""Prices: the cost of tokens, where prices come from, and that they are read only when needed."""

import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path

import pytest

from rooda.agents.prices import Price, cost, price_of
from rooda.agents.records import Usage
from rooda.errors import ConfigProblem
from rooda.loops import configuration
from rooda.settings.schema import PRICE
from rooda.settings.setup import prices_of
from rooda.settings.types import table_faults
from tests.kit.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = tomllib.loads((ROOT / "config" / "prices.toml").read_text())
TABLE = {"gpt-5": Price(1, 2, 3, 4), "gpt-5-codex": Price(10, 20, 30, 40), "our-*": Price(5, 5, 5, 5)}


def in_force(ws: Workspace, toml: str) -> dict[str, Price]:
    """The prices with this rooda.toml."""
    ws.config(toml)
    return dict(prices_of(configuration.load(ws.path, environ=ws.env)))


def test_each_kind_of_token_has_its_price() -> None:
    """Dollars per million, summed over the four kinds."""
    assert cost(Usage(1_000_000, 0, 0, 0), "gpt-5", TABLE) == 1
    assert cost(Usage(100_000, 20_000, 3_000, 400), "gpt-5", TABLE) == pytest.approx(0.1 + 0.04 + 0.009 + 0.0016)


def test_without_price_or_tokens_the_cost_is_unknown() -> None:
    """Without a price, a model or tokens the cost is unknown, not 0; zero tokens cost nothing."""
    assert cost(Usage(5, 5, 5, 5), "gpt-9", TABLE) is None
    assert cost(Usage(5, 5, 5, 5), "", TABLE) is None
    assert cost(None, "gpt-5", TABLE) is None
    assert cost(Usage(), "gpt-5", TABLE) == 0


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-5", "gpt-5"),
        ("GPT-5", "gpt-5"),
        ("gpt-5-codex", "gpt-5-codex"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("gpt-5-codex-latest", "gpt-5-codex"),
        ("openai/gpt-5-codex-20260101", "gpt-5-codex"),
        ("gpt-5@20260101", "gpt-5"),
        ("gpt-5-preview-09-2025", "gpt-5"),
        ("models/gpt-5-001", "gpt-5"),
        ("our-gpt-5-codex", "our-*"),
    ],
)
def test_a_model_has_several_names(model: str, name: str) -> None:
    """A maker's prefix, a date, -latest and -preview change nothing; the longest matching name counts."""
    assert price_of(model, TABLE) == TABLE[name]


@pytest.mark.parametrize("model", ["gpt-5-mini", "gpt-5.1", "gpt-50", "my-gpt-5", "reseller/gpt-5", "gpt-5-codex-max"])
def test_another_model_is_not_taken_for_it(model: str) -> None:
    """A successor, a smaller variant or a reseller's model does not inherit another model's price."""
    assert price_of(model, TABLE) is None


def test_the_shipped_prices_are_without_fault() -> None:
    """Each shipped model has prices of input and output, no unknown key, and plausible values."""
    assert date.fromisoformat(SHIPPED["date"]) >= date(2026, 11, 1)
    assert set(SHIPPED) == {"date", "prices"} and len(SHIPPED["prices"]) > 40
    for name, price in SHIPPED["prices"].items():
        assert table_faults(price, PRICE, ("input", "output")) == [], name
        assert 0 < price.get("cached", price["input"]) <= price["input"] < price["output"] <= 200, name
        assert price["input"] <= price.get("written", price["input"]) <= 2 * price["input"], name


@pytest.mark.parametrize(
    ("model", "input", "output"),
    [("claude-opus-5-5", 4, 20), ("gpt-5-codex", 1.25, 10), ("gemini-2.5-pro", 1.25, 10), ("qwen3.8-max", 2, 6)],
)
def test_every_family_has_prices(ws: Workspace, model: str, input: float, output: float) -> None:
    """The four families are there with their makers' prices; missing prices equal that of input."""
    found = price_of(model, in_force(ws, ""))
    assert found is not None and (found.input, found.output) == (input, output)
    assert price_of("qwen3-coder-plus", in_force(ws, "")) is None


def test_the_user_corrects_a_price(ws: Workspace) -> None:
    """[prices."MODEL"] changes the fields that it names; a new model needs input and output, the rest follows."""
    found = in_force(ws, '[prices."gpt-5-codex"]\noutput = 11\n[prices.mine]\ninput = 7\noutput = 8\n')
    assert found["gpt-5-codex"] == Price(1.25, 11, 0.125, 1.25)
    assert found["mine"] == Price(7, 8, 7, 7)


def test_the_users_pattern_overrides_a_shipped_name(ws: Workspace) -> None:
    """A user's price for a pattern overrides a longer shipped name."""
    found = in_force(ws, '[prices."gpt-5*"]\ninput = 0\noutput = 0\n')
    assert cost(Usage(1, 1, 1, 1), "gpt-5.1-codex-max", found) == 0
    assert price_of("gpt-6-sol", found) == price_of("gpt-6-sol", in_force(ws, ""))


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("[prices]\nx = 3", "rooda.toml:2: prices.x: must be a table, got 3"),
        ("prices = 3", "rooda.toml:1: prices: must be a table, got 3"),
        ("[prices.x]\ninput = -1\noutput = 2", "rooda.toml:2: prices.x.input: must be a number >= 0, got -1"),
        ("[prices.x]\ninput = 1\noutput = 'a'", "rooda.toml:3: prices.x.output: must be a number >= 0, got 'a'"),
        ("[prices.x]\ninput = 1\noutput = nan", "rooda.toml:3: prices.x.output: must be a number >= 0, got nan"),
        ("[prices.x]\noutput = true", "rooda.toml:2: prices.x.output: must be a number >= 0, got true"),
        ("[loop]\n[prices.'a.b']\ninput = 1", "rooda.toml:2: prices.'a.b': the key 'output' is missing"),
    ],
)
def test_a_wrong_price_is_reported_with_its_line(ws: Workspace, toml: str, says: str) -> None:
    """The error has file, line, key and what was expected."""
    with pytest.raises(ConfigProblem) as problem:
        in_force(ws, toml)
    assert says in problem.value.what


def test_an_unknown_key_of_a_price_is_a_warning(ws: Workspace) -> None:
    """The run continues without the price file."""
    ws.config("[prices.x]\ninput = 1\noutput = 1\nouptut = 2")
    (warning,) = configuration.load(ws.path, environ=ws.env).warnings
    assert warning.endswith("rooda.toml:4: prices.x.ouptut: unknown key; did you mean 'output'?")


@pytest.mark.parametrize("words", [["--help"], ["list"], ["build", "--dry-run", "--ai-cmd", "true"]], ids=" ".join)
def test_only_runs_read_the_price_file(ws: Workspace, words: list[str]) -> None:
    """The price file is read for a run, not for other commands."""
    code = (
        "import sys; opened = []\n"
        "sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == 'open' else None)\n"
        "from rooda.startup import main; code = main(sys.argv[1:])\n"
        "sys.exit(code or any('prices.toml' in each for each in opened) or not any('rooda' in e for e in opened))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, *words], cwd=ws.path, env=ws.env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
