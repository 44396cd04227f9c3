"""The name of a loop: an alias that is a folder's name too."""

import re
import unicodedata

LONGEST, SHORTEST = 48, 3  # of one made from a task; a number may follow
MOST = 64  # characters of any
_ALIAS = re.compile(rf"(?=.{{3,{MOST}}}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")


def is_alias(name: str) -> bool:
    return bool(_ALIAS.fullmatch(name))


def alias_of(task: str) -> str:
    """A short name made from the task's first words."""
    plain = unicodedata.normalize("NFKD", task.casefold()).encode("ascii", "ignore").decode()
    words = re.findall(r"[a-z0-9]+", plain.replace("'", ""))
    name = words[0][:LONGEST] if words else "task"
    for word in words[1:]:
        if len(name) + 1 + len(word) > LONGEST:
            break
        name += f"-{word}"
    return name if len(name) >= SHORTEST else f"task-{name}"


def numbered(name: str, number: int) -> str:
    """The name with a number behind it, from the second on; cut so far that both together are a name."""
    if number < 2:
        return name
    end = f"-{number}"
    return name[: MOST - len(end)].rstrip("-") + end
