"""The entry of a key: the id of its task, and, where it was written alone, the whole record of it."""

from __future__ import annotations

import json
from uuid import UUID

from tasklib.stores.nats.claim import write_of
from tasklib.stores.nats.kv import Entry, Write
from tasklib.stores.nats.record import decode


def half_written(entry: Entry) -> Write | None:
    """The task that a key's entry was written for, if it holds the whole of it."""
    record = decode(entry.data, 0)
    return write_of(record) if record.head["name"] else None


def id_entry(task_id: UUID) -> bytes:
    return json.dumps({"id": str(task_id)}).encode()
