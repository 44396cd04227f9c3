"""How each real agent CLI is pointed at the model server (rooda/agentkit/server/clis.py), in a HOME of its own."""

import os

from rooda.agentkit.server.clis import BY_NAME, KEY, MODELS, Setup, setup

from . import install

__all__ = ["BY_NAME", "KEY", "MODELS", "NAMES", "Setup", "home", "path_with", "setup"]

NAMES = install.NAMES


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
