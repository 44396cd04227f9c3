"""Parses the agents' answers and checks them against the contract of each phase. A Breach describes what is wrong."""

import json
import re
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from rooda.base.json import Json, find_objects, loads

STRICT, LENIENT = "strict", "lenient"
STEPS, ISSUES = (3, 5), (1, 5)
VERDICTS = ("pass", "fail", "warn")
PLACEHOLDER = r"(?i)<(?:task[-_ ]?)?alias>|<artifact[-_ ]path>"
HERE = r"""(?:(?:\./)+|\$\{?PWD\}?"?/|(?:\$\(pwd\)|`pwd`)"?/)?"""  # ways to write the current folder in a command


class Breach(ValueError):
    """Raised for an answer that violates its phase's contract."""


def markdown(answer: str) -> str:
    """Return the artifact in an answer, without chatter and outer code fence; every line ends with \\n."""
    text = _plain(answer)
    if not text:
        raise Breach("the answer is empty")
    rest = _without_opening(text)
    text = _inside_fence(_without_closing(rest), ("markdown", "md", *(("",) if rest != text else ())))
    if not text.strip():
        raise Breach("the answer has no artifact, only words about it")
    return text.strip("\n") + "\n"


_OPENING = (  # one line in which an agent announces the artifact
    r"(?im)(?:(?:sure(?: thing)?|certainly|of course|absolutely|ok(?:ay)?|got it|great|understood|no problem"
    r"|done)\b[!,.:]"
    r"|(?:here(?:['\u2019]s| is| are)|below is|i(?:['\u2019]ve| have) (?:written|created|updated|revised|improved))\b"
    r"[^\n]{0,200}(?:artifact|document|markdown|version|file|content|text|draft|result|spec(?:ification)?|guide|page)\b[^\n]{0,200}:$)"
    r"[^\n]{0,300}$"
)


def _without_opening(text: str) -> str:
    """Return the text without a first line such as "Sure! Here is the document:" and a `---` line below it."""
    opening = re.match(_OPENING, text)
    after = text[opening.end() :] if opening else ""
    if not opening or not (after.strip() == "" or after.startswith(("\n\n", "\n#", "\n```"))):
        return text
    return re.sub(r"\A\s*(?:(?:---|\*\*\*)[ \t]*\n\s*\n)?\s*", "", after)


def _without_closing(text: str) -> str:
    """If the text is a fenced Markdown block followed by one plain paragraph, return the block; else the whole text."""
    if not re.match(r"`{3,}[ \t]*(?:markdown|md)?[ \t]*\n", text, re.IGNORECASE):
        return text
    mark = re.match(r"`+", text)[0]  # type: ignore[index]  # matched above
    before, fence, after = text.rpartition(f"\n{mark}\n")
    plain = "\n\n" not in after.strip() and not re.search(r"^[ \t]*(?:#|```|[-*+|>]|\d+\.)", after, re.MULTILINE)
    return f"{before}\n{mark}" if fence and after.strip() and plain else text


def _plain(answer: str) -> str:
    return answer.replace("\r\n", "\n").lstrip("\ufeff").strip()


def _inside_fence(text: str, words: Sequence[str]) -> str:
    """Return the text inside an outer code fence whose language is in `words`; without such a fence, the whole text."""
    lines = text.split("\n")
    opening = re.fullmatch(r"(`{3,}+)[ \t]*+(\w*+)[ \t]*+", lines[0])
    if len(lines) < 2 or not opening or opening[2].lower() not in words or lines[-1].rstrip() != opening[1]:
        return text
    inside = False  # inside a nested block, which ends at a fence without a language name
    for line in lines[1:-1]:
        if line.startswith(opening[1]):
            inside = not inside or bool(line.strip("` \t"))
    return text if inside else "\n".join(lines[1:-1]).strip("\n")


def one_object(answer: str, extraction: str = LENIENT, key: str = "") -> Json:
    """Parse the answer as one JSON object. A lenient `extraction` allows text and objects without `key` around it."""
    text = _inside_fence(_plain(answer), ("json", ""))
    if not text:
        raise Breach("the answer is empty")
    try:
        value = loads(text, _DECODER.decode)
    except Breach:
        raise
    except ValueError as problem:
        if extraction == LENIENT and (found := _found_in(text, key)) is not None:
            return found
        raise Breach(f"the answer is not one JSON object ({problem})") from None
    if not isinstance(value, dict):
        raise Breach("the answer is JSON, but not an object")
    return _whole(value)


def _found_in(text: str, key: str) -> Json | None:
    """Find the JSON object with this key in the text; None if there is none. Raise Breach if there are several."""
    found = [each for each in find_objects(text, _DECODER) if not key or key in each]
    if len(found) > 1:
        what = f"JSON objects with the key {key!r}" if key else "JSON objects"
        raise Breach(f"the answer has {len(found)} {what}, not one")
    return _whole(found[0]) if found else None


def _whole(value: Json) -> Json:
    if has_lone_surrogate(value):
        raise Breach("a string in the answer has an unpaired surrogate")
    return value


