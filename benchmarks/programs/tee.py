"""A loop that reads its agent's output: `tee.py AGENT PROMPT`. 64 KiB at a time into a log, the last 1 MiB kept."""

import os
import subprocess
import sys

with open(sys.argv[2], "rb") as stdin:
    child = subprocess.Popen([sys.argv[1]], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
assert child.stdout is not None
tail = b""
with open("log", "wb") as log:
    while chunk := os.read(child.stdout.fileno(), 65_536):
        log.write(chunk)
        tail = (tail + chunk)[-1_048_576:] if len(tail) > 2_097_152 else tail + chunk
sys.exit(child.wait())
