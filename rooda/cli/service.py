"""`rooda service install|uninstall|status`: resumes loops after a reboot or login, with systemd or launchd."""

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import click

from rooda.base import files, signing
from rooda.base.json import Json
from rooda.cli.resume import CutOff, resume_all
from rooda.errors import OK, RoodaError, Undecided
from rooda.loops import registry
from rooda.loops.options import DASH_H
from rooda.processes import capture, detach, guardian, linux, lock, signals, table
from rooda.processes.signals import Signals
from rooda.processes.systemd import notifier
from rooda.run import workspaces
from rooda.settings.where import FILE, Where

# `rooda resume --all --wait`: the service's main process, which runs as long as its loops and can end them
POLL = 60.0  # seconds; used if rooda adopts orphans, because then the end of a loop ends the wait
POLL_OFTEN = 2.0  # seconds; used otherwise, and while loops are being ended


def supervised(here: Where) -> int:
    """Resume all loops that were cut off, and wait until they end. A signal terminates them; they save their state."""
    manager, passed_on = notifier(), 0
    pause = POLL if linux.adopt_orphans() else POLL_OFTEN
    with Signals() as heard:
        code, going = resume_all(here)
        owners = [(each.loop.name, _owner(each)) for each in going]
        manager.send(READY=1, STATUS=f"loops: {_names(owners)}" if owners else "nothing was cut off")
        while owners := [each for each in owners if table.is_alive(each[1])]:
            if heard.count > passed_on:
                passed_on = heard.count
                manager.send(STOPPING=1, STATUS=f"ending {_names(owners)}")
                for _, owner in owners:
                    signals.terminate(owner)
            heard.wait(POLL_OFTEN if passed_on else pause)
            guardian.childless()
    return code


def _names(owners: list[tuple[str, Json]]) -> str:
    return ", ".join(name for name, _ in owners)


def _owner(each: CutOff) -> Json:
    """Return the process that holds the loop's lock."""
    path = each.loop.lock or registry.kind(each.loop.kind).locks(each.workspace).get(each.loop.name, "")
    return lock.owner(path) if path else {}


# The files of systemd and launchd
MARK = "Written by `rooda service install`; sha256 of the rest: "
LABEL = "dev.rooda.resume"
PATIENCE = 90  # seconds for loops to end their agents and save their states


class Facts(NamedTuple):
    """Values to write into the service file."""

    command: Sequence[str]
    variables: Mapping[str, str]  # from the installing user's environment: PATH, and the locations of rooda's files
    environment: str  # a file in which the user may set secrets
    log: str  # file for the output under launchd


def unit(facts: Facts, hashed: Callable[[bytes], str]) -> str:
    """Return the systemd unit. Only the main process gets SIGTERM; it signals the loops, which signal their agents."""
    rest = f"""[Unit]
Description=rooda: resume loops that were cut off

[Service]
Type=notify
ExecStart={" ".join(map(_quoted, facts.command))}
{"".join(map(_environment, facts.variables.items()))}EnvironmentFile=-{_escaped(facts.environment)}
KillMode=mixed
TimeoutStartSec=infinity
TimeoutStopSec={PATIENCE}
OOMPolicy=continue
Restart=on-abnormal

[Install]
WantedBy=default.target
"""
    return f"# {MARK}{hashed(rest.encode())}\n{rest}"


def plist(facts: Facts, hashed: Callable[[bytes], str]) -> str:
    """Return the property list for launchd."""
    words = "".join(f"    <string>{_xml(word)}</string>\n" for word in facts.command)
    rest = f"""<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{LABEL}</string>
  <key>ProgramArguments</key>
  <array>
{words}  </array>
  <key>EnvironmentVariables</key>
  <dict>
{"".join(map(_entry, facts.variables.items()))}  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>ExitTimeOut</key>
  <integer>{PATIENCE}</integer>
  <key>StandardOutPath</key>
  <string>{_xml(facts.log)}</string>
  <key>StandardErrorPath</key>
  <string>{_xml(facts.log)}</string>
</dict>
</plist>
"""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<!-- {MARK}{hashed(rest.encode())} -->\n{rest}'


def untouched(text: str, hashed: Callable[[bytes], str]) -> bool:
    """True if the file is unchanged since some version of `rooda service install` wrote it."""
    head, mark, tail = text.partition(MARK)
    said, _, rest = tail.partition("\n")
    return bool(mark) and head.count("\n") <= 1 and said.removesuffix(" -->") == hashed(rest.encode())


def _environment(variable: tuple[str, str]) -> str:
    return f"Environment={_quoted('='.join(variable), command=False)}\n"


