"""How agents are called: command, prompt channel, environment, limits on time and output."""

import json
import os
import shlex
import sys

import pytest

from tests.kit.workspace import FAKE_AI, Workspace, masked, until

GONE = {"gone": "case $(ps -o stat= -p $(cat child)) in Z*|'') ;; *) exit 1 ;; esac"}
MARKS = ("CALL", "RUN", "ITERATION", "LOOP", "PROCEDURE", "MODEL")


def agent(ws: Workspace, table: str, name: str = "mine", loop: str = "") -> None:
    """Make `[agents.NAME]` with these lines the agent of the loop."""
    ws.procedure("build", loop={"ai_cmd": None, "agent": name})
    ws.config(ws.read("rooda.toml") + f"\n[agents.{name}]\n{table}\n{loop}")


def test_settled_08_the_variables_of_a_call(ws: Workspace) -> None:
    """Each call knows its kind, run, number (from 1), loop and procedure; ROODA_MODEL is set even without a model."""
    ws.rooda("build", "-n", "2")
    first, second = ws.calls
    assert {mark: first.env[f"ROODA_{mark}"] for mark in MARKS if mark != "RUN"} == {
        "CALL": "iteration",
        "ITERATION": "1",
        "LOOP": "ooda",
        "PROCEDURE": "build",
        "MODEL": "",
    }
    assert second.env["ROODA_ITERATION"] == "2"
    run = first.env["ROODA_RUN"]
    assert run == second.env["ROODA_RUN"] == ws.events()[0]["run"]
    assert ws.exists(f".rooda/runs/{run}/events.jsonl")


def test_gates_know_their_run(ws: Workspace) -> None:
    """A gate sees the run, the iteration and the procedure, but no ROODA_CALL."""
    ws.procedure("build", gates={"env": 'env > "gate-$ROODA_ITERATION.env"'})
    ws.rooda("build", "-n", "2")
    env = dict(line.split("=", 1) for line in ws.read("gate-2.env").splitlines() if "=" in line)
    assert (env["ROODA_PROCEDURE"], env["ROODA_ITERATION"], env["ROODA_LOOP"]) == ("build", "2", "ooda")
    assert env["ROODA_RUN"] == ws.events()[0]["run"]
    assert "ROODA_CALL" not in env


def test_OU_39_nesting_marks_are_stripped(ws: Workspace) -> None:
    """A raw command too sees no variables of an enclosing agent or loop, and inherits all others."""
    nested = {"CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli", "CODEX_SANDBOX": "seatbelt", "GEMINI_CLI": "1"}
    outer = {"ROODA_RUN": "outer", "ROODA_PROCEDURE": "outer", "ROODA_CALL": "step", "ROODA_MODEL": "outer"}
    ws.procedure("build", gates={"env": "env > gate.env"})
    ws.rooda("build", "-n", "1", env={**nested, **outer, "MY_KEY": "s3 cr'et"})
    env = ws.calls[0].env
    assert not set(nested) & set(env)
    assert env["MY_KEY"] == "s3 cr'et"
    assert [env[f"ROODA_{mark}"] for mark in ("PROCEDURE", "CALL", "MODEL")] == ["build", "iteration", ""]
    gate = ws.read("gate.env")
    assert "CLAUDECODE" not in gate and "outer" not in gate


def test_OU_39_the_working_directory(ws: Workspace) -> None:
    """The agent works in the workspace, wherever rooda was called."""
    ws.rooda("build", "-n", "1", "-C", ws.path, cwd=ws.home)
    assert ws.calls[0].cwd == ws.path


def test_settled_11_a_command_is_split_without_a_shell(ws: Workspace) -> None:
    """Quotes group words; $, *, ; and > have no meaning."""
    ws.rooda("build", "-n", "1", "--ai-cmd", f"{FAKE_AI} 'two words' $HOME *.md ; > \"it's\"")
    assert ws.calls[0].argv == ["two words", "$HOME", "*.md", ";", ">", "it's"]
    assert not ws.exists("it's")


def test_settled_11_prompt_as_argument(ws: Workspace) -> None:
    """`prompt = "argument"` puts the text in place of {prompt}, or at the end; stdin is empty."""
    for command, expected in (
        (f"{FAKE_AI} --say {{prompt}} -x", ["--say", None, "-x"]),
        (f"{FAKE_AI} -x", ["-x", None]),
    ):
        agent(ws, f'command = "{command}"\nprompt = "argument"')
        assert ws.rooda("build", "-n", "1").code == 0
        call = ws.calls[-1]
        prompt = next(word for word in call.argv if "\n" in word or "OODA" in word)
        assert [None if word == prompt else word for word in call.argv[: len(expected)]][: len(expected)] == expected
        assert call.prompt == b""
        shown = ws.rooda("build", "--dry-run").out.splitlines()[1]
        assert shown.startswith("[DRY RUN] Would execute with: ") and "{prompt}" in shown


