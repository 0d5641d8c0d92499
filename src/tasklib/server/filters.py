"""From the API's filters to the queue's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tasklib.core.errors import InvalidInput
from tasklib.engine.filters import check_shown, written_payload, written_tags
from tasklib.server.schemas import BulkFilter, QueryFilter
from tasklib.server.service import Service
from tasklib.stores.values import Filter


def of_query(query: QueryFilter, service: Service) -> Filter:
    tags, payload = _pairs(query.tag, "tag"), _pairs(query.payload, "payload")
    return _filter(query, service, query.id, query.short_id, query.word, tags, payload)


def of_body(given: BulkFilter, service: Service) -> Filter:
    return _filter(given, service, given.ids, given.short_ids, given.words, given.tags, given.payload)


def _filter(
    given: QueryFilter | BulkFilter,
    service: Service,
    ids: Any,
    short_ids: list[str] | None,
    words: list[str] | None,
    tags: dict[str, Any] | None,
    payload: dict[str, Any] | None,
) -> Filter:
    where = Filter(
        names=given.type,
        name_prefix=given.name_prefix,
        states=None if given.status is None else [status.state for status in given.status],
        terminal=given.finished,
        error_text=given.error,
        worker_id=given.worker,
        ids=ids,
        short_ids=short_ids and [each.lower() for each in short_ids],
        idempotency_key=given.idempotency_key,
        flow_id=given.flow,
        created_after=given.created_after,
        created_before=given.created_before,
        ended_after=given.ended_after,
        ended_before=given.ended_before,
        payload_texts=written_payload(payload),
        words=words,
        secret_keys=service.secret_keys,
        **written_tags(tags),
    )
    return check_shown(where, service.redact)


def _pairs(pairs: Iterable[str] | None, field: str) -> dict[str, str] | None:
    if pairs is None:
        return None
    found: dict[str, str] = {}
    for pair in pairs:
        key, colon, value = pair.partition(":")
        if not colon or not key:
            raise InvalidInput(f"{field}: write it as key:value, got {pair!r:.60}", field=field)
        if found.setdefault(key, value) != value:
            raise InvalidInput(f"{field}: {key!r:.60} cannot have two values", field=field)
    return found
