"""Recognizes secrets by the names of variables or by their form, and hides secrets of a known form in any text. Pure.

No pattern backtracks, so that every text is searched in linear time.
"""

import binascii
import re
from collections.abc import Callable
from functools import cache, cached_property, lru_cache

HIDDEN = "***"
SHORTEST = 8  # shorter values occur in ordinary text by chance
LONGEST_KEY = 20_000  # characters of a private key
LONG = 4096  # characters; of a longer text, each word is searched only once for signs of a secret
LONGEST_LINE = 4096  # characters searched at the end of an unfinished line, where a secret may begin
_DIGIT, _LETTER = re.compile("[0-9]"), re.compile("[A-Za-z]")
_LONG_PART = re.compile("[A-Za-z0-9_]{16,}+")
_HASH = re.compile("(?:[0-9a-f]{7,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", re.I)

_WORD = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+")  # MY_KEY and myKey have two words each
_SECRET_ENDINGS = (  # endings of words that mark a secret
    *("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"),
    *("AUTHORIZATION", "COOKIE", "PRIVATE", "PASSCODE", "BEARER", "MNEMONIC"),
)
_SECRET_AFTER_ANOTHER = (  # words that mark a secret if another word precedes them
    *("PASS", "PAT", "PWD", "PW", "DSN", "AUTH", "SK", "PSK", "CRED", "CREDS", "SALT", "SAS", "HMAC"),
)
_SECRET_AT_THE_END = (
    *("WEBHOOK", "WEBHOOK_URL", "WEBHOOK_URI", "HOOK_URL", "CONNECTION_STRING", "CONNECTIONSTRING", "CONN_STR"),
    *("CONNSTR", "CONN_STRING", "_PEM", "_JWT", "SAS_URL", "SERVICE_ACCOUNT_JSON"),
)
_NOT_SECRET = ("MAX_", "KEY_REPEAT")
_NOT_KEYS = ("MONKEY", "DONKEY", "TURKEY", "HOCKEY", "JOCKEY", "WHISKEY", "HOTKEY", "LACKEY", "MICKEY", "MALARKEY")
_ABOUT_SECRETS = (  # endings of names that describe a secret rather than hold it
    *("_FILE", "_PATH", "_DIR", "_HOME", "_SOCK", "_BUDGET", "_ENCODING", "_LIMIT", "_COUNT", "_TIMEOUT", "_TTL"),
    *("_TYPE", "_NAME", "_TOKENS", "_ALGORITHM", "_LENGTH", "_SIZE", "_EXPIRES", "_EXPIRY", "_HELPER", "_BACKEND"),
)


def looks_secret(name: str) -> bool:
    """True if a variable with this name probably holds a secret."""
    words = [word.upper() for word in _WORD.findall(name)]
    name = name.upper()
    if name.startswith("ROODA_") or name.endswith(_ABOUT_SECRETS) or any(word in name for word in _NOT_SECRET):
        return False
    if name.endswith(_SECRET_AT_THE_END) or name == "JWT" or any(word in _SECRET_AFTER_ANOTHER for word in words[1:]):
        return True
    singular = [word.removesuffix("S") for word in words]
    return any(word.endswith(_SECRET_ENDINGS) and not word.endswith(_NOT_KEYS) for word in singular)


def _has_digit(run: str) -> bool:
    return bool(_DIGIT.search(run))


def _is_random(run: str) -> bool:
    """True if the characters look random: a long part has a digit, unlike words joined by hyphens."""
    return any(_DIGIT.search(part) for part in _LONG_PART.findall(run))


def _is_login(run: str) -> bool:
    """True if the characters are base64 of NAME:PASSWORD."""
    try:
        text = binascii.a2b_base64(run, strict_mode=True)
    except ValueError:
        return False
    return b":" in text and text.isascii() and text.decode().isprintable()


def _is_hex(run: str) -> bool:
    return len(run) in (32, 40, 64) and _has_digit(run)


