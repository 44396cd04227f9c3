"""The prompts' files of a run."""

from typing import NamedTuple

from rooda.agents.records import Prompt
from rooda.base import files
from rooda.run import tokens
from rooda.run.folder import RunFolder


class Measure(NamedTuple):
    """With which vocabulary a prompt's tokens are counted, and how many it should have at most."""

    encoding: str = "o200k_base"
    budget: int = 0


class KeptPrompt:
    """A prompt's file: written again only when the text is another one, or somebody touched the file."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._text = ""  # what it stands for, not a long text itself: it would be kept while the agent works
        self._kept: tuple[Prompt, tuple[int, ...]] | None = None

    def again(self) -> Prompt | None:
        """The last one, if its file is as it was."""
        return self._kept[0] if self._kept and files.fingerprint(self._kept[0].path) == self._kept[1] else None

    def keep(self, text: str, stem: str, measure: Measure) -> Prompt:
        told = files.content_key(text)
        if told == self._text and (same := self.again()):
            return same
        data = files.to_bytes(text)
        path = self._folder.write(f"{stem}-prompt.md", data)
        count, exact = tokens.count(text, measure.encoding)
        prompt = Prompt(path, files.sha256(data), len(data), count, exact, measure.budget)
        self._text, self._kept = told, (prompt, files.fingerprint(path))
        return prompt
