"""Lists and closes issues with the forges' commands, `gh` and `glab`, and the user's own login."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rooda.base import files, json
from rooda.errors import RoodaError, UsageProblem
from rooda.processes.capture import TIMED_OUT, Captured, capture
from rooda.processes.supervise import NOT_FOUND
from rooda.tasks import sources
from rooda.tasks.sources import FORGES, GH, Draft

TIMEOUT = 120.0  # seconds for one command
PAGE = 100  # issues on one page of glab
MOST = 10_000  # number of issues that are read
DEVELOPER = 30  # lowest access level of GitLab that may push
MAY_WRITE = ("admin", "maintain", "write")  # permissions of GitHub that include writing


def listed(forge: str, labels: Sequence[str], cwd: str, env: Mapping[str, str]) -> list[Draft]:
    """Return the open issues that have all these labels. Raises UsageProblem if the forge's command fails."""
    words = [word for label in labels for word in ("--label", label)]
    if forge == GH:
        fields = "number,title,body,url,author"
        asked = ["issue", "list", "--state", "open", "--limit", str(MOST), "--json", fields, *words]
        return sources.of_github(printed_json(forge, asked, cwd, env))
    found: list[Draft] = []
    for page in range(1, MOST // PAGE + 1):
        asked = ["issue", "list", "--output", "json", "--per-page", str(PAGE), "--page", str(page), *words]
        issues = sources.of_gitlab(printed_json(forge, asked, cwd, env))
        found += issues
        if len(issues) < PAGE:
            break
    return found


def writers(forge: str, authors: Iterable[str], cwd: str, env: Mapping[str, str]) -> set[str]:
    """Return the authors that are known to have write access to the repository."""
    names = sorted(author for author in {*authors} if re.fullmatch(r"[\w.-]+", author))
    return {author for author in names if _may_write(forge, author, cwd, env)}


def _may_write(forge: str, author: str, cwd: str, env: Mapping[str, str]) -> bool:
    if forge == GH:
        path = f"repos/{{owner}}/{{repo}}/collaborators/{author}/permission"
    else:
        path = f"projects/:fullpath/members/all/{author}"
    done = _run(forge, ["api", path], cwd, env)
    try:
        said = json.parse_object(done.out) if done.code == 0 else {}
    except ValueError:
        return False
    if forge == GH:
        return said.get("permission") in MAY_WRITE
    level = said.get("access_level")
    return isinstance(level, int) and level >= DEVELOPER


def close(forge: str, url: str, comment: str, cwd: str, env: Mapping[str, str]) -> None:
    """Close an issue with a comment. Raises UsageProblem if the forge's command fails."""
    number = url.rstrip("/").rpartition("/")[2]
    if forge == GH:
        checked(forge, ["issue", "close", url, "--comment", comment], cwd, env)
    else:
        checked(forge, ["issue", "note", number, "--message", comment], cwd, env)
        checked(forge, ["issue", "close", number], cwd, env)


def place_of(drafts: Collection[Draft]) -> str:
    """Return the common prefix of the URLs of the repository's issues; "" if there are no issues."""
    first = next((draft.place for draft in drafts), "")
    return f"{first.rstrip('/').rpartition('/')[0]}/" if "/" in first else ""


def printed_json(forge: str, words: Sequence[str], cwd: str, env: Mapping[str, str]) -> Any:
    """Return the JSON that a forge's command prints. Raises RoodaError if it fails or prints no JSON."""
    out = checked(forge, words, cwd, env)
    try:
        return json.loads(out) if out.strip() else []
    except ValueError:
        raise RoodaError(f"{forge} {' '.join(words[:2])} printed no JSON.", f"Update {forge}.") from None


def checked(forge: str, words: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
    """Return what a forge's command prints. Raises UsageProblem if it fails."""
    done = _run(forge, words, cwd, env)
    if done.code == NOT_FOUND:
        raise UsageProblem(
            f"{forge} can't be started: it is not installed.", f"Install it, and log in: {forge} auth login"
        )
    if done.code:
        rows = [row for row in files.to_text(done.err).splitlines() if row.strip()]
        why = f"no answer within {TIMEOUT:g} s" if done.code == TIMED_OUT else f"exit {done.code}"
        why = rows[-1].strip() if rows else why
        raise UsageProblem(f"{forge} {' '.join(words[:2])} failed: {why}", f"Check the login: {forge} auth status")
    return done.out


def _run(forge: str, words: Sequence[str], cwd: str, env: Mapping[str, str]) -> Captured:
    assert forge in FORGES
    quiet = {"GH_PROMPT_DISABLED": "1", "NO_PROMPT": "1", "GLAB_NO_PROMPT": "1", "NO_COLOR": "1"}
    return capture([forge, *words], timeout=TIMEOUT, env={**env, **quiet}, cwd=cwd)
