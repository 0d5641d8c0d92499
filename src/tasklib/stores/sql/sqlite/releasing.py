"""What PostgreSQL has as the one statement `complete_feeding`, in the statements that SQLite has for it."""

from __future__ import annotations

from tasklib.stores.sql.columns import SETTLED, Batch, Kind, Settled, Shape, row_values
from tasklib.stores.sql.steps import Query, Steps

_RELEASED = Shape(row_values, {"name": Kind.TEXT, "ready": Kind.BOOLEAN})


def complete_feeding(batch: Batch, worker_id: str) -> Steps[list[Settled]]:
    rows: list[Settled] = yield Query("complete", SETTLED, batch=batch, worker_id=worker_id, feeding=True)
    missed = {task_id for row in rows for task_id in row.missed}
    ended = [task_id for task_id in (str(row[0]) for row in batch.rows) if task_id not in missed]
    released = yield Query("release_children", _RELEASED, ids=ended)
    names = sorted({name for name, ready in released if ready})
    return [*rows, Settled((), names, (), None, ())]
