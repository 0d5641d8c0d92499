"""Named tuples by the thousand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T", bound=tuple[Any, ...])


class ColumnBatch(Sequence[T], Generic[T]):
    """Named tuples that differ in a few columns. Each is made when it is looked at: thousands that are alive at once
    make the garbage collector walk over all objects of the program, again and again."""

    def __init__(self, first: T, **columns: Sequence[Any]) -> None:
        """The others are like the first but for these columns, which are all of one length."""
        self.first = first
        self.columns = columns
        self._like: Any = first  # no type says what named tuples have in common

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __iter__(self) -> Iterator[T]:
        fields = zip(self._like._fields, self.first, strict=True)
        values = [self.columns.get(name, repeat(value)) for name, value in fields]
        return map(self._like._make, zip(*values, strict=False))

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return list(self)[index]
        row: T = self._like._replace(**{name: column[index] for name, column in self.columns.items()})
        return row
