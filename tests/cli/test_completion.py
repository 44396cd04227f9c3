"""TAB in bash, zsh and fish: what is offered, and how it gets into the shell."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.loops import Loops, hold
from tests.kit.needed import needs
from tests.kit.snapshots import repository
from tests.kit.workspace import SAMPLE, Terminal, Workspace, until

SHELLS = ("bash", "zsh", "fish")
NO_MANUALS = {"FISH_UNIT_TESTS_RUNNING": "1"}  # else fish parses all manuals in the background
PACKAGE = "/usr/share/bash-completion/bash_completion"
HEAVY = {"rich", "tiktoken", "yaml", "psutil", "asyncio"}


ASK = "import sys\nfrom rooda.startup import main\ncode = main([])\n"
ASK += "print(*sys.modules, file=sys.stderr)\nsys.exit(code)"


def asked(ws: Workspace, line: str, shell: str) -> tuple[list[str], set[str]]:
    """What is offered at the end of the line, and the modules that were loaded for it."""
    words = line.split(" ")
    at = words[-1] if shell == "fish" else str(len(words) - 1)
    env = ws.env | {"_ROODA_COMPLETE": f"{shell}_complete", "COMP_WORDS": line, "COMP_CWORD": at}
    ran = subprocess.run([sys.executable, "-c", ASK], env=env, cwd=ws.path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines(), {module.partition(".")[0] for module in ran.stderr.split()}


def tab(ws: Workspace, line: str, shell: str = "bash") -> list[str]:
    """What is offered at the end of the line."""
    return asked(ws, line, shell)[0]


def values(ws: Workspace, line: str) -> list[str]:
    """The same without what kind each is."""
    return [item.partition(",")[2] for item in tab(ws, line)]


def test_first_words(ws: Workspace) -> None:
    """Commands and procedures, the user's own too; with descriptions in shells that show them."""
    ws.procedure("brew", 'summary = "Make tea: green"\n')
    assert {"build", "bootstrap", "brew"} <= set(values(ws, "rooda b"))
    assert values(ws, "rooda und") == ["undo"]
    assert tab(ws, "rooda bre", "zsh") == ["plain", "brew", "Make tea: green"]
    assert tab(ws, "rooda bre", "fish") == ["plain,brew\tMake tea: green"]


@pytest.mark.parametrize(
    "line",
    [
        *("rooda b", "rooda stop ", "rooda logs ", "rooda build --agent c", "rooda resume ", "rooda info a"),
        *("rooda undo 1 ", "rooda diff --run ", "rooda flow resume ", "rooda reflex clean "),
    ],
)
def test_tab_stays_cheap(ws: Workspace, line: str) -> None:
    """Names and agents need nothing heavier than click."""
    assert not asked(ws, line, "bash")[1] & HEAVY


def test_names_of_loops(ws: Workspace) -> None:
    """stop offers what runs, resume what was left, status and logs all of it."""
    for name in ("done", "left", "busy"):
        ws.procedure(name)
    assert ws.rooda("done", "-n", "1").code == 0
    ws.signal_at(2)
    assert ws.rooda("left").code == 130
    ws.side(3, "touch $FAKE/on; sleep 30 & wait")
    run = ws.start("busy")
    until(lambda: os.path.exists(f"{ws.fake}/on"))
    ws.write(".ai-factory/evolution/course/run.json", "{}")
    assert values(ws, "rooda stop ") == values(ws, "rooda stop --now --reason enough ") == ["busy"]
    assert values(ws, "rooda status --watch b") == ["busy"]
    assert set(values(ws, "rooda resume ")) == {"left", "busy"}
    for verb in ("status", "logs"):
        assert set(values(ws, f"rooda {verb} ")) == {"done", "left", "busy", "course"}
    assert values(ws, "rooda logs le") == ["left"]
    assert values(ws, "rooda logs left ") == []
    runs = set(os.listdir(ws.file(".rooda/runs")))
    assert len(runs) == 3 and set(values(ws, "rooda why 2")) == runs
    run.signal(15)
    assert run.finish() == 143


