"""Keeps a bare copy of a repository. In a leg, only git commands in this copy use the worker's git credentials.

Clones for agents borrow objects from this copy, so rooda never removes an object from it. A worker pushes each turn (an
iteration of a task's loop) from this copy, so that no hook, filter or setting that an agent can write runs with a
credential.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from rooda.base import files, secret_forms
from rooda.errors import RoodaError, UsageProblem
from rooda.fleet.policy import CREDENTIALS
from rooda.fleet.ticket import is_plaintext
from rooda.git import command
from rooda.git.repository import Repo
from rooda.processes import lock
from rooda.processes.capture import TIMED_OUT, Captured

PREFIX = "refs/rooda/task/"
LOCAL = "refs/rooda/fleet/"  # refs of the tasks that were fetched last
MOST_LOCAL = 64  # more would slow down every fetch and push, for which git reads all refs
FIRST_QUIET, LONGEST_QUIET = 15.0, 600.0  # seconds without progress after which a fetch or push is ended
LONGEST = 21_600.0  # seconds of one fetch or push that makes progress
PATIENCE = 3600.0  # seconds to wait for another leg that fetches
MOST_LOOSE = 30  # files in one of the 256 folders of loose objects, at which rooda packs them
MOST_PACKS = 50
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SSH = re.compile(r"(?:[^/@:\s]+@)?[^/:\s-][^/:\s]*:(?!/?/)[^\s]*|(?:[^/@:\s]+@)?\[[0-9a-fA-F:.]+\]:\S+")
_PREFIX = re.compile(r"refs/(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]|\.(?!\.|/|lock/))*/)+")
_LOOSE = re.compile("[0-9a-f]{40,64}\n")
_PLAIN = ("http", "git")
_NETWORK = (  # settings of each fetch and push
    *("-c", "transfer.credentialsInUrl=die", "-c", "push.followTags=false", "-c", "push.gpgSign=false"),
    *("-c", "push.recurseSubmodules=no", "-c", "fetch.recurseSubmodules=no", "-c", "fetch.writeCommitGraph=false"),
)
_GENERAL = ("Could not read from remote repository.", "the remote end hung up unexpectedly")
LONGEST_WORDS = 1_000  # characters of a remote's message
_NO_QUESTIONS = {"SSH_ASKPASS_REQUIRE": "never", "GCM_INTERACTIVE": "never"}
# Further variables that give git, or a program that it starts, a credential. No git command in a clone gets one.
_OF_GIT = ("TEMPORAL_", "GIT_SSH", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_CONFIG_PARAM")


class Unreachable(RoodaError):
    """Raised if a remote does not answer or denies access. Trying again later may help."""


class Object(NamedTuple):
    """A git object as `git cat-file --batch` prints it."""

    id: str
    type: str
    data: bytes


def clone_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment, without credentials, for git commands in a clone that an agent can write to."""
    from rooda.base.secret_forms import looks_secret

    kept = {name: value for name, value in environ.items() if name not in CREDENTIALS and not looks_secret(name)}
    return {name: value for name, value in kept.items() if not name.startswith(_OF_GIT)}


def checked_url(url: str, insecure: bool) -> tuple[str, str]:
    """Return the URL, and the only protocol that git may use for it. A relative path is made absolute.

    Raises UsageProblem for a URL that is not encrypted (unless `insecure`, or on loopback), holds a password, or starts
    a program.
    """
    if secret_forms.hide(url) != url or re.match(r"[A-Za-z0-9+.-]+://[^/@]*:[^/@]*@", url):
        raise UsageProblem("The URL of a git remote holds a password.", "Let git get it from a credential helper.")
    if any(not sign.isprintable() for sign in url) or not url or url.startswith("-"):
        raise UsageProblem(f"{url!r} is not the URL of a git remote.")
    scheme = found[1].lower() if (found := _SCHEME.match(url)) else ""
    if scheme in _PLAIN:
        if not insecure and is_plaintext(url):
            raise UsageProblem(f"{url} is not encrypted.", "Use https or ssh, or set insecure = true in [fleet].")
        return url, scheme
    if scheme in ("https", "ssh", "file"):
        return url, scheme
    if not scheme and "::" not in url.partition("/")[0]:
        if _SSH.fullmatch(url) and not os.path.exists(url):
            return url, "ssh"
        return os.path.abspath(os.path.expanduser(url)), "file"
    raise UsageProblem(f"{url} can't be used as a git remote.", "Use https, ssh, or a path.")


