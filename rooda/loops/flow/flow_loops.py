"""A flow's actuator that is another kind of loop: `actuator: {strategy: loop, loop: ooda, …}`."""

from typing import Any

KEYS: dict[str, dict[str, type]] = {
    "ooda": {"procedure": str, "max_iterations": int},
    "reflex": {"rules": str, "template": str, "max_iterations": int},
    "goal": {"max_iterations": int},
}
COMMON = ("strategy", "loop")


def loop_faults(value: dict[str, Any]) -> list[str]:
    """What is wrong with it, as the rest of a sentence that begins with the node."""
    kind = value.get("loop")
    if not isinstance(kind, str) or kind not in KEYS:
        return [f"actuator.loop must be one of {', '.join(KEYS)}, got {'nothing' if kind is None else repr(kind)}"]
    faults = [f"unknown key actuator.{key}" for key in value if key not in COMMON and key not in KEYS[kind]]
    if kind == "reflex" and ("rules" in value) == ("template" in value):
        faults.append("actuator must have exactly one of rules and template")
    for key, wanted in KEYS[kind].items():
        if key in value and (type(value[key]) is not wanted or not value[key]):
            faults.append(f"actuator.{key} must be {'a name' if wanted is str else 'a whole number >= 1'}")
    return faults
