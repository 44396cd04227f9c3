"""A client of `codex app-server`: sets a goal in a new thread, or resumes the thread of the run before.

Arguments: the codex program, a budget in tokens (0: none). `tool.pid` gets the server's PID, `thread` the thread's id.
"""

import json
import os
import subprocess
import sys
from typing import Any

codex, budget = sys.argv[1], int(sys.argv[2])
server = subprocess.Popen([codex, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
assert server.stdin and server.stdout
with open("tool.pid", "w") as file:
    file.write(str(server.pid))


def ask(method: str, **params: Any) -> Any:
    """The result of a request; what the server says of its own accord is passed over."""
    server.stdin.write(json.dumps({"id": method, "method": method, "params": params}) + "\n")  # type: ignore[union-attr]
    server.stdin.flush()  # type: ignore[union-attr]
    for line in server.stdout:  # type: ignore[union-attr]
        said = json.loads(line)
        if said.get("id") == method:
            print(line, end="", flush=True)
            return said.get("result")
    sys.exit(f"{method}: the server has ended")


ask("initialize", clientInfo={"name": "benchmark", "version": "1"}, capabilities={"experimentalApi": True})
server.stdin.write('{"method":"initialized"}\n')
allowed = {"cwd": os.getcwd(), "approvalPolicy": "never", "sandbox": "danger-full-access"}
if os.path.exists("thread"):
    with open("thread") as file:
        ask("thread/resume", threadId=file.read(), **allowed)
else:
    thread = ask("thread/start", model="gpt-5", **allowed)["thread"]["id"]
    with open("thread", "w") as file:
        file.write(thread)
    limit = {"tokenBudget": budget} if budget else {}
    ask("thread/goal/set", threadId=thread, objective="Make the file x", status="active", **limit)
for _ in server.stdout:
    pass
