"""Formats metrics as text for Prometheus (exposition format 0.0.4). Pure."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})


class Sample(NamedTuple):
    value: float
    labels: Mapping[str, str] = {}


class Family(NamedTuple):
    """A metric with all its samples."""

    name: str
    kind: str  # counter | gauge
    help: str
    samples: tuple[Sample, ...]


def exposition(families: Iterable[Family]) -> str:
    return "".join(f"{line}\n" for family in families for line in _lines(family))


def _lines(family: Family) -> Iterable[str]:
    yield f"# HELP {family.name} {family.help}"
    yield f"# TYPE {family.name} {family.kind}"
    for sample in family.samples:
        labels = ",".join(f'{key}="{_escaped(value)}"' for key, value in sample.labels.items())
        yield f"{family.name}{f'{{{labels}}}' if labels else ''} {sample.value:.16g}"


def _escaped(value: str) -> str:
    """Escape a label's value; a file name that isn't UTF-8 gets `?` for each invalid byte."""
    return value.encode("utf-8", "replace").decode().translate(_ESCAPES)
