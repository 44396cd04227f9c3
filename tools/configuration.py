"""Generates docs/configuration.md from rooda/settings/schema.py. Run: python tools/configuration.py

With --print it prints the page instead; a test compares the output with the file.
"""

import os
import sys
from collections.abc import Iterator, Mapping

from making import made

from rooda.loops import registry
from rooda.settings.schema import (
    AGENT,
    AGENT_TEST,
    FLEET,
    FLEET_WORKER,
    LOOP,
    OLDER,
    PRICE,
    PROCEDURE,
    RESERVED,
    SANDBOX,
    SHARED,
    TASKS,
    TELEMETRY,
    TRUST,
    WORKTREE,
    variable_of,
)
from rooda.settings.setup import HOOKS
from rooda.settings.toml import toml_value
from rooda.settings.types import FRAGMENT, GATE, Key

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "configuration.md")
GROUPS = ("agent", "budget", "call", "way", "screen")  # in the order in which the page lists shared keys

HEAD = """\
<!-- Generated from rooda/settings/schema.py by: python tools/configuration.py -->

# Settings

Settings are TOML. `rooda init` writes a commented `rooda.toml`, `rooda config path` lists the files that are read, and
`rooda config show --origin` prints every setting in force with its origin, `rooda config show agents` all agents, those
not in use included. `rooda config schema` prints a JSON Schema for editors that complete and check TOML. For Taplo, and
Even Better TOML in VS Code, write it to a file with `rooda config schema > rooda.schema.json`, and make
`#:schema ./rooda.schema.json` the first line of `rooda.toml`.

A `rooda-config.yml`, the YAML of an older program of the same name, is not read. A command that finds one without a
`rooda.toml` in its folder says so; `rooda init --from rooda-config.yml` converts it and lists what it leaves out.

## Where they come from

Strongest first:

1. options of the command line: `--max-iterations 3`
2. the environment: `ROODA_LOOP_<KEY>` sets a key of `[loop]`
3. the workspace's file: the nearest `rooda.toml` from the workspace up to the repository's root, or `--config FILE`;
   its folder is the workspace, unless `-C DIR` names another or the current directory has an unfinished run
4. the user's file: `rooda.toml` in `$ROODA_CONFIG_HOME`, else in `$XDG_CONFIG_HOME/rooda`, else in `~/.config/rooda`
5. the defaults of rooda: `config/rooda.toml` and `config/procedures.toml`

Tables are merged key by key; every other value is replaced. Two lines in `[procedures.build]` change two settings and
keep the others. For one procedure the order is: options, your `[procedures.NAME]`, your `[loop]`, the default
`[procedures.NAME]`, the default `[loop]`. Your settings beat the defaults, and a specific table beats the general one.
The environment counts as the strongest of your `[loop]` tables.

For an invalid value rooda reports file, line, key and the expected value, and starts nothing (exit 2). An unknown key
is a warning. One that is within two edits of a known key is a typing error: a start refuses it (exit 2); `doctor`,
`config show`, `status`, `stop` and `resume --all` only warn. A path in a file is relative to that file, a path in an
option to the workspace. The program of an agent's
command is such a path if it contains a `/`; if it does not exist beside the file, rooda looks in the workspace.

### Files that count

A file of a workspace may have been written by somebody else, so rooda reads it only if it is a regular file and no
link that leads out of the repository (without a repository: out of the workspace). Settings, flows, rules and files
of other tools have at most 1 MB, files for a prompt 64 MB. Anything else is an error (exit 2) that names the file.
That holds for AGENTS.md too: one that can't be read does not mean that there are no gates. Your own `rooda.toml` may
be a link to anywhere, and so may a file that settings or options name by its own path outside the repository.

Settings, AGENTS.md, `.rooda`, `.git` and every folder from the workspace up to the repository must belong to you or
to root. Otherwise rooda refuses them in git's words (`detected dubious ownership`, exit 2), as git does. Accepted is
what git accepts, `git config --global --add safe.directory DIR` (`*` for every folder; system settings count too),
what `[trust] folders` names, and everything with `ROODA_TRUST=all`. For root, files of the user who called `sudo`
(`SUDO_UID`) count as its own. In a container that runs as root over a checkout of another user, name the checkout
once: `git config --system --add safe.directory '*'`. rooda never looks for settings above a folder that all users may
write, such as `/tmp`.

## `[loop]`: every procedure

Under `[procedures.NAME]` the same keys apply to that procedure only. The environment variable of a key is
`ROODA_LOOP_` and the key in capitals: `{variable}`. It has several quality gates as one command per line.

"""

