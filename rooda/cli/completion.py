"""`rooda completion SHELL` prints a completion script; `rooda completion install` installs it.

click finds the completions; `answer` formats them for the script of the shell.
"""

import os
import re
import shlex
from typing import Any, NamedTuple

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

from rooda.errors import OK, RoodaError, UsageProblem

SHELLS = ("bash", "zsh", "fish")
VERBS = ("install", "uninstall")

_BASH = """\
# TAB for rooda in bash.
_rooda_tab() {
    local kind value
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case $kind in
            plain) COMPREPLY+=("$value") ;;
            dir) compopt -o dirnames 2>/dev/null ;;
            file) compopt -o default 2>/dev/null ;;
        esac
    done < <(env COMP_WORDS="${COMP_WORDS[*]:0:COMP_CWORD+1}" COMP_CWORD="$COMP_CWORD" \\
        _ROODA_COMPLETE=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F _rooda_tab rooda 2>/dev/null || complete -F _rooda_tab rooda
"""

_ZSH = """\
#compdef rooda
# TAB for rooda in zsh.
_rooda() {
    local kind value about
    local -a said plain
    said=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT - 1)) _ROODA_COMPLETE=zsh_complete \\
        ${words[1]} 2>/dev/null)}")
    for kind value about in "${said[@]}"; do
        case $kind in
            plain)
                [[ $about == _ ]] && about= || about=":$about"
                value=${value//\\\\/\\\\\\\\}
                plain+=("${value//:/\\\\:}$about") ;;
            dir) _path_files -/ ;;
            file) _path_files -f ;;
        esac
    done
    (( ${#plain} )) && _describe -V rooda plain
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _rooda "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }
    compdef _rooda rooda
fi
"""

_FISH = """\
# TAB for rooda in fish.
function _rooda_tab
    set -l line (commandline -cp)
    set -l word (commandline -ct)
    for said in (env COMP_WORDS="$line" COMP_CWORD="$word" _ROODA_COMPLETE=fish_complete rooda 2>/dev/null)
        set -l part (string split -m 1 , -- $said)
        switch $part[1]
            case plain
                printf '%s\\n' $part[2]
            case dir
                __fish_complete_directories $word
            case file
                __fish_complete_path $word
        end
    end
end
complete --command rooda --no-files --arguments '(_rooda_tab)'
"""

_SAFE = re.compile(r"[A-Za-z0-9._/@:+=-]*")  # names without characters that are special in a shell

_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


class _Completions(ShellComplete):
    """click's completions, with `--option=` in front of each value of an option."""

    def get_completions(self, args: list[str], incomplete: str) -> list["CompletionItem[str]"]:
        option, equals, _ = incomplete.partition("=")
        before = option + equals if equals and option[:1] == "-" else ""
        items = super().get_completions(args, incomplete)
        for item in items:
            item.value = before + str(item.value)
            item.help = " ".join((item.help or "").split())
        return [item for item in items if item.type != "plain" or _SAFE.fullmatch(item.value)]


class _Bash(_Completions, BashComplete):
    """Completions for bash, quoted by rooda because bash inserts them unchanged."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words of the line. Drops the `=` after an option, because bash passes it as a separate word."""
        words, word = super().get_completion_args()
        pairs = zip(words, ["", *words], strict=False)
        return [each for each, before in pairs if each != "=" or before[:1] != "-"], word

    def format_completion(self, item: "CompletionItem[Any]") -> str:
        return f"{item.type},{_for_bash(item.value, _open_quote(os.environ['COMP_WORDS']))}"


class _Zsh(_Completions, ZshComplete):
    """Completions for zsh, which quotes them itself; the script escapes colons."""

    def format_completion(self, item: "CompletionItem[str]") -> str:
        return f"{item.type}\n{item.value}\n{item.help or '_'}"


class _Fish(_Completions, FishComplete):
    """Completions for fish, which quotes them itself."""


