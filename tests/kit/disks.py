"""Disks that fill up or become read-only: a small one of its own for any folder. Needs to mount."""

import os
import shutil
import subprocess
from pathlib import Path

SIZE = 3_000_000  # bytes


def may_mount(folder: str) -> bool:
    """Root outside a sandbox, or root of a user namespace. Tried out upon an empty folder of one's own."""
    if not shutil.which("mount"):
        return False
    os.mkdir(folder)
    done = subprocess.run(["mount", "--bind", folder, folder], capture_output=True)
    return done.returncode == 0 and _umount(folder) == 0


class Disk:
    """A folder on a disk of its own, with what was in it."""

    def __init__(self, path: str, fill: str = "fill") -> None:
        self.path, self._mounts, self._fill = path, 0, os.path.join(path, fill)
        os.makedirs(path, exist_ok=True)
        self._mount("-t", "tmpfs", "-o", f"size={SIZE}", "none")

    def _mount(self, *words: str) -> None:
        aside = f"{self.path}.aside"
        shutil.copytree(self.path, aside, symlinks=True)
        subprocess.run(["mount", *words, self.path], check=True)
        self._mounts += 1
        shutil.copytree(aside, self.path, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(aside)

    def full(self) -> None:
        """Not a byte more."""
        os.makedirs(os.path.dirname(self._fill), exist_ok=True)
        with open(self._fill, "wb", 0) as file:
            for size in (4096, 1):
                try:
                    while True:
                        file.write(b"\0" * size)
                except OSError:
                    pass

    def read_only(self) -> None:
        """Applies to later opens; a file that is already open stays open."""
        subprocess.run(["mount", "--bind", self.path, self.path], check=True)
        self._mounts += 1
        subprocess.run(["mount", "-o", "remount,bind,ro", self.path], check=True)

    def well(self) -> None:
        """As if there had been no trouble."""
        while self._mounts > 1:
            _umount(self.path)
            self._mounts -= 1
        Path(self._fill).unlink(missing_ok=True)

    def close(self) -> None:
        while self._mounts:
            _umount(self.path)
            self._mounts -= 1


def _umount(path: str) -> int:
    return subprocess.run(["umount", "-l", path], check=True).returncode
