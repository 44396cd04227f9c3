"""amp prints claude's records: its table has `output = "claude"`."""

from collections.abc import Mapping, Sequence

from rooda.agents.reader import Reader


def _warnings(argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    if env.get("AMP_API_KEY"):
        return []
    return ["amp waits for ever where it is not logged in, and AMP_API_KEY is not set."]


READER = Reader(warnings=_warnings)
