"""Serve a scenario until stopped: python -m rooda.agentkit.server SCENARIO.json [--for CLI --told FILE]"""

import argparse
import json
import os
import threading

from rooda.agentkit.server import clis
from rooda.agentkit.server.server import ModelServer


def main() -> None:
    """Serve until stopped. Prints the server's address; with --for also writes how to connect that CLI."""
    given = _arguments()
    text = given.named or given.scenario
    if not text.lstrip().startswith("{"):
        with open(text, encoding="utf-8") as file:
            text = file.read()
    with ModelServer(json.loads(text), given.port, given.log, not given.no_bodies) as server:
        if given.port_file:
            _write(given.port_file, str(server.port))
        if given.told:
            model = clis.MODELS.get(given.cli, "")
            told = {"url": server.url, "model": model, **clis.setup(given.cli, server.url)._asdict()}
            _write(given.told, json.dumps(told))
        try:
            print(server.url, flush=True)
            threading.Event().wait()
        except KeyboardInterrupt:
            pass


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Simulate the model APIs with scripted answers.")
    parser.add_argument("named", nargs="?", default="", metavar="SCENARIO", help="a JSON file, or JSON text")
    parser.add_argument("--scenario", default="{}", help="the same as SCENARIO, as an option")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", help="write the port number here when ready")
    parser.add_argument("--log", default="", help="append one JSON line per request")
    parser.add_argument("--no-bodies", action="store_true", help="leave request bodies out of the log")
    parser.add_argument("--for", dest="cli", choices=sorted(clis.BY_NAME), help="an agent CLI to connect, with --told")
    parser.add_argument("--told", help="the file to write, as JSON, how to connect the CLI to this server")
    given = parser.parse_args()
    if bool(given.cli) != bool(given.told):
        parser.error("--for and --told require each other")
    return given


def _write(path: str, text: str) -> None:
    """Write a file atomically, because a reader may be waiting for it."""
    with open(f"{path}.tmp", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(f"{path}.tmp", path)


if __name__ == "__main__":
    main()
