"""The door to files of a workspace, pure: what it opens and what it refuses, without blocking and without memory."""

import os
import socket
import subprocess
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from rooda.base import files, workspace_files

SECRET = "-----SECRET-----"


def sparse(path: str) -> None:
    Path(path).touch()
    os.truncate(path, 10 << 30)


def bound(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)


def outside(path: str) -> None:
    secret = Path(path).parents[2] / "secret"
    secret.write_text(SECRET)
    os.symlink(secret, path)


BAD: dict[str, tuple[Callable[[str], object], str]] = {
    "pipe": (os.mkfifo, "not a regular file"),
    "device": (lambda path: os.symlink("/dev/zero", path), "not a regular file"),
    "folder": (os.mkdir, "Is a directory"),
    "socket": (bound, "not a regular file"),
    "loop": (lambda path: os.symlink(os.path.basename(path), path), "symbolic links"),
    "sparse": (sparse, "larger than 1 MB"),
    "outside": (outside, "a link out of the repository"),
    "proc": (lambda path: os.symlink("/proc/self/environ", path), "a link out of the repository"),
    "broken": (lambda path: os.symlink("gone", path), "No such file"),
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a workspace in it."""
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "work").mkdir()
    return tmp_path / "repo"


@pytest.mark.parametrize("bad", BAD)
def test_S_07_what_is_no_file_of_the_repository_is_refused(repository: Path, bad: str) -> None:
    """At once, and before any of it is in memory."""
    make, reason = BAD[bad]
    path = str(repository / "work" / "file")
    make(path)
    tracemalloc.start()
    try:
        with pytest.raises(OSError) as refused:
            workspace_files.read(str(repository / "work"), "file")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert reason in str(refused.value) and path in str(refused.value)


def test_S_07_a_link_inside_of_the_repository_is_followed(repository: Path) -> None:
    """AGENTS.md is often one, also to a file above the workspace."""
    (repository / "CLAUDE.md").write_text("text")
    (repository / "work" / "AGENTS.md").symlink_to("../CLAUDE.md")
    assert workspace_files.text(str(repository / "work"), "AGENTS.md") == "text"


def test_S_07_without_a_repository_the_workspace_is_the_limit(tmp_path: Path) -> None:
    """What is beside it is not its own."""
    (tmp_path / "work").mkdir()
    (tmp_path / "beside").write_text(SECRET)
    (tmp_path / "work" / "AGENTS.md").symlink_to("../beside")
    with pytest.raises(OSError, match="out of the repository"):
        workspace_files.read(str(tmp_path / "work"), "AGENTS.md")


def test_S_07_a_folder_on_the_way_may_be_the_link(repository: Path) -> None:
    """The whole path counts, not its last part."""
    (repository.parent / "elsewhere").mkdir()
    (repository.parent / "elsewhere" / "file").write_text(SECRET)
    (repository / "work" / "docs").symlink_to("../../elsewhere")
    with pytest.raises(OSError, match="out of the repository"):
        workspace_files.read(str(repository / "work"), "docs/file")


def test_S_07_a_path_that_says_so_may_lead_out(repository: Path) -> None:
    """A file that settings or the user name by its own path is no surprise; a workspace reached by a link is itself."""
    (repository.parent / "shared.md").write_text("shared")
    assert workspace_files.text(str(repository / "work"), "../../shared.md") == "shared"
    (repository / "work" / "own").write_text("own")
    (repository.parent / "alias").symlink_to("repo/work")
    assert workspace_files.text(str(repository.parent / "alias"), "own") == "own"


def test_S_07_a_file_that_is_replaced_while_it_is_read(repository: Path) -> None:
    """Each read gives the file or an error: never the secret, never a wait."""
    path, (secret, own) = repository / "work" / "file", (repository.parent / "secret", repository / "own")
    secret.write_text(SECRET)
    own.write_text("own")
    done = threading.Event()

    def swap() -> None:
        other = str(path) + ".new"
        while not done.is_set():
            for make in (lambda: os.symlink(own, other), lambda: os.symlink(secret, other), lambda: os.mkfifo(other)):
                make()
                os.rename(other, path)

    path.write_text("own")
    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for _ in range(2000):
            try:
                assert workspace_files.text(str(repository / "work"), "file") == "own"
            except OSError:
                pass
    finally:
        done.set()
        swapper.join()


def test_S_07_a_growing_file_stops_at_the_limit(tmp_path: Path) -> None:
    """The size that the file system tells is not believed: files of /proc have none."""
    with pytest.raises(OSError, match="larger than 0 MB"):
        files.read("/proc/self/status", 10)


def test_S_07_the_user_may_type_a_pipe_of_the_shell(tmp_path: Path) -> None:
    """<(command) is a name below /dev."""
    read, write = os.pipe()
    os.write(write, b"typed")
    os.close(write)
    assert workspace_files.read_typed(str(tmp_path), f"/dev/fd/{read}") == b"typed"
    os.close(read)


def test_S_05_a_folder_that_all_may_write_belongs_to_no_project(tmp_path: Path) -> None:
    """Whoever puts a `.git` there does not get the folders below; a `.git` of one's own below it still counts."""
    (tmp_path / "public" / "mine" / "deep").mkdir(parents=True)
    (tmp_path / "public").chmod(0o1777)
    (tmp_path / "public" / ".git").mkdir()
    deep = str(tmp_path / "public" / "mine" / "deep")
    assert workspace_files.upward(deep) == [deep]
    subprocess.run(["git", "init", "-q", tmp_path / "public" / "mine"], check=True)
    assert workspace_files.upward(deep) == [deep, str(tmp_path / "public" / "mine")]
