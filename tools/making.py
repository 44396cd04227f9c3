"""Shared by the generators: write the page, or print it with --print."""

import sys


def made(page: str, path: str) -> int:
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write(page)
        return 0
    with open(path, "w", encoding="utf-8") as file:
        file.write(page)
    return 0
