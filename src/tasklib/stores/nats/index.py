"""The index: what waits, what is due when, what runs. In memory, fed with the notes of records.

Bytes instead of objects, for there may be millions: a waiting task is one string of 41 bytes whose order as text is the
order of claims (priority descending, created_at, id). The same string stands in two orders: by id, and among what is
due of its name or else among what is due later. All in all that is about 100 bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import NamedTuple
from uuid import UUID

from tasklib.core.flows import NEVER
from tasklib.core.limits import ALL
from tasklib.stores.nats.clock import micros
from tasklib.stores.nats.ordered import Ordered
from tasklib.stores.nats.record import Note

_ENTRY = struct.Struct(">Iq16sqIB")
_DUE_AND_NUMBER = struct.Struct(">28xqIx")
_rank = itemgetter(slice(0, 28))
_id = itemgetter(slice(12, 28))
_due_and_id = itemgetter(slice(28, 36), slice(12, 28))
_TOP_PRIORITY = 2**31 - 1
_NEVER = micros(NEVER)
_NO_PREFETCH = 1
_WAITING = 2


class Waiting(NamedTuple):
    """An entry, read."""

    id: bytes
    name: str
    created: int
    due: int
    no_prefetch: bool
    retries: bool
    """Failed, with a retry to come."""
    entry: bytes


class Depth(NamedTuple):
    waiting: int
    due: int
    oldest: int | None
    """Since when one of them is due."""


EMPTY = Depth(0, 0, None)


class Running(NamedTuple):
    name: str
    worker: str | None
    locked: int | None


class Index:
    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._waiting = Ordered(_id)
        """All of them. Each is also in one of the next three."""
        self._queues: dict[str, Ordered] = {}
        """What is due, of each name."""
        self._future = Ordered(_due_and_id)
        self._taken: set[bytes] = set()
        """The ids."""
        self.running: dict[bytes, Running] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    # -- changes ------------------------------------------------------------------------------------------------------

    def put(self, task: bytes, note: Note) -> bool:
        """The task as it is now. True: it can be claimed at once."""
        self.remove(task)
        if note.state == "running":
            self.running[task] = Running(note.name, note.worker, note.locked)
            return False
        if not note.claimable:
            return False
        flags = (_NO_PREFETCH if note.no_prefetch else 0) | (_WAITING if note.state == "failed" else 0)
        number = self._number(note.name)
        entry = _ENTRY.pack(_TOP_PRIORITY - note.priority, note.created, task, note.due, number, flags)
        self._waiting.add(entry)
        if note.is_due(self._now()):
            self._queues[note.name].add(entry)
            return True
        self._future.add(entry)
        return False

    def remove(self, task: bytes) -> None:
        if self.running.pop(task, None) is not None:
            return
        entry = self._waiting.pop(task)
        if entry is None:
            return
        if task in self._taken:
            self._taken.remove(task)
        elif self._queue_of(entry).pop(_rank(entry)) is None:
            self._future.pop(_due_and_id(entry))

    def _number(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
            self._queues[name] = Ordered(_rank)
        return number

    def _queue_of(self, entry: bytes) -> Ordered:
        _, number = _DUE_AND_NUMBER.unpack(entry)
        return self._queues[self._names[number]]

    # -- claims -------------------------------------------------------------------------------------------------------

    def promote(self) -> None:
        """Moves what has become due."""
        now = self._now()
        while self._future and _due(self._future.first()) <= now:
            entry = self._future.pop_first()
            self._queue_of(entry).add(entry)

    def next_due(self) -> int | None:
        """When the next of what is not due yet will be. What waits for others has no time."""
        self.promote()
        due = _due(self._future.first()) if self._future else _NEVER
        return None if due >= _NEVER else due

    def busy(self, names: Iterable[str]) -> list[str]:
        """Those of which something is due."""
        return [name for name in names if self._queues.get(name)]

    def take(self, caps: dict[str, int], number: int) -> list[Waiting]:
        """The best so many of what is due, at most so many of each name. They are out of the queues until they change,
        or are put back."""
        now = self._now()
        left = dict(caps)
        heads = [(self._queues[name].first(), name) for name in self.busy(caps)]
        heapify(heads)
        taken: list[Waiting] = []
        while heads and len(taken) < number:
            _, name = heappop(heads)
            if left[name] <= 0:
                continue
            queue = self._queues[name]
            entry = queue.pop_first()
            found = self._read(entry)
            if found.due > now:  # a clock that went back
                self._future.add(entry)
            else:
                self._taken.add(found.id)
                taken.append(found)
                left[name] -= 1
            if queue:
                heappush(heads, (queue.first(), name))
        return taken

    def put_back(self, taken: list[Waiting]) -> None:
        for found in taken:
            if found.id in self._taken:  # it has not changed since
                self._taken.remove(found.id)
                self._queues[found.name].add(found.entry)

    def _read(self, entry: bytes) -> Waiting:
        _, created, task, due, number, flags = _ENTRY.unpack(entry)
        return Waiting(
            task, self._names[number], created, due, bool(flags & _NO_PREFETCH), bool(flags & _WAITING), entry
        )

    # -- figures ------------------------------------------------------------------------------------------------------

    def waiting(self) -> Iterator[Waiting]:
        return map(self._read, self._waiting)

    def depths(self) -> dict[str, Depth]:
        """What waits, by name."""
        now = self._now()
        found: dict[int, Depth] = {}
        for due, number in map(_DUE_AND_NUMBER.unpack, self._waiting):
            waiting, claimable, oldest = found.get(number, EMPTY)
            if due <= now:
                found[number] = Depth(waiting + 1, claimable + 1, due if oldest is None else min(oldest, due))
            else:
                found[number] = Depth(waiting + 1, claimable, oldest)
        return {self._names[number]: depth for number, depth in found.items()}

    def running_by_name(self) -> dict[str, int]:
        counts = {ALL: len(self.running)}
        for found in self.running.values():
            counts[found.name] = counts.get(found.name, 0) + 1
        return counts

    def running_under(self, worker_id: str) -> list[UUID]:
        return [UUID(bytes=task) for task, found in self.running.items() if found.worker == worker_id]


def _due(entry: bytes) -> int:
    due: int = _DUE_AND_NUMBER.unpack(entry)[0]
    return due
