"""`rooda service`: the file of a service manager is written, enabled, and removed, and the user's own words stay."""

import os
import plistlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.background import HOLD, began, kill_all, let_go
from tests.kit.needed import needs
from tests.kit.workspace import Ran, Workspace


@pytest.fixture
def control(ws: Workspace) -> Path:
    """A `systemctl` that notes how it was called; the file of its calls."""
    calls = Path(ws.root, "systemctl-calls")
    os.mkdir(f"{ws.root}/bin")
    script = f'#!/bin/sh\necho "$*" >> {calls}\ncase "$*" in *is-*) echo enabled;; esac\n'
    for name in ("systemctl", "launchctl"):
        path = Path(ws.root, "bin", name)
        path.write_text(script)
        path.chmod(0o755)
    ws.env["PATH"] = f"{ws.root}/bin:{ws.env['PATH']}"
    return calls


def unit(ws: Workspace) -> Path:
    return Path(ws.home, ".config", "systemd", "user", "rooda.service")


def test_written_and_enabled(ws: Workspace, control: Path) -> None:
    """The unit runs this rooda with this PATH, is enabled, and a second install changes nothing."""
    ran = ws.rooda("service", "install")
    assert ran.code == 0 and f"Wrote {unit(ws)}" in ran.out and "loginctl enable-linger" in ran.out
    assert control.read_text().splitlines() == ["--user daemon-reload", "--user enable rooda.service"]
    text = unit(ws).read_text()
    assert f'ExecStart="{sys.executable}" "-P" "-m" "rooda" "resume" "--all" "--wait"\n' in text
    assert f'Environment="PATH={ws.env["PATH"]}"\n' in text
    assert {"Type=notify", "KillMode=mixed", "WantedBy=default.target"} <= set(text.splitlines())
    assert f"EnvironmentFile=-{ws.home}/.config/rooda/environment" in text
    again = ws.rooda("service", "install")
    assert again.code == 0 and "Already installed" in again.out and unit(ws).read_text() == text
    status = ws.rooda("service", "status")
    assert status.code == 0 and "as written" in status.out and "is-enabled rooda.service: enabled" in status.out


def test_removed(ws: Workspace, control: Path) -> None:
    """What install wrote is gone, nothing else; a second time it is said that there is nothing."""
    other = unit(ws).with_name("other.service")
    other.parent.mkdir(parents=True)
    other.write_text("[Unit]\n")
    ws.rooda("service", "install")
    ran = ws.rooda("service", "uninstall")
    assert ran.code == 0 and "Removed" in ran.out and os.listdir(unit(ws).parent) == ["other.service"]
    assert control.read_text().splitlines()[2:] == ["--user disable rooda.service", "--user daemon-reload"]
    again = ws.rooda("service", "uninstall")
    assert again.code == 0 and "Not installed" in again.out
    assert "Not installed" in ws.rooda("service", "status").out


def test_a_changed_file_is_left_alone(ws: Workspace, control: Path) -> None:
    """Neither overwritten nor removed without --force; an older version's own file is."""
    ws.rooda("service", "install")
    written = unit(ws).read_text()
    changed = written.replace("TimeoutStopSec=90", "TimeoutStopSec=9")
    for words, left in (("install", written), ("uninstall", None)):
        unit(ws).write_text(changed)
        ran = ws.rooda("service", words)
        assert ran.code == 3 and "--force" in ran.err and unit(ws).read_text() == changed
        assert "edited by the user" in ws.rooda("service", "status").out
        assert ws.rooda("service", words, "--force").code == 0
        assert (unit(ws).read_text() if unit(ws).exists() else None) == left
    ws.rooda("service", "install")
    assert ws.rooda("service", "install", env={"PATH": f"/opt/x:{ws.env['PATH']}"}).code == 0
    assert "/opt/x:" in unit(ws).read_text()


