"""What a start or a resume does with the state that it finds."""

RESUMABLE = ("interrupted", "paused")


def start(status: str | None, asked: str, on_interrupted: str) -> str:
    """fresh, resume, ask or refuse, for `rooda P`. `asked`: "resume", "fresh" or "", for --resume, --fresh, neither."""
    if status in (None, "completed"):
        return "fresh"
    if asked:
        return asked
    if status == "running":
        return "refuse"
    return on_interrupted if status in RESUMABLE else "fresh"


def resume(status: str | None) -> str:
    """resume or nothing, for `rooda resume P`."""
    return "nothing" if status in (None, "completed") else "resume"


def reads_as(answer: str) -> str:
    """A person's answer to `Resume? [Y/n]`: resume, fresh, or "" for neither."""
    word = answer.strip().lower()
    if word in ("", "y", "yes"):
        return "resume"
    return "fresh" if word in ("n", "no") else ""