class _Form:
    """A kind of secret: `marker`, then at least `least` characters of class `run`, which `known` accepts as a key."""

    def __init__(self, marker: str, run: str, least: int, known: Callable[[str], bool] = _has_digit) -> None:
        self.marker, self.run, self.least, self.known = marker, run, least, known

    @cached_property
    def pattern(self) -> "re.Pattern[str]":
        """The form as a pattern, compiled at first use: compiling all forms takes longer than loading this module."""
        return re.compile(f"({re.escape(self.marker)})({self.run}*+)")

    def replace(self, found: "re.Match[str]") -> str:
        run = found[2]
        inside_a_word = _is_inside(found.string, found.start()) if self.marker[0].isalpha() else False
        if inside_a_word or len(run) < self.least or not self.known(run):
            return found[0]
        return f"{found[1]}{HIDDEN}"


def _is_inside(text: str, place: int) -> bool:
    """True if the position is inside a word; the `n` of `\\n` in JSON does not belong to the word after it."""
    before = text[place - 1 : place]
    return before.isalnum() and text[max(place - 2, 0) : place - 1] != "\\"


_W, _B, _X = "[A-Za-z0-9_-]", "[A-Za-z0-9+/=_-]", "[A-Fa-f0-9]"
_HEADERS = [f"{name}{sign}{kind} " for name in ("Authorization", "authorization") for sign in (": ", '": "')
            for kind in ("token", "Token")]  # fmt: skip
