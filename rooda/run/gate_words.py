"""Decides from a command's words whether it can be a quality gate: it checks, changes nothing, and ends. Pure."""

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rooda.run.records import Programs

ALL = Programs(lambda name: True, lambda path: False)  # treats every name as a program


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WRITING = _words(
    "fix format fmt push publish deploy release upload migrate install rm commit write apply destroy drop purge"
    " upgrade uninstall rollback seed reformat autofix reset makemigrations tidy generate codegen bump update add sync"
    " delete autocorrect flush loaddata prune dedupe downgrade autoupdate require remove yank shrinkwrap accept archive"
    " submit lock get rmi down lintfix prettify beautify scalafmt scalafmtall nuke wipe"
)
_FIXING = _words("fix autofix autocorrect reformat write")  # they write, also in `lint-fix`
_CHECKED = _words(  # that only check with such an option
    "format fmt makemigrations tidy generate codegen update sync lock scalafmt scalafmtall prettier"
)
_ENDLESS = _words("dev serve server start watch preview up open storybook worker runserver")
_ENDLESS_PROGRAMS = _words("watch nodemon uvicorn gunicorn hypercorn daphne entr watchexec http.server ngrok")
_WRITING_OPTIONS = _words(
    "--fix --write --apply --in-place --fix-only --autofix --unsafe-fixes -w -i --autocorrect --autocorrect-all"
    " --auto-correct --auto-correct-all --snapshot-update --update-snapshots --update-snapshot --updateSnapshot"
    " --generate-baseline --update-baseline -delete --add-noqa -fix --inplace --reformat --write-changes --accept"
    " --push --publish"
)
_UPDATING = re.compile(  # an assignment, or an option with a value, that makes tests write what they expect
    r"\w*(?:UPDATE|ACCEPT|OVERWRITE|REGENERATE|RECORD|BLESS)\w*=(?!$|0|no|false|none|off)|--inline-snapshot=(?!report|disable)"
    r"|--record(?:-mode)?=(?!none)",
    re.I,
)
_SHORT = {  # options of one letter that write files
    **dict.fromkeys(("rubocop", "standardrb"), ("-a", "-A", "-x")), "ktlint": ("-F", "--format"), "detekt": ("-ac",),
    **dict.fromkeys(("codespell", "typos"), ("-w",)),
    **dict.fromkeys(("npm-check-updates", "npm-check", "ncu"), ("-u",)),
    "awk": ("-i",), "gawk": ("-i",), "git-cliff": ("-o", "-p", "--output", "--prepend"),
    "cmake": ("--install",), "uv": ("-o", "--output-file"),
    **dict.fromkeys(("jest", "vitest", "ava", "playwright", "npm", "pnpm", "yarn", "bun"), ("-u", "--update")),
}  # fmt: skip
_ONLY_CHECKS = _words(
    "--check --check-only --check-formatted --verify-no-changes --dry-run --diff --lint --list-different -check -l -d"
    " -diff --test --locked --verify -mode=check --mode=check --output=none"
)
_ACTIONS = {  # of programs for which the word means that they write, or change what others see
    "rector": "process", "lerna": "version", "dbt": "run build snapshot", "bazel": "run", "bazelisk": "run",
    "nix": "run", "eas": "build", "skaffold": "run", "packer": "build", "towncrier": "build",
    "fastlane": "beta alpha", "rails": "s c setup create prepare load",
    "hatch": "version", "npm": "version", "pnpm": "version", "yarn": "version", "bun": "version",
    "changeset": "version", "mvn": "set use-latest-versions", "rake": "setup create prepare load",
    "diesel": "migration", "typeorm": "migration",
}  # fmt: skip
_READING_GIT = _words("diff status log show grep ls-files rev-parse describe fsck check-ignore diff-index")
_FORMATTERS = _words(
    "black isort autopep8 yapf gofmt rustfmt swiftformat prettier clang-format shfmt"
    " goimports stylua pyupgrade docformatter autoflake mdformat scalafmt alejandra nixfmt djhtml"
    " buildifier sort-package-json"
)
_PRINTING = _words(  # they write files only with an option
    "gofmt rustfmt prettier clang-format yapf autopep8 shfmt goimports"
)
_MANAGERS = _words("npm pnpm yarn bun")
_SYSTEM = _words(
    "rm mv cp tee sudo kill pkill killall dd truncate shutdown reboot chmod chown mkfs curl wget ssh scp rsync"
    " kubectl helm aws gcloud az heroku flyctl vercel netlify gh glab twine"
    " psql mysql mariadb mongosh mongo redis-cli sqlite3 dropdb createdb ansible-playbook ansible gsutil surge http nc"
    " ln unlink rmdir crontab systemctl service launchctl eval bumpversion bump2version semantic-release"
    " nixos-rebuild pip-compile pip-sync nbstripout"
)
_PREFIXES = _words("env time nice exec command nohup npx uvx bunx ! if then do while until else")
_RUNNERS = frozenset(  # these two words are followed by the command that they run
    f"{name} {word}" for word, names in {
        "run": ("uv", "poetry", "pdm", "pixi", "hatch", "pipenv", "rye", "conda"), "dlx": ("pnpm", "yarn"),
        "exec": ("bundle", "npm", "pnpm", "yarn", "mix"), "-m": ("python", "python3"), "x": ("bun", "npm"),
    }.items() for name in names
)  # fmt: skip
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_REDIRECTED = re.compile(r"(?<![<&\d>-])(?:\d|&)?>>?\|?\s*([^\s&|;<>()]+)")
_SEPARATORS = frozenset(("&&", "||", ";", "|", "&", "(", ")", ";;", "|&"))
_IN_PLACE = re.compile(r"-[a-z]*i|--in-place")
_SHELLS = _words("sh bash zsh dash ksh")
_SECOND_WORD = re.compile(r"[a-z][\w:-]*", re.I)
_PART = re.compile(r"[A-Z]?[a-z0-9_]+|[A-Z]+")  # of a word such as `spotlessApply`
_CHECKING = _words("test tests check checks lint verify validate ci pre dry no spec")  # what follows is only tested
_INTERPRETERS = _words("sh bash zsh dash ksh source . python python3 node ruby perl php deno bun tsx ts-node")
_NAME_PART = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+")


