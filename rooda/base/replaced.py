"""Files that were replaced are held open for a while: their space is freed when nobody waits for it."""

import os

MOST_HELD = 8
unsettled: set[str] = set()  # files whose new name a power cut may still undo
_outdated: list[int] = []  # files without a name, not yet freed


def hold(path: str) -> None:
    """Keep what is about to be replaced until `let_go`, where that can be had without opening it for reading."""
    if how := getattr(os, "O_PATH", 0):
        if len(_outdated) >= MOST_HELD:
            let_go()
        try:
            _outdated.append(os.open(path, how | os.O_NOFOLLOW | os.O_CLOEXEC))
        except OSError:
            pass  # there is none, or it can't be held: then its space is freed with its name


def let_go() -> None:
    """Free the space of what was replaced. That can take longer than the replacing: done while an agent works."""
    while _outdated:
        try:
            os.close(_outdated.pop())
        except OSError:
            pass  # what it stood for has been replaced: there is nothing to lose
