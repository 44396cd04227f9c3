"""Points an agent CLI at the model server, with environment variables and files from `[agents.NAME.test]`.

The files are in a separate HOME. The command line comes from the agent's settings. The API key is a dummy, which only
CLIs that refuse to start without a key need.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

KEY = "no-real-key"
URL = "{url}"  # placeholder in variables and files for the server's address
_OPENAI = {"OPENAI_BASE_URL": f"{URL}/v1", "OPENAI_API_KEY": KEY}
_ANTHROPIC = {"ANTHROPIC_BASE_URL": URL, "ANTHROPIC_API_KEY": KEY}
USUAL: dict[str, dict[str, str]] = {  # variables that point most CLIs at another server, per API
    "": {},
    "openai": _OPENAI,
    "responses": _OPENAI,
    "anthropic": _ANTHROPIC,
}
ANY_API = {**_OPENAI, **_ANTHROPIC}


class Setup(NamedTuple):
    """Environment variables and files (paths relative to HOME) that connect a CLI to the server."""

    env: dict[str, str]
    files: dict[str, str]


def setup(test: Mapping[str, Any], url: str) -> Setup:
    """Return the variables and files that connect a CLI to the server at `url`; `test` is `[agents.NAME.test]`."""
    env = {**USUAL[test.get("api", "")], **test.get("env", {})}
    return Setup(_filled(env, url), _filled(test.get("files", {}), url))


def _filled(texts: Mapping[str, str], url: str) -> dict[str, str]:
    return {name: text.replace(URL, url) for name, text in texts.items()}
