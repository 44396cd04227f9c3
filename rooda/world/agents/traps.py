"""Command lines with which a CLI fails or does nothing, known before anything is paid for. Measured: docs/agents.md."""

from collections.abc import Mapping, Sequence

from rooda.world.agents.reader import of_program


def refusal(program: str, argv: Sequence[str], env: Mapping[str, str], root: bool) -> tuple[str, str]:
    """What makes this start pointless, and what to do; ("", "") if nothing does."""
    refuses = of_program(program).refusal
    return refuses(argv, env, root) if refuses else ("", "")


def warnings(program: str, argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """What will probably make it fail or idle: settings of the CLI's own, which rooda does not read, may prevent it."""
    known, found = of_program(program), []
    powerless = known.powerless
    if powerless and not any(said(argv, word) for word in powerless.words):
        found.append(f"{powerless.what}, and exits with 0 all the same. Its command should have {powerless.cure}.")
    return [*found, *(known.warnings(argv, env) if known.warnings else ())]


def said(argv: Sequence[str], word: str) -> bool:
    """Is this word or `WORD=…` in the command line?"""
    return any(each == word or each.startswith(f"{word}=") for each in argv)


def value(argv: Sequence[str], option: str) -> str:
    """What follows the option, as its own word or after `=`."""
    for place, word in enumerate(argv):
        if word == option:
            return argv[place + 1] if place + 1 < len(argv) else ""
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return ""
