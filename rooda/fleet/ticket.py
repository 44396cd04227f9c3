"""Defines the ticket with which a task is submitted to the fleet, and compares the URLs of repositories. Pure."""

import hashlib
import re
from json import dumps
from typing import NamedTuple

from rooda.base import json
from rooda.base.json import Json
from rooda.tasks import model
from rooda.tasks.model import Source, Task

PROTOCOL = 1  # version of tickets and turns; a worker serves this one and the one before
REFS = "refs/rooda/task/"
HEADS = "refs/heads/"
ANYWHERE = "default"  # the pool of workers and tasks for which no pool is named
_PORTS = {"ssh": "22", "https": "443", "http": "80", "git": "9418"}
_URL = re.compile(r"([a-z][a-z0-9+.-]*)://(?:([^/@]*)@)?([^/:]*|\[[^\]]*\])(?::(\d+))?(/.*)?", re.IGNORECASE)
_SHORT = re.compile(r"(?:([^/@:]+)@)?([^/:]+):(?!//)(.*)")  # git@host:path


class Ticket(NamedTuple):
    """A task of the fleet, with its repository and the place of its state. It never changes, and holds no secret."""

    number: int
    identity: str  # identity of the task at its source; random for a typed text
    repository: str  # URL from which workers fetch, and to which they deliver
    state: str  # URL of the repository that keeps the task's ref
    task: Task
    prefix: str = ""  # the workspace's folder in the repository; "" = its top
    ref_prefix: str = REFS
    branch_prefix: str = "rooda"
    pool: str = ANYWHERE
    batch: str = ""
    batch_cost: float = 0.0  # dollars that all tasks of the batch may spend; 0 = no limit
    retries: int = 1
    logs: str = "worker"  # worker: transcripts stay there; git: they are part of the ref
    desk: str = ""  # machine on which the task was added
    rooda: str = ""
    protocol: int = PROTOCOL

    @property
    def ref(self) -> str:
        return f"{self.ref_prefix}{self.number}"

    @property
    def key(self) -> str:
        return key_of(self.state)

    @property
    def workflow(self) -> str:
        return workflow_of(self.key, self.identity)


def encode(ticket: Ticket) -> Json:
    return {**json.encode(ticket), "task": model.encode(ticket.task)}


def decode(data: Json) -> Ticket:
    """Return the ticket from a JSON object. Raises Mismatch if it is invalid or its protocol is not supported."""
    protocol = data.get("protocol")
    if protocol not in (PROTOCOL, PROTOCOL - 1):
        raise json.Mismatch(f"its protocol is {protocol!r}; this rooda serves {PROTOCOL - 1} and {PROTOCOL}")
    task = data.get("task")
    if not isinstance(task, dict):
        raise json.Mismatch("key 'task' is missing")
    return json.decode(Ticket, data)._replace(task=model.decode(task))


def workflow_of(key: str, identity: str) -> str:
    return f"rooda-task/{key}/{identity}"


def identity_of(source: Source, repository: str, typed: str) -> str:
    """Return a task's identity: a hash of its source, so that two imports make one task; without a source, `typed`."""
    if not source.key:
        return typed
    said = f"{key_of(repository)}\0{source.kind}\0{source.place}\0{source.key}"
    mark = hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    issue = source.key.removeprefix("issue:")
    return "-".join(filter(None, (source.kind, issue if issue.isdecimal() else "", mark)))


def key_of(url: str) -> str:
    """Return 12 hex digits that are the same for all forms of a repository's URL."""
    return hashlib.sha256(normalised(url).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def normalised(url: str) -> str:
    """Return host and path of a URL, without scheme, user, default port, `.git` and trailing slashes."""
    found = _parts(url)
    if found is None:
        return _bare(url)
    scheme, _, host, port, path = found
    if scheme == "file":
        return _bare(path)
    shown = f":{port}" if port and port != _PORTS.get(scheme) else ""
    return f"{host.lower()}{shown}/{_bare(path).lstrip('/')}"


def without_password(url: str) -> str:
    """Return the URL without a password or token; the user name of an SSH address stays."""
    found = _URL.fullmatch(url)
    if found is None or found[2] is None:
        return url
    user = found[2].partition(":")[0]
    kept = f"{user}@" if found[1].lower().endswith("ssh") else ""
    return url[: found.start(2)] + kept + url[found.end(2) + 1 :]


def is_plaintext(url: str) -> bool:
    """True if git would send its data to this address unencrypted over a network."""
    found = _URL.fullmatch(url)
    return found is not None and found[1].lower() in ("http", "git") and not _is_loopback(found[3])


def _is_loopback(host: str) -> bool:
    return host.lower().strip("[]") in ("localhost", "::1") or host.startswith("127.")


def _parts(url: str) -> tuple[str, str, str, str, str] | None:
    """Return scheme, user, host, port and path; None for a path on this machine."""
    if found := _URL.fullmatch(url):
        return found[1].lower(), found[2] or "", found[3], found[4] or "", found[5] or ""
    if (found := _SHORT.fullmatch(url)) and not url.startswith(("/", ".")):
        return "ssh", found[1] or "", found[2], "", found[3]
    return None


def _bare(path: str) -> str:
    return path.rstrip("/").removesuffix(".git").rstrip("/")


def to_bytes(ticket: Ticket) -> bytes:
    """Return the content of `ticket.json`."""
    return dumps(encode(ticket), indent=2, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def is_relative(url: str) -> bool:
    """True for a path that is relative to the repository that names it."""
    return _parts(url) is None and not url.startswith(("/", "~"))
