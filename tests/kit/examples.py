"""How many examples a random test tries: a third of them in the usual run, all with ROODA_EXAMPLES=all."""

import os

SHARE = 1 if os.environ.get("ROODA_EXAMPLES") == "all" else 3


def examples(number: int) -> int:
    """Return the number of examples of this run, of a test that has so many in all."""
    return max(number // SHARE, 1)
