"""What PostgreSQL has as the one statement `complete_feeding`, in the statements that SQLite has for it."""

from __future__ import annotations

from tasklib.stores.sql.columns import SETTLED, Batch, Kind, Settled, Shape, row_values
from tasklib.stores.sql.steps import Query, Steps

_FED = Shape(row_values, {"children": Kind.TEXT, "names": Kind.NAMES})
"""Of children the JSON, which goes back as it came; what the write itself would return comes row by row."""


def complete_feeding(batch: Batch, worker_id: str, feeding: bool) -> Steps[list[Settled]]:
    rows: list[Settled] = yield Query("complete", SETTLED, batch=batch, worker_id=worker_id, feeding=feeding)
    missed = {task_id for row in rows for task_id in row.missed}
    ended = [task_id for task_id in (str(row[0]) for row in batch.rows) if task_id not in missed]
    [(children, names)] = yield Query("fed_children", _FED, ids=ended)
    yield Query("release_children", children=children)
    return [*rows, Settled((), names, (), None, ())]
