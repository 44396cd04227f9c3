"""Writes the prompt files of a run."""

from typing import NamedTuple

from rooda.agents.records import Prompt
from rooda.base import files
from rooda.run import tokens
from rooda.run.folder import RunFolder


class Measure(NamedTuple):
    """The encoding used to count a prompt's tokens, and the number of tokens above which to warn."""

    encoding: str = "o200k_base"
    budget: int = 0


KEPT = 1_048_576  # characters; a longer text would take memory while the agent works


class PromptFile:
    """Writes prompts to files. An unchanged prompt is written again only if its file was changed."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._text = ""  # of the last prompt, unless it is too long
        self._last: tuple[Prompt, tuple[int, ...]] | None = None

    def unchanged(self) -> Prompt | None:
        """Return the last prompt if its file is unchanged, else None."""
        return self._last[0] if self._last and files.fingerprint(self._last[0].path) == self._last[1] else None

    def text(self) -> str:
        """Return the text of the last prompt; "" if it is no longer known."""
        if self._text:
            return self._text
        last = self.unchanged()
        return files.to_text(files.read_ours(last.path)) if last else ""

    def write(self, text: str, stem: str, measure: Measure) -> Prompt:
        data = files.to_bytes(text)
        digest = files.sha256(data)
        if self._last and digest == self._last[0].sha256 and (same := self.unchanged()):
            return same
        path = self._folder.write(f"{stem}-prompt.md", data)
        count, exact = tokens.count(text, measure.encoding)
        prompt = Prompt(path, digest, len(data), count, exact, measure.budget)
        self._text, self._last = text if len(text) < KEPT else "", (prompt, files.fingerprint(path))
        return prompt
