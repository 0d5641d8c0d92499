"""Retention: finished tasks by age. A task's last write is its end, so the stream has them as they finished."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from nats.aio.client import Client
from nats.aio.msg import Msg

from tasklib.core.decide import WriteResult
from tasklib.core.task import TaskState
from tasklib.stores.nats import keys
from tasklib.stores.nats.claim import read_records
from tasklib.stores.nats.clock import later, micros
from tasklib.stores.nats.kv import KeyValueStore
from tasklib.stores.nats.operate import Deletes
from tasklib.stores.nats.record import Note, read_note
from tasklib.stores.values import Audit, AuditEntry

_AT_ONCE = 500
_PATIENCE_SECONDS = 5.0
_FINAL = frozenset({TaskState.COMPLETED.value, TaskState.FAILED.value, TaskState.CANCELLED.value})


class _Seen(NamedTuple):
    sequence: int
    stored: int
    """By the server's clock, in microseconds."""
    task_id: UUID
    note: Note


class Prunes:
    def __init__(self, kv: KeyValueStore, deletes: Deletes) -> None:
        self._kv = kv
        self._deletes = deletes
        self._done: dict[tuple[frozenset[str], float], int] = {}
        """Up to which sequence nothing is left to prune: whatever changes gets a higher one."""

    async def prune(
        self, states: Sequence[str], older_than_seconds: float, limit: int, *, dry_run: bool, audit: Audit[str] | None
    ) -> int:
        wanted = frozenset(states) & _FINAL
        if not wanted:
            return 0
        await self._kv.run(self._kv.info)
        cutoff = later(self._kv.clock.now(), -older_than_seconds)
        if dry_run:
            return await self._kv.run(lambda: self._count(wanted, cutoff))
        kind = (wanted, older_than_seconds)
        found = await self._kv.run(lambda: self._find(wanted, cutoff, limit, kind))
        return await self._delete(found, wanted, cutoff, audit)

    async def _count(self, wanted: frozenset[str], cutoff: datetime) -> int:
        number = 0
        async for seen in self._walk(0):
            number += _is_old(seen.note, wanted, micros(cutoff))
        return number

    async def _find(
        self, wanted: frozenset[str], cutoff: datetime, limit: int, kind: tuple[frozenset[str], float]
    ) -> list[UUID]:
        found: list[UUID] = []
        done, kept = self._done.get(kind, 0), False
        latest = micros(cutoff)
        async for seen in self._walk(done):
            if seen.stored > latest or len(found) == limit:
                break
            if _is_old(seen.note, wanted, latest):
                found.append(seen.task_id)
            elif seen.note.state in wanted and seen.note.completed is not None:
                kept = True  # too young: the next time begins here
            if not kept and not found:
                done = seen.sequence
        self._done[kind] = done
        return found

    async def _delete(self, ids: list[UUID], wanted: frozenset[str], cutoff: datetime, audit: Audit[str] | None) -> int:
        records = await self._kv.run(lambda: read_records(self._kv, ids))

        def audit_of(deleted: Sequence[UUID]) -> Sequence[AuditEntry]:
            return [] if audit is None else audit([records[task_id].head["state"] for task_id in deleted])

        guards = []
        for task_id, record in records.items():
            note = read_note({"Tasklib-Note": record.note()})
            if note is not None and _is_old(note, wanted, micros(cutoff)):
                guards.append((task_id, record.head["version"]))
        return (await self._deletes.delete(guards, audit_of)).count(WriteResult.APPLIED)

    async def _walk(self, after: int) -> AsyncIterator[_Seen]:
        """The notes of all tasks in the order of their last writes."""
        kv = self._kv
        stream, name = kv.address.stream, f"tasklib-{secrets.token_hex(8)}"
        config = {
            "name": name,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": after + 1,
            "ack_policy": "none",
            "filter_subject": f"{kv.address.prefix}{keys.TASK}*",
            "headers_only": True,
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": 30 * 1_000_000_000,
        }
        queue: asyncio.Queue[Msg] = asyncio.Queue()
        client, inbox = kv.connection.client, f"_INBOX.{secrets.token_hex(11)}"
        subscription = await client.subscribe(inbox, cb=queue.put, pending_msgs_limit=0, pending_bytes_limit=0)
        try:
            await kv.api(f"CONSUMER.CREATE.{stream}.{name}", {"stream_name": stream, "config": config})
            while messages := await self._next(client, name, inbox, queue):
                for message in messages:
                    seen = self._seen(message)
                    if seen is not None:
                        yield seen
        finally:
            if client.is_connected:
                await subscription.unsubscribe()
                await client.publish(f"$JS.API.CONSUMER.DELETE.{stream}.{name}")

    async def _next(self, client: Client, name: str, inbox: str, queue: asyncio.Queue[Msg]) -> list[Msg]:
        messages: list[Msg] = []
        request = json.dumps({"batch": _AT_ONCE, "no_wait": True}).encode()
        await client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{self._kv.address.stream}.{name}", request, inbox)
        while len(messages) < _AT_ONCE:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                message = await queue.get()
            if message.headers is not None and "Status" in message.headers:
                break
            messages.append(message)
        return messages

    def _seen(self, message: Msg) -> _Seen | None:
        note = read_note(message.headers)
        if note is None:
            return None
        # Place and time of a message stand in its reply subject.
        fields = message.reply.split(".")
        key = message.subject[len(self._kv.address.prefix) :]
        return _Seen(int(fields[-4]), int(fields[-2]) // 1000, UUID(key[len(keys.TASK) :]), note)


def _is_old(note: Note, wanted: frozenset[str], cutoff: int) -> bool:
    return note.state in wanted and note.completed is not None and note.completed <= cutoff
