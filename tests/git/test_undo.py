"""`rooda undo`, `rooda diff`, `rooda snapshots`: inspect and undo iterations."""

import calendar
import json
import os
import random
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.snapshots import moments, repository
from tests.kit.workspace import Workspace, until


def files_of(ws: Workspace) -> dict[str, tuple[bytes, int, str]]:
    """Every file of the work tree but git's and rooda's own: content, executable bit, link target."""
    found = {}
    for folder, names, files in os.walk(ws.path):
        names[:] = [name for name in names if name not in (".git", ".rooda")]
        for name in [*files, *(name for name in names if os.path.islink(os.path.join(folder, name)))]:
            path = Path(folder, name)
            link = os.readlink(path) if path.is_symlink() else ""
            content = b"" if link else path.read_bytes()
            found[str(path.relative_to(ws.path))] = (content, 0 if link else path.stat().st_mode & 0o100, link)
    return found


def worked(ws: Workspace, *scripts: str) -> None:
    """A repository in which each script has run as one iteration."""
    repository(ws, {"a": "1\n", "b": "1\n", "dir/c": "1\n", ".gitignore": "*.log\nbuild/\n"})
    ws.write("keep.log", "mine\n")
    for number, script in enumerate(scripts, 1):
        ws.side(number, script)
    assert ws.rooda("build", "-n", str(len(scripts))).code == 0


def test_an_iteration_is_taken_back(ws: Workspace) -> None:
    """Changed, new, deleted, renamed, linked and executable files are restored; later iterations are undone too."""
    worked(
        ws, "echo 2 >a",
        "echo 3 >a; rm b; mv dir/c dir/d; ln -s a link; chmod +x .gitignore; mkdir -p deep/er; echo n >deep/er/n",
        "echo 4 >>a; echo later >later",
    )  # fmt: skip
    assert ws.rooda("undo", "2", "--yes").code == 0
    assert (ws.read("a"), ws.read("b"), ws.read("dir/c")) == ("2\n", "1\n", "1\n")
    for gone in ("dir/d", "link", "deep", "later"):
        assert not ws.exists(gone), gone
    assert not os.access(ws.file(".gitignore"), os.X_OK)
    assert ws.read("keep.log") == "mine\n"


def test_undo_leaves_index_and_commits_alone(ws: Workspace) -> None:
    """The agent's commits stay, and the output says how to undo them too."""
    worked(ws, "echo 2 >a; git commit -qam work")
    index = Path(ws.path, ".git/index").read_bytes()
    head = ws.git("rev-parse", "HEAD")
    before = ws.git("rev-parse", "HEAD~1").strip()
    done = ws.rooda("undo", "--yes")
    assert done.code == 0 and ws.read("a") == "1\n"
    assert f"git reset --mixed {before[:12]}" in done.err
    assert (ws.git("rev-parse", "HEAD"), Path(ws.path, ".git/index").read_bytes()) == (head, index)
    ws.git("reset", "--mixed", before[:12])
    assert ws.git("status", "--porcelain", "a") == ""


def test_undo_can_be_undone(ws: Workspace) -> None:
    """An undo first saves the current state with the user's changes; --redo restores it, and can be repeated."""
    worked(ws, "echo 2 >a; echo new >new")
    ws.write("a", "by hand\n")
    ws.write("mine.txt", "by hand\n")
    present = files_of(ws)
    assert ws.rooda("undo", "--yes").code == 0
    past = files_of(ws)
    assert past["a"][0] == b"1\n" and "new" not in past and "mine.txt" not in past
    assert ws.rooda("undo", "--redo", "--yes").code == 0
    assert files_of(ws) == present
    assert ws.rooda("undo", "--redo", "--yes").code == 0
    assert files_of(ws) == past


