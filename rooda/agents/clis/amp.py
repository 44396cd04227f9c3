"""Warns about amp's login. amp prints claude's records, so its settings have `output = "claude"`."""

from collections.abc import Mapping, Sequence

from rooda.agents.reader import Reader


def _warnings(argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    if env.get("AMP_API_KEY"):
        return []
    return ["AMP_API_KEY is not set. Unless amp is logged in, it takes the prompt for a login code and exits with 1."]


READER = Reader(warnings=_warnings)
