"""Filters of every kind, and the indexes that serve each on engines with a table."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from tasklib.stores.sql import lists
from tasklib.stores.sql.steps import Query, Steps
from tasklib.stores.values import SEARCHED_TASKS, EndedCursor, Filter

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
LATELY = datetime.fromtimestamp(1_700_050_000, UTC)
FINISHED, RETRYING, ENDED = "ix_tasks_finished", "ix_tasks_retrying", "ix_tasks_ended"
RUNNING, PENDING = "ix_tasks_running", ("ix_tasks_ready", "ix_tasks_waiting")

SAID: dict[str, list[Any]] = {
    # As if nothing were found by walking, and some were over of each type and state.
    "list_ids": [],
    "known_kinds": [(name, state) for name in ("rare", "work") for state in ("cancelled", "completed", "failed")],
}

# The indexes that serve a filter. None: the primary key, walked.
SERVED: list[tuple[Filter, set[str] | None]] = [
    (Filter(), None),
    (Filter(created_after=LONG_AGO), None),
    (Filter(created_before=LONG_AGO), None),
    (Filter(tags={"a": 1}), None),
    (Filter(ids=[UUID(int=1)]), None),
    (Filter(words=["ada"], secret_keys=["password"]), None),
    (Filter(payload_texts={("order", "id"): "4711"}), None),
    (Filter(short_ids=["0123456789ab"]), None),
    (Filter(idempotency_key="order-4711"), {"ix_tasks_idempotency_key"}),
    (Filter(states=["cancelled"], words=["ada"], secret_keys=["password"]), {FINISHED, RETRYING}),
    (Filter(names=["work"]), {FINISHED, RETRYING, RUNNING, *PENDING}),
    (Filter(names=["work"], created_before=LONG_AGO), {FINISHED, RETRYING, RUNNING, *PENDING}),
    (Filter(names=["work"], tags={"a": 1}), {FINISHED, RETRYING, RUNNING, *PENDING}),
    (
        Filter(names=["rare"], created_after=LATELY, created_before=LATELY + timedelta(hours=1)),
        {FINISHED, RETRYING, RUNNING, *PENDING},
    ),
    (Filter(name_prefix="wo"), {FINISHED, RETRYING, RUNNING, *PENDING}),
    (Filter(names=["rare", "work"], states=["failed"]), {FINISHED, RETRYING}),
    (Filter(names=["rare"], states=["completed"], terminal=True), {FINISHED}),
    (Filter(states=["completed"]), {FINISHED, RETRYING}),
    (Filter(states=["completed"], created_after=LONG_AGO), {FINISHED, RETRYING}),
    (Filter(terminal=True), {FINISHED}),
    (Filter(terminal=False), {RETRYING, RUNNING, *PENDING}),
    (Filter(states=["failed"]), {FINISHED, RETRYING}),
    (Filter(states=["failed"], terminal=True), {FINISHED}),
    (Filter(states=["failed"], terminal=False), {RETRYING}),
    (Filter(states=["cancelled"]), {FINISHED, RETRYING}),
    (Filter(states=["cancelled"], error_text="boom"), {FINISHED, RETRYING}),
    (Filter(states=["pending"]), {*PENDING}),
    (Filter(states=["pending"], created_before=LONG_AGO), {*PENDING}),
    (Filter(states=["running"]), {RUNNING}),
    (Filter(states=["on hold"]), {RETRYING}),
    (Filter(worker_id="w"), {RUNNING}),
    (Filter(states=["failed"], ended_after=LATELY), {ENDED}),
    (Filter(states=["failed", "cancelled"], names=["work"], ended_before=LATELY, error_text="boom"), {ENDED}),
    (Filter(states=["completed", "failed"], ended_after=LATELY), {FINISHED}),
    (Filter(ended_after=LATELY), None),
    (Filter(ended_before=LATELY, terminal=True), None),
]


def says_how_far(query: Query) -> bool:
    """It counts what a search would look at, before the search itself."""
    return query.name == "count_listed" and query.parameters["top"] == SEARCHED_TASKS


def looks(where: Filter) -> Iterator[tuple[str, Steps[Any]]]:
    """The lists and the count under a filter."""
    for oldest_first in (True, False):
        page = lists.page(where, limit=50, cursor=None, offset=0, oldest_first=oldest_first)
        yield f"{oldest_first=}, {where}", page
    yield f"count, {where}", lists.count(where, 50)


def looks_by_end() -> Iterator[tuple[str, Steps[Any]]]:
    """Lists in the order of ends, from their beginning and from behind a cursor."""
    for where in (
        Filter(states=["failed"]),
        Filter(states=["failed", "cancelled"], names=["work"]),
        Filter(states=["failed"], ended_after=LONG_AGO, ended_before=LATELY),
        Filter(states=["cancelled"], error_text="boom"),
    ):
        for cursor in (None, EndedCursor(LATELY, UUID(int=1))):
            yield f"{cursor=}, {where}", lists.page_ended(where, limit=50, cursor=cursor, offset=0)