def test_the_printed_redo_command_works(ws: Workspace) -> None:
    """The redo command that an undo prints reverts that very undo, even if another run's snapshots are newer."""
    repository(ws, {"a": "1\n"})
    ws.procedure("brew")
    ws.side(1, "echo 2 >a")
    ws.side(2, "echo 3 >a")
    ws.side(3, "echo 4 >a")
    assert ws.rooda("brew", "-n", "1").code == 0
    assert _back(ws, ("1", "brew"), "1\n", "2\n") == []
    later = {"GIT_COMMITTER_DATE": "2099-01-01T00:00:00Z"}  # as of a clock that has been set back since
    assert ws.rooda("build", "-n", "1", env=later).code == 0
    assert _back(ws, ("1", "brew"), "1\n", "3\n") == ["brew"]
    assert ws.rooda("brew", "-n", "1", env=later).code == 0
    run = next(each for each in sorted(os.listdir(ws.file(".rooda/runs"))) if "-brew-" in each)
    assert _back(ws, ("1", "--run", run), "1\n", "4\n") == ["--run", run]


def _back(ws: Workspace, words: tuple[str, ...], undone: str, done: str) -> list[str]:
    """Undo and redo as printed, checking the file each time; returns what the printed command has after --redo."""
    said = ws.rooda("undo", *words, "--yes")
    assert said.code == 0 and ws.read("a") == undone, said.both
    told = said.lines[-1].removeprefix("Revert this with: rooda ").split()
    back = ws.rooda(*told, "--yes")
    assert back.code == 0 and ws.read("a") == done, back.both
    return told[2:]


def test_each_undo_goes_one_iteration_back(ws: Workspace) -> None:
    """Without a number each undo goes one iteration further back, skipping those without changes, to the first."""
    worked(ws, "echo 2 >a", "echo 3 >a", "true", "echo 4 >a")
    seen = []
    for _ in range(4):
        done = ws.rooda("undo", "--yes")
        assert done.code == 0
        seen.append(ws.read("a"))
    assert seen == ["3\n", "2\n", "1\n", "1\n"]
    assert "Nothing to do" in done.out
    assert ws.rooda("undo", "4", "--yes").code == 0, "a number is taken by its word, forward too"
    assert ws.read("a") == "3\n"


def test_undo_without_a_terminal_needs_yes(ws: Workspace) -> None:
    """Without a terminal an undo needs --yes: otherwise nothing changes, exit 3. --dry-run changes nothing either."""
    worked(ws, "echo 2 >a")
    for words, code in ((["undo"], 3), (["undo", "--dry-run"], 0)):
        done = ws.rooda(*words, stdin=b"y\n")
        assert (done.code, ws.read("a")) == (code, "2\n")
        assert "put back  a" in done.out
        assert len(moments(ws)) == 2
    assert "--yes" in ws.rooda("undo").err


@pytest.mark.parametrize(("answer", "code", "left"), [("y", 0, "1\n"), ("", 3, "2\n"), ("n", 3, "2\n")])
def test_a_person_is_asked(ws: Workspace, answer: str, code: int, left: str) -> None:
    """On a terminal the paths are shown, and only a yes restores them."""
    worked(ws, "echo 2 >a")
    terminal = ws.terminal("undo")
    until(lambda: "[y/N]" in terminal.out)
    terminal.type(f"{answer}\r")
    assert terminal.finish() == code
    assert ws.read("a") == left


def test_ignored_files_are_never_touched(ws: Workspace) -> None:
    """Files ignored now or at the snapshot are kept and listed, and the exit code is 1."""
    worked(
        ws, "true",
        "echo '*.log' >.gitignore; echo loose >>a; mkdir -p build; echo out >build/out",  # not ignored any more
        "echo fresh.txt >>.gitignore; echo 5 >>a; echo fresh >fresh.txt",
    )  # fmt: skip
    ws.write("build/secret", "ignored at first\n")
    done = ws.rooda("undo", "2", "--yes")
    assert done.code == 1
    assert ws.read("build/secret") == "ignored at first\n" and ws.read("keep.log") == "mine\n"
    assert ws.read("fresh.txt") == "fresh\n"
    assert "left alone  build/secret" in done.out and "left alone  build/out" in done.out
    assert ws.read("a") == "1\n" and ws.read(".gitignore") == "*.log\nbuild/\n"


def test_what_an_agent_committed_stays_where_it_was_ignored_then(ws: Workspace) -> None:
    """A file that was ignored before the iteration is kept, also if it is tracked now under the same rules."""
    worked(ws, ": >.gitignore; git add -A; git commit -qm all", "git checkout -q HEAD~1 .gitignore; echo n >new")
    assert "keep.log" in ws.git("ls-files")
    done = ws.rooda("undo", "1", "--yes")
    assert done.code == 1 and "left alone  keep.log" in done.out
    assert ws.read("keep.log") == "mine\n" and not ws.exists("new")