def test_where_the_manager_is_not(ws: Workspace) -> None:
    """Without systemctl, or if it can't reach its manager, the file is written and the commands are printed."""
    bin_ = Path(ws.root, "bin")
    bin_.mkdir()
    (bin_ / "python3").symlink_to(sys.executable)
    for there in (False, True):
        if there:
            (bin_ / "systemctl").write_text("#!/bin/sh\necho 'Failed to connect to bus' >&2; exit 1\n")
            (bin_ / "systemctl").chmod(0o755)
        ran = ws.rooda("service", "install", env={"PATH": str(bin_)})
        assert ran.code == 0 and unit(ws).exists()
        assert "To enable it, run: systemctl --user daemon-reload && systemctl --user enable rooda.service" in ran.out
    assert ws.rooda("service", "uninstall", env={"PATH": str(bin_)}).code == 0 and not unit(ws).exists()


@pytest.mark.parametrize("odd", ["with space", "50%", 'q"uote', "dollar$HOME", "back\\slash"])
def test_paths_with_special_characters(ws: Workspace, control: Path, odd: str) -> None:
    """systemd reads PATH and the places as they are."""
    ws.env["PATH"] += f":/opt/{odd}"
    ws.env["ROODA_CONFIG_HOME"] = f"{ws.root}/{odd}"
    assert ws.rooda("service", "install").code == 0
    line = next(row for row in unit(ws).read_text().splitlines() if row.startswith("Environment="))
    read = re.sub(r"\\(.)", r"\1", line.removeprefix('Environment="').removesuffix('"')).replace("%%", "%")
    assert read == f"PATH={ws.env['PATH']}"
    assert "as written" in ws.rooda("service", "status").out


def written(ws: Workspace) -> dict[str, str]:
    """The variables of the unit, as systemd reads them."""
    rows = [row for row in unit(ws).read_text().splitlines() if row.startswith("Environment=")]
    words = (re.sub(r"\\(.)", r"\1", row.removeprefix('Environment="').removesuffix('"')) for row in rows)
    return dict(word.replace("%%", "%").split("=", 1) for word in words)


def test_the_service_uses_the_users_folders(ws: Workspace, control: Path) -> None:
    """With the unit's variables alone it finds the run that was cut off, and the user's settings."""
    ws.env |= {"ROODA_STATE_HOME": f"{ws.root}/odd $state 50%", "ROODA_CONFIG_HOME": f"{ws.root}/config"}
    del ws.env["XDG_CACHE_HOME"]
    Path(ws.root, "config").mkdir()
    Path(ws.root, "config", "rooda.toml").write_text(f"[loop]\nai_cmd = {ws.loop['ai_cmd']}\n")
    ws.procedure("build", loop={"ai_cmd": None})
    ws.side("iteration-1", HOLD)
    assert ws.rooda("build", "-n", "2", "--detach").code == 0
    began(ws)
    kill_all(ws)
    let_go(ws)
    assert ws.rooda("service", "install").code == 0
    found = written(ws)
    assert f"EnvironmentFile=-{ws.root}/config/environment\n" in unit(ws).read_text()
    assert "XDG_CACHE_HOME" not in found and found["XDG_STATE_HOME"] == ws.env["XDG_STATE_HOME"]
    login = {"HOME": ws.home, "LANG": "C.UTF-8", "FAKE": ws.fake, "HARNESS_MARK": ws.root, "TMPDIR": ws.env["TMPDIR"]}
    words = [sys.executable, "-P", "-m", "rooda", "resume", "--all", "--wait"]
    ran = subprocess.run(words, env=login | found, cwd=ws.home, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout.splitlines()[:1]) == (0, [f"Resumed build in {os.path.realpath(ws.path)}"]), ran
    assert ws.state() is None