@pytest.mark.parametrize(("kind", "phase"), [("reflex", "produce"), ("goal", "step-1")])
def test_another_kind_that_runs(bare: Workspace, kind: str, phase: str) -> None:
    """stop offers it as long as it runs, resume when it was cut off."""
    loops = Loops(bare)
    bare.side(phase, "touch $FAKE/on; sleep 60 & wait")
    run = loops.start(kind)
    until(lambda: os.path.exists(f"{bare.fake}/on"))
    name = "page" if kind == "reflex" else "goal"
    assert values(bare, "rooda stop ") == [name]
    run.signal(15)
    assert run.finish() == 143
    assert values(bare, "rooda stop ") == []
    assert values(bare, "rooda resume ") == values(bare, "rooda status ") == [name]


def test_a_flow_that_runs(bare: Workspace) -> None:
    """stop offers it as long as it runs, also from a folder inside; its own verbs continue with that, on any branch."""
    loops = Loops(bare)
    run = loops.start("flow")
    until(lambda: os.path.exists(f"{bare.fake}/here"))
    (name,) = os.listdir(bare.file(".ai-loop/runs"))
    assert values(bare, "rooda stop ") == values(bare, "rooda pause ") == [name]
    run.signal(15)
    assert run.finish() == 143
    assert values(bare, "rooda stop ") == []
    bare.git("checkout", "-q", "-f", "main")
    shutil.rmtree(bare.file(".ai-loop/runs"))
    for line in ("flow resume ", "flow status run", "flow log ", "flow run --resume ", "resume ", "status "):
        assert values(bare, f"rooda {line}") == [name], line


def test_a_flow_in_a_worktree(bare: Workspace) -> None:
    """There its lock is where the line in `.git` leads."""
    loops = Loops(bare)
    loops.flow_ready("S1")
    bare.git("worktree", "add", "-q", "tree", "-b", "other")
    bare.write("tree/rooda.toml", bare.read("rooda.toml"))  # git ignores it
    hold(bare, "flow", 'touch "$FAKE/here"; sleep 60')
    run = bare.start("-C", "tree", "flow", "run", "do it")
    until(lambda: os.path.exists(f"{bare.fake}/here"))
    (name,) = os.listdir(bare.file("tree/.ai-loop/runs"))
    assert values(bare, "rooda -C tree stop ") == [name] and values(bare, "rooda stop ") == []
    run.signal(15)
    assert run.finish() == 143


def test_names_with_dots(ws: Workspace) -> None:
    """A dot in a name is part of it, in what ran as in what runs."""
    ws.config(ws.read("rooda.toml").replace("procedures.build", 'procedures."v1.2-check"'))
    ws.side(1, "touch $FAKE/on; sleep 30 & wait")
    run = ws.start("v1.2-check")
    until(lambda: os.path.exists(f"{ws.fake}/on"))
    assert values(ws, "rooda status v1") == values(ws, "rooda stop v1") == ["v1.2-check"]
    run.signal(15)
    assert run.finish() == 143
    assert values(ws, "rooda status ") == values(ws, "rooda resume ") == ["v1.2-check"]


def test_aliases_of_reflex_loops(ws: Workspace) -> None:
    """Every verb of reflex that takes one offers them; stop takes a reason, and offers nothing."""
    ws.write(".ai-factory/evolution/course/run.json", "{}")
    ws.write(".ai-factory/evolution/page/run.json", "{}")
    for verb in ("resume", "status", "history", "clean", "show", "diff"):
        assert values(ws, f"rooda reflex {verb} ") == ["course", "page"]
    assert values(ws, "rooda reflex clean --yes co") == values(ws, "rooda reflex status --artifact co") == ["course"]
    assert values(ws, "rooda reflex stop ") == []


