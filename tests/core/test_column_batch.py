"""Named tuples that are made when they are looked at."""

from typing import NamedTuple

import pytest

from tasklib.core.column_batch import ColumnBatch


class Point(NamedTuple):
    x: int
    name: str = "p"
    y: int = 0


def test_they_differ_in_the_columns_alone():
    rows = ColumnBatch(Point(1, "q", 5), y=[5, 6, 7], x=[1, 2, 3])
    assert list(rows) == [Point(1, "q", 5), Point(2, "q", 6), Point(3, "q", 7)]
    assert [rows[0], rows[-1]] == [Point(1, "q", 5), Point(3, "q", 7)]
    assert rows[1:] == list(rows)[1:]
    assert list(reversed(rows)) == list(rows)[::-1]
    assert len(rows) == 3
    assert Point(2, "q", 6) in rows
    with pytest.raises(IndexError):
        rows[3]
