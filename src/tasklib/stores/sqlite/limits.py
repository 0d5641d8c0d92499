"""One row of the controls, as SQLite keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tasklib.stores import permits
from tasklib.stores.sqlite.rows import seconds_between


@dataclass(frozen=True)
class Control(permits.Control[str]):
    @classmethod
    def read(cls, row: Sequence[Any]) -> Control:
        return cls(row[0], bool(row[1]), *row[2:7])

    def tokens_at(self, now: str, /) -> float:
        return self.tokens_after(None if self.refilled is None else seconds_between(self.refilled, now))
