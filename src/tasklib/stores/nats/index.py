"""The index: what waits, what is due when, what runs. In memory, fed with the notes of records.

Bytes instead of objects, for there may be millions: a waiting task is one string of 41 bytes whose order as text is the
order of claims (priority descending, created_at, id), found by its id of 16 bytes. With dictionary and heap that is
about 200 bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import NamedTuple
from uuid import UUID

from tasklib.stores.nats.record import Note

_ENTRY = struct.Struct(">Iq16sqIB")
_DUE = struct.Struct(">q16s")
_TOP_PRIORITY = 2**31 - 1
_ALONE = 1
_WAITING = 2
_SLACK = 64


class Waiting(NamedTuple):
    """An entry, read."""

    id: bytes
    name: str
    created: int
    due: int
    alone: bool
    retries: bool
    """Failed, with a retry to come."""
    entry: bytes


class Running(NamedTuple):
    name: str
    worker: str | None
    locked: int | None


class _Queue:
    """What is due of one name, in order, with leftovers of what has moved on."""

    __slots__ = ("heap", "live")

    def __init__(self) -> None:
        self.heap: list[bytes] = []
        self.live = 0


class Index:
    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._waiting: dict[bytes, bytes] = {}
        self._queues: dict[str, _Queue] = {}
        self._future: list[bytes] = []
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
        flags = (_ALONE if note.alone else 0) | (_WAITING if note.state == "failed" else 0)
        number = self._number(note.name)
        entry = _ENTRY.pack(_TOP_PRIORITY - note.priority, note.created, task, note.due, number, flags)
        self._waiting[task] = entry
        self._queue(note.name).live += 1
        if note.due <= self._now():
            self._offer(note.name, entry)
            return True
        heappush(self._future, _DUE.pack(note.due, task))
        if len(self._future) > 2 * len(self._waiting) + _SLACK:
            self._future = [due for due in self._future if self._is_future(due)]
            heapify(self._future)
        return False

    def remove(self, task: bytes) -> None:
        self.running.pop(task, None)
        entry = self._waiting.pop(task, None)
        if entry is not None:
            self._queue(self._names[_ENTRY.unpack(entry)[4]]).live -= 1

    def _queue(self, name: str) -> _Queue:
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = _Queue()
        return queue

    def _number(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
        return number

    def _offer(self, name: str, entry: bytes) -> None:
        queue = self._queue(name)
        heappush(queue.heap, entry)
        if len(queue.heap) > 2 * queue.live + _SLACK:  # what others claimed is still in it
            queue.heap = [entry for entry in queue.heap if self._is_current(entry)]
            heapify(queue.heap)

    def _is_current(self, entry: bytes) -> bool:
        return self._waiting.get(entry[12:28]) is entry

    def _is_future(self, due: bytes) -> bool:
        entry = self._waiting.get(due[8:])
        return entry is not None and entry[28:36] == due[:8]

    # -- claims -------------------------------------------------------------------------------------------------------

    def promote(self) -> None:
        """Moves what has become due."""
        now, future = self._now(), self._future
        while future:
            due, task = _DUE.unpack(future[0])
            if due > now and self._is_future(future[0]):
                return
            entry = self._waiting.get(task) if self._is_future(future[0]) else None
            heappop(future)
            if entry is not None:
                self._offer(self._names[_ENTRY.unpack(entry)[4]], entry)

    def next_due(self) -> int | None:
        """When the next of what is not due yet will be."""
        self.promote()
        return _DUE.unpack(self._future[0])[0] if self._future else None

    def busy(self, names: list[str]) -> list[str]:
        """Those of which something is due."""
        return [name for name in names if name in self._queues and self._head(self._queues[name]) is not None]

    def take(self, caps: dict[str, int], number: int) -> list[Waiting]:
        """The best so many of what is due, at most so many of each name. They are out of the queues until they change,
        or are put back."""
        now = self._now()
        left = dict(caps)
        heads = [(head, name) for name in caps if (head := self._head(self._queues.get(name))) is not None]
        heapify(heads)
        taken: list[Waiting] = []
        early: list[Waiting] = []
        while heads and len(taken) < number:
            entry, name = heappop(heads)
            if left[name] <= 0:
                continue
            queue = self._queues[name]
            heappop(queue.heap)
            found = self._read(entry)
            if found.due > now:  # a clock that went back
                early.append(found)
            else:
                taken.append(found)
                left[name] -= 1
            head = self._head(queue)
            if head is not None:
                heappush(heads, (head, name))
        for found in early:
            heappush(self._future, _DUE.pack(found.due, found.id))
        return taken

    def put_back(self, taken: list[Waiting]) -> None:
        for found in taken:
            if self._is_current(found.entry):
                self._offer(found.name, found.entry)

    def _head(self, queue: _Queue | None) -> bytes | None:
        if queue is None:
            return None
        heap = queue.heap
        while heap:
            if self._is_current(heap[0]):
                return heap[0]
            heappop(heap)
        return None

    def _read(self, entry: bytes) -> Waiting:
        _, created, task, due, number, flags = _ENTRY.unpack(entry)
        return Waiting(task, self._names[number], created, due, bool(flags & _ALONE), bool(flags & _WAITING), entry)

    # -- figures ------------------------------------------------------------------------------------------------------

    def waiting(self) -> Iterator[Waiting]:
        return map(self._read, list(self._waiting.values()))

    def running_by_name(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for found in self.running.values():
            counts[found.name] = counts.get(found.name, 0) + 1
        return counts

    def running_under(self, worker_id: str) -> list[UUID]:
        return [UUID(bytes=task) for task, found in self.running.items() if found.worker == worker_id]