def has_lone_surrogate(value: Any) -> bool:
    """True if a string has an unpaired surrogate, which JSON allows and UTF-8 files don't."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return True
    return False


def unique_keys(pairs: list[tuple[str, Any]]) -> Json:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise Breach("an object has the same key twice")
    return table


def _no_constant(word: str) -> Any:
    raise Breach(f"{word} is not valid JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=unique_keys, parse_constant=_no_constant)


def plan(answer: Json) -> list[str]:
    """Return the steps in `{"plan": [...]}`, 3 to 5 strings; raise Breach if they are invalid."""
    steps = _list(answer, "plan")
    if not all(isinstance(step, str) and step.strip() for step in steps):
        raise Breach("every step of 'plan' must be a non-empty string")
    least, most = STEPS
    if not least <= len(steps) <= most:
        raise Breach(f"'plan' must have {least} to {most} steps, it has {len(steps)}")
    return steps


def checks(answer: Json, active: Collection[str], artifact: str, roots: Sequence[str] = ()) -> list[Json]:
    """Return the checks in `{"checks": [...]}`, each for an active rule, without unknown keys.

    `roots`: all paths of the folder that commands run in.
    """
    named = artifact_path(artifact, roots)
    return [_check(raw, f"checks[{place}]", active, named) for place, raw in enumerate(_list(answer, "checks"))]


class ArtifactPath(NamedTuple):
    """The artifact's path, and a pattern that finds it in a command."""

    path: str
    pattern: re.Pattern[str]


def artifact_path(path: str, roots: Sequence[str]) -> ArtifactPath:
    """Return the path with a pattern that finds it in a command but doesn't match `PATH.bak` or `/elsewhere/PATH`."""
    here = "|".join([*(f"{re.escape(root.rstrip('/'))}/" for root in roots), HERE])
    return ArtifactPath(path, re.compile(rf"(?<![\w./~$%@+-])(?:{here}){re.escape(path)}(?![\w./~$%@+*?{{\[-])"))


def _check(raw: Any, where: str, active: Collection[str], artifact: ArtifactPath) -> Json:
    table = _table(raw, where)
    rule = _text(table, "rule_id", where)
    if rule not in active:
        raise Breach(f"{where}: rule_id {rule!r} is not an active rule")
    kind = table.get("type")
    if kind not in ("executable", "content"):
        raise Breach(f"{where}: type must be 'executable' or 'content', got {kind!r}")
    key = "command" if kind == "executable" else "search"
    check: Json = {"rule_id": rule, "type": kind, key: _text(table, key, where)}
    if not isinstance(table.get("expected"), str):
        raise Breach(f"{where}: 'expected' must be a string")
    check["expected"] = table["expected"]
    if kind == "executable":
        _executable(check["command"], where, artifact)
    elif "absent" in table:
        if not isinstance(table["absent"], bool):
            raise Breach(f"{where}: 'absent' must be true or false")
        check["absent"] = table["absent"]
    return check


def _executable(command: str, where: str, artifact: ArtifactPath) -> None:
    if placeholder := re.search(PLACEHOLDER, command):
        raise Breach(f"{where}: the command contains the placeholder {placeholder[0]}")
    if not artifact.pattern.search(command):
        raise Breach(f"{where}: the command must name the artifact by its path {artifact.path}")
    if "\0" in command:
        raise Breach(f"{where}: the command contains a NUL character")


def own_checks(answer: Json, wanted: Collection[str]) -> tuple[dict[str, str], str]:
    """Read `{"checks": {…}, "ideal_result": "…"}`: return the checks of the wanted rules, and the ideal result."""
    table = _table(answer.get("checks"), "'checks'")
    found = {rule: _text(table, rule, "'checks'").strip() for rule in wanted}
    ideal = answer.get("ideal_result", "")
    if not isinstance(ideal, str):
        raise Breach("'ideal_result' must be a string")
    return found, ideal.strip()


def verdicts(answer: Json, wanted: Collection[str]) -> dict[str, tuple[bool, str]]:
    """Map each wanted rule in `{"rule_results": [...]}` to its verdict, True if the rule holds, and to details."""
    found: dict[str, tuple[bool, str]] = {}
    for place, raw in enumerate(_list(answer, "rule_results")):
        where = f"rule_results[{place}]"
        table = _table(raw, where)
        rule, verdict = _text(table, "id", where), table.get("verdict")
        if rule not in wanted or rule in found:
            raise Breach(f"{where}: {rule!r} is {'judged twice' if rule in found else 'not a rule to judge here'}")
        if verdict not in VERDICTS:
            raise Breach(f"{where}: verdict must be one of {', '.join(VERDICTS)}, got {verdict!r}")
        if not isinstance(table.get("details"), str):
            raise Breach(f"{where}: 'details' must be a string")
        found[rule] = (verdict == "pass", table["details"].strip())
    missing = [rule for rule in wanted if rule not in found]
    if missing:
        raise Breach(f"no verdict for {', '.join(missing)}")
    return found


def issues(answer: Json, failing: Collection[str]) -> list[Json]:
    """Return the issues in `{"issues": [...]}`, 1 to 5, each for a rule that failed; raise Breach if invalid."""
    found = _list(answer, "issues")
    least, most = ISSUES
    if not least <= len(found) <= most:
        raise Breach(f"'issues' must have {least} to {most} entries, it has {len(found)}")
    keys = ("rule_id", "problem", "fix_instruction", "expected_effect")
    kept = []
    for place, raw in enumerate(found):
        where = f"issues[{place}]"
        table = _table(raw, where)
        issue = {key: _text(table, key, where) for key in keys}
        if issue["rule_id"] not in failing:
            raise Breach(f"{where}: {issue['rule_id']!r} is not a rule that failed")
        kept.append(issue)
    return kept


def _list(answer: Json, key: str) -> list[Any]:
    value = answer.get(key)
    if not isinstance(value, list):
        raise Breach(f"the answer must have the key {key!r} with a list")
    return value


def _table(raw: Any, where: str) -> Json:
    if not isinstance(raw, dict):
        raise Breach(f"{where} must be an object")
    return raw


def _text(table: Json, key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        raise Breach(f"{where}: {key!r} must be a non-empty string")
    return value