def test_an_ignored_file_blocks_a_restore(ws: Workspace) -> None:
    """A file is not restored where an ignored one is in the way, and that is reported."""
    repository(ws, {"a": "1\n", "notes": "old\n", "where": "file\n"})
    ws.side(1, "rm notes where; printf 'notes\\nwhere/\\n' >.gitignore")
    ws.side(1, "echo precious >notes; mkdir where; echo p >where/p")
    assert ws.rooda("build", "-n", "1").code == 0
    ws.git("rm", "-q", "--cached", "notes", "where")
    assert ws.rooda("build", "-n", "1", "--fresh").code == 0
    done = ws.rooda("undo", "1", "--yes", "--run", sorted(_runs(ws))[0])
    assert done.code == 1, done.both
    assert (ws.read("notes"), ws.read("where/p")) == ("precious\n", "p\n")
    assert "left alone  notes" in done.out and "left alone  where" in done.out


def _runs(ws: Workspace) -> set[str]:
    return {row["run"] for row in json.loads(ws.rooda("snapshots", "--json").out)}


def test_a_nested_repository_is_left_alone(ws: Workspace) -> None:
    """A repository inside the work tree is not part of a snapshot: it stays unchanged, and that is reported."""
    worked(ws, "git init -q inner; cd inner; git commit -q --allow-empty -m x; echo 1 >f")
    done = ws.rooda("undo", "--yes")
    assert done.code == 1 and "left alone  inner (a repository of its own)" in done.out
    assert ws.read("inner/f") == "1\n"


def test_undo_is_refused_while_a_loop_runs(ws: Workspace) -> None:
    """While any loop runs here, an undo is refused; diff shows what the loop has done so far."""
    worked(ws, "echo 2 >a")
    ws.procedure("other")
    ws.side(2, "echo 3 >a; touch $FAKE/done; sleep 30 & wait")
    run = ws.start("other", "-n", "1")
    until(lambda: os.path.exists(f"{ws.fake}/done"))
    done = ws.rooda("undo", "--yes")
    assert done.code == 3 and "other" in done.err and ws.read("a") == "3\n"
    assert "+3\n" in ws.rooda("diff", "1", "other").out
    run.signal(15)
    assert run.finish() == 143
    assert ws.rooda("undo", "1", "build", "--yes").code == 0 and ws.read("a") == "1\n"


def test_diff_shows_what_an_iteration_changed(ws: Workspace) -> None:
    """A diff shows an iteration's own changes, not the user's in between; --stat and --name-only work as in git."""
    worked(ws, "echo 2 >a", "echo 2 >b; rm dir/c")
    assert ws.rooda("diff", "--name-only").out == "b\ndir/c\n"
    assert ws.rooda("diff", "1", "--name-only").out == ws.rooda("diff", "build", "1", "--name-only").out == "a\n"
    one = ws.rooda("diff", "1").out
    assert "-1\n+2\n" in one and "diff --git a/a b/a" in one and "\x1b" not in one
    assert "2 files changed" in ws.rooda("diff", "2", "--stat").out
    listed = ws.rooda("snapshots").out
    assert "1 file changed, 1 insertion(+), 1 deletion(-)" in listed


def test_iterations_of_resumed_runs_are_found_by_their_number(ws: Workspace) -> None:
    """Iteration numbers continue after a resume."""
    repository(ws, {"a": "1\n"})
    ws.side(1, "echo 2 >a")
    ws.side(2, "echo 3 >a")
    ws.signal_at(2)
    assert ws.rooda("build", "-n", "3").code == 130
    ws.side(3, "echo 4 >a")
    assert ws.rooda("resume", "build").code == 0
    for number, added in ((1, "+2\n"), (2, "+3\n"), (3, "+4\n")):
        assert added in ws.rooda("diff", str(number)).out
    assert ws.rooda("undo", "2", "--yes").code == 0
    assert ws.read("a") == "2\n"


