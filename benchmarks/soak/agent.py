"""The soak's agent: it plays every role of every loop, and is in a bad mood now and then.

`agent.py FOLDER MOOD=WEIGHT …`. It prints what Claude Code would print. Two agents of different runs at work in one
work tree are noted in FOLDER's `doubled`; every call is a line of `calls`.
"""

import json
import os
import random
import signal
import sys
import time

FOLDER = sys.argv[1]
MOODS = {mood: float(weight) for mood, weight in (word.split("=") for word in sys.argv[2:])}
RUN, CALL = os.environ["ROODA_RUN"], os.environ["ROODA_CALL"]
ANSWERS = {
    "plan": '{"plan":["a","b","c"]}',
    "produce": "# Nothing",
    "refine": "# Nothing",
    "prepare": '{"checks":[{"rule_id":"a.correctness.word0","type":"content","search":"WORD","expected":"it"}]}',
    "critique": '{"issues":[{"rule_id":"a.correctness.word0","problem":"p","fix_instruction":"f",'
    '"expected_effect":"e"}]}',
    "step": "\n---LOOP_STATUS---\nEXIT_SIGNAL: %s\nCRITERIA: {}\n---END_STATUS---",
}
FLOW = {
    "sensor": ("sensor-one-output.md", "---\nstatus: fail\n---\n"),
    "controller": ("controller-output.md", "---\ntarget-met: false\n---\n## Action Plan\n\nGo on.\n"),
    "actuator": ("actuator-output.md", "## What Was Done\n\nA file was changed.\n"),
}
with open(".git/HEAD") as head:
    TASK = head.read().partition("/rooda/")[2].partition("-")[0]  # its id, in the clone of a task
RESET = 12  # seconds ago: rooda waits 15 more than it is told to


def note(name: str, text: str) -> None:
    file = os.open(os.path.join(FOLDER, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(file, f"{text}\n".encode())
    os.close(file)


def look_around() -> None:
    """Who else is at work here? Of the same run two may be: what a reflex loop produces and prepares."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            with open(f"/proc/{entry}/environ", "rb") as file:
                mine = f"ROODA_RUN={RUN}".encode() in file.read().split(b"\0")
            same_place = os.readlink(f"/proc/{entry}/cwd") == os.getcwd()
        except OSError:
            continue
        if same_place and os.fsencode(__file__) in words and not mine:
            note("doubled", f"{os.getpid()} of {RUN} found {entry}")


def stay(seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        time.sleep(left)


def leave_someone() -> None:
    """A process in a session of its own, which rooda has to end."""
    if os.fork() == 0:
        os.setsid()
        stay(1000)
        os._exit(0)


def work() -> str:
    """What a good agent does in this role, and its final message."""
    with open(f"work{TASK}", "w") as file:
        file.write(f"{time.time_ns()}\n")
    if TASK:
        os.system("git add -A && git commit -qm work")
    if CALL in FLOW:
        name, text = FLOW[CALL]
        (runs,) = [f".ai-loop/runs/{run}/nodes" for run in sorted(os.listdir(".ai-loop/runs"))[-1:]]
        with open(os.path.join(runs, os.environ["ROODA_NODE"], name), "w") as file:
            file.write(text)
        return "Done."
    if CALL == "step":
        return ANSWERS[CALL] % str(random.random() < 0.02).lower()
    return ANSWERS.get(CALL, "Done.")


def say(text: str, failed: bool = False) -> None:
    usage = {"input_tokens": 100, "output_tokens": 10}
    kind = {"type": "result", "subtype": "success", "is_error": failed, "num_turns": 1, "session_id": "s"}
    print(json.dumps({**kind, "result": text, "total_cost_usd": 0.0001, "usage": usage}), flush=True)


def main() -> int:
    while os.read(0, 65536):
        pass
    look_around()
    (mood,) = random.choices([*MOODS], [*MOODS.values()])
    note("calls", f"{RUN} {CALL} {mood}")
    if mood == "hang":
        if random.random() < 0.5:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        stay(1000)
    if mood == "fail":
        say("It did not work.", failed=True)
        return 1
    if mood == "limit":
        info = {"status": "rejected", "resetsAt": int(time.time()) - RESET, "rateLimitType": "five_hour"}
        print(json.dumps({"type": "rate_limit_event", "rate_limit_info": info}), flush=True)
        say("You've hit your limit", failed=True)
        return 1
    if mood == "flood":
        line = json.dumps({"type": "assistant", "message": {"content": [{"type": "text", "text": "x" * 4000}]}}) + "\n"
        for _ in range(3000):
            os.write(1, line.encode())
    if mood == "leave":
        leave_someone()
    stay(random.random() * 0.2)
    say(work())
    return 0


sys.exit(main())