def test_relative_folders_become_absolute(ws: Workspace, control: Path) -> None:
    """Settings are found by one, so the unit has the whole path; a state or cache never is."""
    ws.env |= {"ROODA_CONFIG_HOME": "here", "ROODA_STATE_HOME": "here"}
    assert ws.rooda("service", "install").code == 0
    assert written(ws)["ROODA_CONFIG_HOME"] == os.path.join(os.path.realpath(ws.path), "here")
    assert "ROODA_STATE_HOME" not in written(ws)


@needs("systemd-analyze")
def test_systemd_accepts_the_unit(ws: Workspace, control: Path) -> None:
    """`systemd-analyze verify` finds nothing."""
    ws.env["PATH"] += ":/opt/with space:/opt/50%"
    ws.rooda("service", "install")
    os.mkdir(f"{ws.root}/run", 0o700)
    env = os.environ | {"XDG_RUNTIME_DIR": f"{ws.root}/run", "HOME": ws.home}
    ran = subprocess.run(["systemd-analyze", "--user", "verify", "--man=no", unit(ws)], env=env, capture_output=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


DARWIN = "import sys; sys.platform = 'darwin'; from rooda.startup import main; sys.exit(main(sys.argv[1:]))"


def darwin(ws: Workspace, *words: str) -> Ran:
    """The command as on macOS."""
    argv = [sys.executable, "-c", DARWIN, *words]
    ran = subprocess.run(argv, env=ws.env, cwd=ws.path, capture_output=True, text=True)
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def test_launchd(ws: Workspace, control: Path) -> None:
    """On macOS it is a property list in the user's folder, well formed, with the same rules."""
    ws.env["PATH"] += ":/opt/<odd> & more"
    ws.env["ROODA_STATE_HOME"] = f"{ws.root}/<state> & more"
    assert darwin(ws, "service", "install").code == 0
    path = Path(ws.home, "Library", "LaunchAgents", "dev.rooda.resume.plist")
    found = plistlib.loads(path.read_bytes())
    assert found["ProgramArguments"][1:] == ["-P", "-m", "rooda", "resume", "--all", "--wait"]
    assert found["RunAtLoad"] is True
    places = {name: value for name, value in ws.env.items() if name.endswith("_HOME")}
    assert found["EnvironmentVariables"] == {"PATH": ws.env["PATH"], **places}
    path.write_text(path.read_text().replace("<true/>", "<false/>"))
    assert darwin(ws, "service", "uninstall").code == 3
    assert darwin(ws, "service", "uninstall", "--force").code == 0 and not path.exists()


def test_S_09_no_folder_that_an_agent_writes_is_in_its_path(ws: Workspace, control: Path) -> None:
    """Relative entries and those inside a workspace are left out and named; a home that is a workspace stays."""
    ws.rooda("build", "-n", "1")
    ws.rooda("build", "-n", "1", "-C", ws.home, "--ai-cmd", "true")
    good = ws.env["PATH"]
    path = f".:{ws.file('.venv/bin')}:{good}::tools/bin:{ws.home}/.local/bin"
    ran = ws.rooda("service", "install", env={"PATH": path}, cwd=ws.root)
    assert ran.code == 0 and f'"PATH={good}:{ws.home}/.local/bin"' in unit(ws).read_text()
    line = next(line for line in ran.out.splitlines() if line.startswith("Not in its PATH:"))
    assert all(repr(each) in line for each in (".", ws.file(".venv/bin"), "", "tools/bin")), line


def test_S_09_a_file_of_keys_that_others_can_read_is_named(ws: Workspace, control: Path) -> None:
    """In `service status` and `doctor`, until its mode is 600."""
    ws.rooda("service", "install")
    path = Path(ws.home, ".config", "rooda", "environment")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("ANTHROPIC_API_KEY=sk\n")
    for mode in (0o644, 0o660, 0o600):
        path.chmod(mode)
        for ran in (ws.rooda("service", "status"), ws.rooda("doctor")):
            assert ran.code == 0 and (f"mode {mode:o}" in ran.both) == (mode != 0o600), ran.both
