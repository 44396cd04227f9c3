"""Finding secrets in variables and hiding them in texts."""

import base64
import json

import pytest

from rooda.base import secrets

KEY = "sk-ant-0123456789abcdef"


@pytest.mark.parametrize(
    "name",
    [
        *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GH_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "my_password"),
        *("MYSECRET", "GITHUBTOKEN", "SSH_PASSPHRASE", "APP_CREDENTIALS", "SESSION_COOKIE", "PRIVATE_STUFF", "DB_PASS"),
        *("NPM_CONFIG__AUTH", "GITLAB_PAT", "KEY", "TOKEN", "MYSQL_PWD", "SENTRY_DSN", "HTTP_AUTHORIZATION"),
        *("OPENAIKEY", "API_KEYS", "TOKEN2", "accessToken", "serviceKeyPrimary", "AWSAuth"),
    ],
)
def test_names_that_hold_keys(name: str) -> None:
    """The value of such a variable is a secret."""
    assert KEY in secrets.forms({name: KEY})


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "HOME", "PWD", "OLDPWD", "KEYBOARD_LAYOUT", "TOKENIZERS_PARALLELISM", "SSH_AUTH_SOCK", "LANG"),
        *("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "ROODA_LOOP_TOKEN_BUDGET", "ROODA_LOOP_TOKEN_ENCODING", "SSH_KEY_FILE"),
        *("AWS_WEB_IDENTITY_TOKEN_FILE", "KEYS_DIR", "TOKEN_LIMIT", "PYTHON_KEYRING_BACKEND"),
        *("MONKEY", "MY_MONKEYS", "SECRETARY", "DC_AUTHOR", "GREP_PATTERN", "DB_PASSES", "keyboardLayout"),
    ],
)
def test_names_that_hold_none(name: str) -> None:
    """Settings about secrets, and names that only contain the letters, are not secrets."""
    assert secrets.forms({name: KEY}) == ()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", ()),
        ("short", ()),
        ("1234567", ()),
        ("12345678", ()),
        ("1234567890123456", ("1234567890123456",)),
        ("  padded-key-1  \n", ("padded-key-1",)),
        ("hunter2hunter2", ("hunter2hunter2",)),
        ("postgres", ()),
        ("development", ()),
        ("Password", ("Password",)),
        ("correcthorsebatt", ("correcthorsebatt",)),
    ],
)
def test_values_that_are_long_enough(value: str, expected: tuple[str, ...]) -> None:
    """Short values and plain numbers are not hidden, since they occur in ordinary text."""
    assert {*expected} == {*secrets.forms({"API_KEY": value})} & {value.strip()}


def test_a_password_in_an_address() -> None:
    """A password in a URL is a secret under any variable name."""
    assert "s3cr3t-word" in secrets.forms({"DATABASE_URL": "postgres://app:s3cr3t-word@db/x?y=a:b@c"})
    assert secrets.forms({"HTTP_PROXY": "http://proxy:8080/", "X": "mailto:a@b"}) == ()


def test_a_workspace_path_is_not_a_secret() -> None:
    """A workspace path is not hidden, even in a variable named like a secret."""
    assert secrets.forms({"KEYS": "/work/project"}, ordinary=["/work/project/src"]) == ()


def test_forms() -> None:
    """A secret is hidden in JSON and line by line."""
    quoted = 'a"b\\c' * 3
    found = secrets.forms({"API_KEY": quoted, "PRIVATE_KEY": "-----BEGIN KEY-----\nMIIabcdefghijklmnop\n-----END"})
    for text in (quoted, json.dumps({"said": quoted}), "MIIabcdefghijklmnop", "x\\nMIIabcdefghijklmnop\\n"):
        shown = secrets.hide(text, found)
        assert secrets.HIDDEN in shown and quoted not in shown and "MIIabc" not in shown


def test_longest_first() -> None:
    """A secret that contains another one is hidden as a whole."""
    found = secrets.forms({"A_KEY": "abcdefg1", "B_KEY": "abcdefg1-and-more"})
    assert secrets.hide("x abcdefg1-and-more y abcdefg1 z", found) == "x *** y *** z"


