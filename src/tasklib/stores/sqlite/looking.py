"""Reading, for the verbs that are not steps yet."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import apsw

from tasklib.core.task import Task
from tasklib.stores.sql import reads
from tasklib.stores.sqlite.batches import Target
from tasklib.stores.sqlite.clock import Clock
from tasklib.stores.sqlite.rows import written
from tasklib.stores.sqlite.statements import play


def now(target: Target, clock_offset: float) -> str:
    return written(play(target, reads.now(), Clock(clock_offset)).result)


def get(connection: apsw.Connection, ids: Sequence[UUID]) -> list[Task | None]:
    return play(connection, reads.get(ids), Clock(0.0)).result
