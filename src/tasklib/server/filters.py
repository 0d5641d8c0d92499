"""From the API's filters to the queue's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tasklib.core.errors import InvalidInput
from tasklib.engine.filters import written_tags
from tasklib.server.schemas import BulkFilter, ListQuery, Status
from tasklib.stores.values import Filter


def of_query(query: ListQuery) -> Filter:
    return Filter(
        names=query.type,
        name_prefix=query.name_prefix,
        states=_states(query.status),
        terminal=query.finished,
        error_text=query.error,
        worker_id=query.worker,
        ids=query.id,
        created_after=query.created_after,
        created_before=query.created_before,
        ended_after=query.ended_after,
        ended_before=query.ended_before,
        **written_tags(_tags(query.tag)),
    )


def of_body(given: BulkFilter) -> Filter:
    return Filter(
        names=given.type,
        name_prefix=given.name_prefix,
        states=_states(given.status),
        terminal=given.finished,
        error_text=given.error,
        worker_id=given.worker,
        created_after=given.created_after,
        created_before=given.created_before,
        ended_after=given.ended_after,
        ended_before=given.ended_before,
        ids=given.ids,
        **written_tags(given.tags),
    )


def _states(statuses: Sequence[Status] | None) -> list[str] | None:
    return None if statuses is None else [status.state for status in statuses]


def _tags(pairs: Iterable[str] | None) -> dict[str, str] | None:
    if pairs is None:
        return None
    found: dict[str, str] = {}
    for pair in pairs:
        key, colon, value = pair.partition(":")
        if not colon or not key:
            raise InvalidInput(f"tag: write it as key:value, got {pair!r:.60}", field="tag")
        if found.setdefault(key, value) != value:
            raise InvalidInput(f"tag: {key!r:.60} cannot have two values", field="tag")
    return found
