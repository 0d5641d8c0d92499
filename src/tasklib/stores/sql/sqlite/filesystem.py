"""What a database file needs of the disk: a local file system, a directory, a file that only its owner reads, and a
name that stays its own."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from pathlib import Path

from tasklib.core.errors import StoreGone, StoreRefused

# The shared memory beside a WAL file works between processes of one machine only.
# fmt: off
NETWORK_TYPES = frozenset((
    "9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "orangefs",
    "pvfs2", "smb", "smb2", "smb3", "smbfs", "webdav",
    "fuse.ceph", "fuse.davfs", "fuse.gcsfuse", "fuse.glusterfs", "fuse.goofys", "fuse.rclone", "fuse.s3fs",
    "fuse.sshfs",
))
# fmt: on

_MACOS_MOUNT = re.compile(r"^.* on (?P<point>/.*) \((?P<type>[^,)]+)[,)]")


def prepare(path: Path, *, create: bool) -> None:
    """Refuses what cannot hold a database. Makes the file if there is none, unless this process has it open: then it is
    gone, and an empty one in its place would hide that."""
    path = path.resolve()  # where a link leads is where SQLite has its log
    directory = path.parent
    if not directory.is_dir():
        raise StoreRefused(f"cannot open {path}: there is no directory {directory}")
    kind = network_type(directory)
    if kind is not None:
        raise StoreRefused(
            f"cannot open {path}: it is on a network file system ({kind}), where SQLite can lose data; "
            "use a local disk, or PostgreSQL for several machines"
        )
    if path.is_dir():
        raise StoreRefused(f"cannot open {path}: it is a directory")
    if not path.exists():
        if not create:
            raise _no_longer_there(path)
        _create(path)
    for target, what in ((path, "the file"), (directory, "its directory")):
        if not os.access(target, os.R_OK | os.W_OK):
            raise StoreRefused(f"cannot open {path}: no permission to write {what}")
    _check_only_name(path)


def identity(path: str) -> tuple[int, int] | None:
    """Which file has this name now; None if there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - asked with every commit, and a Path makes it take half as long again
    except OSError:
        return None
    return found.st_dev, found.st_ino


def gone(path: str, opened: tuple[int, int]) -> StoreGone | None:
    """What is to be told if the file that was opened under this name is no longer the one that others find there."""
    found = identity(path)
    if found == opened:
        return None
    if found is None:
        return _no_longer_there(path)
    return StoreGone(
        f"{path} is not the file that this queue has open: another file is there now, and nobody would find what is "
        "written to the old one; start this process anew to use the new one"
    )


def _no_longer_there(path: str | Path) -> StoreGone:
    return StoreGone(
        f"{path} is no longer there: it was deleted or moved while this queue was open, and nobody would find what is "
        "written to it; put it back, or start this process anew"
    )


def _check_only_name(path: Path) -> None:
    """SQLite finds its log by the name of the file: under two names there would be two, and the file is damaged."""
    if path.stat().st_nlink > 1:
        _remove_drafts(path)
    names = path.stat().st_nlink
    if names > 1:
        raise StoreRefused(
            f"cannot open {path}: the file has {names} names (hard links), and used under two of them it would be "
            f"damaged; remove all but one (find / -xdev -samefile {path})"
        )


def _remove_drafts(path: Path) -> None:
    """Those under which this or another process has just made the file, or died while it did."""
    for entry in path.parent.iterdir():
        if entry.name.startswith(f".{path.name}.") and entry.samefile(path):
            entry.unlink(missing_ok=True)


def _create(path: Path) -> None:
    # Not opened under its own name: closing any descriptor of a file drops all locks the process holds on it.
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            os.link(draft, path)
        finally:
            draft.unlink(missing_ok=True)  # another process may have seen it, and removed it
    except FileExistsError:
        pass  # another process was first
    except OSError as error:
        raise StoreRefused(f"cannot create {path}: {error.strerror or error}") from error


def network_type(directory: Path) -> str | None:
    """The type of the network file system that the directory is on; None if it is a local one, or not known."""
    kind = mount_type(str(directory.resolve()), _mounts())
    return kind if kind in NETWORK_TYPES else None


def mount_type(directory: str, mounts: list[tuple[str, str]]) -> str | None:
    """The type of the innermost mount that holds the directory; of two on one point the later is on top."""
    best: tuple[int, str | None] = (-1, None)
    for point, kind in mounts:
        inside = directory == point or directory.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best[0]:
            best = (len(point), kind)
    return best[1]


def read_mountinfo(text: str) -> list[tuple[str, str]]:
    """Mount points and types from Linux's /proc/self/mountinfo."""
    mounts = []
    for line in text.splitlines():
        before, mark, after = line.partition(" - ")
        fields = before.split(" ")
        if mark and len(fields) > 4:
            point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4])
            mounts.append((point, after.split(" ")[0]))
    return mounts


def read_mount_command(text: str) -> list[tuple[str, str]]:
    """Mount points and types from what macOS's `mount` prints."""
    return [(match["point"], match["type"]) for line in text.splitlines() if (match := _MACOS_MOUNT.match(line))]


def _mounts() -> list[tuple[str, str]]:
    try:
        if sys.platform == "linux":
            return read_mountinfo(Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace"))
        if sys.platform == "darwin":
            printed = subprocess.run(["/sbin/mount"], capture_output=True, text=True, timeout=5, check=True)
            return read_mount_command(printed.stdout)
    except (OSError, subprocess.SubprocessError):
        pass
    return []
