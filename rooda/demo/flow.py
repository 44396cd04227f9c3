"""The scripted sensors, controllers and actuator of the flow demo: no model, no network, no cost.

It is a separate program (`python -m rooda.demo.flow`) and, like any agent, changes files itself. It works only on the
project of `rooda flow setup --demo`: three functions, each with a mistake.
"""

import os
import re
import subprocess
import sys

from rooda.demo.agent import FAULTS, Fault

PROGRAM = "textkit.py"
OUTPUT = re.compile(r"^- \*\*Output file:\*\* (\S+)$", re.MULTILINE)


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    sys.stdout.write(f"Wrote {path}\n")


def sensors(prompt: str) -> None:
    """For each sensor in the prompt, run its command and write its output file."""
    for part in re.split(r"^## Sensor \d+ of \d+: ", prompt, flags=re.MULTILINE)[1:]:
        name, output = part.partition("\n")[0], OUTPUT.findall(part)[0]
        command = re.findall(r"^Run the following command:\n\n {4}(.+)$", part, re.MULTILINE)[0]
        done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
        status, said = "pass" if done.returncode == 0 else "fail", (done.stdout + done.stderr).strip()
        head = f"---\nsensor: {name}\nstatus: {status}\n---\n\n# Sensor Output: {name}\n\n"
        write(output, f"{head}## Command\n\n    {command}\n\n## Output\n\n```\n{said}\n```\n")


def controller(prompt: str) -> None:
    """Write a controller's decision: the outer loop picks the next function; the inner loop plans its repair."""
    outputs = OUTPUT.findall(prompt)
    folder = os.path.dirname(outputs[0])
    task = read(f"{folder}/orchestrator-output.md").partition("# Task (setpoint)")[2]
    wanted = [fault for fault in FAULTS if f"`{fault.function}`" in task]
    left = [fault for fault in wanted or FAULTS if fault.wrong in read(PROGRAM)]
    measured = "status: pending" not in read(outputs[0])
    if measured and not left and (wanted or "status: fail" not in "".join(map(read, outputs))):
        gap = f"{wanted[0].function}() is right now." if wanted else "Every test passes."
        write(f"{folder}/controller-output.md", decision(True, gap, ""))
        return
    fault = (left or wanted or FAULTS)[0]
    plan = inner_plan(fault) if wanted else outer_plan(fault)
    write(f"{folder}/controller-output.md", decision(False, f"{fault.function}() is wrong: {fault.about}.", plan))


def outer_plan(fault: Fault) -> str:
    return f"Make the function `{fault.function}` in {PROGRAM} right: {fault.about}.\n\nDone when its test passes."


def inner_plan(fault: Fault) -> str:
    return f"1. In {PROGRAM}, in `{fault.function}`, write `{fault.right.strip()}`"


def decision(met: bool, gap: str, plan: str) -> str:
    head = f"---\ntarget-met: {'true' if met else 'false'}\n---\n\n# Controller Output\n\n## Gap Analysis\n\n{gap}\n"
    return head + (f"\n## Action Plan\n\n{plan}\n" if plan else "")


def actuator(prompt: str) -> None:
    """Repair the functions that the controller's plan names, and write a report."""
    given, output = re.findall(r"Read (\S+controller-output\.md)|Then write (\S+):", prompt)
    plan, program = read(given[0]), read(PROGRAM)
    done = "Nothing: the plan names no function that I know."
    for fault in FAULTS:
        if f"`{fault.function}`" in plan and fault.wrong in program:
            program = program.replace(fault.wrong, fault.right)
            done = f"Repaired {fault.function}() in {PROGRAM}: {fault.about}."
    write(PROGRAM, program)
    changed = f"- `{PROGRAM}` (modified)"
    write(output[1], f"# Actuator Output\n\n## What Was Done\n\n{done}\n\n## Files Changed\n\n{changed}\n")


def main() -> int:
    prompt, kind = sys.stdin.read(), os.environ.get("ROODA_CALL", "")
    roles = {"sensor": sensors, "controller": controller, "actuator": actuator}
    if kind not in roles or not os.path.exists(PROGRAM):
        sys.stdout.write(
            "I am only a script for the project of `rooda flow setup --demo`; I don't know what to do here.\n"
        )
        return 1
    roles[kind](prompt)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