_FORMS = (
    _Form("sk-", _W, 16, _is_random),  # OpenAI, Anthropic, DeepSeek, OpenRouter
    *(_Form(f"{kind}_{mode}_", "[A-Za-z0-9]", 10) for kind in ("sk", "rk") for mode in ("live", "test")),  # Stripe
    _Form("whsec_", _B, 16),
    *(_Form(f"gh{kind}_", "[A-Za-z0-9]", 20) for kind in "pousr"),
    _Form("github_pat_", "[A-Za-z0-9_]", 20),
    _Form("glpat-", _W, 16),
    *(_Form(kind, "[A-Z0-9]", 16, lambda run: len(run) == 16 and _has_digit(run)) for kind in ("AKIA", "ASIA")),
    *(_Form(f"xox{kind}-", "[A-Za-z0-9-]", 10) for kind in "abeoprs"),
    _Form("xapp-", "[A-Za-z0-9-]", 16),
    _Form("eyJ", "[A-Za-z0-9_.-]", 20, lambda run: 8 < run.find(".") < len(run) - 8),  # JSON web tokens
    _Form("AccountKey=", _B, 20, lambda run: True),
    _Form("SharedAccessKey=", _B, 20, lambda run: True),
    *(_Form(f"hooks.slack.com/{kind}/", "[A-Za-z0-9/_-]", 8) for kind in ("services", "workflows", "triggers")),
    _Form("/api/webhooks/", "[A-Za-z0-9/_-]", 20),
    _Form("AIza", _W, 30, lambda run: True),
    _Form("ya29.", _W, 20),
    _Form("npm_", "[A-Za-z0-9]", 30),
    _Form("hf_", "[A-Za-z0-9]", 30, lambda run: run != run.lower()),
    _Form("gsk_", "[A-Za-z0-9]", 30),
    _Form("xai-", "[A-Za-z0-9]", 30),
    _Form("pypi-AgEI", _W, 30, lambda run: True),
    _Form("SG.", "[A-Za-z0-9_.-]", 40),
    *(_Form(word, "[A-Za-z0-9_.~+/=-]", 20) for word in ("Bearer ", "bearer ", "BEARER ")),
    *(_Form(word, "[A-Za-z0-9+/=]", 8, _is_login) for word in ("Basic ", "basic ")),
    *(_Form(header, _W, 20) for header in _HEADERS),
    *(_Form(f"do{kind}_v1_", _X, 32) for kind in "opr"),  # DigitalOcean
    *(_Form(f"hv{kind}.", _W, 24) for kind in "sbr"),  # Vault
    *(_Form(f"gl{kind}-", _W, 20) for kind in ("ptt", "dt", "rt", "cbt", "soat", "ft", "imt", "agent", "oas")),
    _Form("glsa_", "[A-Za-z0-9_]", 32),  # Grafana
    *(_Form(f"shp{kind}_", _X, 32, _is_hex) for kind in ("at", "ss", "ca", "pa")),  # Shopify
    *(_Form(f"sq0{kind}-", _W, 20) for kind in ("atp", "csp", "idp")),  # Square
    _Form("SK", "[a-f0-9]", 32, lambda run: len(run) == 32 and _has_digit(run)),  # Twilio
    _Form("key-", "[a-f0-9]", 32, lambda run: len(run) == 32 and _has_digit(run)),  # Mailgun
    _Form("dapi", "[a-f0-9-]", 32, lambda run: 32 <= len(run) <= 34 and _has_digit(run)),  # Databricks
    *(_Form(f"dckr_{kind}_", _W, 20) for kind in ("pat", "oat")),
    *(_Form(f"dp.{kind}.", "[A-Za-z0-9.]", 30) for kind in ("pt", "st", "ct", "sa", "scim", "audit")),  # Doppler
    *(_Form(f"pscale_{kind}_", "[A-Za-z0-9_.=-]", 30) for kind in ("tkn", "pw", "oauth")),  # PlanetScale
    *(_Form(f"sntry{kind}_", _B, 30) for kind in "su"),  # Sentry
    *(_Form(f"lsv2_{kind}_", "[A-Za-z0-9_]", 30) for kind in ("pt", "sk")),  # LangSmith
    *(_Form(f"sq{kind}_", "[a-f0-9]", 40, _is_hex) for kind in "upa"),  # SonarQube
    *(_Form(f"AT{kind}", "[A-Za-z0-9_=-]", 24) for kind in ("ATT3", "CTT3", "BB")),  # Atlassian
    *(_Form(kind, _W, 20) for kind in ("GOCSPX-", "pplx-", "pcsk_", "figd_", "PMAK-", "NRAK-", "tvly-", "HRKU-")),
    *(_Form(kind, "[A-Za-z0-9]", 30) for kind in ("lin_api_", "ntn_", "sbp_", "rubygems_", "r8_", "nfp_", "CFPAT-")),
    _Form("sb_secret_", _W, 20),  # Supabase
    _Form("CCIPAT_", "[A-Za-z0-9_]", 30),
    _Form("AGE-SECRET-KEY-1", "[A-Z0-9]", 50),
    _Form(".atlasv1.", _W, 40),  # Terraform
    _Form("LTAI", "[A-Za-z0-9]", 16, lambda run: 16 <= len(run) <= 20 and _has_digit(run)),  # Alibaba
    _Form("ABSK", _B, 60),  # Bedrock
    *(_Form(f"{sign}sig=", "[A-Za-z0-9%_-]", 40) for sign in "?&"),  # Azure's signed addresses
    _Form("X-Amz-Signature=", "[a-f0-9]", 64),
)
_PRIVATE = "-----BEGIN "
_PRIVATE_KEY = re.compile("-----BEGIN ([A-Z ]{0,60}+)-----")
_END = re.compile("-----END [A-Z ]{0,60}+-----")
_BODY = re.compile(r"(?:(?:[\s\"']|\\++[nrt])+[A-Za-z0-9+/=]{16,}+)+")
_IN_ADDRESS = re.compile("(://[^\\s/@:\"'`]{0,200}+:)([^\\s/@\"'`]{1,200}+)(?=@)")
_TOKEN_IN_ADDRESS = re.compile("(://)([A-Za-z0-9_.~-]{20,200}+)(?=(?::[^\\s/@\"'`]{0,200}+)?@)")
_LONG_WORD = re.compile("[A-Za-z0-9]{20,}+")
# NAME=value and name: "value", also in JSON inside JSON.
_ASSIGNED = re.compile(
    r"(?<![A-Za-z0-9_.-])([A-Za-z_][A-Za-z0-9_.-]*+)(\\*+[\"']?+[ \t]*+(?:=>|[:=])[ \t]*+\\*+[\"']?+)([^\s\"'`,;\\]++)"
)
_ASSIGNED_MARKERS = (
    *("PASSW", "SECRET", "TOKEN", "_KEY", "APIKEY", "_PASS", "_PWD", "CREDENTIAL", "PASSPHRASE", "JWT"),
    *("passw", "Passw", "secret", "Secret", "token", "Token", "api_key", "apiKey", "api-key", "access_key"),
    *("accessKey", "auth_key", "private_key", "passphrase"),
)
_STRONG = re.compile("api|secret|token|passw|passphrase|private|credential|auth|jwt|pwd|access", re.I)
_NO_SECRETS = ("$", "<", "{", "%", "*", "/", "./", "~", "(", "[", "os.", "env.", "process.", "config.", "settings.")
MARKERS = (*(form.marker for form in _FORMS), _PRIVATE, *_ASSIGNED_MARKERS)
_OF_WORDS = (
    *_ASSIGNED_MARKERS,
    _PRIVATE,
    "earer ",
    "EARER ",
    "asic ",
    "uthorization",
)  # the secret may be in the word that follows
_BEGINNINGS = frozenset(marker[:size] for marker in (*MARKERS, "://") for size in range(1, len(marker)))
_LONGEST_BEGINNING = max(map(len, _BEGINNINGS))
# Short strings for a cheap first check of every event: each marker contains one of them.
SIGNS = (
    *("sk-", "_live_", "_test_", "gh", "AKIA", "ASIA", "xox", "xapp-", "eyJ", "Key", "_KEY", "_key", "-key"),
    *("hooks", "_pat_", "whsec_", "AIza", "ya29.", "npm_", "hf_", "gsk_", "xai-", "pypi-", "SG.", "earer ", "EARER "),
    *("-----BEGIN ", "assw", "passph", "PASS", "_PWD", "SECRET", "ecret", "TOKEN", "Token", "token", "APIKEY"),
    *("CREDENTIAL", "JWT", "asic ", "uthorization", "_v1_", "hvs.", "hvb.", "hvr.", "gl"),
    *("X-Amz", "shp", "sq", "SK", "key-", "dapi", "_oat_", "dp.", "pscale_", "sntry"),
    *("lsv2_", "ATATT", "ATCTT", "ATBB", "GOCSPX", "pplx-", "pcsk_", "figd_", "PMAK", "NRAK", "tvly-", "HRKU"),
    *(
        "lin_api",
        "ntn_",
        "sbp_",
        "rubygems_",
        "r8_",
        "nfp_",
        "CFPAT",
        "sb_s",
        "CCIPAT",
        "atlasv1",
        "LTAI",
        "ABSK",
        "sig=",
    ),
    *("X-Amz",),
)


