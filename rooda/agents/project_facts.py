"""Finds what a settings file or prompt of an agent CLI starts or redirects: hooks, MCP servers, plugins, addresses.

rooda asks the user to trust these facts; other text changes daily and is ignored. Keys are recognized by name at any
place in a file, because the CLIs add and move keys with every version.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from rooda.base.facts import Fact
from rooda.base.files import sha256

LARGEST = 1_048_576  # bytes; a larger file isn't parsed, and its hash is the fact
MOST_FACTS = 1000  # in one file; a user would not read more
LONGEST = 20_000  # characters of a value; the trust question shortens it, but shows it in full before it accepts a yes
SEARCHED = 2000  # characters in which secrets are masked; the rest isn't shown
DIGITS = 16  # hex digits of a hash: enough to prevent a collision with a trusted value
UNREADABLE = "can't be read by rooda"
FOLDER = "folder"  # a folder with more files than rooda reads

# Keys in lower case, without - and _. A bound key, or one with a bound ending, starts or redirects something.
_BOUND = {
    *("hooks", "hook", "disableallhooks", "httphookallowedenvvars", "allowedhttphookurls", "statusline", "notify"),
    *("mcp", "mcpservers", "enableallprojectmcpservers", "enabledmcpjsonservers", "lsp", "lspservers", "formatter"),
    *("plugin", "plugins", "enabledplugins", "pluginconfigs", "extensions", "marketplaces", "extraknownmarketplaces"),
    *("env", "environment", "setenv", "envfile", "shellenvironmentpolicy", "modelprovider", "modelproviders", "npm"),
    *("otel", "share", "sandboximage", "load", "modelsettingsfile", "pager", "terminals", "install", "start"),
}
_BOUND_ENDINGS = (
    *("command", "commands", "cmd", "helper", "refresh", "export", "statusline", "marketplaces", "setupworktree"),
    *("baseurl", "apibase", "endpoint", "proxy", "proxyport", "url", "uri", "setupworktreeunix"),
)
_RESTRAINING = {"deny", "denied", "exclude", "excludetools", "excluded", "disallowedtools", "deniedtools", "denyread"}
_RESTRAINING |= {"denywrite", "coretools", "core", "disabledmcpjsonservers", "disablebypasspermissionsmode"}
_RESTRAINING |= {"deniedmcpservers", "excludedtools", "denieddomains"}
_TEXTS = {"command", "commands"}  # a table of prompts, keyed by name
_COSMETIC = {"type", "timeout", "description", "statusmessage", "schema", "matcher", "title", "displayname"}
_SILENT = _COSMETIC - {"matcher"}  # not shown for a table that starts a program
_RUNS = ("command", "cmd", "serverCommand")
_CONNECTS = ("url", "httpUrl", "serverUrl", "uri")
_BASES = ("baseurl", "apibase", "apiurl", "endpoint")  # endings of names that hold the address of a model's API
_MODELS = (
    r"OPENAI|ANTHROPIC|CLAUDE|CODEX|GEMINI|GOOGLE|VERTEX|AZURE|BEDROCK|OLLAMA|GROQ|GROK|XAI_|DEEPSEEK|OPENROUTER|MISTRAL"
    r"|COHERE|QWEN|DASHSCOPE|LITELLM|LLM_|LM_STUDIO|CODE_ASSIST"
)
_STARTS_MORE = (
    r"LD_PRELOAD|LD_LIBRARY_PATH|LD_AUDIT|DYLD_\w+|NODE_OPTIONS|NODE_PATH|BASH_ENV|PATH|SHELL|PROMPT_COMMAND|ZDOTDIR"
    r"|PYTHONPATH|PYTHONHOME|PYTHONSTARTUP|PERL5OPT|PERL5LIB|RUBYOPT|RUBYLIB|JAVA_TOOL_OPTIONS|EDITOR|VISUAL|PAGER|BROWSER"
    r"|GIT_(?:SSH|SSH_COMMAND|CONFIG\w*|EXEC_PATH|EXTERNAL_DIFF|PROXY_COMMAND|EDITOR|ASKPASS|DIR|TEMPLATE_DIR|PAGER)"
)
_OWN_HOSTS = ("api.anthropic.com", "api.openai.com", "chatgpt.com", "generativelanguage.googleapis.com")
_REFERENCE = r"\$\{?\w+(?::-)?\}?|\{(?:env|file):[^{}]*\}"  # refers to a variable, so not itself a secret
Path: TypeAlias = tuple[str, ...]


class Kind(NamedTuple):
    """The kind of a file: which agent CLI it belongs to, and how it is read."""

    label: str
    reader: str  # "settings", "words", "code", "rules", "env" or FOLDER


class _Found(NamedTuple):
    """A fact without its file and label."""

    path: Path
    text: str
    name: str = ""  # the variable or key that says what the text is for
    restrains: bool = False


def read(kind: Kind, file: str, data: bytes) -> list[Fact]:
    """Return the facts about what a file's content starts, redirects or restricts."""
    if kind.reader == FOLDER:
        return [unreadable(kind, file, f"{UNREADABLE}: too many files")]
    if not data:
        return []
    try:
        found = [_fact(file, kind, each) for each in _distinct(_read(kind, file, data))]
    except (ValueError, RecursionError):
        return [unreadable(kind, file, f"{UNREADABLE} (sha256 {_hash(data)})")]
    return [*{fact.identity: fact for fact in found}.values()]


