"""Makes one call to an agent that speaks the Agent Client Protocol: python -m rooda.agents.acp SETTINGS COMMAND …

Reads the prompt from stdin and writes a transcript to stdout. SETTINGS is a JSON object with the keys model and rules.
"""

import json
import os
import sys

from rooda.agents.acp.client import SHUTDOWN, Client, Turn
from rooda.agents.records import ToolRules
from rooda.base import files
from rooda.base.json import Json, decode
from rooda.processes.dialogue import Dialogue
from rooda.processes.supervise import NOT_FOUND, NOT_RUNNABLE


def main(settings: str, *argv: str) -> int:
    """Return 0 if the agent answered the prompt, else the agent's exit code, or 1 if that code is 0."""
    given = json.loads(settings)
    prompt = files.read_open(os.dup(0)).decode("utf-8", "replace")
    turn = Turn(prompt, os.getcwd(), os.path.basename(argv[0]), given["model"], decode(ToolRules, given["rules"]))
    try:
        with Dialogue(argv, turn.workspace, os.environ) as dialogue:
            client = Client(dialogue, turn, _tell)
            worked = client.run()
            code = dialogue.finish(SHUTDOWN)
            for line in dialogue.rest():
                client.tell_text(line)
    except OSError as problem:
        _tell({"type": "text", "text": f"{argv[0]}: {problem.strerror}"})
        return NOT_FOUND if isinstance(problem, FileNotFoundError) else NOT_RUNNABLE
    return 0 if worked else code or 1


def _tell(record: Json) -> None:
    files.write_all(1, json.dumps(record).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
