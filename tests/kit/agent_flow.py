"""A scripted agent for flows. The role, the name and the file to write come from marker lines of the agent files:

FAKE: sensor NAME -> PATH       FAKE: controller NODE -> PATH       FAKE: actuator NODE INPUT -> PATH

It answers with $FAKE/ROLE-NAME.K (the K-th call of that name that ends; the highest K repeats): text for PATH,
and lines that begin with `!`: `!edit PATH TEXT`, `!sh COMMAND`, `!exit N`, `!wait FILE`, `!nowrite`, `!stdout`. Each
call is one line of $FAKE/flow-calls.jsonl when it begins, with what the run's folder holds then, and one when it ends.
"""

import json
import os
import re
import subprocess
import sys
import time

FAKE = os.environ["FAKE"]
LOG = os.path.join(FAKE, "flow-calls.jsonl")


def note(**facts: object) -> None:
    with open(LOG, "ab", 0) as log:
        log.write(json.dumps(facts).encode() + b"\n")


def earlier(role: str, name: str) -> int:
    try:
        with open(LOG, "rb") as log:
            rows = [json.loads(row) for row in log]
    except FileNotFoundError:
        return 0
    return sum(row["event"] == "end" and [role, name] in row["served"] for row in rows)


def seen() -> tuple[dict[str, str], list[str]]:
    """The files of the runs, and their folders."""
    texts, folders = {}, []
    for folder, _, names in os.walk(".ai-loop/runs"):
        folders.append(folder)
        for name in names:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                texts[os.path.join(folder, name)] = file.read()
    return texts, folders


def script(role: str, name: str) -> str:
    """The text of the next answer of this name."""
    number = earlier(role, name) + 1
    while number:
        try:
            with open(os.path.join(FAKE, f"{role}-{name}.{number}"), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            number -= 1
    return ""


def write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def answer(role: str, name: str, path: str) -> int:
    text, code, target = [], 0, True
    for line in script(role, name).splitlines(keepends=True):
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "!edit":
            where, _, what = rest.partition(" ")
            write(where, what + "\n")
        elif word == "!sh":
            subprocess.run(rest, shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        elif word == "!exit":
            code = int(rest)
        elif word == "!wait":
            while not os.path.exists(rest):
                time.sleep(0.005)
        elif word == "!nowrite":
            target = False
        elif word == "!stdout":
            target = False
            text.append("\0")
        else:
            text.append(line)
    whole = "".join(text)
    if "\0" in whole:
        print(whole.replace("\0", ""))
    if target:
        write(path, whole)
    return code


def main() -> int:
    prompt = sys.stdin.read()
    found = re.findall(r"FAKE: (sensor|controller|actuator) (\S+)(?: (\S+))? -> (\S+)", prompt)
    served = [[role, name] for role, name, _, _ in found]
    about = {"role": served[0][0] if served else "", "served": served, "argv": sys.argv[1:], "pid": os.getpid()}
    marks = {key: value for key, value in os.environ.items() if key.startswith("ROODA_")}
    texts, folders = seen()
    note(event="begin", time=time.time(), prompt=prompt, env=marks, texts=texts, folders=folders, **about)
    codes = [answer(role, name, path) for role, name, _, path in found]
    note(event="end", time=time.time(), **about)
    return max(codes, default=0)


if __name__ == "__main__":
    raise SystemExit(main())
