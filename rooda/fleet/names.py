"""Builds the names of queues, workflows and activities in Temporal. Pure."""

from rooda.errors import UsageProblem
from rooda.fleet.port import PROTOCOL

LEG, LAND, LOOK, MESSAGE = "rooda-leg", "rooda-land", "rooda-look", "rooda-message"  # activities
DAY = 86_400.0
SEPARATOR = "|"  # separates the parts of a worker's identity


def plain(text: str) -> str:
    """Return the text if it may be part of a name in Temporal; otherwise raise UsageProblem."""
    if not text or not all(sign.isalnum() or sign in "._-" for sign in text) or len(text) > 100:
        shown = text if len(text) <= 100 else f"{text[:20]}…"
        raise UsageProblem(f"{shown!r} can't be a name.", "Use up to 100 letters, digits, '.', '_' and '-'.")
    return text


def flow_queue(protocol: int = PROTOCOL) -> str:
    """Return the queue of all workflows of a protocol version. A worker serves its own version and the one before."""
    return f"rooda-flow-{protocol}"


def pool_queue(pool: str) -> str:
    return f"rooda-pool/{pool}"


def land_queue(pool: str) -> str:
    return f"rooda-land/{pool}"


def own_queue(name: str, mark: str) -> str:
    """Return the queue of one worker process."""
    return f"rooda-worker/{name}/{mark}"


def task_prefix(key: str) -> str:
    return f"rooda-task/{key}/"


def task_workflow(key: str, identity: str) -> str:
    return f"{task_prefix(key)}{identity}"


def account_workflow(digest: str) -> str:
    """Return the name of an account's workflow. It holds only a hash of the account's name, which may be private."""
    return f"rooda-money/account/{digest}"


def batch_workflow(key: str, name: str) -> str:
    return f"rooda-money/batch/{key}/{name}"


def land_workflow(key: str, target: str) -> str:
    return f"rooda-land/{key}/{target}"


def hold_workflow(key: str) -> str:
    return f"rooda-hold/{key}"


def identity(name: str, pool: str, slots: int, mark: str) -> str:
    """Return the identity by which a worker is known to Temporal; `rooda fleet status` reads it."""
    return SEPARATOR.join(("rooda", name, pool, str(slots), mark))


def from_identity(text: str) -> dict[str, str | int]:
    """Return the parts of a worker's identity; {} if the text is not the identity of a rooda worker."""
    parts = text.split(SEPARATOR)
    if len(parts) != 5 or parts[0] != "rooda" or not parts[3].isdecimal():
        return {}
    _, name, pool, slots, mark = parts
    return {"name": name, "pool": pool, "slots": int(slots), "mark": mark, "queue": own_queue(name, mark)}
