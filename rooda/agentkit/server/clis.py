"""Connects each agent CLI to the model server: keys, base URL and settings files in a HOME of its own.

The command line comes from config/rooda.toml; everything else goes into files and variables.
"""

import json
from typing import NamedTuple

# The model to request, if the CLI's default would not use the model server.
MODELS = {"opencode": "anthropic/claude-sonnet-4-5", "droid": "custom:m-0", "pi": "stub/m", "aider": "openai/gpt-4o"}
KEY = "no-real-key"


class Setup(NamedTuple):
    """Environment variables and files (paths relative to HOME) that connect a CLI to the server."""

    env: dict[str, str]
    files: dict[str, str]


def setup(name: str, url: str, key: str = KEY) -> Setup:
    """Return the variables and files that connect a CLI to the server, with few retries. Empty key: no credentials."""
    env, files = BY_NAME[name](url, key)
    return Setup({variable: value for variable, value in env.items() if value}, files)


def _claude(url: str, key: str) -> tuple[dict[str, str], dict[str, str]]:
    env = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": key,
        "IS_SANDBOX": "1",  # otherwise it refuses to skip permissions as root
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    return env, {}


def _codex(url: str, key: str) -> tuple[dict[str, str], dict[str, str]]:
    config = f"""\
model_provider = "stub"

[model_providers.stub]
name = "stub"
base_url = "{url}/v1"
env_key = "STUB_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
"""
    return {"STUB_KEY": key}, {".codex/config.toml": config}


def _gemini(url: str, key: str) -> tuple[dict[str, str], dict[str, str]]:
    if not key:  # the settings file would select a login method that needs a key
        return {}, {}
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
    }
    env = {"GEMINI_API_KEY": key, "GOOGLE_GEMINI_BASE_URL": url}
    return env, {".gemini/settings.json": json.dumps(settings)}


def _opencode(url: str, key: str) -> tuple[dict[str, str], dict[str, str]]:
    config = {"autoupdate": False, "provider": {"anthropic": {"options": {"baseURL": f"{url}/v1", "apiKey": key}}}}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(config), "OPENCODE_DISABLE_AUTOUPDATE": "1"}, {}


def _copilot(url: str, key: str) -> tuple[dict[str, str], dict[str, str]]:
    if not key:  # a custom provider needs no login
        return {"COPILOT_AUTO_UPDATE": "false"}, {}
    env = {
        "COPILOT_PROVIDER_BASE_URL": url,
        "COPILOT_PROVIDER_TYPE": "anthropic",
        "COPILOT_PROVIDER_API_KEY": key,
        "COPILOT_MODEL": "claude-sonnet-4",
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
    }
    return env, {}


def _qwen(url: str, key: str) -> tuple[dict[str, str], dict[str, str]]:
    return {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "qwen3-coder-plus"}, {}


def _droid(url: str, key: str) -> tuple[dict[str, str], dict[str, str]]:
    model = {
        "model": "m",
        "displayName": "m",
        "baseUrl": f"{url}/v1",
        "apiKey": key,
        "provider": "generic-chat-completion-api",
    }
    return {"FACTORY_API_KEY": key}, {".factory/settings.json": json.dumps({"customModels": [model]})}


def _pi(url: str, key: str) -> tuple[dict[str, str], dict[str, str]]:
    model = {
        "id": "m",
        "name": "m",
        "reasoning": False,
        "input": ["text"],
        "contextWindow": 200_000,
        "maxTokens": 8_000,
        "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75},
    }
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": key, "models": [model]}
    return {}, {".pi/agent/models.json": json.dumps({"providers": {"stub": provider}})}


def _aider(url: str, key: str) -> tuple[dict[str, str], dict[str, str]]:
    """Connect aider, whose requests carry no tools: its scenarios need "consume": "all"."""
    env = {"OPENAI_API_KEY": key, "OPENAI_API_BASE": f"{url}/v1", "AIDER_ANALYTICS": "false"}
    return {**env, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}, {}


BY_NAME = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "opencode": _opencode,
    "copilot": _copilot,
    "qwen": _qwen,
    "droid": _droid,
    "pi": _pi,
    "aider": _aider,
}
