"""Serves a scenario until Ctrl+C: python -m rooda.agentkit.server SCENARIO.json [--api API] [--port-file FILE]"""

import argparse
import json
import os
import threading

from rooda.agentkit.server.server import NAMED, ModelServer


def main() -> None:
    """Print the server's address, write its port to the `--port-file`, if one is given, and serve until Ctrl+C."""
    given = _arguments()
    text = given.named or given.scenario
    if not text.lstrip().startswith("{"):
        with open(text, encoding="utf-8") as file:
            text = file.read()
    with ModelServer(json.loads(text), given.port, given.log, not given.no_bodies, given.api) as server:
        if given.port_file:
            _write(given.port_file, str(server.port))
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
    parser.add_argument("--api", default="", choices=sorted(NAMED), help="offer this API only")
    return parser.parse_args()


def _write(path: str, text: str) -> None:
    """Write a file atomically, because a reader may be waiting for it."""
    with open(f"{path}.tmp", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(f"{path}.tmp", path)


if __name__ == "__main__":
    main()
