"""Batches in which a task may stand twice: a statement writes a row once, so they go in waves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from tasklib.core.decide import Change


def waves(changes: Sequence[Change]) -> Sequence[Sequence[int]]:
    """Places of the changes, such that no task is in a wave twice: of two changes to one task the first goes first."""
    if len({change.id for change in changes}) == len(changes):
        return [range(len(changes))]
    found: list[list[int]] = []
    seen: Counter[UUID] = Counter()
    for place, change in enumerate(changes):
        if seen[change.id] == len(found):
            found.append([])
        found[seen[change.id]].append(place)
        seen[change.id] += 1
    return found
