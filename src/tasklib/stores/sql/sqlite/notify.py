"""Waking: within the process directly, between processes through one FIFO for each store that listens.

A wake-up is a hint. Nothing here ever fails the call that notifies, and whoever is not reached finds out by polling.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import secrets
import stat
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from tasklib.stores.listeners import Listeners
from tasklib.stores.sql.hints import request_in

ANYTHING = "!"
"""The message that means: look at everything, a control may have changed."""
_FINISHED = "@"
_MOST_NAMES = 16
_READ = 64 * 1024
_PIPE_PIECE = 512
"""What every system writes into a pipe whole, or not at all."""
_CLOCK_STEP_NS = 100_000_000
"""Longer than the steps in which any file system tells the time of a change."""


def claimable(names: Iterable[str]) -> list[str]:
    """Messages saying that tasks of these names may be claimable."""
    distinct = list(dict.fromkeys(names))
    return list(map(_quoted, distinct)) if len(distinct) <= _MOST_NAMES else [ANYTHING]


@lru_cache(maxsize=1024)
def _quoted(name: str) -> str:
    return json.dumps(name)


def finished(ids: Iterable[str]) -> list[str]:
    """Messages saying that these tasks, which somebody waits for, have ended."""
    return [_FINISHED + task_id for task_id in ids]


class Subscriber:
    """What one store listens with, in its event loop."""

    def __init__(self, notifier: Notifier, listeners: Listeners) -> None:
        self._notifier = notifier
        self._listeners = listeners
        self._loop = asyncio.get_running_loop()
        self._fifo = None if notifier.directory is None else _Fifo.make(notifier.directory)
        self._rest = b""
        notifier.add(self)
        if self._fifo is not None:
            self._loop.add_reader(self._fifo.descriptor, self._read)

    @property
    def fifo(self) -> str | None:
        return self._fifo.path.name if self._fifo is not None else None

    def close(self) -> None:
        self._notifier.remove(self)
        if self._fifo is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._fifo.descriptor)
            self._fifo.remove()
            self._fifo = None

    def call(self, messages: list[str]) -> None:
        """From any thread of this process."""
        with suppress(RuntimeError):  # its loop is closed: nobody listens there any more
            self._loop.call_soon_threadsafe(self._hear, messages)

    def drop_descriptor(self) -> None:
        """In a forked child: the FIFO is the parent's."""
        if self._fifo is not None:
            self._fifo.drop()
            self._fifo = None

    def _read(self) -> None:
        assert self._fifo is not None
        try:
            data = os.read(self._fifo.descriptor, _READ)
        except (BlockingIOError, InterruptedError):
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._hear(list(dict.fromkeys(line.decode("utf-8", "replace") for line in lines)))

    def _hear(self, messages: list[str]) -> None:
        for message in messages:
            if message.startswith(_FINISHED):
                self._listeners.ended(message[1:])
                continue
            hint = request_in(message) or _name_in(message)
            if hint is None:
                self._listeners.ended()
            self._listeners.tell(hint)


class _Fifo:
    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor

    @classmethod
    def make(cls, directory: Path) -> _Fifo | None:
        """None where there can be none; polling remains."""
        name = f"{os.getpid()}-{secrets.token_hex(8)}.fifo"
        draft = directory / f".{name}"
        try:
            directory.mkdir(mode=0o700, exist_ok=True)
            os.mkfifo(draft, 0o600)
            # Open for both: it never reports an end, and others see that somebody reads. Under its real name only
            # once it is open, or a ringer would take it for a dead one and remove it.
            descriptor = os.open(draft, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                draft.rename(directory / name)
            except OSError:
                os.close(descriptor)
                raise
        except (OSError, AttributeError):
            draft.unlink(missing_ok=True)
            return None
        return cls(directory / name, descriptor)

    def remove(self) -> None:
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
        self.drop()

    def drop(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class Notifier:
    """Everybody who listens on one database: subscribers in this process, and the FIFOs of other processes, kept open
    for writing from one notification to the next."""

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory
        self._folder = "" if directory is None else str(directory)
        self._lock = threading.Lock()
        self._subscribers: tuple[Subscriber, ...] = ()
        self._descriptors: dict[str, int] = {}
        self._listed: set[str] = set()
        self._listed_as_of = 0

    def add(self, subscriber: Subscriber) -> None:
        with self._lock:
            self._subscribers = (*self._subscribers, subscriber)

    def remove(self, subscriber: Subscriber) -> None:
        with self._lock:
            self._subscribers = tuple(each for each in self._subscribers if each is not subscriber)

    def notify(self, messages: list[str]) -> None:
        """From any thread. Every submit comes here, and mostly nobody listens: then all it takes is one look."""
        if not messages:
            return
        ours = self._subscribers
        for subscriber in ours:
            subscriber.call(messages)
        if not self._folder:
            return
        with self._lock:
            try:
                changed = os.stat(self._folder).st_mtime_ns  # noqa: PTH116 - a Path makes it take half as long again
            except OSError:
                return  # nobody ever listened
            if changed != self._listed_as_of:
                self._list(changed)
            others = self._listed - {subscriber.fifo for subscriber in ours}
            if others:
                data = "".join(f"{message}\n" for message in messages).encode()
                for name in others:
                    if self._reach(name):
                        self._write(name, data)

    def start_anew(self) -> None:
        """In a forked child: those who listened are the parent's, and a thread that is not there may hold the lock."""
        self._lock = threading.Lock()
        for subscriber in self._subscribers:
            subscriber.drop_descriptor()
        self._subscribers = ()
        for name in tuple(self._descriptors):
            self._hang_up(name)

    def _list(self, changed: int) -> None:
        """Reads all FIFOs there are. Again at the next notification, if the directory changed so lately that another
        change may bear the same time."""
        now = time.time_ns()
        with os.scandir(self._folder) as entries:
            found = {entry.name for entry in entries}
        self._listed = {name for name in found if name.endswith(".fifo") and name[0] != "."}
        self._listed_as_of = changed if now - changed > _CLOCK_STEP_NS else 0
        for name in self._descriptors.keys() - self._listed:
            self._hang_up(name)

    def _reach(self, name: str) -> bool:
        if name in self._descriptors:
            return True
        try:
            descriptor = os.open(Path(self._folder, name), os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if error.errno == errno.ENXIO:  # its process died
                self._forget(name)
            return False
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            return False
        self._descriptors[name] = descriptor
        return True

    def _write(self, name: str, data: bytes) -> None:
        try:
            # Whole lines only: what is longer than a pipe takes in one piece becomes a call to look at everything.
            os.write(self._descriptors[name], data if len(data) <= _PIPE_PIECE else f"{ANYTHING}\n".encode())
        except BlockingIOError:
            pass  # full: it has been rung often enough
        except OSError:  # its process died since
            self._hang_up(name)
            self._forget(name)

    def _hang_up(self, name: str) -> None:
        os.close(self._descriptors.pop(name))

    def _forget(self, name: str) -> None:
        with suppress(OSError):
            Path(self._folder, name).unlink(missing_ok=True)


def _name_in(message: str) -> str | None:
    with suppress(ValueError):
        name = json.loads(message)
        return name if isinstance(name, str) else None
    return None


_lock = threading.Lock()
_notifiers: dict[str, Notifier] = {}


def notifier_for(key: str, directory: Path | None) -> Notifier:
    """Those of a database, for all its stores in this process."""
    with _lock:
        return _notifiers.setdefault(key, Notifier(directory))


def _start_anew() -> None:
    global _lock
    _lock = threading.Lock()
    for notifier in _notifiers.values():
        notifier.start_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
