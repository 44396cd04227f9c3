"""Why a flow went on, ended or stopped, node by node: its own makers for `rooda why`. Pure."""

from collections.abc import Iterator

from rooda.base.json import Json
from rooda.loops.flow.flow_lines import MAKERS as LINES
from rooda.views.why import Maker, Reason, Seen, limits, stopped

MET = "target-met"


def _began(record: Json, seen: Seen) -> Iterator[Reason]:
    nodes = " > ".join(record["nodes"])
    where = f"; at {record['active']}{record['step'] and ' (' + record['step'] + ')'}" if record["step"] else ""
    yield Reason(record["ts"], 0, "began", f"nodes: {nodes}; on branch {record['branch']}{where}")


def _entered(record: Json, seen: Seen) -> Iterator[Reason]:
    rule = _of_node(record, f"the node begins, at most {record['max_iterations']} iterations")
    yield Reason(record["ts"], record["display"], "began", rule)


def _turned(record: Json, seen: Seen) -> Iterator[Reason]:
    """A boundary within the node; its end has an event of its own."""
    if record["status"] != "running":
        return
    if record["number"]:
        rule = f"its controller did not say that the target is met; {record['summary']}"
        evidence = _decision(record, seen)
    elif set(record["sensors"].values()) <= {"pending"}:
        rule, evidence = "its sensors are measured after the first cycle", ("", "")
    else:
        rule, evidence = "measured", _measured(record, seen)
    yield Reason(record["ts"], record["display"], "went on", _of_node(record, rule), *evidence)


def _done(record: Json, seen: Seen) -> Iterator[Reason]:
    """By its controller's word, by the limit before the controller is asked, or by a mishap."""
    error = record["reason"] == "error"
    if record["reason"] == MET:
        rule, evidence = "its controller said that the target is met", _decision(record, seen)
    elif error:
        rule, evidence = f"a step came to nothing: {record.get('error') or record['action']}", seen.transcript()
    else:
        rule, evidence = f"{record['action']}, before its controller was asked", _measured(record, seen)
    rule = _of_node(record, f"{record['status']}: {rule}")
    yield Reason(record["ts"], record["display"], "failed" if error else "ended", rule, *evidence)


def _decision(record: Json, seen: Seen) -> tuple[str, str]:
    """The line of the controller's file that says it."""
    return next(iter(seen.written.get((record["node"], "controller"), ())), ""), f"{MET}:"


def _measured(record: Json, seen: Seen) -> tuple[str, str]:
    """The first sensor that fails, else the first one."""
    paths = seen.written.get((record["node"], "sensor"), [])
    found = dict(zip(record["sensors"], paths, strict=False))
    failing = [path for name, path in found.items() if record["sensors"][name] == "fail"]
    return next(iter([*failing, *paths]), ""), "status:"


def _told(record: Json, seen: Seen) -> Iterator[Reason]:
    """Mostly of the call that has just ended: a contract that was broken, a file that was put back."""
    yield Reason(record["ts"], record["display"], "told", record["text"], *seen.transcript())


def _ended(record: Json, seen: Seen) -> Iterator[Reason]:
    said = LINES["run.ended"](record)[0].said
    rule = limits(record) if record["reason"] == "limit" else _RULES.get(record["reason"], "")
    text = "; ".join(filter(None, (said, stopped(record), rule)))
    last = seen.turn.get("node.ended", {})
    evidence = _decision(last, seen) if last and record["reason"] == MET else ("", "")
    evidence = seen.transcript() if record["reason"] == "error" else evidence
    yield Reason(record["ts"], 0, "ended", f"{text} (exit {record['exit_code']})", *evidence)


def _of_node(record: Json, rule: str) -> str:
    sensors = ", ".join(f"{name}: {status}" for name, status in record["sensors"].items())
    return f"{record['node']} {record['label']}: {rule}" + (f"; {sensors}" if sensors else "")


_RULES = {
    MET: "the controller of the top node decides",
    "max-iterations": "the limit of the top node is tested before its controller is asked",
    "error": "an error of a node ends the flow",
    "signal": "a signal ends the loop; the state is kept",
}
MAKERS: dict[str, Maker] = {
    "run.started": _began,
    "run.resumed": _began,
    "node.entered": _entered,
    "node.boundary": _turned,
    "node.ended": _done,
    "problem": _told,
    "run.ended": _ended,
}
