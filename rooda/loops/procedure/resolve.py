"""From settings to a procedure that can be run."""

from collections.abc import Mapping
from typing import Any

from rooda.errors import UsageProblem
from rooda.loops.procedure.model import Procedure
from rooda.loops.procedure.settings import context_of, phases_of, shipped_whole
from rooda.run.records import Gate
from rooda.settings.layers import BUILT_IN, Settings
from rooda.settings.lookup import Lookup, lookup
from rooda.settings.procedures import own, require, summary
from rooda.settings.schema import LOOP, flag_of
from rooda.settings.setup import filled, setup_of


def procedure(settings: Settings, name: str, flags: Mapping[str, Any]) -> Procedure:
    """The procedure with every setting decided; `flags` holds what was typed, and wins."""
    require(settings, name)
    _check_flags(flags)
    look = lookup(settings, name, flags)
    builtin = shipped_whole(look)
    table = own(settings, name)
    made = Procedure(
        name=name,
        phases=phases_of(look),
        setup=setup_of(settings, look),
        context=context_of(look),
        display=table.get("display", name),
        summary=summary(settings, name),
        description=table.get("description", ""),
        builtin=builtin,
        gates=_gates(look),
        promise_signals=_promise_signals(look, builtin),
    )
    return filled(made, look)


def _check_flags(flags: Mapping[str, Any]) -> None:
    for key, value in flags.items():
        if key in LOOP and value is not None:
            for fault in LOOP[key].kind.faults(value):
                raise UsageProblem(f"{flag_of(key)} {fault.text}")


def _gates(look: Lookup) -> tuple[Gate, ...] | None:
    """None: nobody set any, so AGENTS.md may speak."""
    if look.value("no_gates", False):
        return ()
    found = look.find("quality_gates")
    return None if found is None else tuple(_gate(item) for item in found.value)


def _gate(item: Any) -> Gate:
    if isinstance(item, str):
        return Gate(item, item)
    return Gate(item.get("name", item["command"]), item["command"], float(item.get("timeout", 0)))


def _promise_signals(look: Lookup, builtin: bool) -> bool:
    """What a person says; else on where the shipped prompts teach the signal."""
    found = look.find("promise_signals")
    return builtin if found is None or found.layer.tier == BUILT_IN else bool(found.value)
