"""Replaced files: their space is freed while an agent runs, and only a few are kept open."""

import os
import shutil
from pathlib import Path

import pytest

from rooda.base import files


@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="elsewhere nothing is held")
def test_replaced_files_stay_open_until_released(tmp_path: Path) -> None:
    """However often files are replaced, few are kept open, and none after the release."""
    files.release_replaced()
    for number in range(3 * files.MOST_HELD):
        files.replace(f"{tmp_path}/{number % 5}", b"%d" % number)
        assert _gone(tmp_path) <= files.MOST_HELD
    assert _gone(tmp_path)
    files.release_replaced()
    assert _gone(tmp_path) == 0
    assert sorted(int(each.read_bytes()) for each in tmp_path.iterdir()) == [19, 20, 21, 22, 23]


def test_a_link_in_the_files_place_is_replaced(tmp_path: Path) -> None:
    """A link that an agent put in the file's place is not followed."""
    other = tmp_path / "other"
    other.write_text("kept")
    os.symlink(other, tmp_path / "state")
    files.replace(f"{tmp_path}/state", b"new")
    files.release_replaced()
    assert (other.read_text(), (tmp_path / "state").read_text()) == ("kept", "new")
    assert not (tmp_path / "state").is_symlink()


def test_a_deleted_folder_does_not_stop_the_others_from_being_synced(tmp_path: Path) -> None:
    """A folder deleted after the replacement is not an error, and the other files are synced."""
    for name in ("away", "stays", "other"):
        (tmp_path / name).mkdir()
        files.replace(f"{tmp_path}/{name}/state", b"1", synced=False)
    shutil.rmtree(tmp_path / "away")
    shutil.rmtree(tmp_path / "other")
    (tmp_path / "other").write_text("no folder")
    files.sync_replaced()
    assert not files.unsynced


def test_a_replacing_answers_for_its_own_file_alone(tmp_path: Path) -> None:
    """Syncing one file reports only that file's errors."""
    (tmp_path / "away").mkdir()
    files.replace(f"{tmp_path}/away/state", b"1", synced=False)
    shutil.rmtree(tmp_path / "away")
    files.replace(f"{tmp_path}/here", b"2")
    with pytest.raises(FileNotFoundError):
        files.replace(f"{tmp_path}/away/state", b"3")
    files.sync_replaced()


def _gone(folder: Path) -> int:
    """Number of open files in the folder that have no name any more."""
    held = (os.readlink(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd") if _is_open(each))
    return sum(path.startswith(f"{folder}/") and path.endswith(" (deleted)") for path in held)


def _is_open(descriptor: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{descriptor}")
