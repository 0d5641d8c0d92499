"""Tokens of the REST API, and who did what."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from uuid import UUID

from tasklib.core.errors import StoreError
from tasklib.stores.nats import keys
from tasklib.stores.nats.clock import instant, written
from tasklib.stores.nats.kv import Entry, KeyValueStore, Write
from tasklib.stores.values import AuditEntry, Token


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
        }
        about = "all" if entry.task_id is None else str(entry.task_id)
        writes.append(Write(f"{keys.AUDIT}{about}.{stamp}{place:06d}", 0, json.dumps(fields).encode()))
    return writes


async def list_audit(kv: KeyValueStore, task_id: UUID | None, limit: int) -> list[AuditEntry]:
    prefix = keys.AUDIT if task_id is None else f"{keys.AUDIT}{task_id}."
    entries = await kv.run(lambda: kv.under(prefix))
    latest = sorted(entries, key=lambda entry: entry.key.rpartition(".")[2], reverse=True)[:limit]
    return [_audit(json.loads(entry.data)) for entry in latest]


def _audit(fields: dict[str, str | None]) -> AuditEntry:
    return AuditEntry(
        at=instant(str(fields["at"])),
        actor=str(fields["actor"]),
        action=str(fields["action"]),
        task_id=None if fields["task_id"] is None else UUID(str(fields["task_id"])),
        name=fields["name"],
        detail=str(fields["detail"]),
    )