def test_runs_that_have_snapshots(ws: Workspace) -> None:
    """--run offers the runs with snapshots, newest first, packed by git or not; after a number come names."""
    repository(ws, {"a": "1\n"})
    ws.procedure("brew")
    for words in (["build"], ["brew"], ["build"], ["brew", "--safety", "off"]):
        assert ws.rooda(*words, "-n", "1").code == 0
    *known, bare = sorted(os.listdir(ws.file(".rooda/runs")))
    for verb in ("undo", "diff"):
        assert values(ws, f"rooda {verb} 1 ") == values(ws, f"rooda {verb} ") == ["brew", "build"]
        assert values(ws, f"rooda {verb} 1 build ") == []
        assert values(ws, f"rooda {verb} --run ") == known[::-1] and bare not in known
        assert values(ws, f"rooda {verb} 1 brew --run ") == [known[1]]
        assert values(ws, f"rooda {verb} --run={known[0]}") == [f"--run={known[0]}"]
    ws.git("pack-refs", "--all")
    ws.git("worktree", "add", "-q", "tree")
    assert values(ws, "rooda diff --run ") == known[::-1]
    assert values(ws, "rooda -C tree diff --run ") == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rooda build --agent clau", ["claude"]),
        ("rooda build --agent=clau", ["--agent=claude"]),
        ("rooda build --agent = clau", ["claude"]),
        ("rooda build -n 3 --agent clau", ["claude"]),
        ("rooda build --json --agent clau", ["claude"]),
        ("rooda agents test clau", ["claude"]),
        ("rooda build --max-it", ["--max-iterations"]),
        ("rooda build --json --js", []),
        ("rooda build --log-level de", ["debug"]),
        ("rooda build --safety ", ["snapshot", "off"]),
        ("rooda resume --fail", ["--failure-threshold"]),
        ("rooda config sh", ["show"]),
        ("rooda completion ", ["bash", "zsh", "fish", "install", "uninstall"]),
        ("rooda run buil", ["build"]),
        ("rooda info buil", ["build"]),
        ("rooda build --model fas", ["fast"]),
        ("rooda build ", []),
        ("rooda --vers", ["--version"]),
        ("rooda serv", ["service"]),
        ("rooda service ", ["install", "status", "uninstall"]),
        ("rooda service install --f", ["--force"]),
        ("rooda resume --al", ["--all"]),
        ("rooda status --wa", ["--watch"]),
        ("rooda stop --rea", ["--reason"]),
        ("rooda stop --reason enough", []),
        ("rooda usage --by d", ["day"]),
        ("rooda 'quo", []),
        ("rooda nonsense --ag", []),
    ],
)
def test_words_of_commands(ws: Workspace, line: str, expected: list[str]) -> None:
    """Options, their values, names of agents, models and procedures."""
    ws.config(ws.read("rooda.toml") + '[models]\nfast = "small-1"\n')
    assert values(ws, line) == expected


def test_another_workspace(ws: Workspace) -> None:
    """-C and --config count: the names are those of that place; their own values are folders and files."""
    ws.write("sub/rooda.toml", '[procedures.inner]\nobserve = "a"\norient = "b"\ndecide = "c"\nact = "d"\n')
    assert values(ws, "rooda -C sub inn") == ["inner"]
    assert values(ws, "rooda --config sub/rooda.toml inn") == ["inner"]
    assert tab(ws, "rooda -C ") == ["dir,"] and tab(ws, "rooda build --config x") == ["file,x"]


def test_broken_settings_offer_nothing(ws: Workspace) -> None:
    """TAB never shows an error: where nothing can be offered, there is nothing."""
    ws.config("[loop\n")
    assert tab(ws, "rooda b") == [] and tab(ws, "rooda build --agent c") == []


def test_the_scripts_are_sound(ws: Workspace) -> None:
    """Each shell reads its script without a word, and offers what rooda says."""
    for shell in SHELLS:
        ws.write(f"script.{shell}", ws.rooda("completion", shell).out)
        checked = subprocess.run([shell, "-n", ws.file(f"script.{shell}")], capture_output=True, text=True)
        assert (checked.returncode, checked.stderr) == (0, ""), shell


def test_bash_completes_a_command(ws: Workspace) -> None:
    """The function of the script fills COMPREPLY."""
    script = ws.write("script", ws.rooda("completion", "bash").out)
    words = f"source {script}; COMP_WORDS=(rooda bootst); COMP_CWORD=1; _rooda_tab rooda; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "-c", words], cwd=ws.path, env=ws.env, capture_output=True, text=True)
    assert done.stdout == "bootstrap\n", done.stderr


