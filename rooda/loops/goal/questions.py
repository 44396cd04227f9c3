"""Questions to the user while a goal runs: asked at the terminal, or answered by a line on a pipe."""

from collections.abc import Callable

from rooda.processes.signals import Signals
from rooda.run import questions

WORDS = {"y": "y", "yes": "y", "n": "n", "no": "n"}
ASK_AGAIN = "Please answer y or n. "


class Asker:
    """Reads answers: y, n and what else a question accepts."""

    def __init__(self, signals: Signals, headless: bool = False) -> None:
        self._signals, self._headless = signals, headless

    def attended(self) -> bool:
        """True if the user can be asked at a terminal."""
        return questions.at_terminal() and not self._headless

    def answer(self, question: str, hint: str, accepts: Callable[[str], bool]) -> str | None:
        """Return y, n or a text that `accepts` allows; any line if there is no hint. None without an answer."""
        if self._headless:
            return None
        terminal = questions.at_terminal()
        prompt = f"{question} {hint} " if hint else f"{question} "
        while True:
            asked = (
                questions.typed_answer(prompt, self._signals) if terminal else questions.waiting_answer(self._signals)
            )
            if asked is None:
                return None
            word = asked.strip()
            if not hint or accepts(word):
                return word
            if not word or word.lower() in WORDS:
                return WORDS[word.lower()] if word else ("y" if hint == "[Y/n]" else "n")
            if not terminal:
                return None
            prompt = f"{ASK_AGAIN}{hint} "