_COMPLETIONS: dict[str, type[_Completions]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


def answer(instruction: str) -> str:
    """Return the completions for the shell's script; "" if the command line is invalid."""
    shell, _, what = instruction.partition("_")
    if what == "source" or shell not in _COMPLETIONS:
        return script(shell)
    from rooda.cli.app import app

    try:
        said = _COMPLETIONS[shell](app, {}, "rooda", "_ROODA_COMPLETE").complete()
    except (RoodaError, click.ClickException, OSError, LookupError, ValueError):
        said = ""
    return said and f"{said}\n"


def _open_quote(line: str) -> str:
    """Return the quotation mark that the line leaves open; "" if there is none."""
    for mark in ("", "'", '"'):
        try:
            shlex.split(line.rstrip("\\") + mark)
        except ValueError:
            continue
        return mark
    return ""


def _for_bash(value: str, quote: str) -> str:
    if quote == "'":
        return value.replace("'", r"'\''")
    return re.sub(r'(["\\$`])' if quote else r"([^\w@%+=:,./-])", r"\\\1", value)


class Place(NamedTuple):
    """Path of the completion script, and of the start-up file that must load it.

    `start_up` is "" if the shell finds the script itself.
    """

    path: str
    start_up: str = ""


@click.command(short_help="Print or install shell completion for bash, zsh or fish.")
@click.argument("what", type=click.Choice([*SHELLS, *VERBS]), metavar="bash|zsh|fish|install|uninstall")
@click.argument("shell", type=click.Choice(SHELLS), required=False, metavar="[SHELL]")
def completion(what: str, shell: str | None) -> int:
    """Print, install or uninstall the completion script of SHELL (default: $SHELL).

    `install` writes the script, and for bash and zsh a line in the start-up file that loads it. Running it again
    changes nothing. `uninstall` removes both.
    """
    if what not in VERBS:
        if shell:
            raise UsageProblem(f"Name only one shell, got: {what} {shell}.")
        click.echo(script(what), nl=False)
        return OK
    (_install if what == "install" else _uninstall)(shell or _shell_of_the_user())
    return OK


def script(shell: str) -> str:
    return _SCRIPTS.get(shell, "")


def _shell_of_the_user() -> str:
    name = os.path.basename(os.environ.get("SHELL", ""))
    if name not in SHELLS:
        what = f"$SHELL is {name!r}. Completion exists for {', '.join(SHELLS)}." if name else "$SHELL is not set."
        raise UsageProblem(what, "Name the shell: rooda completion install bash")
    return name


def place_of(shell: str) -> Place:
    home = os.path.expanduser("~")
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
    if shell == "fish":
        config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
        return Place(os.path.join(config, "fish", "completions", "rooda.fish"))
    if shell == "zsh":
        folder = os.environ.get("ZDOTDIR") or home
        return Place(os.path.join(data, "rooda", "completion.zsh"), os.path.join(folder, ".zshrc"))
    own = os.environ.get("BASH_COMPLETION_USER_DIR") or os.path.join(data, "bash-completion")
    return Place(os.path.join(own, "completions", "rooda"), os.path.join(home, ".bashrc"))


def _install(shell: str) -> None:
    from rooda.base import files

    place = place_of(shell)
    data = files.to_bytes(script(shell))
    done = []
    try:
        if _bytes(place.path) != data:
            files.make_folder(os.path.dirname(place.path))
            files.replace(os.path.realpath(place.path), data)
            done.append(f"Wrote {place.path}")
        if place.start_up and place.path not in files.to_text(_bytes(place.start_up)):
            _append(place)
            done.append(f"Added a line to {place.start_up}")
    except OSError as problem:
        hint = f"To install it yourself: rooda completion {shell} prints the script."
        raise RoodaError(f"{problem.filename or place.path} can't be written: {problem.strerror}", hint) from None
    for line in done or [f"Already installed: {place.path}"]:
        click.echo(line)
    if done:
        click.echo(f"Open a new {shell}, type `rooda ` and press TAB.")


def _uninstall(shell: str) -> None:
    from rooda.base import files

    place, done = place_of(shell), []
    try:
        if _bytes(place.path):
            files.remove(place.path)
            done.append(f"Removed {place.path}")
        data = _bytes(place.start_up) if place.start_up else b""
        kept = b"".join(line for line in data.splitlines(True) if files.to_bytes(_line(place)) != line.rstrip(b"\n"))
        if kept != data:
            real = os.path.realpath(place.start_up)
            files.replace(real, kept, os.stat(real).st_mode & 0o777)
            done.append(f"Removed a line from {place.start_up}")
    except OSError as problem:
        what = f"{problem.filename or place.path} can't be changed: {problem.strerror}"
        raise RoodaError(what, f"Remove it yourself: {place.path} {place.start_up}".rstrip()) from None
    for line in done or [f"Not installed: {place.path}"]:
        click.echo(line)


def _line(place: Place) -> str:
    """Return the line for the start-up file that loads the script."""
    import shlex

    path = shlex.quote(place.path)
    return f"[ -r {path} ] && . {path}  # TAB for rooda"


def _append(place: Place) -> None:
    from rooda.base import files

    descriptor = files.open_append(os.path.realpath(place.start_up))  # it may be a symlink to the user's dotfiles
    try:
        files.write_all(descriptor, files.to_bytes(f"{_line(place)}\n"))
    finally:
        os.close(descriptor)


def _bytes(path: str) -> bytes:
    from rooda.base import files

    try:
        return files.read(path)
    except FileNotFoundError:
        return b""
