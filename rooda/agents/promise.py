"""The agent's own verdict: a tag alone on a line. A claim, not yet a fact."""

from collections.abc import Iterable

SUCCESS = b"<promise>SUCCESS</promise>"
FAILURE = b"<promise>FAILURE</promise>"
_MARKS = b"`~-=*#> "
_WORDS = {SUCCESS: "SUCCESS", FAILURE: "FAILURE"}


def claims(lines: Iterable[bytes]) -> list[tuple[str, bytes]]:
    """Return each tag that is alone on a line, with the last line before it that is not empty."""
    found = []
    before = b""
    for line in lines:
        stripped = line.strip()
        if stripped in _WORDS:
            found.append((_WORDS[stripped], before))
        if stripped.translate(None, _MARKS):  # a code fence around the tag can't identify an echo
            before = stripped
    return found


def verdict(said: list[tuple[str, bytes]], prompt: bytes) -> str:
    """SUCCESS, FAILURE or "". A tag after the same line as in the prompt is an echo of the prompt."""
    echoes = set(claims(prompt.split(b"\n")))  # split as a transcript is: a lone \r ends no line
    own = {word for word, before in said if (word, before) not in echoes}
    return "FAILURE" if "FAILURE" in own else "SUCCESS" if own else ""
