"""Detects from the name of a variable whether it holds a secret. Pure."""

import re

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