def _entry(variable: tuple[str, str]) -> str:
    return f"    <key>{variable[0]}</key>\n    <string>{_xml(variable[1])}</string>\n"


def _quoted(word: str, command: bool = True) -> str:
    """Quote a word for a systemd unit; in commands, also escape `$`, which would begin a variable."""
    text = _escaped(word).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text.replace("$", "$$") if command else text}"'


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _xml(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


UNIT = "rooda.service"
PLACES = (
    *("ROODA_CONFIG_HOME", "ROODA_STATE_HOME", "ROODA_CACHE_HOME", signing.VARIABLE),
    *("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"),
)
_force = click.option("--force", is_flag=True, help="Replace or remove the file even if it was edited.")


@click.group(context_settings=DASH_H, short_help="Resume loops after a reboot: install, uninstall, status.")
def service() -> None:
    """Manage a service of your user, not of the system, that runs `rooda resume --all` at boot or login.

    It resumes every run that a crash, a reboot or a closed terminal cut off, but none that you stopped.
    """


class Manager(NamedTuple):
    """The service manager of this system: its file for rooda, and the commands to enable and query it."""

    path: str
    text: str
    enable: tuple[tuple[str, ...], ...]
    disable: tuple[tuple[str, ...], ...]
    ask: tuple[tuple[str, ...], ...]  # commands that print the state of the service
    hint: str
    dropped: tuple[str, ...] = ()  # PATH folders that the service doesn't search


@service.command(short_help="Write the service file and enable the service.")
@_force
def install(force: bool) -> int:
    """Write the service file and enable the service. Does nothing if it is installed; keeps an edited file."""
    manager = manager_here()
    before = _read(manager.path)
    if before == manager.text:
        click.echo(f"Already installed: {manager.path}")
    else:
        _may_replace(manager.path, before, force)
        _write(manager)
        click.echo(f"Wrote {manager.path}")
    if manager.dropped:
        click.echo(f"Not in its PATH: {', '.join(map(repr, manager.dropped))} (relative, or inside a workspace)")
    _carry_out(manager.enable, "Enabled: it runs `rooda resume --all` from the next start on.", "To enable it, run:")
    click.echo(manager.hint)
    return OK


@service.command(short_help="Disable the service and remove its file.")
@_force
def uninstall(force: bool) -> int:
    """Disable the service and remove the file that `install` wrote. Running loops continue."""
    manager = manager_here()
    before = _read(manager.path)
    if before is None:
        click.echo(f"Not installed: there is no {manager.path}")
        return OK
    _may_replace(manager.path, before, force)
    _carry_out(manager.disable[:1], "Disabled.", "To disable it, run:")
    files.remove(manager.path)
    click.echo(f"Removed {manager.path}")
    _carry_out(manager.disable[1:], "", "")
    return OK


@service.command(short_help="Show whether the service is installed, enabled and running.")
def status() -> int:
    """Print whether the service file was edited since `install`, and what the service manager reports."""
    manager = manager_here()
    before = _read(manager.path)
    if before is None:
        click.echo("Not installed. Install it with: rooda service install")
        return OK
    current = "" if before == manager.text else " (written by another version, or for another rooda)"
    how = f"as written{current}" if _untouched(before) else "edited by the user"
    click.echo(f"Installed: {manager.path}, {how}")
    for command in manager.ask:
        said = capture.capture(command)
        words = files.to_text(said.out or said.err).strip().splitlines()
        click.echo(f"{' '.join(command)}: {words[0] if words else f'exit {said.code}'}")
    if warning := readable_by_others(environment_file()):
        click.echo(f"WARNING: {warning}", err=True)
    return OK


def environment_file() -> str:
    """Return the path of the file in which the user may set API keys for the service."""
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.abspath(
        os.path.join(os.environ.get("ROODA_CONFIG_HOME") or os.path.join(config, "rooda"), "environment")
    )


def readable_by_others(path: str) -> str:
    """Return a warning if other users can read or change a file that may hold keys; else ""."""
    try:
        mode = os.stat(path).st_mode & 0o777
    except OSError:
        return ""
    return (
        f"{path} has mode {mode:o}, but may hold keys. Correct it: chmod 600 {shlex.quote(path)}"
        if mode & 0o077
        else ""
    )


def log_file() -> str:
    """Return the path of the service's output on macOS; systemd has a journal."""
    return os.path.join(_home(), "Library", "Logs", "rooda.log")


def manager_here() -> Manager:
    """Return the commands and files of this machine's service manager."""
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(_home(), ".config")
    command = (*detach.rooda_command(), "resume", "--all", "--wait")
    path, dropped = safe_path(os.environ.get("PATH", os.defpath), _workspaces())
    facts = Facts(command, {"PATH": path, **_places()}, environment_file(), log_file())
    if sys.platform == "darwin":
        manager = _launchd(os.path.join(_home(), "Library", "LaunchAgents", f"{LABEL}.plist"), facts)
    else:
        manager = _systemd(os.path.join(config, "systemd", "user", UNIT), facts)
    return manager._replace(dropped=dropped)


def safe_path(path: str, workspaces: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return PATH without the folders that agents could write to, and the folders that were left out.

    Agents could write to folders in a workspace, and to those with a relative path.
    """
    folders = path.split(os.pathsep)
    kept = [each for each in folders if os.path.isabs(each) and not _inside(each, workspaces)]
    dropped = [each for each in folders if each not in kept]
    return os.pathsep.join(kept) or os.defpath, tuple(dict.fromkeys(dropped))


def _inside(path: str, workspaces: Sequence[str]) -> bool:
    return any(f"{os.path.realpath(path)}/".startswith(f"{each}/") for each in workspaces)


def _workspaces() -> list[str]:
    """Return this user's workspaces, except any that contains the home folder and so the user's own programs."""
    here, home = os.getcwd(), f"{os.path.realpath(_home())}/"
    current = [here] if any(os.path.lexists(os.path.join(here, name)) for name in (".git", ".rooda", FILE)) else []
    found = map(os.path.realpath, [*workspaces.known(), *current])
    return [each for each in found if not home.startswith(f"{each.rstrip('/')}/")]


def _places() -> dict[str, str]:
    """Return the environment variables that locate rooda's files, because the service may be started without them.

    A relative path is made absolute if it is for settings; else it is left out, because rooda ignores it.
    """
    places = {name: os.environ.get(name, "") for name in PLACES}
    return {
        name: os.path.abspath(path) for name, path in places.items() if path and ("CONFIG" in name or path[0] == "/")
    }


def _systemd(path: str, facts: Facts) -> Manager:
    control = ("systemctl", "--user")
    return Manager(
        path,
        unit(facts, files.sha256),
        ((*control, "daemon-reload"), (*control, "enable", UNIT)),
        ((*control, "disable", UNIT), (*control, "daemon-reload")),
        ((*control, "is-enabled", UNIT), (*control, "is-active", UNIT)),
        "It starts when you log in. To start it at boot, and keep it after logout: loginctl enable-linger\n"
        f"Keys that agents need but a login's environment lacks: set them in {facts.environment} (NAME=value lines)",
    )


def _launchd(path: str, facts: Facts) -> Manager:
    domain = f"gui/{os.getuid()}"
    return Manager(
        path,
        plist(facts, files.sha256),
        (("launchctl", "enable", f"{domain}/{LABEL}"),),
        (("launchctl", "bootout", f"{domain}/{LABEL}"),),
        (("launchctl", "print", f"{domain}/{LABEL}"),),
        "It starts when you log in.",
    )


def _home() -> str:
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        raise RoodaError("The home folder for the service is unknown.", "Set HOME.")
    return home


def _read(path: str) -> str | None:
    try:
        return files.text(path)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise RoodaError(f"{path} can't be read: {problem.strerror}") from None


def _write(manager: Manager) -> None:
    try:
        files.make_folder(os.path.dirname(manager.path))
        files.replace(manager.path, files.to_bytes(manager.text), 0o644)
    except OSError as problem:
        raise RoodaError(f"{problem.filename or manager.path} can't be written: {problem.strerror}") from None


def _untouched(text: str) -> bool:
    return untouched(text, files.sha256)


def _may_replace(path: str, before: str | None, force: bool) -> None:
    if before is not None and not force and not _untouched(before):
        what = f"{path} has changed since `rooda service install` wrote it; nothing was done."
        raise Undecided(what, "To do it anyway, add --force.")


def _carry_out(commands: tuple[tuple[str, ...], ...], done: str, by_hand: str) -> None:
    """Run the manager's commands. If one fails, print `by_hand`, that command and the following ones."""
    for place, command in enumerate(commands):
        said = capture.capture(command)
        if said.code:
            why = files.to_text(said.err).strip().splitlines()
            if by_hand:
                rest = " && ".join(" ".join(each) for each in commands[place:])
                click.echo(f"{command[0]} says: {why[0] if why else f'exit {said.code}'}\n{by_hand} {rest}")
            return
    if done:
        click.echo(done)
