"""Filters of every kind, and the indexes that serve each on engines with a table."""

from datetime import UTC, datetime, timedelta

from tasklib.stores.values import Filter

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
LATELY = datetime.fromtimestamp(1_700_050_000, UTC)
FINISHED, FAILED, ODD = "ix_tasks_finished", "ix_tasks_failed", "ix_tasks_odd"
RUNNING, PENDING = "ix_tasks_running", ("ix_tasks_ready", "ix_tasks_waiting")

# The indexes that serve a filter. None: the primary key, walked.
SERVED: list[tuple[Filter, set[str] | None]] = [
    (Filter(), None),
    (Filter(created_after=LONG_AGO), None),
    (Filter(created_before=LONG_AGO), None),
    (Filter(tags={"a": 1}), None),
    (Filter(ids=[]), set()),
    (Filter(names=["work"]), {FINISHED, FAILED, RUNNING, *PENDING, ODD}),
    (Filter(names=["work"], created_before=LONG_AGO), {FINISHED, FAILED, RUNNING, *PENDING, ODD}),
    (Filter(names=["work"], tags={"a": 1}), {FINISHED, FAILED, RUNNING, *PENDING, ODD}),
    (
        Filter(names=["rare"], created_after=LATELY, created_before=LATELY + timedelta(hours=1)),
        {FINISHED, FAILED, RUNNING, *PENDING, ODD},
    ),
    (Filter(name_prefix="wo"), {FINISHED, FAILED, RUNNING, *PENDING, ODD}),
    (Filter(names=["rare", "work"], states=["failed"]), {FINISHED, FAILED, ODD}),
    (Filter(names=["rare"], states=["completed"], terminal=True), {FINISHED, ODD}),
    (Filter(states=["completed"]), {FINISHED, ODD}),
    (Filter(states=["completed"], created_after=LONG_AGO), {FINISHED, ODD}),
    (Filter(terminal=True), {FINISHED, RUNNING, ODD}),
    (Filter(terminal=False), {FAILED, RUNNING, *PENDING, ODD}),
    (Filter(states=["failed"]), {FAILED, ODD}),
    (Filter(states=["failed"], terminal=True), {FAILED, ODD}),
    (Filter(states=["failed"], terminal=False), {FAILED, ODD}),
    (Filter(states=["cancelled"]), {FAILED, ODD}),
    (Filter(states=["cancelled"], error_text="boom"), {FAILED, ODD}),
    (Filter(states=["pending"]), {*PENDING, ODD}),
    (Filter(states=["pending"], created_before=LONG_AGO), {*PENDING, ODD}),
    (Filter(states=["running"]), {RUNNING, ODD}),
    (Filter(states=["on hold"]), {ODD}),
    (Filter(worker_id="w"), {RUNNING, ODD}),
]