@pytest.mark.parametrize("end", [" {prompt}", ""])
def test_settled_11_prompt_as_file(ws: Workspace, end: str) -> None:
    """`prompt = "file"` passes the path of a file with exactly the prompt, in place of {prompt} or at the end."""
    agent(ws, f'command = "{FAKE_AI} --file{end}"\nprompt = "file"')
    ws.side(1, 'cp "$2" "$FAKE/seen"')
    assert ws.rooda("build", "-n", "1").code == 0
    call = ws.calls[0]
    assert call.argv[0] == "--file" and os.path.isabs(call.argv[1]) and call.prompt == b""
    with open(os.path.join(ws.fake, "seen"), encoding="utf-8") as file:
        assert file.read() == ws.rooda("build", "--dry-run").out.split("\n\n", 1)[1]


def test_settled_07_the_model_reaches_the_agent(ws: Workspace) -> None:
    """[models] maps the name; {model} is filled in; without a model its option is left out."""
    agent(ws, f'command = "{FAKE_AI} --model {{model}} -p"', loop='[models]\nsonnet = "vendor/sonnet 5"\n')
    for words in (("--model", "sonnet"), ("--model", "other"), ()):
        assert ws.rooda("build", "-n", "1", *words).code == 0
    assert [call.argv for call in ws.calls] == [
        ["--model", "vendor/sonnet 5", "-p"],
        ["--model", "other", "-p"],
        ["-p"],
    ]
    assert [call.env["ROODA_MODEL"] for call in ws.calls] == ["vendor/sonnet 5", "other", ""]


def test_settled_07_the_model_in_a_raw_command(ws: Workspace) -> None:
    """{model} works in --ai-cmd too."""
    ws.rooda("build", "-n", "1", "--model", "opus", "--ai-cmd", f"{FAKE_AI} -m {{model}}")
    assert ws.calls[0].argv == ["-m", "opus"]


def test_settled_11_an_agents_own_environment(ws: Workspace) -> None:
    """`env` of an agent reaches the agent and not the gates."""
    agent(ws, f'command = "{FAKE_AI}"\nenv = {{ MODE = "quiet one" }}')
    ws.config(ws.read("rooda.toml").replace("[loop]\n", "[loop]\nquality_gates = ['env > gate.env']\n"))
    ws.rooda("build", "-n", "1")
    assert ws.calls[0].env["MODE"] == "quiet one"
    assert "MODE=" not in ws.read("gate.env")


def test_settled_11_how_an_agent_is_stopped(ws: Workspace) -> None:
    """`stop = "INT"` sends SIGINT first instead of SIGTERM."""
    for stop, heard in (("INT", "INT"), ("TERM", "TERM")):
        agent(ws, f'command = "{FAKE_AI}"\nstop = "{stop}"')
        ws.side(
            len(ws.calls) + 1, """for s in INT TERM; do trap "echo $s >> heard; exit 1" $s; done\nsleep 30 & wait"""
        )
        ran = ws.rooda("build", "-n", "1", "--iteration-timeout", "0.3")
        assert "timed out after 0.3s" in ran.out
        assert ws.read("heard").split() == [heard]
        os.unlink(ws.file("heard"))


def test_OU_07_the_order_of_commands(ws: Workspace) -> None:
    """--ai-cmd > --agent > procedure's ai_cmd > procedure's agent > loop's ai_cmd > loop's agent."""
    ws.config("")
    names = ["cmd-flag", "agent-flag", "cmd-procedure", "agent-procedure", "cmd-loop", "agent-loop"]
    agents = "".join(f'[agents.{name}]\ncommand = "{FAKE_AI} {name}"\n' for name in names if name.startswith("agent"))
    for start in range(6):
        loop = {"ai_cmd": f"{FAKE_AI} cmd-loop" if start <= 4 else None, "agent": "agent-loop"}
        keys = f'ai_cmd = "{FAKE_AI} cmd-procedure"\n' if start <= 2 else ""
        keys += 'agent = "agent-procedure"\n' if start <= 3 else ""
        ws.procedure("build", keys, loop)
        ws.config(ws.read("rooda.toml") + agents)
        flags = ["--ai-cmd", f"{FAKE_AI} cmd-flag"] if start <= 0 else []
        flags += ["--agent", "agent-flag"] if start <= 1 else []
        assert ws.rooda("build", "-n", "1", *flags).code == 0
    assert [call.argv for call in ws.calls] == [[name] for name in names]