def test_facts_of_any_depth() -> None:
    """Secrets are hidden in objects and lists, keys too; without values the same object is returned."""
    facts = {"a": [f"key {KEY}", 1, None, {"b": KEY}], KEY: True, "n": 2.5}
    assert secrets.hide_in(facts, (KEY,)) == {"a": ["key ***", 1, None, {"b": "***"}], "***": True, "n": 2.5}
    assert secrets.hide_values_in(facts, (KEY,)) == secrets.hide_in(facts, (KEY,))
    assert secrets.hide_values_in(facts, ()) is facts


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("nothing", 0), ("x sk-", 3), ("sk-ant-0123456789abcde", 22), (f"{KEY}", 0), (f"{KEY} s", 1)],
)
def test_text_that_may_begin_a_secret_is_held_back(text: str, expected: int) -> None:
    """The end of a text is held back while it may begin a secret."""
    assert secrets.length_to_hold_back(text, (KEY,)) == expected


def test_in_pieces_of_any_size_nothing_shows() -> None:
    """Wherever a text is cut, the pieces shown never contain the middle of a secret."""
    text = f"before {KEY} between {KEY[:9]} after {KEY}"
    for size in range(1, len(text)):
        shown, rest = "", ""
        for start in range(0, len(text), size):
            rest = secrets.hide(rest + text[start : start + size], (KEY,))
            keep = secrets.length_to_hold_back(rest, (KEY,))
            shown, rest = shown + rest[: len(rest) - keep], rest[len(rest) - keep :]
        assert shown + rest == f"before *** between {KEY[:9]} after ***", size


LONG = "K" + "".join(chr(97 + place * 7 % 26) for place in range(107))
ODD = 'pässwort/ge"heim\\1'


def wrapped(text: str, width: int = 76, indent: str = "", end: str = "\n") -> str:
    """A secret is hidden in base64, also wrapped as the usual tools wrap it."""
    code = base64.b64encode(text.encode()).decode()
    return "".join(f"{indent}{code[start : start + width]}{end}" for start in range(0, len(code), width))


@pytest.mark.parametrize("before", [0, 1, 2, 20, 55, 75])
@pytest.mark.parametrize("way", [(76, "", "\n"), (64, "  ", "\n"), (76, "", "\r\n")], ids=["gnu", "indented", "mime"])
def test_base64_in_lines(before: int, way: tuple[int, str, str]) -> None:
    """Wrapped anywhere, also as a text inside JSON, base64 of a secret leaves no line of itself."""
    values = secrets.forms({"A_KEY": LONG})
    text = "first\ncode: " + wrapped("x" * before + LONG + "yz", *way) + "last one\n"
    middle = base64.b64encode(("x" * before + LONG).encode()).decode()[-60:-4]
    for shown in (secrets.hide(text, values), json.loads(secrets.hide(json.dumps(text), values))):
        assert shown.startswith("first\ncode: ") and "***" in shown and shown.endswith("last one\n")
        joined = "".join(map(str.strip, shown.splitlines()))
        assert not any(middle[place : place + 16] in joined for place in range(40))
    pieces, rest = "", ""
    for line in text.splitlines(keepends=True):
        rest = secrets.hide(rest + line, values)
        keep = secrets.length_to_hold_back(rest, values)
        pieces, rest = pieces + rest[: len(rest) - keep], rest[len(rest) - keep :]
    assert pieces + rest == secrets.hide(text, values)


@pytest.mark.parametrize("as_ascii", [True, False])
@pytest.mark.parametrize("slash", ["/", "\\/"])
@pytest.mark.parametrize("depth", [1, 2])
def test_json_of_every_writer(as_ascii: bool, slash: str, depth: int) -> None:
    """A secret is hidden with `\\u` in small and large digits, with `\\/`, and in JSON inside JSON."""
    text = json.dumps(ODD, ensure_ascii=as_ascii).replace("/", slash)
    for each in (text, text.replace("\\u00e4", "\\u00E4")):
        nested = json.dumps({"said": each}) if depth == 2 else each
        shown = secrets.hide(nested, secrets.forms({"A_KEY": ODD}))
        assert "***" in shown and "heim" not in shown


def test_ordinary_lines_are_shown_at_once() -> None:
    """Text is not held back because its last character could begin a secret's base64."""
    values = secrets.forms({"A_KEY": LONG})
    first = base64.b64encode(LONG.encode()).decode()[0]
    assert secrets.length_to_hold_back(f"Words that end in {first}\n", values) == 0
