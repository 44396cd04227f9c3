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

Settings are TOML. `rooda init` writes a commented `rooda.toml`, `rooda config path` lists the files that rooda reads,
`rooda config show --origin` prints every setting in force with its origin, and `rooda config show agents` prints all
agents, including those not in use. `rooda config schema` prints a JSON Schema for editors that complete and check TOML.
For Taplo, and Even Better TOML in VS Code, write this schema to a file with `rooda config schema > rooda.schema.json`,
and make `#:schema ./rooda.schema.json` the first line of `rooda.toml`.

rooda does not read `rooda-config.yml`, the YAML settings of an older program of the same name. If a folder has a
`rooda-config.yml` but no `rooda.toml`, rooda's commands say so; `rooda init --from rooda-config.yml` converts the file
and lists the settings that it leaves out.

## Where settings come from

The strongest comes first:

1. options of the command line: `--max-iterations 3`
2. the environment: `ROODA_LOOP_<KEY>` sets a key of `[loop]`
3. the workspace's file: the nearest `rooda.toml` from the workspace up to the repository's root, or `--config FILE`;
   its folder is the workspace, unless `-C DIR` names another folder or the current directory has an unfinished run
4. the user's file: `rooda.toml` in `$ROODA_CONFIG_HOME`, else in `$XDG_CONFIG_HOME/rooda`, else in `~/.config/rooda`
5. the defaults of rooda: `config/rooda.toml` and `config/procedures.toml`

rooda merges tables key by key, and replaces every other value. So two lines in `[procedures.build]` change two settings
and keep the others. For one procedure the order is: options, your `[procedures.NAME]`, your `[loop]`, the default
`[procedures.NAME]`, the default `[loop]`. Your settings override the defaults, and a specific table overrides the
general one. The environment counts as the strongest of your `[loop]` tables.

For an invalid value rooda reports file, line, key and the expected value, and starts nothing (exit 2). An unknown key
causes a warning. If it differs from a known key by at most two edits, rooda takes it for a typing error: a start is
refused (exit 2), while `doctor`, `config show`, `status`, `stop` and `resume --all` only warn. A path in a settings
file is relative to that file's folder, and a path in an option is relative to the workspace. The program of an agent's
command is a path if it contains a `/`; if it does not exist relative to the settings file, rooda looks for it in the
workspace.

### Files that count

A file of a workspace may have been written by somebody else, so rooda reads it only if it is a regular file, and not
through a link that leads out of the repository (without a repository: out of the workspace). Settings, flows, rules and
files of other tools may have at most 1 MB, and files for a prompt 64 MB. If a file breaks one of these rules, rooda
exits with 2 and names the file. This also holds for AGENTS.md: if rooda can't read it, rooda does not assume that there
are no gates. Your own `rooda.toml` may be a link to anywhere, and so may a file outside the repository that settings or
options name by its own path.

Settings, AGENTS.md, `.rooda`, `.git` and every folder from the workspace up to the repository must belong to you or to
root. Otherwise rooda refuses them with git's message (`detected dubious ownership`, exit 2). There are three
exceptions: rooda accepts what git accepts after `git config --global --add safe.directory DIR` (`*` for every folder;
system settings count too), what `[trust] folders` names, and, with `ROODA_TRUST=all`, everything. If rooda runs as
root, files of the user who called `sudo` (`SUDO_UID`) count as root's own. In a container that runs as root on a
checkout of another user, declare the checkout safe once: `git config --system --add safe.directory '*'`. rooda never
looks for settings above a folder to which all users may write, such as `/tmp`.

## `[loop]`: every procedure

Under `[procedures.NAME]` the same keys apply to that procedure only. The environment variable of a key is `ROODA_LOOP_`
and the key in capitals: `{variable}`. `ROODA_LOOP_QUALITY_GATES` has one command per line.

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
read](procedures.md#quality-gates). `quality_gates = []` and `--no-gates` mean no gates. Of the built-in procedures,
only `build` runs gates, because gates judge code. For another procedure, `--gates` turns on the project's gates for one
run, and `quality_gates` in your own `[procedures.NAME]` sets gates for all its runs.

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

Each has the keys of `[loop]` that agent calls need ({shared}), which override those of `[loop]`, and its own keys:

{kinds}
## Other tables

| table | what it holds |
|---|---|
| `[models]` | `word = "name"`: the model name that the agent gets for this word; rooda passes other words unchanged |
| `[budget]` | `unknown_call = 0.50`: dollars that count for a call whose cost is unknown ([money.md](money.md)) |
| `[ai_cmd_aliases]` | `name = "command"`: the older form of `[agents.NAME]`, with only a command |

## `[hooks]`

A hook is a shell command, or a table with `command` or `url`, and `timeout` (seconds, default 10). The hook gets the
event ([events.md](events.md)) on stdin or as the body of a POST, with the fields `moment`, `workspace`, `host`,
`branch`, `cost` (of the whole run; null if unknown) and `text`, a sentence for people. With `format`, rooda sends only
this sentence to the address: with `text` and `ntfy` as plain text, with `slack` and `discord` as a message of that
service. The address begins with `https://`; `http://` is allowed for this machine (`localhost`, `127.…`, `[::1]`) and,
with `insecure = true`, for other machines. rooda does not follow redirects. rooda reports a hook that fails, and
continues.

{hooks}
## `[worktree]`: what `--worktree` prepares

{worktree}
`copy` and `link` name paths of the workspace; only your own settings can name other paths. `link` is for caches: rooda
does not link a virtual environment with an editable install of this project, because tests in the worktree would then
run the workspace's code.

## `[tasks]`: tasks and their landing

{tasks}
## `[sandbox]`: what agents and gates may see, change and reach

`sandbox` in `[loop]` turns the sandbox on; [sandbox.md](sandbox.md) says what it does. rooda joins the lists of your
settings and of the workspace's settings. Of the other values the stricter one counts, so a workspace can only make your
limits stricter.

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

These names are commands or reserved for commands, so a procedure can't have them: {reserved}. """


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
