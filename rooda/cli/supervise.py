"""`rooda resume --all --wait`: a service's main process, which lives as long as its loops and ends them."""

from rooda.base.json import Json
from rooda.cli.resume_all import CutOff, resume_all
from rooda.loops import registry
from rooda.processes import guardian, linux, lock, signals, table
from rooda.processes.signals import Signals
from rooda.processes.systemd import herald
from rooda.settings.where import Where

LOOK = 60.0  # seconds; where orphans come to us, an end wakes us before
ELSEWHERE = 2.0


def supervised(here: Where) -> int:
    """Until the last has ended. A signal is passed on to each, and waited for: their states are saved by then."""
    manager, told = herald(), 0
    pause = LOOK if linux.adopt_orphans() else ELSEWHERE
    with Signals() as heard:
        code, going = resume_all(here)
        owners = [(each.loop.name, _owner(each)) for each in going]
        manager.say(READY=1, STATUS=f"loops: {_names(owners)}" if owners else "nothing was cut off")
        while owners := [each for each in owners if table.is_alive(each[1])]:
            if heard.count > told:
                told = heard.count
                manager.say(STOPPING=1, STATUS=f"ending {_names(owners)}")
                for _, owner in owners:
                    signals.terminate(owner)
            heard.wait(ELSEWHERE if told else pause)
            guardian.childless()
    return code


def _names(owners: list[tuple[str, Json]]) -> str:
    return ", ".join(name for name, _ in owners)


def _owner(each: CutOff) -> Json:
    """Which process it is, as its lock says."""
    path = each.loop.lock or registry.tenant(each.loop.kind).locks(each.workspace).get(each.loop.name, "")
    return lock.owner(path) if path else {}