def unreadable(kind: Kind, file: str, value: str) -> Fact:
    return Fact(file, "", value, kind.label, warning=f"{kind.label} may still read it")


def _distinct(found: Iterable[_Found]) -> Iterable[_Found]:
    kept: dict[_Found, None] = {}
    for each in found:
        kept[each] = None
        if len(kept) > MOST_FACTS:
            raise ValueError("too many facts")
    return kept


# Reading files.


def _read(kind: Kind, file: str, data: bytes) -> Iterator[_Found]:
    if len(data) > LARGEST:
        raise ValueError("too large")
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    if kind.reader == "code":
        yield _Found((), f"runs: {os.path.basename(file)} (sha256 {_hash(data)})")
    elif kind.reader == "rules":
        yield _Found((), f"rules (sha256 {_hash(data)})", restrains=True)
    elif kind.reader == "env":
        yield from _variables(text)
    elif kind.reader == "words":
        yield from _prompt(file, text, kind)
    else:
        yield from _walk(_tree(file, text), (), kind)


def _tree(file: str, text: str) -> Any:
    """Return the content of a settings file; raise ValueError if rooda can't parse it."""
    if not text.strip():
        return {}
    if file.lower().endswith(".toml"):
        return _toml(text)
    if file.lower().endswith((".yml", ".yaml")):
        return _yaml(text)
    return _json(text)


_LONG_KEY = r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){40}"""


def _toml(text: str) -> Any:
    import tomllib

    if re.search(_LONG_KEY, text):  # which tomllib would read in quadratic time
        raise ValueError("a key has too many parts")
    return tomllib.loads(text)


def _yaml(text: str) -> Any:
    from rooda.base import yaml

    document = yaml.read(text)
    if document.faults:
        raise ValueError(document.faults[0].text)
    return document.value


_STRING = r'("(?:[^"\\]|\\.)*(?:"|\\?\Z))'
_COMMENTS = rf"(?s){_STRING}|//[^\n]*|/\*(?:.*?\*/|.*)"
_COMMAS = rf"(?s){_STRING}|,(?=\s*+[}}\]])"


def _json(text: str) -> Any:
    """Parse JSON, which may have comments and trailing commas."""
    from rooda.base.json import loads

    try:
        return loads(text, _loads)
    except _Twice:
        raise
    except ValueError:
        bare = re.sub(_COMMAS, r"\1", re.sub(_COMMENTS, r"\1 ", text))
        return loads(bare, _loads)


class _Twice(ValueError):
    """Raised for a duplicate key, since another parser may take the other value."""


def _loads(text: str) -> Any:
    import json

    def table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise _Twice("duplicate key")
        return found

    return json.loads(text, object_pairs_hook=table)


_VARIABLE = r"(?am)^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*[=:](.*)$"


def _variables(text: str) -> Iterator[_Found]:
    """Yield the variables in a .env file that redirect the CLI or start something; the rest are the project's own."""
    for found in re.finditer(_VARIABLE, text):
        name, value = found[1], found[2].strip().strip("\"'`")
        if _is_address(name) or _is_proxy(name) or name.startswith("AIDER_") or re.fullmatch(_STARTS_MORE, name):
            yield _Found((name,), f"{name}={value}", name)


def _is_address(variable: str) -> bool:
    """True for a variable with the address of a model's API, such as OPENAI_API_BASE or OLLAMA_HOST."""
    return bool(re.search(_MODELS, variable)) and _plain(variable).endswith((*_BASES, "host"))


def _is_proxy(name: str) -> bool:
    return _plain(name).endswith("proxy") and _plain(name) != "noproxy"


