"""Decides from a command's words whether it can be a quality gate: it checks, changes nothing, and ends. Pure."""

import re
import shlex
from collections.abc import Iterator, Sequence

from rooda.run.records import Programs

ALL = Programs(lambda name: True, lambda path: False)  # treats every name as a program


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WRITING = _words(
    "fix format fmt push publish deploy release upload migrate install rm commit write apply destroy drop purge"
    " upgrade uninstall rollback seed reformat autofix reset makemigrations tidy generate codegen bump update add sync"
    " delete autocorrect"
)
_CHECKED = _words("format fmt makemigrations tidy generate codegen update sync")  # that only check with such an option
_ENDLESS = _words("dev serve server start watch preview up")
_ENDLESS_PROGRAMS = _words("watch nodemon uvicorn gunicorn hypercorn daphne entr watchexec http.server")
_WRITING_OPTIONS = _words(
    "--fix --write --apply --in-place --fix-only --autofix --unsafe-fixes -w -i --autocorrect --autocorrect-all"
    " --auto-correct --auto-correct-all --snapshot-update --update-snapshots --update-snapshot --updateSnapshot"
    " --generate-baseline --update-baseline -delete"
)
_SHORT = {  # options of one letter that write files
    **dict.fromkeys(("rubocop", "standardrb"), ("-a", "-A", "-x")), "ktlint": ("-F", "--format"), "detekt": ("-ac",),
    **dict.fromkeys(("jest", "vitest", "ava", "playwright", "npm", "pnpm", "yarn", "bun"), ("-u", "--update")),
}  # fmt: skip
_ONLY_CHECKS = _words(
    "--check --check-only --check-formatted --verify-no-changes --dry-run --diff --lint --list-different -check -l -d"
    " -diff --test"
)
_READING_GIT = _words("diff status log show grep ls-files rev-parse describe fsck check-ignore diff-index")
_FORMATTERS = _words(
    "black isort autopep8 yapf gofmt rustfmt swiftformat prettier clang-format shfmt"
    " goimports stylua pyupgrade docformatter autoflake mdformat scalafmt alejandra nixfmt djhtml"
)
_PRINTING = _words(  # they write files only with an option
    "gofmt rustfmt prettier clang-format yapf autopep8 shfmt goimports"
)
_MANAGERS = _words("npm pnpm yarn bun")
_SYSTEM = _words(
    "rm mv cp tee sudo kill pkill killall dd truncate shutdown reboot chmod chown mkfs curl wget ssh scp rsync"
    " kubectl helm aws gcloud az heroku flyctl vercel netlify gh glab twine"
    " psql mysql mariadb mongosh redis-cli sqlite3 dropdb createdb ansible-playbook"
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
_CHECKING = _words("test tests check checks lint verify validate ci pre dry no")  # what follows is only tested


def refusal(command: str, has_name: bool, programs: Programs = ALL) -> str:
    """Return why the command is not used as a gate; "" if it is. `has_name`: the document gives the command a name."""
    words = _split(command)
    if words is None:
        return "it is not a complete command"
    if reason := _of_path(words, has_name, programs):
        return reason
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
    """Return why a command of one word is not a gate: a file that can't be executed, or an unknown word; else ""."""
    if len(words) != 1 or programs.is_program(words[0]):
        return ""
    if "/" in words[0] or programs.exists(words[0]) or re.search(r"\w\.[a-z]{1,5}$", words[0]):
        return "it is a path, but not an executable file"
    return "" if has_name else "it is a single word, and no program of this name was found"


def _parts(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the simple commands that `words` consist of, without leading assignments and words such as `env`."""
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
    if program in _SHELLS and "-c" in rest[:2]:
        return refusal(rest[-1], True)
    options = {word.partition("=")[0] for word in rest if word.startswith("-")}
    plain = [word for word in (program, *rest) if _is_own_word(word)]
    if program in _SYSTEM or (program == "git" and not _reads_git(rest)):
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
    if program in (*_MANAGERS, "changeset") and rest[:1] == ["version"]:
        return f"`{program} version` changes files"
    if writing := _writing(plain, options):
        return f"`{writing}` changes more than it checks"
    return _of_endless(program, rest, plain, options)


def _of_endless(program: str, rest: Sequence[str], plain: Sequence[str], options: set[str]) -> str:
    """Return why a command does not end by itself; "" if it does."""
    endless = next((word for word in plain[1:3] if _ENDLESS & {*word.split(":")}), "")
    follows = program in ("tail", "journalctl") and options & {"-f", "-F", "--follow"}
    if program in ("flask", "make", "just", "rails") and plain[1:2] == ["run"]:
        endless = "run"
    if program in _ENDLESS_PROGRAMS or follows or options & {"--watch", "--watchAll", "--reload"}:
        endless = endless or program
    return f"`{endless}` does not end" if endless else ""


def _is_own_word(word: str) -> bool:
    """True if a word may name an action: it is not an option, a path or a text."""
    return bool(_SECOND_WORD.fullmatch(word))


def _writing(words: Sequence[str], options: set[str]) -> str:
    """Return the first word that means that the command writes files; "" for a formatter that only checks."""
    checks = bool(options & _ONLY_CHECKS) or any("check" in word.split(":") for word in words)
    for place, word in enumerate(words):
        for part in _parts_of(word) if place else word.lower().split(":"):
            if part in _WRITING and not (checks and part in _CHECKED):
                return word
    return ""


def _parts_of(word: str) -> Iterator[str]:
    """Yield the parts of a script's or target's name that say what it does: `docker-push`, `spotlessApply`."""
    for part in word.split(":"):
        yield part.lower()
        pieces = [piece.lower() for name in part.split("-") for piece in _PART.findall(name)]
        if pieces and pieces[0] not in _CHECKING:
            yield from pieces if part.isalnum() else pieces[-1:]


def _reads_git(rest: Sequence[str]) -> bool:
    word = next((word for word in rest if not word.startswith("-")), "")
    return word in _READING_GIT


def _shown(words: Sequence[str]) -> str:
    return " ".join(words[:2])
