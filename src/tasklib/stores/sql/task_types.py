"""Task types as workers have published them."""

from __future__ import annotations

from collections.abc import Sequence

from tasklib.core.published import PublishedType
from tasklib.stores.sql.columns import TASK_TYPE, Batch
from tasklib.stores.sql.steps import Query, Steps


def publish(types: Sequence[PublishedType]) -> Steps[None]:
    yield Query("publish_types", batch=Batch(TASK_TYPE, types))


def published() -> Steps[list[PublishedType]]:
    found: list[PublishedType] = yield Query("published_types", TASK_TYPE)
    return found
