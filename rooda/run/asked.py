"""Finds the question with which an agent ended its run, and stores the answer for the next prompt."""

from rooda.errors import Undecided, UsageProblem
from rooda.run import history, messages
from rooda.run.ended import QUESTION
from rooda.run.history import SessionLog


def question_of(workspace: str, name: str, loop: str) -> str:
    """Return the question that waits for an answer; "" if there is none, or if it was answered."""
    session = history.newest(workspace, name, loop)
    return open_question(session) if session else ""


def open_question(session: SessionLog) -> str:
    """Return the question that ended a session, if it has no answer yet; else ""."""
    ended = session.ended or {}
    if ended.get("reason") != QUESTION or messages.has_note(session.folder):
        return ""
    return str(ended.get("question") or "")


def require_answer(workspace: str, name: str, loop: str) -> None:
    """Raise Undecided if the loop's agent asked something that has not been answered."""
    if question := question_of(workspace, name, loop):
        raise Undecided(f"'{name}' asks: {question} Nothing was started.", f'Answer it: rooda answer {name} "…"')


def answer(workspace: str, name: str, loop: str, text: str) -> None:
    """Store the answer for the next prompt. Raises UsageProblem if no question is open, OSError on a write error."""
    question, session = question_of(workspace, name, loop), history.newest(workspace, name, loop)
    if not question or session is None:
        raise UsageProblem(f"'{name}' has no open question.", "See: rooda status")
    messages.leave(workspace, session.run, loop, messages.NOTE, in_words(question, text))


def in_words(question: str, text: str) -> str:
    return f"You asked: {question}\nThe answer: {text}"