def may_have(text: str) -> bool:
    """True if the text may contain a secret of a recognizable form; a cheap first check."""
    for sign in SIGNS:  # faster than any()
        if sign in text:
            return True
    return "://" in text and "@" in text


def line_may_have(line: bytes) -> bool:
    """True if an event's line may contain a secret of a recognizable form.

    Results are cached, so that the check is cheap for lines that differ only in digits and hashes.
    """
    if b'"sha256": "' in line:
        line = _SHA256.sub(b"", line)
    return _zeroed_may_have(line.translate(_ZEROS).replace(b'"tokens": 0', b""))  # a count of every prompt


_SHA256 = re.compile(rb'"sha256": "[0-9a-f]{64}"')
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_ZEROED_SIGNS = tuple(sign.encode().translate(_ZEROS) for sign in SIGNS)


@lru_cache(64)
def _zeroed_may_have(line: bytes) -> bool:
    for sign in _ZEROED_SIGNS:
        if sign in line:
            return True
    return b"://" in line and b"@" in line


def hide(text: str) -> str:
    """Replace every secret of a recognizable form with stars."""
    words = _words(text) if len(text) >= LONG else text
    if len(text) < SHORTEST or not may_have(words):
        return text
    for form in _FORMS if words is text else _forms_in(words):
        if form.marker in text:
            text = form.pattern.sub(form.replace, text)
    if _PRIVATE in words:
        text = _hide_private_keys(text)
    if "://" in words and "@" in words:
        text = _TOKEN_IN_ADDRESS.sub(_hide_token, _IN_ADDRESS.sub(_hide_password, text))
    if any(marker in words for marker in _ASSIGNED_MARKERS):
        text = _ASSIGNED.sub(_hide_assigned, text)
    return text


