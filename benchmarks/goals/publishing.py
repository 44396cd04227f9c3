"""What publishing a turn of a task costs over one `git push` of the same work, with few and with many tasks' refs."""

import json
import os

from benchmarks.bench import Bench
from benchmarks.measure import Failed, Series, once, spread
from benchmarks.verdict import Measured, Row, ratio

PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs", "publish.py")
MOST = 2.0
FEW, MANY = 10, (1_000, 10_000)  # refs in the state remote
PUBLISH, PUSH = "publishing a turn", "git push by hand"


def publishing(bench: Bench) -> Measured:
    rounds = 5 if bench.quick else 41
    series: Series = {}
    for refs in (FEW, *MANY):
        took = _measured(bench, refs, rounds)
        shown = "" if refs == FEW else f", {refs:,} refs"
        series[f"{PUBLISH}{shown}"] = {"wall": spread(took["publish"]), "before the push": spread(took["make"])}
        series[f"{PUSH}{shown}"] = {"wall": spread(took["push"])}
    rows = [Row(0, "publishing a turn over one bare git push", ratio(series, "wall", PUBLISH, PUSH), MOST)]
    for refs in MANY:
        what = f"publishing a turn with {refs:,} refs in the state remote over {FEW}"
        rows.append(Row(0, what, ratio(series, "wall", f"{PUBLISH}, {refs:,} refs", PUBLISH), None))
    middle = series[PUBLISH]["wall"].median
    rows.append(Row(0, "turns that one worker publishes one after the other", 1 / middle, None, "/s"))
    return Measured(rows, series)


def _measured(bench: Bench, refs: int, rounds: int) -> dict[str, list[float]]:
    place = bench.workspace(f"publishing-{refs}")
    folder = os.path.join(place.path, "all")
    os.mkdir(folder)
    once([bench.python, PROGRAM, folder, str(rounds), str(refs)], place.env, place.path)
    with open(os.path.join(place.path, "said"), encoding="utf-8") as said:
        text = said.read()
    try:
        found: dict[str, list[float]] = json.loads(text)
    except ValueError:
        raise Failed(f"{PROGRAM} printed {text[-2000:]}") from None
    return found
