"""An agent that meets a usage limit at its first call, for loops of every kind."""

import json
from pathlib import Path
from typing import Any

from .four import Four
from .workspace import until

FAR = 4_000_000_000  # a time that no test reaches
LIMITED = """\
{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%d,"rateLimitType":"five_hour"}}
{"type":"result","is_error":true,"api_error_status":429,"result":"You've hit your limit","session_id":"s","num_turns":1}
"""
DONE = '{"type":"result","subtype":"success","is_error":false,"result":"done"}'
AGENT = """\
cd "$HELD"
echo call >>paid
if [ ! -e limit ]; then cat done.out; exit; fi
rm limit
sed "s/SECONDS/$(($(date +%%s) + %d))/" event.out
cat limited.out
"""


def speaks(four: Four, shell: str) -> None:
    """The agent as a shell script, in the folder where the files are that it may print."""
    Path(four.held, "mine.sh").write_text(shell)


def paid(four: Four) -> int:
    """How often it was asked."""
    path = Path(four.held, "paid")
    return len(path.read_text().split()) if path.exists() else 0


def limited(four: Four, seconds: int, said: str = "You've hit your limit", **loop: Any) -> None:
    """An agent that once meets a limit which ends so many seconds later, by its clock, with the margin of 15 s."""
    limit = {"status": "rejected", "resetsAt": "SECONDS"}
    event = json.dumps({"type": "rate_limit_event", "rate_limit_info": limit})
    result = {"type": "result", "is_error": True, "api_error_status": 429, "result": said}
    texts = {"limited": json.dumps(result), "done": DONE, "event": event.replace('"SECONDS"', "SECONDS")}
    for name, text in texts.items():
        Path(four.held, f"{name}.out").write_text(text + "\n")
    Path(four.held, "limit").touch()
    speaks(four, AGENT % (seconds - 15))
    command = f"sh {four.held}/mine.sh"
    four.ws.sections["agents"] = f'\n[agents.mine]\ncommand = "{command}"\noutput = "claude"\n'
    four.settings.pop("ai_cmd", None)
    four.config(agent="mine", **loop)


def resting(four: Four) -> dict[str, Any]:
    until(lambda: four.said("resting"), what="the wait")
    return four.said("resting")[-1]