def typed(ws: Workspace, argv: list[str], env: dict[str, str]) -> Terminal:
    """A shell on a terminal."""
    terminal = Terminal(argv, ws.env | {"TERM": "xterm", "PS1": "ready> "} | NO_MANUALS | env, ws.path, 24, 100)
    ws.running.append(terminal)
    return terminal


def kill(shell: Terminal) -> None:
    """End an interactive shell, which ignores SIGTERM."""
    shell.signal(signal.SIGKILL)
    shell.finish()


ODD = ("it;touch${IFS}X;", "it's", "it`x`", "it|x", "it~", "it\\c", "it x", "it*", "it\nx", "it\x1b[2J", "it[1m]")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_S_11_only_names_without_signs_of_a_shell_are_offered(ws: Workspace, shell: str) -> None:
    """A name in which a shell could find a command is not offered, whichever file of the workspace has it."""
    rows = "".join(f"{json.dumps(name)} = 'small-1'\n" for name in (*ODD, SAFE))
    ws.config(ws.read("rooda.toml") + f"[models]\n{rows}[agents.{json.dumps(ODD[0])}]\ncommand = 'true'\n")
    ws.write(f".rooda/state/{ODD[0]}.json", json.dumps(SAMPLE | {"procedure_name": ODD[0]}))
    lines = ("build --model it", "build --agent it", "resume it", "logs it")
    offered = [each for line in lines for each in tab(ws, f"rooda {line}", shell) if "it" in each]
    assert len(offered) == 1 and SAFE in offered[0]


SAFE = "it.5_a-b/c"


@pytest.mark.parametrize(
    ("shell", "begun"),
    [
        *(("bash", begun) for begun in ("it", '"it', "'it")),
        *(pytest.param("zsh", begun, marks=needs("zsh")) for begun in ("it", '"it')),
        *(pytest.param("fish", begun, marks=needs("fish")) for begun in ("it", '"it')),
    ],
)
def test_a_completed_name_reaches_rooda_unchanged(ws: Workspace, shell: str, begun: str) -> None:
    """A name reaches rooda whole after TAB, also inside an open quote."""
    ws.config(ws.read("rooda.toml") + f"[models]\n{json.dumps(SAFE)} = 'small-1'\n")
    program, rooda = shutil.which(shell), shutil.which("rooda", path=ws.env["PATH"])
    assert program and rooda and ws.rooda("completion", "install", shell).code == 0
    complete = f'[ -z "$_ROODA_COMPLETE" ] || exec {rooda}'
    ws.write("bin/rooda", f'#!/bin/sh\n{complete}\nprintf "%s\\n" "$@" > said.new; mv said.new said\n')
    os.chmod(ws.file("bin/rooda"), 0o755)
    start_up = Path(ws.home, ".config/fish/config.fish" if shell == "fish" else f".{shell}rc")
    with open(start_up, "a") as file:
        file.write("function fish_prompt; echo 'ready> '; end\n" if shell == "fish" else "PS1='ready> '\n")
    env = {"SHELL": program, "PATH": f"{ws.file('bin')}:{ws.env['PATH']}"}
    terminal = typed(ws, [program, "-i"], env)
    until(lambda: "ready> " in terminal.out)
    terminal.type(f"rooda build --model {begun}\t\n")
    until(lambda: os.path.exists(ws.file("said")), what=f"the command: {terminal.out!r}")
    assert ws.read("said").splitlines() == ["build", "--model", SAFE], terminal.out
    kill(terminal)


@needs("fish")
def test_fish_completes_after_an_install(ws: Workspace) -> None:
    """fish finds the installed script by itself."""
    assert ws.rooda("completion", "install", "fish").code == 0
    asked = 'complete -C "rooda bootst"; complete -C "rooda build --agent clau"; complete -C "rooda stop "'
    done = subprocess.run(["fish", "-c", asked], cwd=ws.path, env=ws.env, capture_output=True, text=True)
    assert [line.partition("\t")[0] for line in done.stdout.splitlines()] == ["bootstrap", "claude"], done.stderr


