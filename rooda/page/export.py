"""Exports a run to one HTML file that looks like the page. The file has no scripts and loads nothing."""

import os
from collections.abc import Callable, Iterable, Sequence

from rooda.base import files, secrets
from rooda.base.json import Json
from rooda.base.text import plain
from rooda.git import repository, snapshots
from rooda.git.repository import GitProblem, Repo
from rooda.git.retention import Turn, turns
from rooda.loops import masking, past
from rooda.page import run_facts, run_view
from rooda.page.html import Html, document, join, tag
from rooda.run import cost_ledger, folder, past_runs
from rooda.run.past_runs import PastRun
from rooda.settings.where import Where
from rooda.views.agent_output import readable

STYLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "static", "look.css")
READ = 1_048_576  # bytes at the end of a transcript that rooda reads
MOST_TEXT = 200_000  # characters of one transcript that are shown
MOST_TEXTS = 16_000_000  # characters of all transcripts together
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
BARS = """
.bars { width: 100%; height: 72px; display: block; }
.bars rect { fill: var(--accent); }
.bars .none { fill: var(--line); }
.noted { margin-top: 12px; }
main { padding-top: 8px; }
@media print { details > * { display: block; } pre { max-height: none; } }
"""


def find(workspace: str, word: str) -> PastRun | None:
    """Return the run that has the session `word`, else the newest run of the loop named `word`, else None."""
    by_id = run_facts.find(workspace, word) if folder.is_id(word) else None
    if by_id:
        return by_id
    kind, _, name = word.rpartition(" ")
    found = [run for run in past_runs.past_runs(workspace, name) if kind in ("", run.loop) and run.name == name]
    return past_runs.with_deleted(found, cost_ledger.deleted_calls(workspace, name))[0] if found else None


def html(run: PastRun, here: Where, notes: Iterable[str] = ()) -> str:
    """Return the content of the HTML file. `notes`: remarks to show at the top."""
    hidden = masking.keys(here)
    facts = run_facts.facts(run, here, past_runs.is_running(run, past.live_runs(here.workspace)), hidden)
    texts = _Texts(run, hidden, _Diffs(here.workspace, run) if facts["snapshots"] else None)
    found = run_view.pieces(facts, texts.shown)
    found["chart"] = _chart(facts["iterations"])
    title = run_view.title(facts["row"])
    about = (
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("style", Html(files.text(STYLE) + BARS)),
    )
    noted = [tag("p", note, class_="soft noted") for note in notes]
    return document(f"{title} – rooda", tag("main", *noted, run_view.body(found)), head=join(about)) + "\n"


class _Texts:
    """Formats the agent's words, the gates' output and the diffs as elements that a click unfolds."""

    def __init__(self, run: PastRun, hidden: tuple[str, ...], diffs: "_Diffs | None") -> None:
        self._folders = {session.run: session.folder for session in run.sessions}
        self._hidden, self._diffs, self._left = hidden, diffs, MOST_TEXTS

    def shown(self, title: str, ref: Json) -> Html:
        if ref["what"] == "diff":
            return self._diff(title, ref) if self._diffs else Html("")
        if not ref["file"]:
            return Html("")
        path = folder.transcript_in(self._folders[ref["session"]], ref["file"])
        text, note = self._end(str(ref.get("output") or "text"), path)
        return _folded(title, note, tag("pre", text) if text else "")

    def _diff(self, title: str, ref: Json) -> Html:
        found = self._diffs.of(ref["session"], ref["number"]) if self._diffs else ""
        text = self._clean(found)
        most = max(min(MOST_TEXT, self._left), 0)
        note = f"Only the beginning is shown. To see all: rooda diff {ref['number']}" if len(text) > most else ""
        self._left -= min(len(text), most)
        return _folded(title, note, tag("pre", *map(_diff_line, text[:most].splitlines()))) if text else Html("")

    def _end(self, output: str, path: str) -> tuple[str, str]:
        """Return the end of a transcript with secrets masked, and a remark if it is cut off or empty, else ""."""
        most, name = min(MOST_TEXT, self._left), os.path.basename(path)
        if most <= 0:
            return "", f"Left out, since this file is large enough. It is in the run's folder: {name}"
        text = self._clean("\n".join(readable(output, path, self._hidden, READ))).strip("\n")
        cut = len(text) > most or _size(path) > READ
        text = text[-most:].partition("\n")[2] or text[-most:] if len(text) > most else text
        self._left -= len(text)
        if cut:
            return text, f"Only the end is shown. The whole is in the run's folder: {name}"
        return text, "" if text else "No text."

    def _clean(self, text: str) -> str:
        """Remove color codes from the text, since they could split a secret; then mask its secrets."""
        return secrets.hide(plain(text), self._hidden)


