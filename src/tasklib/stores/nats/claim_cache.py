"""Records of tasks that this store claimed: whoever settles or extends them next need not read them again."""

from __future__ import annotations

from uuid import UUID

from tasklib.stores.nats.record import Record

_MOST = 20_000
_LARGEST = 16 * 1024


class ClaimCache:
    def __init__(self) -> None:
        self._records: dict[bytes, Record] = {}

    def keep(self, record: Record) -> None:
        task = UUID(record.head["id"]).bytes
        self._records.pop(task, None)
        if len(record.kwargs) > _LARGEST:
            return
        if len(self._records) >= _MOST:
            del self._records[next(iter(self._records))]
        self._records[task] = record

    def get(self, task_id: UUID) -> Record | None:
        return self._records.get(task_id.bytes)

    def drop(self, task_id: UUID) -> None:
        self._records.pop(task_id.bytes, None)

    def moved(self, task: bytes, sequence: int) -> None:
        """Somebody wrote a newer revision, or it was we ourselves."""
        record = self._records.get(task)
        if record is not None and record.revision < sequence:
            del self._records[task]