class Mirror:
    """The bare copy of one repository, and the remote that holds the refs of its tasks."""

    def __init__(
        self,
        home: str,
        key: str,
        url: str,
        state: str = "",
        *,
        prefix: str = PREFIX,
        insecure: bool = False,
        environ: Mapping[str, str] | None = None,
        quiet: float = FIRST_QUIET,
    ) -> None:
        """`home`: the fleet's data folder; `key`: name of the copy; `state`: URL of the state remote, if not `url`.

        `quiet`: seconds without progress after which a fetch or push is ended; rooda doubles it for a slow remote.
        Raises UsageProblem for a URL or a prefix that can't be used.
        """
        self.folder = os.path.join(home, "mirrors", key)
        self.url, self._protocol = checked_url(url, insecure)
        self.state, self._state_protocol = checked_url(state or url, insecure)
        prefix = f"{prefix.rstrip('/')}/"
        if not _PREFIX.fullmatch(prefix) or prefix in ("refs/heads/", "refs/tags/"):
            raise UsageProblem(f"ref_prefix = {prefix!r} can't be used.", 'Use another, such as "refs/rooda/task/".')
        self.prefix = prefix
        self.quiet = self._quiet = quiet  # for the next fetch
        self._environ = {**(os.environ if environ is None else environ), **_NO_QUESTIONS}
        self.repo = Repo(self.folder, self.folder, "", self.folder, self.folder, clone_environment(self._environ), True)

    def ref(self, number: int) -> str:
        """Return the name of a task's ref in the state remote."""
        return f"{self.prefix}{number}"

    @property
    def objects(self) -> str:
        return os.path.join(self.folder, "objects")

    def run(self, *args: str, stdin: bytes = b"", borrowed: Sequence[str] = ()) -> Captured:
        """Run a git command that needs no remote, without credentials.

        `borrowed`: folders with further objects.
        """
        env = {**(self.repo.env or {}), **_alternates(borrowed)}
        return command.run([f"--git-dir={self.folder}", *args], self.folder, stdin=stdin, env=env, timeout=600.0)

    def ask(
        self,
        url: str,
        *args: str,
        borrowed: Sequence[str] = (),
        kept: Sequence[int] = (),
        quiet: float,
    ) -> Captured:
        """Run a git command that talks to a remote: the repository's own remote or the state remote.

        If a server hangs or a connection is lost, git itself waits for hours. So `quiet` seconds
        without output, or without progress of a transfer, end the command with capture.TIMED_OUT.
        """
        protocol = self._state_protocol if url == self.state else self._protocol
        words = [*_NETWORK, f"--git-dir={self.folder}", *args]
        env = {**self._environ, **_alternates(borrowed)}
        return command.run(words, self.folder, env=env, timeout=LONGEST, protocols=protocol, kept=kept, quiet=quiet)

    def make(self) -> None:
        """Create the mirror unless it exists."""
        with self._locked():
            self._make()

    def fetch(self, number: int = 0) -> str:
        """Fetch branches, tags and, if `number` is set, that task's ref. Return the ref's commit; "" if there is none.

        Raises Unreachable if a remote does not answer.
        """
        with self._locked() as held:
            self._make()
            self._remove_stale_locks()
            self._tidy()
            left_out = [f"^{self.prefix}*"] if self.prefix.startswith("refs/heads/") else []
            branches = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*", *left_out)
            local = f"{LOCAL}{number % MOST_LOCAL}"
            own = f"+{self.ref(number)}:{local}"
            together = number and self.state == self.url and not left_out
            if not together or not self._fetch(held, self.url, "--prune", *branches, own):
                self._fetch(held, self.url, "--prune", *branches)
                if not number or together or not self._fetch(held, self.state, own):
                    return ""
            return self.commit(local)

    def branch(self, name: str) -> str:
        """Return the commit that a branch of the repository had at the last fetch; "" if there is none."""
        return self.commit(f"refs/remotes/origin/{name}")

    def commit(self, name: str) -> str:
        done = self.run("rev-parse", "--verify", "-q", f"{name}^{{commit}}")
        return files.to_text(done.out).strip() if done.code == 0 else ""

    def has(self, commit: str) -> bool:
        """True if the mirror has this commit, even if its parents and files are missing."""
        return self.run("cat-file", "-e", f"{commit}^{{commit}}").code == 0

    def read(self, names: Sequence[str], borrowed: Sequence[str] = ()) -> list[Object | None]:
        """Return objects named by id or as COMMIT:PATH; None for each that is missing."""
        if not names:
            return []
        done = self.run(
            "cat-file", "--batch", stdin=files.to_bytes("".join(f"{n}\n" for n in names)), borrowed=borrowed
        )
        if done.code:
            raise RoodaError(f"The git objects in {self.folder} can't be read: {command.error_text(done)}")
        return [*_parsed(done.out)]

    def _make(self) -> None:
        if os.path.isdir(self.folder):
            return
        unfinished = f"{self.folder}.new"
        files.remove_tree(unfinished)
        for words in (["init", "-q", "--bare", "--template=", unfinished], *self._settings(unfinished)):
            done = command.run(words, os.path.dirname(self.folder), env=self.repo.env)
            if done.code:
                raise RoodaError(f"{self.folder} can't be created: {command.error_text(done)}")
        files.rename(unfinished, self.folder)

    def _settings(self, folder: str) -> Iterator[list[str]]:
        for key, value in (("gc.auto", "0"), ("gc.pruneExpire", "never"), ("remote.origin.url", self.url)):
            yield [f"--git-dir={folder}", "config", key, value]

    def _fetch(self, held: int, url: str, *words: str) -> bool:
        """Run git fetch; return False if the remote lacks a ref. Raises Unreachable if the fetch fails otherwise."""
        options = ("--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--force")
        flags, specs = [w for w in words if w.startswith("--")], [w for w in words if not w.startswith("--")]
        words = ("fetch", "--progress", *options, *flags, "--", url, *specs)
        done = self.ask(url, *words, kept=(held,), quiet=self._quiet)
        self._quiet = min(2 * self._quiet, LONGEST_QUIET) if done.code == TIMED_OUT else self.quiet
        if done.code and b"couldn't find remote ref" in done.err:
            return False
        if done.code:
            raise Unreachable(f"{url} can't be fetched: {error_of(done)}")
        return True

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Hold the mirror's lock. If this process is killed, its running git commands still hold the lock."""
        home, name = os.path.split(os.path.dirname(self.folder))
        files.make_folder(home)
        files.make_real_folder(home, name, private=True)
        descriptor = lock.hold(f"{self.folder}.lock", PATIENCE)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _remove_stale_locks(self) -> None:
        """Remove the lock files of killed git commands. The caller must hold the mirror's lock."""
        for folder, inner, names in os.walk(self.folder):
            if folder == self.folder:
                inner[:] = [name for name in inner if name in ("refs", "logs", "info")]
            for name in names:
                if name.endswith(".lock"):
                    files.remove(os.path.join(folder, name))

    def _tidy(self) -> None:
        """Pack loose objects, and combine many packs into one. Unreachable objects are kept: clones may borrow them."""
        if len(files.list_folder(os.path.join(self.objects, "17"))) > MOST_LOOSE:
            folders = [os.path.join(self.objects, f"{number:02x}") for number in range(256)]
            names = [f"{each[-2:]}{name}\n" for each in folders for name in files.list_folder(each)]
            loose = files.to_bytes("".join(name for name in names if _LOOSE.fullmatch(name)))
            if self.run("pack-objects", "-q", os.path.join(self.objects, "pack", "pack"), stdin=loose).code == 0:
                self.run("prune-packed", "-q")
        packs = [name for name in files.list_folder(os.path.join(self.objects, "pack")) if name.endswith(".pack")]
        if len(packs) > MOST_PACKS:
            self.run("repack", "-q", "-a", "-d", "-k", "-l")


def error_of(done: Captured) -> str:
    """Return the errors of a git command that talked to a remote, without lines that only report the failure."""
    rows = dict.fromkeys(row.strip() for row in files.to_text(done.err).splitlines())
    found = [row for row in rows if row.startswith(("fatal:", "error:")) and not row.endswith(_GENERAL)]
    shown = "; ".join(row.partition(": ")[2] for row in found) or command.error_text(done)
    return secret_forms.hide("".join(sign if sign.isprintable() else " " for sign in shown)[:LONGEST_WORDS])


def _alternates(folders: Sequence[str]) -> dict[str, str]:
    quoted = ('"' + folder.replace("\\", "\\\\").replace('"', '\\"') + '"' for folder in folders)
    return {"GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(quoted)} if folders else {}


def _parsed(data: bytes) -> Iterator[Object | None]:
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        words = files.to_text(data[at:end]).split(" ")
        at = end + 1
        if len(words) != 3 or not words[2].isdecimal():
            yield None  # "NAME missing"
            continue
        size = int(words[2])
        yield Object(words[0], words[1], data[at : at + size])
        at += size + 1