def test_OU_07_older_names(ws: Workspace) -> None:
    """--ai-cmd-alias, ai_cmd_alias and [ai_cmd_aliases] still work."""
    ws.procedure("build", loop={"ai_cmd": None, "ai_cmd_alias": "old"})
    ws.config(ws.read("rooda.toml") + f'[ai_cmd_aliases]\nold = "{FAKE_AI} old"\nolder = "{FAKE_AI} older"\n')
    ws.rooda("build", "-n", "1")
    ws.rooda("build", "-n", "1", "--ai-cmd-alias", "older")
    assert [call.argv for call in ws.calls] == [["old"], ["older"]]


def test_OU_07_no_command_at_all(ws: Workspace) -> None:
    """Without an agent: exit 2 with the ways to set one, and nothing written; also for a resume. A dry run says it."""
    ws.procedure("build", loop={"ai_cmd": None})
    ws.put_state()
    seen = ws.rooda("build", "--dry-run")
    assert seen.code == 0 and "A start would be refused: no AI command configured" in seen.out
    for words in (("build",), ("resume", "build")):
        ran = ws.rooda(*words)
        assert (ran.code, ran.out) == (2, "")
        lines = ran.err.splitlines()
        assert lines[0] == "Error: no AI command configured"
        assert lines[1] == "Set one via:"
        ways = [line for line in lines[2:] if line.startswith("  ")]
        assert len(ways) >= 5 and {"--agent", "--ai-cmd", "rooda"} <= {way.split()[0] for way in ways}
        assert any(line.startswith("Available agents: ") and "demo" in line for line in lines)
    assert os.listdir(ws.file(".rooda/state")) == ["build.json"]


def test_OU_07_OA_35_a_binary_that_is_not_there(ws: Workspace) -> None:
    """A missing or non-executable command is reported before the first iteration."""
    ws.write("script", "#!/bin/sh\n", mode=0o644)
    said = {
        "no-such-agent --flag": "AI command binary not found: no-such-agent",
        "./script": "AI command is not executable",
    }
    for command, text in said.items():
        ran = ws.rooda("build", "--ai-cmd", command)
        assert ran.code == 2 and text in ran.err
        ran = ws.rooda("build", "--ai-cmd", command, "--dry-run")
        assert ran.code == 0 and f"A start would be refused: {text}" in ran.out
    assert not ws.exists(".rooda")


def test_OU_07_an_unknown_agent(ws: Workspace) -> None:
    """An unknown agent is reported with the most similar known one."""
    ran = ws.rooda("build", "--agent", "cluade")
    assert ran.code == 2
    assert "unknown agent 'cluade'" in ran.err and "Did you mean 'claude'?" in ran.err


def test_the_demo_agent_is_always_there(bare: Workspace) -> None:
    """On a machine without any agent CLI, `rooda build --agent demo` shows a loop."""
    ran = bare.rooda("build", "--agent", "demo", "-n", "1", "-v")
    assert ran.code == 0, ran.both
    assert "no model, no network, no cost" in ran.out
    assert "The agent demo is a script for demo projects only; make one with: rooda init --demo DIR" in ran.err
    assert bare.exists("rooda-demo/textkit.py")


def test_OU_05_an_iteration_timeout(ws: Workspace) -> None:
    """A call over its timeout is ended and fails the iteration; a procedure's timeout overrides the loop's."""
    ws.procedure("build", "iteration_timeout = 0.3\n", {"iteration_timeout": 60, "kill_grace": 0.2})
    ws.side(1, "sleep 30 & wait")
    ran = ws.rooda("build", "-n", "2")
    assert ran.code == 0
    assert masked(ran.lines)[2].startswith("[T] WARNING: AI CLI timed out after D, consecutive failures: 1/3")
    assert "timed out after 0.3s" in ran.out
    assert not ws.leftovers()


def test_OU_37_an_agent_that_ignores_TERM(ws: Workspace) -> None:
    """After kill_grace the agent is killed, with all its descendants."""
    ws.procedure("build", loop={"iteration_timeout": 0.3, "kill_grace": 0.2})
    ws.side(1, "trap '' TERM INT HUP\nsleep 30 & while :; do sleep 1; done")
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 1 and "timed out after 0.3s" in ran.out
    assert [each["exit_code"] for each in ws.events() if each["event"] == "agent.ended"] == [137]
    assert not ws.leftovers()


