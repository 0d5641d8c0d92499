"""A disk so small that it can be filled. Mounting one takes root."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BLOCK = 4096


class SmallDisk:
    """`fill()` leaves it without room, `make_room()` takes that back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    @property
    def free(self) -> int:
        room = os.statvfs(self.folder)
        return room.f_bavail * room.f_frsize

    def fill(self, leave: int = 0) -> None:
        """Down to `leave` bytes."""
        with self._ballast.open("ab", buffering=0) as ballast:
            while (left := self.free - leave) >= BLOCK:
                ballast.write(b"\0" * min(left, 1024 * 1024))

    def make_room(self) -> None:
        self._ballast.unlink()


@contextmanager
def small_disk(folder: Path, megabytes: int, user: int = 0) -> Iterator[SmallDisk]:
    """Mounted at `folder`, which is made, and given to the user of this number."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0755,uid={user}", "tmpfs", str(folder)]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        yield SmallDisk(folder)
    finally:
        # Lazy: it goes when the last file on it is closed, also when a test failed and left one open.
        subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)
