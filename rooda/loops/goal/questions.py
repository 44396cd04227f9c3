"""Questions while a goal runs: a flag answers, else a terminal, else a line that waits on a pipe, else nobody."""

from collections.abc import Callable

from rooda.processes.signals import Signals
from rooda.run import questions

WORDS = {"y": "y", "yes": "y", "n": "n", "no": "n"}
ASK_AGAIN = "Please answer y or n. "


class Asker:
    """Understands y, n and what else a question allows."""

    def __init__(self, signals: Signals, headless: bool = False) -> None:
        self._signals, self._headless = signals, headless

    def attended(self) -> bool:
        """Is a person at a terminal, who may be asked?"""
        return questions.at_terminal() and not self._headless

    def answer(self, question: str, hint: str, accepts: Callable[[str], bool]) -> str | None:
        """y, n, or words that `accepts` takes; without a hint any line. None: nobody answers."""
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