PROCEDURES = """
## `[procedures.NAME]`: a procedure

NAME consists of letters, digits, `.`, `_` and `-`, and begins with a letter or a digit. All keys of `[loop]` are
valid here too. [procedures.md](procedures.md) describes the built-in procedures and how to change them.

"""

FRAGMENTS = """
A phase is a text, the name of a file, `builtin:NAME` for a built-in fragment, a table as below, or an array of these.
The parts are joined by one empty line. `{{name}}` in a part is replaced by the parameter of that name; a missing
parameter is an error, and `\\{{` means a literal `{{`. A table has exactly one of `content`, `path` and
`command`.

"""

GATES = """
## Quality gates

`quality_gates` is an array. Each entry is a command, or a table:

"""

GATES_MORE = """
```toml
[loop]
quality_gates = ["ruff check .", { name = "tests", command = "pytest -q", timeout = 600 }]
```

If no file sets the key, the gates are those of the workspace's AGENTS.md: [how they are
read](procedures.md#quality-gates). `quality_gates = []` and `--no-gates` mean no gates. Of the built-in procedures
only `build` has gates, since they judge code; `--gates` turns the project's on for one run of another, and
`quality_gates` in your own `[procedures.NAME]` for all its runs.

"""

AGENTS = """
## `[agents.NAME]`: an agent

Select it with `--agent NAME`, `agent = "NAME"` or `ROODA_LOOP_AGENT`; [agents.md](agents.md) has the details.

"""

AGENT_TESTS = """
`[agents.NAME.test]`: how `rooda agents test NAME` points the CLI at its model server

"""

PRICES = """
## `[prices."MODEL"]`: what a model costs

Dollars per million tokens, for agents that report tokens but no cost; [agents.md](agents.md) has the details.

"""

REST = """
## `[reflex]`, `[flow]`, `[goal]`

Each has the keys of `[loop]` that agent calls need ({shared}), which beat those of `[loop]`, and its own keys:

{kinds}
## Other tables

| table | what it holds |
|---|---|
| `[models]` | `word = "name"`: the name that the agent gets for this word; other words pass unchanged |
| `[budget]` | `unknown_call = 0.50`: dollars that count for a call whose cost is unknown ([money.md](money.md)) |
| `[ai_cmd_aliases]` | `name = "command"`: the older form of `[agents.NAME]`, with only a command |

## `[hooks]`

A hook is a shell command, or a table with `command` or `url`, and `timeout` (seconds, default 10). It gets the event
([events.md](events.md)) on stdin or as the body of a POST, with the fields `moment`, `workspace`, `host`, `branch`,
`cost` (of the whole run; null if unknown) and `text`, a sentence for people. With `format`, an address gets that one:
`text` and `ntfy` as plain text, `slack` and `discord` as their messages. The address begins with
`https://`; `http://` is for this machine (`localhost`, `127.…`, `[::1]`), and with `insecure = true` for others.
Redirects are not followed. rooda reports a hook that fails, and continues.

{hooks}
## `[worktree]`: what `--worktree` prepares

{worktree}

## `[tasks]`: tasks and their landing

{tasks}
`copy` and `link` name paths of the workspace; only your own settings can name others. `link` is for caches: a virtual
environment with an editable install of this project is refused, since its tests would run the wrong code.

## `[sandbox]`: what agents and gates may see, change and reach

`sandbox` in `[loop]` turns it on; [sandbox.md](sandbox.md) says what it does. Lists of your settings and of the
workspace's add up. Of the other values the stricter one counts, so a workspace can only tighten yours.

{sandbox}
## `[fleet]`: the same tasks on many machines

Only your own settings (`~/.config/rooda/rooda.toml`) can have these tables; those of a workspace are ignored with a
warning. TLS and API keys come from Temporal's own settings.

{fleet}
`[fleet.worker]`: what `rooda worker` runs on this machine

{fleet_worker}
## `[telemetry]`: export with OpenTelemetry

Needs `pip install 'rooda[otel]'`; [telemetry.md](telemetry.md) says what is sent.

{telemetry}
## `[trust]`

Only your own settings (`~/.config/rooda/rooda.toml`) can have this table.

{trust}
Old names are accepted with a notice: {older}.

These names are commands or reserved for commands, and can't be procedures:
{reserved}.
"""