def _words(text: str) -> str:
    """Return each word of a text once, so that signs are found faster. A sign can have a blank only at its end."""
    return " ".join({*text.split()}) + " "


def _forms_in(words: str) -> list[_Form]:
    """Return the forms that a text may contain, because their sign occurs in it. There are fewer signs than forms."""
    signs = {sign for sign in SIGNS if sign in words}
    return [form for form, sign in _signs_of_forms() if sign in signs]


@cache
def _signs_of_forms() -> list[tuple[_Form, str]]:
    """Return each form with a sign that its marker contains."""
    return [(form, next(sign for sign in SIGNS if sign in form.marker)) for form in _FORMS]


def _hide_private_keys(text: str) -> str:
    parts, done = [], 0
    for found in _PRIVATE_KEY.finditer(text):
        if found.start() < done or "PRIVATE KEY" not in found[1]:
            continue
        body = _BODY.match(text, found.end())
        if not body:
            continue
        end = _END.search(text, body.end(), body.end() + 200)
        parts += [text[done : found.end()], HIDDEN]
        done = end.end() if end else body.end()
    return "".join([*parts, text[done:]])


def _hide_password(found: "re.Match[str]") -> str:
    return found[0] if found[2].startswith(_NO_SECRETS) else found[1] + HIDDEN


def _hide_token(found: "re.Match[str]") -> str:
    random = any(_DIGIT.search(word) and _LETTER.search(word) for word in _LONG_WORD.findall(found[2]))
    return found[1] + HIDDEN if random else found[0]


def _hide_assigned(found: "re.Match[str]") -> str:
    name, sign, value = found.groups()
    last = name.rpartition(".")[2]
    whole = f"x{last}" if last[:1] == "_" else last  # the name may have begun in an earlier piece
    return f"{name}{sign}{HIDDEN}" if _is_assigned(whole, sign, value) else found[0]


def _is_assigned(name: str, sign: str, value: str) -> bool:
    """True if a value assigned to this name is a secret. After an upper-case NAME=, even an ordinary word counts."""
    if len(value) < SHORTEST or value.startswith(_NO_SECRETS) or not looks_secret(name):
        return False
    if "(" in value or "[" in value or value.isdecimal() or value.endswith("://"):
        return False
    if not _STRONG.search(name) and _HASH.fullmatch(value):  # a hash, as in cache_key=3f78685…
        return False
    if name.lstrip("x").isupper() and sign == "=":
        return True
    return bool(_DIGIT.search(value) and _LETTER.search(value)) and (len(value) >= 12 or "pass" in name.lower())


def unfinished(text: str) -> int:
    """Return how many characters at the end of a text may begin a secret and must wait for its next piece."""
    end = len(text) - _unfinished_line(text[max(text.rfind("\n") + 1, len(text) - LONGEST_LINE) :])
    start = text.rfind(_PRIVATE, max(end - LONGEST_KEY, 0), end)
    open_key = start >= 0 and _PRIVATE_KEY.match(text, start) and not _END.search(text, start, end)
    return len(text) - (start if open_key else end)


def _unfinished_line(line: str) -> int:
    places = [place for marker in _OF_WORDS if (place := line.find(marker)) >= 0]
    word = line[_word_at(line, len(line)) :]
    if not places and not ("://" in word or word.endswith("\\") or may_have(word) or _may_begin(word)):
        return 0
    return len(line) - _word_at(line, min(places, default=len(line)))


def _may_begin(word: str) -> bool:
    return any(word[-size:] in _BEGINNINGS for size in range(1, min(len(word), _LONGEST_BEGINNING) + 1))


def _word_at(line: str, place: int) -> int:
    """Return the position at which the word at `place` begins."""
    return max(line.rfind(" ", 0, place), line.rfind("\t", 0, place)) + 1
