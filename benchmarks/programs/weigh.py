"""Runs a program and says what it cost: `weigh.py FILE COMMAND …`; exit code, seconds, CPU seconds, peak memory.

The kernel counts as a program's peak what the process was that started it, so a small one has to do that.
"""

import os
import sys
import time

began = time.monotonic()
_, status, usage = os.wait4(os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ), 0)
wall, code = time.monotonic() - began, os.waitstatus_to_exitcode(status)
with open(sys.argv[1], "w", encoding="ascii") as file:
    file.write(f"{code} {wall} {usage.ru_utime + usage.ru_stime} {usage.ru_maxrss}")
