"""Who holds SQLite's locks on a file, as the kernel tells it. Only Linux does; elsewhere nobody is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_LOCKS = Path("/proc/locks")

# Bytes of the file with the write-ahead log's index that stand for its locks.
_WRITE = 120
_FIRST_READ = 123
_LAST_READ = 127


def writers(database: Path) -> list[str]:
    """Processes that have begun to write and not ended it."""
    return _named(pid for pid, mode, first, last in _held(database) if mode == "WRITE" and first <= _WRITE <= last)


def readers(database: Path) -> list[str]:
    """Processes that are reading."""
    return _named(pid for pid, _, first, last in _held(database) if last >= _FIRST_READ and first <= _LAST_READ)


def _held(database: Path) -> Iterator[tuple[int, str, int, int]]:
    """Process, kind, first and last byte of each lock."""
    try:
        inode = str(database.with_name(database.name + "-shm").stat().st_ino)
        lines = _LOCKS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        # 2: POSIX  ADVISORY  WRITE 12603 fe:00:2165539 120 120
        match line.split():
            # By the inode alone: layered file systems tell other device numbers than the kernel's list has.
            case [_, "POSIX", _, mode, pid, place, first, last] if place.rpartition(":")[2] == inode and last != "EOF":
                yield int(pid), mode, int(first), int(last)
            case _:  # of another kind, of another file, or still waiting
                pass


def _named(pids: Iterator[int]) -> list[str]:
    return [f"pid {pid}{_program(pid)}" if pid > 0 else "a process outside this container" for pid in sorted(set(pids))]


def _program(pid: int) -> str:
    try:
        # The name alone: a command line may hold a password.
        return f" ({Path(f'/proc/{pid}/comm').read_text().strip()})"
    except OSError:
        return ""