def test_an_idle_timeout(ws: Workspace) -> None:
    """An agent that keeps printing runs on; one that goes silent is ended."""
    ws.procedure("build", loop={"idle_timeout": 0.6, "kill_grace": 0.2})
    ws.side(1, "for i in 1 2 3 4 5 6; do echo $i; sleep 0.2; done")
    ws.side(2, "echo once\nsleep 30 & wait")
    ran = ws.rooda("build", "-n", "2")
    assert next(line for line in ran.lines if "WARNING" in line).endswith(
        "WARNING: AI CLI timed out after 0.6s without output, consecutive failures: 1/3"
    )
    assert ran.out.count("WARNING") == 1


@pytest.mark.parametrize(
    ("script", "code"), [("exit 137", 137), ("kill -KILL $$", 137), ("kill -TERM $$", 143), ("exit 130", 130)]
)
def test_OA_36_OA_37_exit_codes_of_signals(ws: Workspace, script: str, code: int) -> None:
    """An agent that dies by a signal, or exits as if it had, fails the iteration like any other."""
    ws.side(1, script)
    ran = ws.rooda("build", "-n", "2")
    assert ran.code == 0 and len(ws.calls) == 2
    assert masked(ran.lines)[2] == f"[T] WARNING: AI CLI failed (exit {code}), consecutive failures: 1/3"


def test_OA_38_an_agent_that_leaves_a_child(ws: Workspace) -> None:
    """A background child in the agent's group is ended before the gates run."""
    ws.procedure("build", gates=GONE)
    ws.side(1, "sleep 60 & echo $! > child")
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 0 and "Quality gates failed" not in ran.out
    assert ws.read("child").strip().isdigit() and not ws.leftovers()


def test_OA_38_a_child_that_ignores_TERM(ws: Workspace) -> None:
    """A background child that ignores signals is ended too."""
    ws.procedure("build", loop={"kill_grace": 0.2}, gates=GONE)
    ws.side(
        1,
        "(trap '' TERM; touch ready; while :; do sleep 1; done) & echo $! > child\nuntil [ -e ready ]; do :; done",
    )
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 0 and "Quality gates failed" not in ran.out
    assert not ws.leftovers()


def test_OA_38_a_pipe_left_open_does_not_block_the_loop(ws: Workspace) -> None:
    """A process outside the agent's group that keeps the output open does not block the loop."""
    helper = f"import os; os.setsid(); open('ready', 'w').close()\nwhile not os.path.exists('{ws.path}/over'): pass"
    ws.write("helper.py", "import os, time\n" + helper.replace(": pass", ": time.sleep(0.01)"))
    ws.side(1, f"{shlex.quote(sys.executable)} helper.py & until [ -e ready ]; do :; done")
    started = ws.start("build", "-n", "2")
    try:
        assert started.finish(20) == 0
        assert len(ws.calls) == 2
    finally:
        ws.write("over", "")
        until(lambda: not ws.leftovers(), what="the helper to end")


def test_OA_38_an_agent_that_does_not_read(ws: Workspace) -> None:
    """A prompt of 10 MB to a program that reads nothing is not an error; one that reads it gets every byte."""
    ws.write("prompts/observe_build.md", "ten bytes\n" * 1_000_000)
    ws.write("agent.sh", 'if [ "$ROODA_ITERATION" = 1 ]; then true; else wc -c >size; fi\n')
    ran = ws.rooda("build", "-n", "2", "--ai-cmd", "sh agent.sh", "--token-budget", "0")
    assert ran.code == 0 and "WARNING" not in ran.out
    prompt = "# OODA Loop Iteration\n\n## OBSERVE\n" + ("ten bytes\n" * 1_000_000).rstrip() + "\n\n"
    assert int(ws.read("size")) == len(prompt) + len("## ORIENT\nORI\n\n## DECIDE\nDEC\n\n## ACT\nACT\n")


def test_a_prompt_too_long_for_an_argument(ws: Workspace) -> None:
    """A prompt that outgrows an argument ends the loop and reports both sizes: the next one would be no shorter."""
    ws.side(1, f"printf 'words %.0s' $(seq 40000) >{ws.file('prompts/observe_build.md')}")
    agent(ws, f'command = "{FAKE_AI}"\nprompt = "argument"')
    ran = ws.rooda("build", "-n", "3", "--token-budget", "0")
    assert ran.code == 1 and "Traceback" not in ran.both
    assert "240,077 bytes" in ran.lines[-1] and "at most 131,071" in ran.lines[-1]
    ended = [event for event in ws.events() if event["event"] == "agent.ended"]
    assert [event["ended"] for event in ended] == ["exit", "not-started"]


