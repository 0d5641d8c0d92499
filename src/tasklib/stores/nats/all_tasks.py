"""Every task there is, finished or not, in the order of ids. Kept only by stores that list tasks.

One string of 37 bytes for each, in one sorted list: about 80 bytes a task.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from tasklib.stores.nats.record import Note

_ROW = struct.Struct(">16sBIqq")
_KIND = struct.Struct(">BI")
_TIME = struct.Struct(">q")
_BEHIND = b"\xff" * 32


Range: TypeAlias = tuple[int | None, int | None]
"""From a time on, and up to another one: microseconds since 1970."""
EVER: Range = (None, None)


class AllTasks:
    def __init__(self) -> None:
        self._rows: list[bytes] = []
        self._kinds: list[tuple[str, bool]] = []
        self._names: list[str] = []
        self._numbers: dict[object, int] = {}
        self._counts: Counter[bytes] = Counter()
        self._fresh: dict[bytes, bytes] | None = {}
        """While the first load is under way rows come in the order they were written: they are sorted once."""

    def __len__(self) -> int:
        return len(self._rows)

    def loaded(self) -> None:
        if self._fresh is not None:
            self._rows = sorted(self._fresh.values())
            self._counts = Counter(row[16:21] for row in self._rows)
            self._fresh = None

    def put(self, task: bytes, note: Note) -> None:
        kind = self._number((note.state, note.completed is not None), self._kinds)
        name = self._number(note.name, self._names)
        row = _ROW.pack(task, kind, name, max(0, note.created), max(0, note.completed or 0))
        if self._fresh is not None:
            self._fresh[task] = row
            return
        self._counts[row[16:21]] += 1
        place = bisect_left(self._rows, task)
        if place < len(self._rows) and self._rows[place].startswith(task):
            self._counts[self._rows[place][16:21]] -= 1
            self._rows[place] = row
        else:
            self._rows.insert(place, row)

    def remove(self, task: bytes) -> None:
        if self._fresh is not None:
            self._fresh.pop(task, None)
            return
        place = bisect_left(self._rows, task)
        if place < len(self._rows) and self._rows[place].startswith(task):
            self._counts[self._rows[place][16:21]] -= 1
            del self._rows[place]

    def counts(self) -> Iterator[tuple[tuple[str, bool, str], int]]:
        """How many there are of each state, finality and name."""
        for packed, count in self._counts.items():
            if count:
                kind, name = _KIND.unpack(packed)
                yield (*self._kinds[kind], self._names[name]), count

    def select(
        self,
        wanted: Callable[[str, bool, str], bool],
        *,
        created: Range = EVER,
        ended: Range = EVER,
        cursor: bytes | None = None,
        oldest_first: bool = False,
    ) -> Iterator[tuple[bytes, int]]:
        """The tasks whose state, finality, name and times are wanted, from behind the cursor on: their ids, and when
        they ended. Over the list as it is now: nobody may change it meanwhile."""
        rows = self._rows
        if oldest_first:
            start = 0 if cursor is None else bisect_left(rows, cursor + _BEHIND)
            places = range(start, len(rows))
        else:
            end = len(rows) if cursor is None else bisect_left(rows, cursor)
            places = range(end - 1, -1, -1)
        # Decided once for each kind and name; then it is one look into a set for each task.
        allowed = {
            _KIND.pack(kind, name)
            for kind, (state, terminal) in enumerate(self._kinds)
            for name, text in enumerate(self._names)
            if wanted(state, terminal, text)
        }
        first, created_before = _packed(created)
        first_end, ended_before = _packed(ended)
        for place in places:
            row = rows[place]
            if (
                row[16:21] in allowed
                and first <= row[21:29] < created_before
                and first_end <= row[29:37] < ended_before
            ):
                yield row[:16], _TIME.unpack(row[29:37])[0]

    def __contains__(self, task: bytes) -> bool:
        place = bisect_left(self._rows, task)
        return place < len(self._rows) and self._rows[place].startswith(task)

    def _number(self, value: Any, values: list[Any]) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(values)
            values.append(value)
        return number


def _packed(times: Range) -> tuple[bytes, bytes]:
    start, end = times
    return (
        b"" if start is None else _TIME.pack(max(0, start)),
        _BEHIND if end is None else _TIME.pack(max(0, end)),
    )
