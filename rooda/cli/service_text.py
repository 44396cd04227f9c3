"""What a service manager reads: systemd's unit, launchd's property list; and whether a person changed it. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

MARK = "Written by `rooda service install`; sha256 of the rest: "
LABEL = "dev.rooda.resume"
PATIENCE = 90  # seconds in which loops may end their agents and save their states


class Facts(NamedTuple):
    """What a file is made of."""

    command: Sequence[str]
    variables: Mapping[str, str]  # of whoever installs it: where agents are found (PATH), and our files
    environment: str  # a file with keys that a person may write
    log: str  # where launchd puts what is said


def unit(facts: Facts, hashed: Callable[[bytes], str]) -> str:
    """For systemd. Only the main process gets SIGTERM: it passes it on to the loops, and they to their agents."""
    rest = f"""[Unit]
Description=rooda: loops that were cut off go on

[Service]
Type=notify
ExecStart={" ".join(map(_word, facts.command))}
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
    """For launchd."""
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
    """Is it as some install wrote it, be it an older one?"""
    head, mark, tail = text.partition(MARK)
    said, _, rest = tail.partition("\n")
    return bool(mark) and head.count("\n") <= 1 and said.removesuffix(" -->") == hashed(rest.encode())


def _environment(variable: tuple[str, str]) -> str:
    return f"Environment={_word('='.join(variable), command=False)}\n"


def _entry(variable: tuple[str, str]) -> str:
    return f"    <key>{variable[0]}</key>\n    <string>{_xml(variable[1])}</string>\n"


def _word(word: str, command: bool = True) -> str:
    """Quoted; in a command line `$` would be a variable."""
    text = _escaped(word).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text.replace("$", "$$") if command else text}"'


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _xml(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