class _Diffs:
    """Computes the diff of each iteration of a run from the run's snapshots."""

    def __init__(self, workspace: str, run: PastRun) -> None:
        self._repo: Repo | None = None
        self._turns: dict[tuple[str, int], Turn] = {}
        try:
            self._repo = repo = repository.find(workspace)
            tips = {tip.run: tip for tip in snapshots.tips(repo)}
        except GitProblem:
            return
        for session in run.sessions:
            if tip := tips.get(session.run):
                found = turns(snapshots.history(repo, tip))
                self._turns |= {(session.run, turn.before.iteration): turn for turn in found}

    def of(self, session: str, number: int) -> str:
        """Return the diff of an iteration; "" if the iteration has not ended, or has no snapshots."""
        turn = self._turns.get((session, number))
        if turn is None or turn.after is None or self._repo is None:
            return ""
        words = ("diff", "--no-ext-diff", "--no-textconv", "--color=never")
        return self._repo.run(*words, turn.before.tree, turn.after.tree).out.decode("utf-8", "replace")


_OF_A_FILE = ("diff ", "index ", "--- ", "+++ ", "new file ", "deleted file ", "old mode ", "new mode ", "rename ")


def _diff_line(line: str) -> Html:
    kinds = {"+": "added", "-": "removed", "@": "place"}
    kind = "file" if line.startswith(_OF_A_FILE) else kinds.get(line[:1])
    return tag("span", f"{line}\n", class_=kind)


def _folded(title: str, note: str, inner: object) -> Html:
    return tag("details", tag("summary", title), tag("p", note, class_="soft") if note else "", inner)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _chart(iterations: list[Json]) -> Html:
    """Return bar charts of the cost and the tokens of each iteration; a chart without any known value is left out."""
    shown = [each for each in iterations if each["number"] > 0 and each["usage"]][-run_view.MOST_CHARTED :]
    costs = [each["usage"]["cost"] for each in shown]
    tokens = [run_view.token_count(each["usage"]) for each in shown]
    numbers = [each["number"] for each in shown]
    charts = (*_bars("Cost", numbers, costs, run_view.money), *_bars("Tokens", numbers, tokens, "{:,}".format))
    return tag("div", *charts, data_piece="chart")


def _bars(title: str, numbers: Sequence[int], values: Sequence[float | None], words: Callable[..., str]) -> list[Html]:
    """Return a chart with a bar for each iteration; an unknown value is a gray bar of full height."""
    most = max((value for value in values if value), default=0)
    if not most:
        return []
    bars = []
    for place, (number, value) in enumerate(zip(numbers, values, strict=True)):
        height = 100.0 if value is None else max(100 * value / most, 1.0) if value else 0.0
        label = f"Iteration {number}: {'unknown' if value is None else words(value)}"
        box = {"x": place + 0.1, "y": f"{100 - height:.4g}", "width": 0.8, "height": f"{height:.4g}"}
        bars.append(tag("rect", tag("title", label), class_="none" if value is None else "bar", **box))
    width = max(len(bars), 12)
    frame = {"viewBox": f"0 0 {width} 100", "preserveAspectRatio": "none", "role": "img"}
    head = tag("h2", f"{title} of each iteration, at most {words(most)}")
    return [head, tag("svg", *bars, class_="bars", aria_label=f"{title} of each iteration", **frame)]
