"""Entries in an order of their own, millions of them. To find one, to add one or to take one out is a bisection.

A sorted list in blocks, so that what comes or goes moves the pointers of one block and not all of them. An entry costs
its pointer, about 9 bytes; several orders share the entries themselves.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

_LARGEST = 256


class Ordered:
    def __init__(self, key: Callable[[bytes], Any]) -> None:
        """`key` tells an entry's place; no two entries share one."""
        self._key = key
        self._blocks: list[list[bytes]] = []
        """None of them is empty."""
        self._starts: list[Any] = []
        """A key for each: what is less belongs to the block before it, if there is one."""

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(self._blocks)

    def add(self, entry: bytes) -> None:
        blocks, starts, key_of = self._blocks, self._starts, self._key
        key = key_of(entry)
        # Most entries come last: then blocks are filled, not split.
        if not blocks or (len(blocks[-1]) >= _LARGEST and key > key_of(blocks[-1][-1])):
            blocks.append([entry])
            starts.append(key)
            return
        number = self._number(key)
        block = blocks[number]
        if key > key_of(block[-1]):
            block.append(entry)
        else:
            block.insert(bisect_left(block, key, key=key_of), entry)
        if len(block) > _LARGEST:
            second = block[_LARGEST // 2 :]
            del block[_LARGEST // 2 :]
            blocks.insert(number + 1, second)
            starts.insert(number + 1, key_of(second[0]))

    def pop(self, key: Any) -> bytes | None:
        """Takes out the entry with this key, if it is there."""
        if not self._blocks:
            return None
        number = self._number(key)
        block = self._blocks[number]
        if key > self._key(block[-1]):
            return None
        place = bisect_left(block, key, key=self._key)
        return self._out(number, place) if self._key(block[place]) == key else None

    def first(self) -> bytes:
        """Not of an empty one."""
        return self._blocks[0][0]

    def pop_first(self) -> bytes:
        return self._out(0, 0)

    def _number(self, key: Any) -> int:
        return bisect_right(self._starts, key, 1) - 1

    def _out(self, number: int, place: int) -> bytes:
        block = self._blocks[number]
        entry = block.pop(place)
        if not block:
            del self._blocks[number], self._starts[number]
        return entry