def refusal(command: str, has_name: bool, programs: Programs = ALL) -> str:
    """Return why the command is not used as a gate; "" if it is. `has_name`: the document gives the command a name."""
    words = _split(command)
    if words is None:
        return "it is not a complete command"
    if reason := _of_path(words, has_name, programs):
        return reason
    if target := next(filter(_UPDATING.match, words), ""):
        return f"{target} makes it write files"
    if target := next(filter(programs.exists, _REDIRECTED.findall(command)), ""):
        return f"it writes {target}"
    return next(filter(None, (_of_simple(part) for part in _parts(words))), "")


def _split(command: str) -> list[str] | None:
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars="();|&")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:
        return None


def _of_path(words: Sequence[str], has_name: bool, programs: Programs) -> str:
    """Return why a command is not a gate if it is only a path that is not executable, or an unknown word; else ""."""
    if len(words) != 1 or programs.is_program(words[0]):
        return ""
    if "/" in words[0] or programs.exists(words[0]) or re.search(r"\w\.[a-z]{1,5}$", words[0]):
        return "it is a path, but not an executable file"
    return "" if has_name else "it is a single word, and no program of this name was found"


def _parts(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the simple commands in `words`, without leading assignments and words such as `env`."""
    part: list[str] = []
    for word in [*words, ";"]:
        if word in _SEPARATORS:
            if part:
                yield part
            part = []
        elif part or not (_ASSIGNMENT.match(word) or word in _PREFIXES):
            part.append(word)
            part = [] if " ".join(part) in _RUNNERS else part


def _of_simple(words: Sequence[str]) -> str:
    """Return why a simple command can't be part of a gate; "" if it can."""
    program, rest = words[0].rpartition("/")[2], words[1:]
    if program in _SHELLS and any(re.fullmatch(r"-[a-z]*c", word) for word in rest[:2]):
        return refusal(rest[-1], True)
    if script := _writing_script(words):
        return f"`{script}` changes more than it checks"
    options = _options(rest)
    plain = _own_words(program, rest)
    if (program in _SYSTEM and rest[:1] not in (["lint"], ["template"])) or (program == "git" and not _reads_git(rest)):
        return f"`{_shown(words)}` changes files or what others see"
    if program in ("sed", "perl"):
        return "it changes files in place" if any(_IN_PLACE.match(word) for word in rest) else ""
    if program in _FORMATTERS - _PRINTING and not options & _ONLY_CHECKS:
        return f"`{program}` changes files unless it has --check"
    if short := options & {*_SHORT.get(program, ())}:
        return f"{min(short)} changes files"
    if options & (_WRITING_OPTIONS if program in _FORMATTERS else _WRITING_OPTIONS - {"-w", "-i"}):
        return f"{min(options & _WRITING_OPTIONS)} changes files"
    if program in _MANAGERS and rest[:1] in (["ci"], ["i"], ["add"], ["update"], ["link"]):
        return f"`{program} {rest[0]}` installs packages"
    if program == "mix":
        plain += [part for word in rest for part in word.split(".")[1:] if _is_own_word(part)]
    if (action := _action(program, rest)) and not options & _ONLY_CHECKS:
        return f"`{program} {action}` changes files"
    if writing := _writing(plain, options):
        return f"`{writing}` changes more than it checks"
    return _of_endless(program, rest, plain, options)


def _action(program: str, rest: Sequence[str]) -> str:
    actions = _ACTIONS.get(program, "").split()
    return next((part for word in rest[:2] for part in word.split(":") if part in actions), "")


def _writing_script(words: Sequence[str]) -> str:
    """Return the script that the command runs if the script's name suggests that it writes (`./deploy.sh`); else ""."""
    run = words[0]
    if run in _INTERPRETERS:
        run = next((word for word in words[1:] if not word.startswith("-") and word != "run"), "")
    if "/" not in run and "." not in run.strip("."):
        return ""
    name = re.sub(r"\.(?:sh|bash|zsh|py|js|mjs|cjs|ts|rb|pl|php)$", "", run.rpartition("/")[2])
    pieces = [piece.lower() for piece in _NAME_PART.findall(name)]
    if _CHECKING & {*pieces} and not (_FIXING & {*pieces} and pieces[0] not in ("test", "tests")):
        return ""
    writing = _WRITING - (_CHECKED if _options(words) & _ONLY_CHECKS else frozenset())
    return run if writing & {*(pieces if "and" in pieces else (*pieces[:1], *pieces[-1:]))} else ""


def _of_endless(program: str, rest: Sequence[str], plain: Sequence[str], options: set[str]) -> str:
    """Return why a command does not end by itself; "" if it does."""
    endless = next((word for word in plain[1:3] if _ENDLESS & {*word.split(":")}), "")
    follows = program in ("tail", "journalctl") and bool(options & {"-f", "-F", "--follow"})
    if program in ("flask", "make", "just", "rails") and plain[1:2] == ["run"]:
        endless = "run"
    if (program, *rest) in (("cargo", "run"), ("go", "run", "."), ("go", "run", "main.go")):
        endless = f"{program} run"
    follows = follows or (program in ("tsc", "webpack", "rollup") and "-w" in options)
    if program in _ENDLESS_PROGRAMS or follows or options & {"--watch", "--watchAll", "--reload"}:
        endless = endless or program
    return f"`{endless}` does not end" if endless else ""


def _options(rest: Sequence[str]) -> set[str]:
    """Return the options, as typed and without `=value`; `-o none` counts as `--output=none`."""
    options = {word for word in rest if word.startswith("-")}
    none = {"--output=none"} if ("-o", "none") in pairwise(rest) else set()
    return options | {word.partition("=")[0] for word in options} | none


def _own_words(program: str, rest: Sequence[str]) -> list[str]:
    """Return the words that may name an action. Words after a test runner only select tests."""
    if program in ("pytest", "py.test"):
        rest = []
    elif program in ("cargo", "go") and rest[:1] == ["test"]:
        rest = rest[:1]
    return [word for word in (program, *rest) if _is_own_word(word)]


def _is_own_word(word: str) -> bool:
    """True if a word has the form of an action's name, and not that of an option, a path or a quoted text."""
    return bool(_SECOND_WORD.fullmatch(word))


def _writing(words: Sequence[str], options: set[str]) -> str:
    """Return the first word that makes the command write files; "" if there is none, as in a formatter's check."""
    checks = bool(options & _ONLY_CHECKS) or any("check" in map(str.lower, _NAME_PART.findall(word)) for word in words)
    for place, word in enumerate(words):
        for part in _parts_of(word) if place else word.lower().split(":"):
            if (part in _WRITING or (part == "prettier" and place)) and not (checks and part in _CHECKED):
                return word
    return words[-1] if len(words) > 1 and {"clean", "clobber"} & {*words[-1].split(":")} else ""


def _parts_of(word: str) -> Iterator[str]:
    """Yield the parts of a script's or target's name that may name an action, as in `docker-push`, `spotlessApply`."""
    for part in word.split(":"):
        yield part.lower()
        pieces = [piece.lower() for name in part.split("-") for piece in _PART.findall(name)]
        if "and" in pieces or (part.isalnum() and pieces[0] not in _CHECKING):
            yield from pieces
        elif pieces and not _CHECKING & {*pieces}:
            yield from (pieces[0], pieces[-1])
        else:
            yield from _FIXING & {*pieces}


def _reads_git(rest: Sequence[str]) -> bool:
    word = next((word for word in rest if not word.startswith("-")), "")
    return word in _READING_GIT


def _shown(words: Sequence[str]) -> str:
    return " ".join(words[:2])
