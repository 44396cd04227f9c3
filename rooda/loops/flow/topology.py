"""Reads and checks `.ai-loop/flow.yaml`; reports all errors at once, each with its line and node."""

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from rooda.base import files, workspace_files, yaml
from rooda.errors import ConfigProblem
from rooda.loops.flow.model import COMPOSITE, DIRECT, FLOW_FILE, LOOP, Node, Sensor, chain
from rooda.settings.types import did_you_mean, is_near, shown

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
SENSOR = re.compile(r"[^\x00-\x1f\x7f,:/\[\]]+")
OUTPUT = "{output-path}"  # a placeholder of sensors and actuators
DEEPEST = 60  # most nested nodes
NODE_KEYS = ("id", "type", "controller", "actuator", "sensors", "termination")
ACTUATOR_KEYS = {DIRECT: ("strategy", "agent"), COMPOSITE: ("strategy", "child")}
FIRST = "Run `rooda flow setup` first."
Path = tuple[str | int, ...]


class Topology(NamedTuple):
    """A checked flow, with the hash of flow.yaml and the warnings about it."""

    root: Node
    sha256: str
    warnings: tuple[str, ...] = ()


def load(project: str) -> Topology:
    """Read the project's flow.yaml; raise ConfigProblem with all its errors."""
    path = os.path.join(project, FLOW_FILE)
    try:
        data = workspace_files.read(project, path)
        document = yaml.read(data.decode().removeprefix("\ufeff"))
    except FileNotFoundError:
        raise ConfigProblem(f"There is no {FLOW_FILE} here. {FIRST}") from None
    except OSError as problem:
        raise ConfigProblem(f"{FLOW_FILE} can't be read: {problem.strerror}", FIRST) from None
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise ConfigProblem(f"{FLOW_FILE}:{line}: this line is not UTF-8 text") from None
    reader = _Reader(project, document.lines)
    for fault in document.faults:
        reader.faults.append((fault.line, f"{FLOW_FILE}:{fault.line}: {fault.text}"))
    root = reader.document(document.value) if document.value is not None or not document.faults else None
    if reader.faults or root is None:
        raise ConfigProblem("\n".join(text for _, text in sorted(reader.faults)), "Nothing was started.")
    return Topology(root, files.sha256(data), tuple(reader.warnings))


def require_outputs(project: str, root: Node, native: bool) -> None:
    """Raise ConfigProblem if an agent file doesn't name the file to write.

    `native`: rooda runs the sensors itself, so their agent files are not checked.
    """
    found = []
    for node in chain(root):
        sensors = [] if native else [("sensor", sensor.path) for sensor in node.sensors]
        for what, path in [*sensors, *([("actuator.agent", node.agent)] if node.agent else [])]:
            if OUTPUT not in workspace_files.text(project, path):
                found.append(f"{node.path}: {what}: {path} has no {OUTPUT}, the file that its agent writes")
    if found:
        raise ConfigProblem("\n".join(dict.fromkeys(found)), f'Add this sentence to the file: "Then write {OUTPUT}."')


