"""Tokens of the REST API, and who did what."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import apsw

from tasklib.stores.sqlite.batches import SQL, rows_of
from tasklib.stores.sqlite.rows import instant, seconds
from tasklib.stores.values import AuditEntry, Token


def add_token(connection: apsw.Connection, token: Token, clock_offset: float) -> None:
    parameters = {"id": token.id, "label": token.label, "role": token.role, "digest": token.digest}
    connection.execute(SQL["add_token"], {**parameters, "offset": seconds(clock_offset)})


def tokens(connection: apsw.Connection) -> list[Token]:
    return [
        Token(
            id=token_id,
            label=label,
            role=role,
            digest=digest,
            created_at=instant(created_at),
            revoked_at=None if revoked_at is None else instant(revoked_at),
        )
        for token_id, label, role, digest, created_at, revoked_at in rows_of(connection, SQL["tokens"])
    ]


def revoke_token(connection: apsw.Connection, token_id: str, clock_offset: float) -> bool:
    connection.execute(SQL["revoke_token"], {"id": token_id, "offset": seconds(clock_offset)})
    return connection.changes() > 0


def note(connection: apsw.Connection, entries: Sequence[AuditEntry], clock_offset: float) -> None:
    for entry in entries:
        parameters = {
            "actor": entry.actor,
            "action": entry.action,
            "task_id": None if entry.task_id is None else str(entry.task_id),
            "name": entry.name,
            "detail": entry.detail,
            "offset": seconds(clock_offset),
        }
        connection.execute(SQL["note"], parameters)


def noted(connection: apsw.Connection, task_id: UUID | None, limit: int) -> list[AuditEntry]:
    if task_id is None:
        rows = rows_of(connection, SQL["noted"], {"limit": limit})
    else:
        rows = rows_of(connection, SQL["noted_of_task"], {"limit": limit, "task_id": str(task_id)})
    return [
        AuditEntry(
            at=instant(at),
            actor=actor,
            action=action,
            task_id=None if found is None else UUID(found),
            name=name,
            detail=detail,
        )
        for at, actor, action, found, name, detail in rows
    ]