_FENCED = re.compile(r"^[ \t]*```!(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"!`([^`\n]+)`")
_BRACED = re.compile(r"!\{((?:[^{}]|\{[^{}]*+\})*\}|[^\n]*+)")
_FRONT = r"(?ms)\s*^---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)"
# Front matter without any of these starts nothing.
_FRONT_KEYS = r"(?i)hooks|mcp|env\b|permission|disallowed|\\[xuU]"


def _prompt(file: str, text: str, kind: Kind) -> Iterator[_Found]:
    """Yield the shell commands in a prompt file, and what its front matter starts."""
    if file.lower().endswith(".toml"):
        for path, leaf in _leaves(_toml(text), ()):
            yield from _shell(leaf, path, kind) if isinstance(leaf, str) else ()
        return
    yield from _shell(text, (), kind)
    head = re.match(_FRONT, text) if text.lstrip().startswith("---") else None
    if head and re.search(_FRONT_KEYS, head[1]):
        yield from _walk(_yaml(head[1]), (), kind)


def _shell(text: str, path: Path, kind: Kind) -> Iterator[_Found]:
    """Yield the shell commands in a prompt, which run before the agent gets it."""
    forms = (_FENCED, _INLINE, _BRACED) if kind.label in ("gemini", "qwen") else (_FENCED, _INLINE)
    for found in sorted((found for form in forms for found in form.finditer(text)), key=_start):
        if command := found[1].removesuffix("}").strip():
            yield _Found((*path, "shell"), f"runs: {command}")


def _start(found: "re.Match[str]") -> int:
    return found.start()


# Walking settings trees.


def _walk(value: Any, path: Path, kind: Kind) -> Iterator[_Found]:
    """Yield a fact for each key in a settings tree that starts, redirects or restricts something."""
    if isinstance(value, list):
        for each in value:
            yield from _walk(each, path, kind)
    for key, inner in value.items() if isinstance(value, dict) else ():
        here, plain = (*path, str(key)), _plain(str(key))
        if plain in _RESTRAINING:
            yield from _restraints(inner, here, True)
        elif plain in ("permission", "tools") and kind.label in ("opencode", "kilo"):
            yield from _restraints(inner, here, False)
        elif plain in _TEXTS and isinstance(inner, dict):
            yield from _prompts(inner, here, kind)
        elif kind.label == "aider" and plain in ("read", "file"):
            yield from _read_outside(inner, here)
        elif plain in _BOUND or plain.endswith(_BOUND_ENDINGS):
            yield from _bound(inner, here, "")
        else:
            yield from _walk(inner, here, kind)


def _plain(key: str) -> str:
    return re.sub(r"[^a-z0-9]", "", key.rpartition(".")[2].lower())


def _is_refused(value: Any) -> bool:
    return value is False or (isinstance(value, str) and value in ("deny", "ask"))


def _restraints(value: Any, path: Path, every: bool) -> Iterator[_Found]:
    """Yield the rules that restrict the agent: all values if `every`, else only refusals."""
    for here, leaf in _leaves(value, path):
        if every and leaf not in (False, None):
            only = {*map(_plain, path)} & {"core", "coretools"}
            yield _Found(here, f"{'allows only' if only else 'denies'}: {leaf}", restrains=True)
        elif not every and _is_refused(leaf):
            yield _Found(here, "denies" if leaf is False else str(leaf), restrains=True)


def _prompts(value: Mapping[str, Any], path: Path, kind: Kind) -> Iterator[_Found]:
    for here, leaf in _leaves(value, path):
        yield from _shell(leaf, here, kind) if isinstance(leaf, str) else ()


def _read_outside(value: Any, path: Path) -> Iterator[_Found]:
    for here, leaf in _leaves(value, path):
        if isinstance(leaf, str) and (leaf.startswith(("/", "~")) or ".." in leaf.split("/")):
            yield _Found(here, f"reads: {leaf}", "outside")


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, str(key)))
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, path)
    else:
        yield path, value


def _bound(value: Any, path: Path, when: str) -> Iterator[_Found]:
    """Yield a fact for each program, address and scalar below a key that starts or redirects something."""
    if isinstance(value, dict):
        if words := _program(value, path):
            yield _Found(path, f"{words}{when}", _name_of(path))
            return
        if matcher := value.get("matcher"):
            when = f" ({matcher})" if isinstance(matcher, str) else f" ({_compact(matcher)})"
        in_hooks = "hooks" in map(_plain, path)
        for key, inner in value.items():
            plain, here = _plain(str(key)), (*path, str(key))
            if plain in _RESTRAINING:
                yield from _restraints(inner, here, True)
            elif not in_hooks or plain not in _COSMETIC or isinstance(inner, dict | list):
                yield from _bound(inner, path if in_hooks and plain == "hooks" else here, when)
    elif isinstance(value, list):
        if all(isinstance(each, str) for each in value) and _plain(path[-1]) in ("notify", "command"):
            yield _Found(path, f"runs: {_joined(value)}")
        else:
            for inner in value:
                yield from _bound(inner, path, when)
    elif value is not None and value is not False:
        yield _scalar(value, path, when)


def _scalar(value: Any, path: Path, when: str) -> _Found:
    name, plain = _name_of(path), _plain(path[-1])
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    if name:
        return _Found(path, f"{name}={text}", name)
    runs = plain.endswith(("command", "cmd", "helper", "refresh", "export"))
    runs = runs or (plain != "prompt" and "hooks" in map(_plain, path))
    assigned = plain == "setenv" and text.partition("=")[0]
    return _Found(path, f"{'runs: ' if runs else ''}{text}{when}", assigned or path[-1])


def _name_of(path: Path) -> str:
    """Return the variable that a key sets; "" if it isn't in an environment table."""
    above = [*map(_plain, path[:-1])]
    return path[-1] if above and (above[-1] in ("env", "environment") or "shellenvironmentpolicy" in above) else ""


def _program(value: Mapping[str, Any], path: Path) -> str:
    """Describe the program or address in a table of settings, and the other keys; "" without program or address."""
    key = next((key for key in (*_RUNS, *_CONNECTS) if isinstance(value.get(key), str | list)), "")
    if not key:
        return ""
    rest = {name: inner for name, inner in value.items() if name != key and _plain(str(name)) not in _SILENT}
    if key in _CONNECTS:
        words = f"connects to: {value[key]}"
    else:
        given = value[key] if isinstance(value[key], list) else [value[key]]
        arguments = rest.pop("args", [])
        arguments = arguments if isinstance(arguments, list) else [arguments]
        command = given[0] if len(given) == 1 and not arguments else _joined([*given, *arguments])
        words = f"{'runs' if 'hooks' in map(_plain, path) else 'starts'}: {command}"
    return f"{words} {_compact(rest)}" if rest else words


def _joined(words: Iterable[Any]) -> str:
    import shlex

    return shlex.join(map(str, words))


def _compact(value: Any) -> str:
    """Format a value as JSON on one line."""
    import json

    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


# Formatting facts.


def _fact(file: str, kind: Kind, found: _Found) -> Fact:
    from rooda.base.text import escape_line

    name = ".".join(found.path)
    name, value = _short(escape_line(name[:SEARCHED]), name), _short(escape_line(_masked(found)), found.text)
    return Fact(file, name, value, kind.label, warning=_warning(found), restrains=found.restrains)


def _short(shown: str, text: str) -> str:
    """Shorten a text for display, with a hash of the original if something is missing or changed."""
    shown = shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"
    return shown if shown == text else f"{shown} (sha256 {_hash(text.encode('utf-8', 'surrogatepass'))})"


def _masked(fact: _Found) -> str:
    """Return a fact's text with secrets hidden; they are recognized by form, variable name or JSON key."""
    from rooda.base.secret_forms import HIDDEN, hide, looks_secret

    text = hide(fact.text[:SEARCHED])

    def hidden(found: "re.Match[str]") -> str:
        secret = looks_secret(found[2]) and not re.fullmatch(_REFERENCE, found[4])
        return f"{found[1]}{found[2]}{found[3]}{HIDDEN}" if secret else found[0]

    text = re.sub(r"""(")([\w.-]+)(": ")((?:[^"\\]|\\.)+)""", hidden, text)
    return re.sub(r"()(?<![\w-])([A-Za-z_][\w-]*)(=)([^\s\"']+)", hidden, text)


def _warning(found: _Found) -> str:
    if found.restrains:
        return ""
    plain, last = _plain(found.name), _plain(found.path[-1]) if found.path else ""
    address = found.text.partition("=")[2] if found.text.startswith(f"{found.name}=") else found.text
    if found.name == "outside":
        return "a file outside of the workspace"
    if _is_proxy(found.name) or "otlp" in plain or "otel" in map(_plain, found.path):
        return "sends the agent's activity elsewhere"
    if (plain.endswith(_BASES) or _is_address(found.name)) and not _is_own(address):
        return "sends your key elsewhere"
    if re.fullmatch(_STARTS_MORE, found.name):
        return "can start code in every program"
    if last == "share" and found.text == "auto":
        return "publishes what the agent writes"
    return "disables your own hooks" if last == "disableallhooks" else ""


def _is_own(address: str) -> bool:
    return bool(re.match(rf"https://(?:{'|'.join(map(re.escape, _OWN_HOSTS))})(?:/|$)", address))


def _hash(data: bytes) -> str:
    return sha256(data)[:DIGITS]