@pytest.fixture(scope="module")
def one_iteration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A repository with one iteration, for commands that change nothing."""
    ws = Workspace(str(tmp_path_factory.mktemp("worked")))
    ws.procedure("build")
    worked(ws, "echo 2 >a")
    yield ws
    ws.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["diff", "9"], "There is no snapshot of iteration 9; the last one of 'build' here is 1."),
        (["undo", "9", "--yes"], "There is no snapshot of iteration 9"),
        (["diff", "1", "nope"], "There are no snapshots of 'nope'.\nSee the names with: rooda list"),
        (["diff", "1", "biuld"], "There are no snapshots of 'biuld'.\nDid you mean 'build'?"),
        (["undo", "biuld"], "There are no snapshots of 'biuld'.\nDid you mean 'build'?"),
        (["snapshots", "biuld"], "There are no snapshots of 'biuld'.\nDid you mean 'build'?"),
        (["diff", "bootstrap"], "There are no snapshots of 'bootstrap'.\nTake them with safety"),
        (["undo", "reflex"], "There are no snapshots of 'reflex'.\nTake them with safety"),
        (["diff", "--run", "another"], "There are no snapshots of the run 'another'.\nSee them with: rooda snapshots"),
        (["undo", "--redo", "--yes"], "There is no undo to revert"),
        (["undo", "2", "--redo", "--yes"], "--redo takes no number"),
        (["diff", "1", "build", "more"], "At most one iteration and one name"),
        (["undo", "../x"], "is not a valid procedure name"),
    ],
)
def test_mistakes_end_in_a_sentence(one_iteration: Workspace, words: list[str], said: str) -> None:
    """A missing iteration is reported with those that exist; exit 2."""
    done = one_iteration.rooda(*words)
    assert done.code == 2 and said in done.err and "Traceback" not in done.err


@pytest.mark.parametrize("words", [["snapshots"], ["diff"], ["undo"], ["prune"]], ids=" ".join)
def test_outside_of_git(bare: Workspace, words: list[str]) -> None:
    """Without a repository there are no snapshots: exit 2, with a hint."""
    done = bare.rooda(*words)
    assert done.code == 2 and "git init" in done.err


def test_names_that_are_hard_to_write(ws: Workspace) -> None:
    """Names with blanks, quotes, line ends, invalid UTF-8, a leading dash or pattern characters are restored."""
    repository(ws, {"plain": "1\n"})
    names = [b" lead", b"-dash", b"line\nend", b'quo"te', b"\xff\xfe", "größe".encode(), b"*", b":(top)x", b"tab\there"]
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(ws.path), name))).write_bytes(b"1\n")
    ws.side(1, "rm -- *; mkdir -- -dash; echo 2 >./-dash/x; echo new >'new one'")
    before = files_of(ws)
    assert ws.rooda("build", "-n", "1").code == 0
    done = ws.rooda("undo", "--yes")
    assert done.code == 0, done.both
    assert files_of(ws) == before


def test_json_for_programs(ws: Workspace) -> None:
    """`rooda snapshots --json` has each snapshot with run, iteration, moment, ref, commit and tree."""
    worked(ws, "echo 2 >a")
    found = json.loads(ws.rooda("snapshots", "--json").out)
    assert [(row["procedure"], row["iteration"], row["moment"]) for row in found] == [
        ("build", 1, "after"), ("build", 1, "before"),
    ]  # fmt: skip
    for row in found:
        assert ws.git("rev-parse", row["ref"]).strip() == row["commit"]
        assert ws.git("rev-parse", f"{row['ref']}^{{tree}}").strip() == row["tree"]


def test_a_random_history_comes_back_exactly(ws: Workspace) -> None:
    """Whatever scripts do to files, folders, links and modes, an undo restores the state before the iteration."""
    random.seed(os.environ.get("SEED", "1"))
    repository(ws, {f"f{number}": "0\n" for number in range(4)})
    spots = ["f0", "f1", "f2", "f3", "d/f0", "d/f1", "d/e/f0", "f1/x", "d/e"]
    for number in range(1, 9):
        ws.side(number, f'cd "{ws.path}"\n' + "\n".join(_deed(random.choice(spots)) for _ in range(6)))
        ws.side(number, f'rm -rf "$FAKE/copy-{number + 1}"; mkdir "$FAKE/copy-{number + 1}"')
        ws.side(number, f'tar cf - --exclude=./.git --exclude=./.rooda . | tar xf - -C "$FAKE/copy-{number + 1}"')
    assert ws.rooda("build", "-n", "8").code == 0
    for number in random.sample(range(2, 9), 7):
        done = ws.rooda("undo", str(number), "--yes")
        assert done.code == 0, done.both
        wanted = Workspace.__new__(Workspace)
        wanted.path = f"{ws.fake}/copy-{number}"
        assert files_of(ws) == files_of(wanted), number
    status = subprocess.run(["git", "fsck", "--strict"], cwd=ws.path, env=ws.env, capture_output=True, text=True)
    assert status.returncode == 0, status.stderr


def _deed(path: str) -> str:
    """One random change to a path; impossible ones are skipped."""
    return (
        random.choice(
            [
                f"echo {random.random()} >>{path}",
                f"rm -rf {path}",
                f"rm -rf {path}; mkdir -p $(dirname {path}); echo {random.random()} >{path}",
                f"rm -rf {path}; mkdir -p $(dirname {path}); ln -s f0 {path}",
                f"chmod +x {path}",
                f"rm -rf {path}; mkdir -p {path}; echo x >{path}/inner",
            ]
        )
        + " 2>/dev/null || true"
    )


def test_names_have_no_power_over_the_terminal(ws: Workspace) -> None:
    """A file's name can neither forge a line nor control the terminal."""
    name = "a.txt\nWARNING: all is fine\033]0;pwn\007\u202e"
    worked(ws, "true", f"printf 1 > '{name}'")
    done = ws.rooda("undo", "--dry-run")
    shown = r"a.txt\nWARNING: all is fine\x1b]0;pwn\x07\u202e"
    assert f"    remove  {shown}" in done.lines, done.both
    assert not any(sign in done.both for sign in "\033\007\u202e") and "\nWARNING" not in done.both


