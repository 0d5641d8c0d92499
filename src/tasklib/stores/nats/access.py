"""Tokens of the REST API, and who did what."""

from __future__ import annotations

import json
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any
from uuid import UUID

from tasklib.core.errors import InvalidValue, StoreError
from tasklib.stores.nats import keys
from tasklib.stores.nats.clock import instant, written
from tasklib.stores.nats.kv import Entry, KeyValueStore, Write
from tasklib.stores.values import AuditEntry, AuditFilter, Token

_CURSOR = re.compile("[0-9]{20}[0-9a-f]{12}[0-9]{6}")


async def add_token(kv: KeyValueStore, token: Token, audit: Sequence[AuditEntry]) -> None:
    fields = {"id": token.id, "label": token.label, "role": token.role, "digest": token.digest}
    data = json.dumps({**fields, "created_at": written(kv.clock.now()), "revoked_at": None}).encode()

    def change(entry: Entry | None) -> bytes | None:
        if entry is None:
            return data
        if json.loads(entry.data)["digest"] != token.digest:
            raise StoreError(f"there is a token {token.id!r} already")
        return None  # ours: the reply was lost

    await kv.update(keys.token(token.id), change, beside=lambda: audit_writes(kv, audit))


async def tokens(kv: KeyValueStore) -> list[Token]:
    entries = await kv.run(lambda: kv.under(keys.TOKEN))
    found = [
        Token(
            id=fields["id"],
            label=fields["label"],
            role=fields["role"],
            digest=fields["digest"],
            created_at=instant(fields["created_at"]),
            revoked_at=None if fields["revoked_at"] is None else instant(fields["revoked_at"]),
        )
        for fields in (json.loads(entry.data) for entry in entries)
    ]
    return sorted(found, key=lambda token: (token.created_at, token.id))


async def revoke_token(kv: KeyValueStore, token_id: str, audit: Sequence[AuditEntry]) -> bool:
    def change(entry: Entry | None) -> bytes | None:
        fields = None if entry is None else json.loads(entry.data)
        if fields is None or fields["revoked_at"] is not None:
            return None
        return json.dumps({**fields, "revoked_at": written(kv.clock.now())}).encode()

    return await kv.update(keys.token(token_id), change, beside=lambda: audit_writes(kv, audit)) is not None


def audit_writes(kv: KeyValueStore, entries: Sequence[AuditEntry]) -> list[Write]:
    """To go into the batch of what they tell of. Under new keys each time: one whose answer was lost may be there."""
    moment = kv.clock.now()
    stamp = f"{kv.clock.micros():020d}{secrets.token_hex(6)}"
    writes = []
    for place, entry in enumerate(entries):
        fields = {
            "at": written(moment),
            "actor": entry.actor,
            "action": entry.action,
            "task_id": None if entry.task_id is None else str(entry.task_id),
            "name": entry.name,
            "detail": entry.detail,
            "bulk_id": None if entry.bulk_id is None else str(entry.bulk_id),
            "done": entry.done,
        }
        about = "all" if entry.task_id is None else str(entry.task_id)
        writes.append(Write(f"{keys.AUDIT}{about}.{stamp}{place:06d}", 0, json.dumps(fields).encode()))
    return writes


async def list_audit(kv: KeyValueStore, where: AuditFilter, limit: int, cursor: str | None) -> list[AuditEntry]:
    if cursor is not None and not _CURSOR.fullmatch(cursor):
        raise InvalidValue(f"cursor: {cursor!r:.60} is none of this audit trail's", field="cursor")
    prefix = keys.AUDIT if where.task_id is None else f"{keys.AUDIT}{where.task_id}."
    entries = {entry.key.rpartition(".")[2]: entry for entry in await kv.run(lambda: kv.under(prefix))}
    latest: Iterable[AuditEntry] = (
        _audit(place, json.loads(entries[place].data)) for place in sorted(entries, reverse=True)
    )
    if where.folded:
        latest = _folded([entry for entry in latest if where.name in (None, entry.name)])
    behind = (entry for entry in latest if cursor is None or str(entry.cursor) < cursor)
    return list(islice((entry for entry in behind if _matches(entry, where)), limit))


def _folded(latest: list[AuditEntry]) -> list[AuditEntry]:
    """Of a mass action its first batch, with what all of them did; its type if that is one."""
    listed = [entry for entry in latest if entry.bulk_id is None or entry.task_id is None]
    done: Counter[UUID] = Counter()
    names: dict[UUID, set[str | None]] = {}
    first: dict[UUID, str | None] = {}
    for entry in listed:
        if entry.bulk_id is not None:
            done[entry.bulk_id] += entry.done or 0
            names.setdefault(entry.bulk_id, set()).add(entry.name)
            first[entry.bulk_id] = entry.cursor
    return [
        entry if entry.bulk_id is None else replace(entry, name=_only(names[entry.bulk_id]), done=done[entry.bulk_id])
        for entry in listed
        if entry.bulk_id is None or first[entry.bulk_id] == entry.cursor
    ]


def _only(names: set[str | None]) -> str | None:
    return next(iter(names)) if len(names) == 1 else None


def _matches(entry: AuditEntry, where: AuditFilter) -> bool:
    wanted = ((where.actor, entry.actor), (where.action, entry.action), (where.name, entry.name))
    at = entry.at
    if where.bulk_id is not None and (entry.task_id is not None or entry.bulk_id != where.bulk_id):
        return False
    return all(asked is None or asked == found for asked, found in wanted) and (
        at is None or ((where.after is None or at >= where.after) and (where.before is None or at < where.before))
    )


def _audit(cursor: str, fields: dict[str, Any]) -> AuditEntry:
    return AuditEntry(
        cursor=cursor,
        at=instant(str(fields["at"])),
        actor=str(fields["actor"]),
        action=str(fields["action"]),
        task_id=None if fields["task_id"] is None else UUID(str(fields["task_id"])),
        name=fields["name"],
        detail=str(fields["detail"]),
        bulk_id=UUID(fields["bulk_id"]) if fields.get("bulk_id") else None,
        done=fields.get("done"),
    )
