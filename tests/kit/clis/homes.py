"""How each real agent CLI is pointed at the model server (config/agents-test.toml), in a HOME of its own."""

import os

from rooda.agentkit.check import shipped
from rooda.agentkit.server import clis
from rooda.agentkit.server.clis import KEY, Setup

from . import install

__all__ = ["BY_NAME", "KEY", "MODELS", "NAMES", "Setup", "home", "path_with", "setup"]

NAMES = install.NAMES
BY_NAME = shipped()
MODELS = {name: table["model"] for name, table in BY_NAME.items() if "model" in table}


def setup(name: str, url: str, key: str = KEY) -> Setup:
    """Variables and files that point a CLI at the server; without a key, those that hold one are left out."""
    made = clis.setup(BY_NAME[name], url)
    if key:
        return made
    if name in ("gemini", "copilot"):  # their settings would choose a way to log in that needs a key, or none at all
        return Setup({"COPILOT_AUTO_UPDATE": "false"} if name == "copilot" else {}, {})
    env = {variable: text.replace(KEY, "") for variable, text in made.env.items()}
    return Setup({v: text for v, text in env.items() if text}, {p: t.replace(KEY, "") for p, t in made.files.items()})


def home(name: str, url: str, folder: str, key: str = KEY) -> dict[str, str]:
    """Write the CLI's files under `folder`; gives the variables, HOME and PATH included."""
    made = setup(name, url, key)
    os.makedirs(folder, exist_ok=True)
    for path, text in made.files.items():
        place = os.path.join(folder, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "w", encoding="utf-8") as file:
            file.write(text)
    return {**made.env, "HOME": folder, "PATH": path_with(name)}


def path_with(name: str) -> str:
    """PATH with the folder of the installed CLI in front."""
    return install.commands(name) + os.pathsep + os.environ.get("PATH", os.defpath)