class _Reader:
    """Builds the nodes from the parsed document and collects all errors and warnings."""

    def __init__(self, project: str, lines: Mapping[Path, int]) -> None:
        self._project, self._lines = project, lines
        self.faults: list[tuple[int, str]] = []
        self.warnings: list[str] = []

    def document(self, value: Any) -> Node | None:
        if not isinstance(value, dict):
            self._fault((), "", f"must be a map with `version` and `flow`, got {_kind(value)}")
            return None
        self._unknown(value, (), "", ("version", "defaults", "flow"))
        if type(value.get("version")) is not int or value["version"] != 1:
            self._fault(("version",), "", f"version must be 1, got {_kind(value.get('version'))}")
        default = self._defaults(value.get("defaults"))
        if not isinstance(value.get("flow"), dict):
            self._fault(
                ("flow",), "", f"flow must be a map that describes the root node, got {_kind(value.get('flow'))}"
            )
            return None
        return self._node(value["flow"], ("flow",), "", default)

    def _defaults(self, value: Any) -> Any:
        """Return the default iteration limit; None if there is none."""
        if value is None:
            return None
        inner = value.get("termination") if isinstance(value, dict) else value
        if inner is None and isinstance(value, dict):
            return None
        if not isinstance(inner, dict):
            self._fault(("defaults",), "", f"defaults.termination must be a map, got {_kind(inner)}")
            return None
        self._unknown(value, ("defaults",), "", ("termination",), "defaults.")
        self._unknown(inner, ("defaults", "termination"), "", ("max_iterations", "on_error"), "defaults.termination.")
        if (rule := inner.get("on_error", "fail-fast")) != "fail-fast":
            self._fault(("defaults", "termination", "on_error"), "", f"on_error must be fail-fast, got {_kind(rule)}")
        return inner.get("max_iterations")

    def _node(self, value: dict[str, Any], at: Path, above: str, default: Any) -> Node:
        name = value.get("id")
        good = isinstance(name, str) and ID.fullmatch(name) is not None
        shown_as = name if isinstance(name, str) and name.strip() and name.isprintable() else "?"
        path = f"{above}/{shown_as}".lstrip("/")
        if not good:
            rule = "letters, digits, '.', '_', '-', at most 64, and begins with a letter or digit"
            self._fault((*at, "id"), path, f"id must be made of {rule}, got {_kind(name)}")
        elif name in above.split("/"):
            self._warn((*at, "id"), path, f"the id {name!r} is used at two depths")
            if name == "root":
                self._fault((*at, "id"), path, "a node inside `root` can't be called `root` too")
        self._unknown(value, at, path, NODE_KEYS)
        if value.get("type") != "loop":
            self._fault((*at, "type"), path, f"type must be loop, got {_kind(value.get('type'))}")
        node = Node(
            id=str(name),
            path=path,
            controller=self._file(value.get("controller"), (*at, "controller"), path, "controller"),
            strategy="",
            max_iterations=self._limit(value.get("termination"), at, path, default),
            sensors=self._sensors(value.get("sensors"), (*at, "sensors"), path),
        )
        return self._actuator(value.get("actuator"), (*at, "actuator"), node, default)

    def _limit(self, value: Any, at: Path, path: str, default: Any) -> int:
        if value is not None and not isinstance(value, dict):
            self._fault((*at, "termination"), path, f"termination must be a map, got {_kind(value)}")
            return 1
        self._unknown(value or {}, (*at, "termination"), path, ("max_iterations",), "termination.")
        own = (value or {}).get("max_iterations")
        found = default if own is None else own
        where = (*at, "termination", "max_iterations")
        if type(found) is not int or found < 1:
            self._fault(where, path, f"termination.max_iterations must be a whole number >= 1, got {_kind(found)}")
            return 1
        if found == 1:
            text = "max_iterations is 1: the limit is checked before the controller runs, so this node only measures"
            self._warn(where, path, text)
        return found

    def _sensors(self, value: Any, at: Path, path: str) -> tuple[Sensor, ...]:
        if value is None:
            return ()
        if not isinstance(value, list):
            self._fault(at, path, f"sensors must be a list of agent files, got {_kind(value)}")
            return ()
        found: list[Sensor] = []
        for number, each in enumerate(value):
            file = self._file(each, (*at, number), path, "sensor")
            name = os.path.basename(file).rpartition(".")[0].removeprefix("loop-sensor-") or os.path.basename(file)
            if file and not SENSOR.fullmatch(name):
                self._fault(
                    (*at, number),
                    path,
                    f"a sensor can't be called {name!r}: no ',', ':' or brackets in its file's name",
                )
            if file and name in [sensor.name for sensor in found]:
                self._fault((*at, number), path, f"two sensors are called {name!r}")
            found.append(Sensor(name, file))
        return tuple(found)

    def _actuator(self, value: Any, at: Path, node: Node, default: Any) -> Node:
        if not isinstance(value, dict):
            self._fault(at, node.path, f"actuator must be a map with a strategy, got {_kind(value)}")
            return node
        strategy = value.get("strategy")
        if not isinstance(strategy, str) or strategy not in (*ACTUATOR_KEYS, LOOP):
            what = f"actuator.strategy must be direct, composite or loop, got {_kind(strategy)}"
            self._fault((*at, "strategy"), node.path, what)
            strategy = COMPOSITE if isinstance(value.get("child"), dict) else DIRECT if "agent" in value else ""
        if strategy in ACTUATOR_KEYS:
            self._unknown(value, at, node.path, ACTUATOR_KEYS[strategy], "actuator.")
        if strategy == DIRECT:
            agent = self._file(value.get("agent"), (*at, "agent"), node.path, "actuator.agent")
            return node._replace(strategy=DIRECT, agent=agent)
        if strategy == LOOP:
            for text in loop_faults(value):
                self._fault((*at, "loop"), node.path, text)
            return node._replace(strategy=LOOP, loop=tuple(sorted(value.items())))
        return self._composite(value.get("child"), at, node, default) if strategy == COMPOSITE else node

    def _composite(self, child: Any, at: Path, node: Node, default: Any) -> Node:
        if not isinstance(child, dict):
            self._fault((*at, "child"), node.path, f"actuator.child must be a node, got {_kind(child)}")
            return node
        if node.depth + 1 >= DEEPEST:
            self._fault((*at, "child"), node.path, f"more than {DEEPEST} nodes inside one another")
            return node
        return node._replace(strategy=COMPOSITE, child=self._node(child, (*at, "child"), node.path, default))

    def _file(self, value: Any, at: Path, path: str, what: str) -> str:
        """Return the path of an agent file; report an error unless it exists inside the project."""
        if not isinstance(value, str) or not value.strip():
            self._fault(at, path, f"{what} must be the path of an agent file, got {_kind(value)}")
            return ""
        full = os.path.normpath(os.path.join(self._project, value))
        if os.path.isabs(value) or not full.startswith(os.path.join(self._project, "")):
            self._fault(at, path, f"{what}: {value} is not inside the project")
        elif not os.path.isfile(full):
            self._fault(at, path, f"{what}: there is no file {value}")
        elif _is_empty(full, what):
            self._fault(at, path, f"{what}: {value} is empty")
        return os.path.normpath(value)

    def _unknown(self, value: dict[str, Any], at: Path, path: str, keys: tuple[str, ...], what: str = "") -> None:
        for key in value:
            if key not in keys:
                report = self._fault if is_near(str(key), keys) else self._warn  # rooda ignores a misspelled key
                report((*at, key), path, f"unknown key {what}{key}{did_you_mean(key, keys)}")

    def _place(self, at: Path) -> int:
        while at and at not in self._lines:
            at = at[:-1]
        return self._lines.get(at, 1)

    def _fault(self, at: Path, path: str, text: str) -> None:
        line = self._place(at)
        self.faults.append((line, _sentence(line, path, text)))

    def _warn(self, at: Path, path: str, text: str) -> None:
        self.warnings.append(_sentence(self._place(at), path, text))


def _is_empty(path: str, what: str) -> bool:
    """True if an agent file has no instructions; a sensor's instructions may be in its front matter alone."""
    try:
        text = files.to_text(files.read_ours(path))
    except OSError:
        return False  # unreadable: the call reports it
    return not (text if what == "sensor" else yaml.front_matter(text)[1]).strip()


def _sentence(line: int, path: str, text: str) -> str:
    return f"{FLOW_FILE}:{line}: {path}: {text}" if path else f"{FLOW_FILE}:{line}: {text}"


def _kind(value: Any) -> str:
    return (
        {"a table": "a map", "an array": "a list"}.get(said := shown(value), said) if value is not None else "nothing"
    )


# An actuator that is a loop of another kind: `actuator: {strategy: loop, loop: ooda, …}`.
KEYS: dict[str, dict[str, type]] = {
    "ooda": {"procedure": str, "max_iterations": int},
    "reflex": {"rules": str, "template": str, "max_iterations": int},
    "goal": {"max_iterations": int},
}
COMMON = ("strategy", "loop")


def loop_faults(value: dict[str, Any]) -> list[str]:
    """Return the errors of an actuator that is a loop; each continues a message that starts with the node's path."""
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