@pytest.mark.parametrize(
    ("shell", "rc"),
    [
        ("bash", ""),
        pytest.param("bash", f". {PACKAGE}\n", marks=needs(PACKAGE)),
        pytest.param("zsh", "", marks=needs("zsh")),
    ],
    ids=["bash", "bash-with-its-package", "zsh"],
)
def test_tab_completes_in_a_new_shell_after_an_install(ws: Workspace, shell: str, rc: str) -> None:
    """In a new shell `rooda boots` and TAB makes `rooda bootstrap`: in a fresh home, and with bash's own package."""
    program = shutil.which(shell)
    assert program, f"{shell} is needed"
    env = {"SHELL": program}
    if rc:
        Path(ws.home, f".{shell}rc").write_text(rc)
    assert ws.rooda("completion", "install", env=env).code == 0
    with open(f"{ws.home}/.{shell}rc", "a") as file:
        file.write("PS1='ready> '\n")
    terminal = typed(ws, [program, "-i"], env)
    until(lambda: "ready> " in terminal.out)
    terminal.type("rooda boots\t")
    until(lambda: "rooda bootstrap" in "\n".join(terminal.screen), what=f"the completed word: {terminal.out!r}")
    kill(terminal)


@pytest.mark.parametrize("shell", SHELLS)
def test_installed_never_twice(ws: Workspace, shell: str) -> None:
    """A second install changes nothing, byte by byte; an older script is replaced; the user's own lines stay."""
    rc = Path(ws.home, f".{shell}rc")
    rc.write_text("alias mine=ls")  # without an end of line
    first = ws.rooda("completion", "install", shell)
    assert first.code == 0 and "Wrote " in first.out
    kept = everything(ws.home)
    again = ws.rooda("completion", "install", shell)
    assert again.code == 0 and "Already installed" in again.out
    assert everything(ws.home) == kept
    assert rc.read_text().startswith("alias mine=ls") and rc.read_text().count("# TAB for rooda") == (shell != "fish")
    path = next(name for name, data in kept.items() if b"_ROODA_COMPLETE" in data)
    Path(path).write_text("an older one\n")
    assert ws.rooda("completion", "install", shell).code == 0
    assert everything(ws.home) == kept


@pytest.mark.parametrize("shell", SHELLS)
def test_uninstalled(ws: Workspace, shell: str) -> None:
    """Script and line go, the user's own lines and the file's rights stay; a second time there is nothing to do."""
    rc = Path(ws.home, f".{shell}rc")
    rc.write_text("alias mine=ls\n")
    rc.chmod(0o600)
    before = everything(ws.home)
    assert ws.rooda("completion", "install", shell).code == 0 and everything(ws.home) != before
    assert ws.rooda("completion", "uninstall", shell).code == 0
    assert everything(ws.home) == before and rc.stat().st_mode & 0o777 == 0o600
    again = ws.rooda("completion", "uninstall", shell)
    assert again.code == 0 and again.out.startswith("Not installed")


def everything(folder: str) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def test_a_start_up_file_that_is_a_link_stays_one(ws: Workspace) -> None:
    """Dotfiles that live elsewhere are written where they live."""
    real = Path(ws.home, "dotfiles", "zshrc")
    real.parent.mkdir()
    real.write_text("mine\n")
    os.symlink(real, f"{ws.home}/.zshrc")
    assert ws.rooda("completion", "install", "zsh").code == 0
    assert os.path.islink(f"{ws.home}/.zshrc") and "# TAB for rooda" in real.read_text()


def test_which_shell(ws: Workspace) -> None:
    """Without an argument $SHELL decides; an unknown shell is an error, exit 2."""
    assert ws.rooda("completion", "install", env={"SHELL": "/usr/bin/fish"}).code == 0
    assert os.path.exists(f"{ws.home}/.config/fish/completions/rooda.fish")
    for env in ({"SHELL": "/bin/tcsh"}, {"SHELL": ""}):
        done = ws.rooda("completion", "install", env=env)
        assert done.code == 2 and "rooda completion install bash" in done.err
    assert ws.rooda("completion", "bash", "zsh").code == 2
    assert ws.rooda("completion", "tcsh").code == 2