def test_OU_36_the_log_of_a_failed_call(ws: Workspace) -> None:
    """The log of a failed call has its command and the first and last 500 characters; a success has neither."""
    ws.procedure("build", loop={"ai_cmd": f"{FAKE_AI} --flag"})
    ws.exits(0, 4)
    ws.out(1, "fine\n")
    ws.out(2, "HEAD" + "h" * 496 + "m" * 5000 + "t" * 496 + "TAIL")
    ws.rooda("build", "-n", "3")
    good, bad, _ = [event for event in ws.events() if event["event"] == "agent.ended"]
    assert bad["command"] == f"{FAKE_AI} --flag" and bad["exit_code"] == 4
    assert (bad["head"], bad["tail"]) == ("HEAD" + "h" * 496, "t" * 496 + "TAIL")
    assert bad["truncated"] is False
    assert not {"command", "head", "tail"} & set(good)


def test_OU_36_a_short_output_is_kept_once(ws: Workspace) -> None:
    """A failed call with little output is logged completely, including bytes that are not text."""
    ws.exits(4)
    ws.side(1, r"printf 'sorry \377\n'")
    ws.rooda("build", "-n", "1")
    bad = next(event for event in ws.events() if event["event"] == "agent.ended")
    assert (bad["head"], bad["tail"]) == ("sorry \ufffd\n", "")
    assert json.dumps(bad)


@pytest.mark.parametrize(
    "how",
    [
        "loop.ai_cmd = \"./tools/agent 'a b'\"",
        'loop.agent = "mine"\nagents.mine.command = "tools/agent --model {model} \'a b\'"',
        'loop.agent = "mine"\nagents.mine.command = "./tools/agent \'a b\'"',
        'loop.agent = "mine"\nloop.read_only = true\nagents.mine.command = "true"\n'
        "agents.mine.read_only = \"tools/../tools/agent 'a b'\"",
        'loop.agent = "mine"\nai_cmd_aliases.mine = "./tools/agent \'a b\'"',
    ],
)
def test_settled_12_a_program_in_a_file_is_relative_to_that_file(ws: Workspace, how: str) -> None:
    """A relative program is found next to the settings file, not by the same name in the workspace."""
    ws.git("init", "-q")
    ws.write("tools/agent", f'#!/bin/sh\nexec {FAKE_AI} "$@"\n', 0o755)
    ws.write("sub/tools/agent", "#!/bin/sh\nexit 9\n", 0o755)
    ws.procedure("build", loop={"ai_cmd": None})
    ws.config(how + "\n" + ws.read("rooda.toml").replace("[loop]\n", ""))
    ran = ws.rooda("-C", "sub", "build", "-n", "1")
    assert (ran.code, "WARNING" in ran.both) == (0, False), ran.both
    assert [(call.argv, call.cwd) for call in ws.calls] == [(["a b"], ws.file("sub"))]


def test_settled_12_a_relative_program_is_found_in_the_workspace(ws: Workspace) -> None:
    """Without such a file, a relative program is found in the workspace, as a typed one is."""
    ws.git("init", "-q")
    for name in ("only", "both"):
        ws.write(f"sub/{name}", f"#!/bin/sh\nexec {FAKE_AI} {name}\n", 0o755)
    ws.write("both", "#!/bin/sh\nexit 9\n", 0o755)
    ws.procedure("build", loop={"ai_cmd": "./only"})
    ws.rooda("-C", "sub", "build", "-n", "1")
    ws.rooda("-C", "sub", "build", "-n", "1", "--ai-cmd", "./both")
    assert [call.argv for call in ws.calls] == [["only"], ["both"]]


def test_a_typed_program_may_be_relative_to_the_current_folder(ws: Workspace) -> None:
    """The workspace is a folder above; a resume from the workspace finds the program again."""
    ws.write("sub/tools/agent", f"#!/bin/sh\nexec {FAKE_AI} typed\n", 0o755)
    ws.git("init", "-q")
    ws.signal_at(1)
    ran = ws.rooda("build", "-n", "2", "--ai-cmd", "tools/agent", cwd=ws.file("sub"))
    assert ran.code == 130, ran.both
    assert ws.rooda("resume", "build").code == 0
    assert [(call.argv, call.cwd) for call in ws.calls] == [(["typed"], ws.path)] * 2
