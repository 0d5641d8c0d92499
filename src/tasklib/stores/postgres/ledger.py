"""Tokens of the REST API, and who did what."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from tasklib.stores.postgres.calls import Calls
from tasklib.stores.postgres.looks import fetch
from tasklib.stores.values import AuditEntry, Token


async def add_token(calls: Calls, token: Token) -> None:
    await fetch(calls, "add_token", token.id, token.label, token.role, token.digest, calls.offset)


async def tokens(calls: Calls) -> list[Token]:
    return [
        Token(id=row[0], label=row[1], role=row[2], digest=row[3], created_at=row[4], revoked_at=row[5])
        for row in await fetch(calls, "tokens")
    ]


async def revoke_token(calls: Calls, token_id: str) -> bool:
    return bool(await fetch(calls, "revoke_token", token_id, calls.offset))


async def note(calls: Calls, entries: Sequence[AuditEntry]) -> None:
    columns = [
        [entry.actor for entry in entries],
        [entry.action for entry in entries],
        [entry.task_id for entry in entries],
        [entry.name for entry in entries],
        [entry.detail for entry in entries],
    ]
    await fetch(calls, "note", *columns, calls.offset)


async def noted(calls: Calls, task_id: UUID | None, limit: int) -> list[AuditEntry]:
    rows = await (fetch(calls, "noted", limit) if task_id is None else fetch(calls, "noted_of_task", limit, task_id))
    return [
        AuditEntry(at=row[0], actor=row[1], action=row[2], task_id=row[3], name=row[4], detail=row[5]) for row in rows
    ]
