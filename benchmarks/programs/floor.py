"""The least a loop with durable state must do: `floor.py AGENT N PROMPT [gate]`.

Per iteration: start the agent on the prompt file, wait, [run one gate], write a small state file, fsync, rename,
fsync the folder. What any loop adds to this is what it costs.
"""

import os
import subprocess
import sys

agent, count, prompt, gate = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:]


def save(iteration: int) -> None:
    file = os.open("state.json.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(file, b'{"iteration": %d, "status": "running"}\n' % iteration)
    os.fsync(file)
    os.close(file)
    os.rename("state.json.tmp", "state.json")
    folder = os.open(".", os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


for iteration in range(count):
    with open(prompt, "rb") as stdin, open("log", "wb") as log:
        subprocess.Popen([agent], stdin=stdin, stdout=log, stderr=log).wait()
    if gate:
        subprocess.Popen(["sh", "-c", gate[0]], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).wait()
    save(iteration + 1)
