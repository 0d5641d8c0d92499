"""One row of the controls, as SQLite keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tasklib.stores import permits
from tasklib.stores.sqlite.rows import seconds_between


@dataclass(frozen=True)
class Control(permits.Control):
    name: str
    paused: bool
    operator_rate: float | None
    default_rate: float | None
    concurrency: int | None
    tokens: float | None
    refilled_at: str | None

    @classmethod
    def read(cls, row: Sequence[Any]) -> Control:
        return cls(row[0], bool(row[1]), *row[2:7])

    def tokens_at(self, now: str, /) -> float:
        return self.tokens_after(None if self.refilled_at is None else seconds_between(self.refilled_at, now))
