"""The agent's own word on how it went: a tag alone on its line, which is a claim and not yet a fact."""

from collections.abc import Iterable

SUCCESS = b"<promise>SUCCESS</promise>"
FAILURE = b"<promise>FAILURE</promise>"
_MARKS = b"`~-=*#> "
_WORDS = {SUCCESS: "SUCCESS", FAILURE: "FAILURE"}


def claims(lines: Iterable[bytes]) -> list[tuple[str, bytes]]:
    """Each tag that stands alone on a line, with the last line before it that was not empty."""
    found = []
    before = b""
    for line in lines:
        stripped = line.strip()
        if stripped in _WORDS:
            found.append((_WORDS[stripped], before))
        if stripped.translate(None, _MARKS):  # a fence around the tag is no line that an echo could be known by
            before = stripped
    return found


def verdict(said: list[tuple[str, bytes]], prompt: bytes) -> str:
    """SUCCESS, FAILURE or nothing. A tag that follows the same line as in the prompt is an echo of the prompt."""
    echoes = set(claims(prompt.split(b"\n")))  # as a transcript is read: a lone \r ends no line
    own = {word for word, before in said if (word, before) not in echoes}
    return "FAILURE" if "FAILURE" in own else "SUCCESS" if own else ""