def page() -> str:
    rows = [(f"`{key}`", _kind(row), _default(row), _flag(row, key), _what(row)) for key, row in LOOP.items()]
    own = {key: row for key, row in PROCEDURE.items() if key not in LOOP}
    agent = {key: row for key, row in AGENT.items() if row.what}
    older = ", ".join(f"`{old}` for `{new}`" for old, new in OLDER.items())
    return (
        HEAD.replace("{variable}", variable_of("default_iterations"))
        + _table(("key", "value", "default", "flag", "meaning"), rows)
        + PROCEDURES
        + _keys(own)
        + FRAGMENTS
        + _keys(FRAGMENT)
        + GATES
        + _keys(GATE)
        + GATES_MORE.rstrip("\n")
        + "\n"
        + AGENTS
        + _keys(agent)
        + AGENT_TESTS
        + _keys(AGENT_TEST)
        + PRICES
        + _keys(PRICE)
        + REST.format(
            kinds=_kinds(),
            shared=", ".join(f"`{key}`" for key in sorted(SHARED, key=lambda key: GROUPS.index(SHARED[key].group))),
            older=older,
            hooks=_table(("key", "when"), [(f"`{key}`", _what(row)) for key, row in HOOKS.items()]),
            worktree=_keys(WORKTREE),
            tasks=_keys(TASKS),
            sandbox=_keys(SANDBOX),
            fleet=_keys(FLEET),
            fleet_worker=_keys(FLEET_WORKER),
            telemetry=_keys(TELEMETRY),
            trust=_keys(TRUST),
            reserved=" ".join(f"`{name}`" for name in sorted(RESERVED)),
        )
    )


def _kinds() -> str:
    own = {
        kind: {key: row for key, row in keys.items() if key not in SHARED} for kind, keys in registry.own_keys().items()
    }
    return "\n".join(f"`[{kind}]`\n\n{_keys(keys)}" for kind, keys in own.items())


def _keys(keys: Mapping[str, Key]) -> str:
    return _table(("key", "value", "meaning"), [(f"`{key}`", _kind(row), _what(row)) for key, row in keys.items()])


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in _with_rule(head, rows))


def _with_rule(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    yield head
    yield ("---",) * len(head)
    yield from rows


def _kind(row: Key) -> str:
    return " ".join(f"`{word}`" for word in row.type.choices) or row.type.expected.removeprefix("must be ")


def _what(row: Key) -> str:
    return row.what.replace("<", "&lt;").replace("|", "\\|")


def _default(row: Key) -> str:
    return row.unset if row.default is None else f"`{toml_value(row.default)}`"


def _flag(row: Key, key: str) -> str:
    """The names of the key's option, if it has a visible one."""
    if row.flag is None or row.flag.hidden:
        return ""
    words = [form for word in row.flag.named(key) if word.startswith("-") for form in word.split("/")]
    return " ".join(f"`{word}`" for word in sorted(words, key=len, reverse=True))


if __name__ == "__main__":
    sys.exit(made(page(), PAGE))