def test_an_agents_words_have_no_power_over_the_terminal(ws: Workspace) -> None:
    """An agent's error message is one line on the screen, in `logs` and in `why`, without control characters."""
    said = json.dumps({"type": "result", "is_error": True, "result": "no \033]0;pwn\007 luck", "session_id": "s"})
    ws.write("agent.sh", f"cat <<'END'\n{said}\nEND\nexit 1\n")
    ws.sections["agent"] = '\n[agents.mine]\ncommand = "sh agent.sh"\noutput = "claude"\n'
    ws.procedure(loop={"ai_cmd": None, "agent": "mine"})
    told = [ws.rooda("build", "-n", "1", "-v"), ws.rooda("logs"), ws.rooda("why")]
    assert all("no luck" in " ".join(ran.both.split()) for ran in told[:2])
    assert not any(sign in ran.both for ran in told[1:] for sign in "\033\007")


def test_times_of_snapshots_are_utc(ws: Workspace) -> None:
    """In every time zone, snapshots, undo and --since use the same times."""
    tokyo = {"TZ": "Asia/Tokyo"}
    worked(ws, "echo 2 >a")
    (at,) = re.findall(r" 1  (\S+Z)  1 file changed", ws.rooda("snapshots", env=tokyo).out)
    assert abs(_seconds(at) - _seconds(f"{ws.events()[0]['ts'][:19]}Z")) < 60
    assert ws.rooda("undo", "--yes", env=tokyo).code == 0
    (undone,) = re.findall(r"  (\S+Z)  the work tree before an undo", ws.rooda("snapshots", env=tokyo).out)
    assert f"as it was at {undone}, before the last undo" in ws.rooda("undo", "--redo", "--yes", env=tokyo).out
    hour_ago = time.strftime("%Y-%m-%dT%H:%M", time.gmtime(_seconds(at) - 3600))
    assert "build" in ws.rooda("usage", "--since", hour_ago, env=tokyo).out
    assert "No agent call" in ws.rooda("usage", "--since", f"{hour_ago}-03:00", env=tokyo).out
    assert "(UTC)" in ws.rooda("usage", "--help").out


def _seconds(stamp: str) -> int:
    return calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ"))
